"""`stsbench cite`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.output import JsonFlag


def cite(
    runs: Annotated[list[Path], typer.Argument(help="Run folders or run.json files.")], json: JsonFlag = False
) -> None:
    """Print what to cite for the models and tasks of some records, as BibTeX.

    Example: `stsbench cite runs/minilm-avg-sts > references.bib`
    """
    from stsbench.workflows.cite import cite as workflow

    citations = workflow(runs)
    if json:
        import json as json_

        typer.echo(json_.dumps(citations, indent=1, ensure_ascii=False))
        return
    for subject, citation in citations.items():
        # BibTeX ignores what stands between entries: a heading is a comment there.
        typer.echo(f"% {subject}\n{citation}\n" if citation.startswith("@") else f"% {subject}: {citation}\n")
