"""`stsbench check`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.options import Help, Panel, Written
from stsbench.cli.options import Output
from stsbench.cli.output import print_result, say, tell
from stsbench.cli.verbs import Call, Verb

_FOR_CI = "For continuous integration"


def _rows(incomplete: str) -> list[str]:
    from stsbench.published.catalogue import row_names

    return [name for name in ("auto", *row_names()) if name.startswith(incomplete)]


def check(
    asked: Annotated[Call, Verb("stsbench.judging.check:check", completed={"against": _rows})],
    junit: Annotated[
        Path | None,
        Written("file"),
        Panel(_FOR_CI),
        Help("Write the verdicts into this file too."),
    ] = None,
    github: Annotated[
        bool,
        typer.Option(
            "--github/--no-github",
            envvar="GITHUB_ACTIONS",
            help="Annotate the run of a GitHub workflow, and append to its summary. On by default there.",
            rich_help_panel=_FOR_CI,
        ),
    ] = False,
    output: Output = Output(),
) -> None:
    """Compare a run with published numbers, or with the run of a predecessor.

    Exit code 0: every score is within tolerance. 1: one is not. 2: they do not compare, and why. With --margin 3:
    these pairs cannot tell, and what would make them.

    Examples:
    * `stsbench check runs/minilm-avg-sts-mteb --tolerance 0.01`
    * `stsbench check runs/mine --against unsup-simcse-bert-base`
    * `stsbench check results.json --against esimcse-coling2022-3/esimcse-bert-base`
    * `stsbench check runs/new --baseline runs/old --max-drop 0.3 --junit check.xml`
    * `stsbench check runs/new --baseline runs/old --margin 0.3`
    """
    is_screen = output.style == "terminal"
    result = asked()
    print_result(result, output)
    if junit is not None:
        result.write_junit(junit)
    if github:
        # Beside the output where that is for a program: the service reads both.
        for line in result.annotations:
            say(line) if is_screen else tell(line)
        result.append_step_summary()
    for note in result.notes:
        tell(f"note: {note}", quiet=output.quiet)
    tell(result.sentence, quiet=output.quiet and result.passed)
    raise typer.Exit(result.exit_code)
