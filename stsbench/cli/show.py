"""`stsbench show`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.output import CsvFlag, JsonFlag, LatexFlag, MarkdownFlag, QuietFlag, chosen_style
from stsbench.cli.scores import print_scores


def show(
    runs: Annotated[list[Path], typer.Argument(help="Run folders or run.json files.")],
    subsets: Annotated[bool, typer.Option("--subsets", help="Print every subset too.")] = False,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Print records again; several stand side by side if their protocols agree.

    Examples:
    * `stsbench show runs/minilm-avg-sts --subsets`
    * `stsbench show runs/a runs/b --latex`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows.show import comparable

    print_scores(comparable(runs), style, subsets=subsets, quiet=quiet, as_list=len(runs) > 1)
