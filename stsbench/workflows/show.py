"""`show`: records side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.records import RunRecord, load_run
from stsbench.workflows.tables import labels, require_comparable, scores_tables

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
