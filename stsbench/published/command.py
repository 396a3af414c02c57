"""`stsbench published`."""

from typing import TYPE_CHECKING, Annotated

import typer

from stsbench.cli.options import Output, expand
from stsbench.cli.output import print_next, print_notes, print_result

if TYPE_CHECKING:
    from stsbench.published.lookup import PrintedRow, PrintedTable

app = typer.Typer(help="Look up published scores, each with its source.", no_args_is_help=True)


@app.command("list")
@expand
def list_(
    what: Annotated[str, typer.Argument(help="`tables`, `rows`, `systems` or `checkpoints`.")] = "tables",
    output: Output = Output(),
) -> None:
    """List the included tables, rows, systems or checkpoints.

    JSON and CSV contain all fields: sources, lines, notes.

    Example: `stsbench published list checkpoints`
    """
    from stsbench.published.lookup import list_published

    print_result(list_published(what), output)
    print_next(output, "published", *(("show", "TABLE") if what == "tables" else ("row", "NAME")))


@app.command()
@expand
def show(
    table: Annotated[str, typer.Argument(help="A table's name from `stsbench published list`.")],
    output: Output = Output(),
) -> None:
    """Print a table as in its paper.

    JSON and CSV have one record per cell, with file and line.

    Example: `stsbench published show mocose-acl2022-1 --markdown`
    """
    from stsbench.published.lookup import show_table

    _print(show_table(table), output)
    print_next(output, "published", "row", f"{table}/ROW")


@app.command()
@expand
def row(
    name: Annotated[str, typer.Argument(help="A system, a checkpoint on the Hub, or `table/row`.")],
    output: Output = Output(),
) -> None:
    """Print a published row, its source, and what other papers print for it.

    Example: `stsbench published row esimcse-bert-base`
    """
    from stsbench.published.lookup import show_row

    _print(show_row(name), output)
    print_next(output, "check", "RUN", "--against", name)


def _print(result: "PrintedTable | PrintedRow", output: Output) -> None:
    print_result(result, output)
    if output.style in {"json", "csv"}:
        print_notes(*result.notes, quiet=output.quiet)
