"""How records are printed: the papers' table, the subsets, the signatures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from stsbench.cli.output import print_frame, tell

if TYPE_CHECKING:
    from stsbench.records import RunRecord


def print_scores(records: "Sequence[RunRecord]", style: str, *, subsets: bool, quiet: bool, as_list: bool) -> None:
    """Print records in one style: as tables for readers, in full for programs.

    JSON is the record itself or, with `as_list` (several were asked for), a list of records; CSV has a row per
    task and subset.
    """
    from stsbench.workflows import tables

    if style == "json":
        texts = [record.model_dump_json(indent=1) for record in records]
        typer.echo(f"[{','.join(texts)}]" if as_list else texts[0])
    elif style == "csv":
        print_frame(tables.long_table(records), style)
    else:
        is_screen = style == "terminal"
        for number, scores in enumerate(tables.scores_tables(records, intervals=is_screen)):
            if number:
                typer.echo()
            print_frame(scores.table, style, headline=scores.headline)
        if subsets:
            typer.echo()
            print_frame(tables.subsets_table(records), style)
        if is_screen and not quiet:
            typer.echo()
            for line in tables.remarks(records):
                typer.echo(line)
    for record in records:
        for note in record.notes:
            tell(f"note: {note}", quiet=quiet)
