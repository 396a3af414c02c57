"""`stsbench published`."""

from typing import Annotated

import typer

from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    QuietFlag,
    chosen_style,
    print_frame,
    tell,
)

app = typer.Typer(help="Look up numbers from papers, each with where it was printed.", no_args_is_help=True)

_SHORT = {
    "tables": ["table", "title", "rows", "cells", "restored", "lost"],
    "rows": ["row", "system", "variant", "label"],
    "systems": ["system", "kind", "Avg. STS", "row"],
    "checkpoints": ["checkpoint", "hub", "pooling", "unverified"],
}
"""What a reader sees of each list; JSON and CSV tell all."""


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="`tables`, `rows`, `systems` or `checkpoints`.")] = "tables",
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
) -> None:
    """List the tables, rows, systems or checkpoints that are known.

    JSON and CSV tell all: sources, lines, notes.

    Example: `stsbench published list checkpoints`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.published import verb as published

    frame = published.list_(what)
    print_frame(frame if style in {"json", "csv"} else frame[_SHORT[what]], style)


@app.command()
def show(
    table: Annotated[str, typer.Argument(help="A table's name, as `stsbench published list` gives it.")],
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Print a table as its paper prints it.

    JSON and CSV have one record per cell, with the file, the line and the string that it was read from.

    Example: `stsbench published show mocose-acl2022-1 --markdown`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.published import verb as published

    if style in {"json", "csv"}:
        print_frame(published.show_cells(table), style)
    else:
        print_frame(published.show(table), style, decimals=published.decimals(table))
    for note in published.notes(table):
        tell(note, quiet=quiet)


@app.command()
def row(
    name: Annotated[str, typer.Argument(help="A system, a checkpoint's Hub name, or `table/row`.")],
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Print a published row, where it was read, and what other papers print for it.

    Example: `stsbench published row esimcse-bert-base`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.published import verb as published

    frame = published.row(name)
    full_name, file, lines = frame["row"].iloc[0], frame["file"].iloc[0], sorted(set(frame["line"]))
    if style not in {"json", "csv"}:
        frame = frame[["column", "value", "split", "metric", "status", "raw", "elsewhere"]]
    print_frame(frame, style, headline="value", decimals=published.decimals(full_name.partition("/")[0]))
    tell(f"{full_name}: {file}, line {', '.join(map(str, lines))}", quiet=quiet)


@app.command()
def conflicts(
    page: Annotated[bool, typer.Option("--page", help="Print the whole page in Markdown.")] = False,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
) -> None:
    """List what does not add up: averages, differences, and what papers print differently.

    Example: `stsbench published conflicts --page > docs/published-conflicts.md`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.published import verb as published

    if page:
        typer.echo(published.conflicts_page(), nl=False)
        return
    frame = published.conflicts()
    print_frame(frame if style in {"json", "csv"} else frame[["kind", "table", "row", "column", "message"]], style)
