"""`stsbench reproduce`."""

from typing import Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.base.options import Help, Spelled
from stsbench.cli.options import FigureChoice, Output
from stsbench.cli.output import print_result, progress_bars, tell
from stsbench.cli.verbs import Call, Verb


def reproduce(
    asked: Annotated[Call, Verb("stsbench.reproduction.reproduce:reproduce", without=("table",))],
    table: Annotated[
        str, Spelled(), Help("A table or figure, as `--list` names it, such as `esimcse-coling2022-9`.")
    ] = "",
    set_: Annotated[
        list[str] | None,
        Spelled("--set", "KEY=VALUE"),
        Help("Change a key of every recipe that is trained. Repeatable."),
    ] = None,
    list_: Annotated[
        bool,
        Help("List the tables and figures, and whether each can be made; of a named one, all that it takes."),
    ] = False,
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Make a table or figure of the papers again, and answer what its paper claims with it.

    Rows are trained, or measured from public checkpoints, over several seeds; killed, the same command goes on.
    The page in the folder's `report` has the print, ours, intervals, and each claim: supported, contradicted or
    undecided, and what would decide it. The exit code is 1 if a job failed.

    Examples:
    * `stsbench reproduce --list`
    * `stsbench reproduce --list esimcse-coling2022-9`
    * `stsbench reproduce esimcse-coling2022-9 --scale demo`
    * `stsbench reproduce esimcse-coling2022-4 --scale laptop --corpus wiki.txt --out runs/parts`
    * `stsbench reproduce mocose-acl2022-7 --scale laptop --corpus wiki.txt --dry-run`
    """
    from stsbench.reports.report import write_reproduction
    from stsbench.reproduction.reproduce import reproductions
    from stsbench.reproduction.reproduced import Reproduction
    from stsbench.training.recipe_files import read_change

    if list_:
        print_result(reproductions(table), output)
        return
    if not table:
        raise UserError("no table is named: `stsbench reproduce --list` names them.")
    with progress_bars(quiet=output.quiet) as progress:
        result = asked(
            table=table,
            settings=dict(map(read_change, set_ or [])),
            progress=progress,
            notice=lambda sentence: tell(sentence, quiet=output.quiet),
        )
    if not isinstance(result, Reproduction):
        print_result(result, output)
        return
    page = write_reproduction(result)
    print_result(result, output, figure=figure)
    tell(f"{result.sentence} Written to {page}", quiet=output.quiet)
    if result.cost.failed:
        raise typer.Exit(1)
