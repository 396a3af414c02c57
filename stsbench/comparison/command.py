"""`stsbench compare`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from stsbench.base.errors import UserError
from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    QuietFlag,
    chosen_style,
    drawable,
    print_frame,
    progress_bars,
    tell,
)

_SETS = ("--a", "--b")


class SeveralRuns(TyperCommand):
    """Takes all runs that follow `--a` or `--b`, as a shell writes them for `--a runs/simcse-seed*`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its runs, which is what the parser understands."""
        told: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                option = argument if argument in _SETS else ""
                told += [] if option else [argument]
            else:
                told += [option, argument] if option else [argument]
        return super().parse_args(ctx, told)


app = typer.Typer()


@app.command(cls=SeveralRuns)
def compare(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Two run folders or run.json files.")
    ] = None,
    a: Annotated[
        list[str] | None,
        typer.Option(
            "--a", metavar="RUN...", help="Runs of one method with different seeds.", rich_help_panel="Seeds"
        ),
    ] = None,
    b: Annotated[
        list[str] | None,
        typer.Option("--b", metavar="RUN...", help="Runs of the other method.", rich_help_panel="Seeds"),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="Look for the test sentences in a training corpus: a text a line, or .csv; .gz too. Repeatable.",
            rich_help_panel="Corpus",
        ),
    ] = None,
    data_dir: Annotated[
        list[Path] | None,
        typer.Option(help="Look for the test sentences here first. Repeatable.", rich_help_panel="Corpus"),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=1, help="Bootstrap resamples of the pairs.", rich_help_panel="Statistics")
    ] = 5000,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.", rich_help_panel="Statistics")] = 12345,
    level: Annotated[float, typer.Option(help="Level of the intervals.", rich_help_panel="Statistics")] = 0.95,
    subsets: Annotated[
        bool, typer.Option("--subsets", help="Print every subset too.", rich_help_panel="Output")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            callback=drawable,
            help="Draw the differences into a .png, .svg or .pdf file.",
            rich_help_panel="Output",
        ),
    ] = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Tell whether the difference between two models is real.

    Two runs are compared pair by pair (paired bootstrap, Williams' test, Holm's correction); with `--a` and `--b`,
    two methods over several seeds.

    Examples:
    * `stsbench compare runs/mine-avg-sts runs/theirs-avg-sts`
    * `stsbench compare runs/a runs/b --subsets --figure difference.pdf`
    * `stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`
    * `stsbench compare runs/a runs/b --corpus wiki1m.txt`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    _demand_one_way(runs or [], a or [], b or [])
    from stsbench.comparison import compare as workflow
    from stsbench.comparison import tables as shown

    with progress_bars(quiet=quiet) as progress:
        result = workflow.compare(
            runs[0] if runs else workflow.matching_runs(a or []),
            runs[1] if runs else workflow.matching_runs(b or []),
            corpora=corpus or (),
            data_dirs=data_dir or (),
            bootstrap=workflow.Bootstrap(resamples, level, seed),
            progress=progress,
        )
    drawn = None if figure is None else shown.save(result, figure)
    if style == "json":
        import json as json_

        typer.echo(json_.dumps(result.as_dict(), indent=1, ensure_ascii=False))
    elif style == "csv":
        print_frame(result.table(), style)
    else:
        is_screen = style == "terminal"
        for line in shown.legend(result):
            typer.echo(line) if is_screen else tell(line, quiet=quiet)
        for number, table in enumerate(shown.tables(result, subsets=subsets)):
            if is_screen or number:
                typer.echo()
            print_frame(table, style, headline="B − A")
        if is_screen:
            typer.echo(f"\n{result.sentence}")
    if style in {"markdown", "latex"}:
        tell(result.sentence, quiet=quiet)
    for line in (*shown.overlap_sentences(result), *(f"note: {note}" for note in result.notes)):
        tell(line, quiet=quiet)
    if drawn is not None:
        tell(f"drawn in {drawn}", quiet=quiet)


def _demand_one_way(runs: list[Path], a: list[str], b: list[str]) -> None:
    if (a or b) and runs:
        raise UserError("two runs, or methods with --a and --b: leave out the one or the other.")
    if not a and len(runs) != 2:
        raise UserError(
            "name two runs, as in `stsbench compare runs/a runs/b`, or the runs of methods over seeds, as in "
            "`stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`."
        )
