"""`density`: cosine densities per gold bucket."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.analysis.density import density as analyse
from stsbench.analysis.density import figure, views
from stsbench.evaluation.tasks import SAMPLE
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress, silent
from stsbench.records import RunRecord
from stsbench.workflows.analysed_data import STS_B, canonical, gold_ranges, read_pairs_of
from stsbench.workflows.subjects import Subject, Wanted, named_subjects, pair_tables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["default_task", "density", "figure", "views"]


def density(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    task: str | None = None,
    buckets: int = 5,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Estimate the density of the cosines of a task's pairs in each bucket of gold scores.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        task: by default STS-B; the sample where that is all there is.
        buckets: how many equal buckets the scale of gold scores is cut into.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.
        options: how to load models, as in `load`.

    Returns:
        A tidy table; see `stsbench.analysis.density.density`.

    Raises:
        UserError: if a run lacks the task, or has no cosines.

    >>> frame = density(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> frame.drop_duplicates("bucket")["bucket"].tolist()
    ['[0, 1)', '[1, 2)', '[2, 3)', '[3, 4)', '[4, 5]']
    """
    import pandas as pd

    if buckets < 1:
        raise UserError(f"{buckets} buckets: give 1 or more.")
    subjects = named_subjects(runs, **options)
    chosen = canonical(task) if task else default_task(subjects, data_dirs)
    tables = pair_tables(subjects, [chosen], data_dirs=data_dirs, progress=progress)
    for name, table in tables.items():
        if "cosine" not in table:
            raise UserError(f"the run of {name} holds similarities that were given, and no cosines.")
    limits = gold_ranges(pd.concat(tables.values(), ignore_index=True))[chosen]
    return analyse(tables, limits, buckets).assign(task=chosen)


def default_task(subjects: Mapping[str, Subject], data_dirs: Sequence[str | Path] = ()) -> str:
    """Return STS-B; the sample where all have that and not all have STS-B."""
    held = [
        {task.task for task in subject.tasks}
        if isinstance(subject, RunRecord)
        else {read_pairs_of(None, None, data_dirs=data_dirs).task}
        for subject in subjects.values()
    ]
    common = set.intersection(*held)
    return SAMPLE if SAMPLE in common and STS_B not in common else STS_B
