"""`stsbench published`."""

from typing import Annotated

import typer

from stsbench.cli.options import Output, grouped
from stsbench.cli.output import print_result, tell

app = typer.Typer(help="Look up numbers from papers, each with where it was printed.", no_args_is_help=True)


@app.command("list")
@grouped
def list_(
    what: Annotated[
        str, typer.Argument(help="`tables`, `exhibits`, `rows`, `systems` or `checkpoints`.")
    ] = "tables",
    output: Output = Output(),
) -> None:
    """List the tables, exhibits (every table and figure), rows, systems or checkpoints that are known.

    JSON and CSV tell all: sources, lines, notes.

    Example: `stsbench published list checkpoints`
    """
    from stsbench.published.lookup import list_published

    print_result(list_published(what), output)


@app.command()
@grouped
def show(
    table: Annotated[str, typer.Argument(help="A table's name, as `stsbench published list` gives it.")],
    output: Output = Output(),
) -> None:
    """Print a table as its paper prints it.

    JSON and CSV have one record per cell, with the file, the line and the string that it was read from.

    Example: `stsbench published show mocose-acl2022-1 --markdown`
    """
    from stsbench.published.lookup import show_table

    result = show_table(table)
    print_result(result, output)
    if output.style in {"json", "csv"}:
        for note in result.notes():
            tell(note, quiet=output.quiet)


@app.command()
@grouped
def row(
    name: Annotated[str, typer.Argument(help="A system, a checkpoint's Hub name, or `table/row`.")],
    output: Output = Output(),
) -> None:
    """Print a published row, where it was read, and what other papers print for it.

    Example: `stsbench published row esimcse-bert-base`
    """
    from stsbench.published.lookup import show_row

    result = show_row(name)
    print_result(result, output)
    if output.style in {"json", "csv"}:
        tell(result.place, quiet=output.quiet)
