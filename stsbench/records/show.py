"""`show`: records side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stsbench.cli.output import print_frame, tell
from stsbench.records.record import RunRecord
from stsbench.records.scores import labels, require_comparable, scores_tables
from stsbench.records.store import load_run

if TYPE_CHECKING:
    import pandas as pd

Run = RunRecord | str | Path


def show(runs: Run | Sequence[Run]) -> "pd.DataFrame":
    """Put the scores of runs side by side, as papers print them.

    Args:
        runs: records, their folders or `run.json`; one or several.

    Returns:
        One row per model with a column per task and their average, x 100; of a single task with subsets, a column
        for the task and one per subset. Transfer tasks (by `acc`) and supervised ones (by Pearson) follow. What a
        run has not measured is NaN.

    Raises:
        UserError: if a record is missing or damaged, or they do not compare, naming the field.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> show(run).columns.tolist()[:3]
    ['model', 'sample', 'news']
    """
    import pandas as pd

    records = comparable([runs] if isinstance(runs, RunRecord | str | Path) else runs)
    table = pd.DataFrame({"model": labels(records)})
    for scores in scores_tables(records):
        table = table.merge(scores.table, on="model", how="left")
    return table


def comparable(runs: Sequence[Run]) -> list[RunRecord]:
    """Return records that are to stand side by side.

    Raises:
        UserError: if one is missing or damaged, or they do not compare.
    """
    records = [run if isinstance(run, RunRecord) else load_run(run) for run in runs]
    require_comparable(records)
    return records


def print_scores(records: "Sequence[RunRecord]", style: str, *, subsets: bool, quiet: bool, as_list: bool) -> None:
    """Print records in one style: as tables for readers, in full for programs.

    JSON is the record itself or, with `as_list` (several were asked for), a list of records; CSV has a row per
    task and subset.
    """
    from stsbench.records import scores as tables

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
