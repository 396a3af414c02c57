"""`stsbench published`."""

from typing import Annotated

import typer

from stsbench.cli.options import Output
from stsbench.cli.output import print_result, tell
from stsbench.cli.verbs import Call, Verb

app = typer.Typer(help="Look up numbers from papers, each with where it was printed.", no_args_is_help=True)


@app.command("list")
def list_(
    asked: Annotated[Call, Verb("stsbench.published.lookup:list_published")], output: Output = Output()
) -> None:
    """List the tables, exhibits (every table and figure), rows, systems or checkpoints that are known.

    JSON and CSV tell all: sources, lines, notes.

    Example: `stsbench published list checkpoints`
    """
    print_result(asked(), output)


@app.command()
def show(asked: Annotated[Call, Verb("stsbench.published.lookup:show_table")], output: Output = Output()) -> None:
    """Print a table as its paper prints it.

    JSON and CSV have one record per cell, with the file, the line and the string that it was read from. With
    --resolution it prints which differences the tasks' pairs could tell from chance.

    Examples:
    * `stsbench published show mocose-acl2022-1 --markdown`
    * `stsbench published show mocose-acl2022-1 --resolution`
    """
    result = asked()
    print_result(result, output)
    if output.style in {"json", "csv"}:
        for note in result.notes():
            tell(note, quiet=output.quiet)


@app.command()
def row(asked: Annotated[Call, Verb("stsbench.published.lookup:show_row")], output: Output = Output()) -> None:
    """Print a published row, where it was read, and what other papers print for it.

    Example: `stsbench published row esimcse-bert-base`
    """
    result = asked()
    print_result(result, output)
    if output.style in {"json", "csv"}:
        tell(result.place, quiet=output.quiet)
