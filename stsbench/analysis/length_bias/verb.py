"""`length_bias`: does a model find sentences more alike because they are of like length?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.analysis.length_bias.numbers import GAP, SPEARMAN, Lengths
from stsbench.analysis.length_bias.numbers import length_bias as analyse
from stsbench.analysis.length_bias.readers import UNSIGNED, figure, views
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.published.catalogue import rows_of, systems, table
from stsbench.scoring.sts import Bootstrap
from stsbench.scoring.subjects import Wanted, named_subjects, pair_tables
from stsbench.scoring.vectors import gold_ranges
from stsbench.statistics.estimates import Resampling

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Bootstrap", "figure", "length_bias", "views"]

_PUBLISHED = {"esimcse-arxiv-v1-1": SPEARMAN, "esimcse-coling2022-7": UNSIGNED}
"""The papers' tables, and what they hold."""


def length_bias(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    tasks: Sequence[str] = (),
    length: str = "words",
    threshold: int | None = None,
    bins: Sequence[int] = (),
    published: bool = False,
    bootstrap: Bootstrap | None = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Measure the length bias of runs or models.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: by default all that a run has; for models the seven STS tasks, or the sample.
        length: `words` (whitespace tokens as released), `subwords` or `characters`.
        threshold: the largest length difference that counts as short; by default 3, for characters 15.
        bins: where the bins of the curve begin, from 0 and rising.
        published: whether the papers' rows stand beside them (words, threshold 3).
        bootstrap: resamples, level and seed of the intervals.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.
        options: how to load models, as in `load`.

    Returns:
        A tidy table; its columns and measures are those of `stsbench.analysis.length_bias.numbers.length_bias`.

    Raises:
        UserError: if a run's pair table is missing or another one, lacks a task, or knows no lengths in the unit.

    >>> frame = length_bias(lambda sentences: [[len(s), s.count("e")] for s in sentences], tasks=["sample"])
    >>> frame.loc[frame["measure"] == "slope", ["task", "group", "pairs"]].to_dict("records")[0]
    {'task': 'sample', 'group': 'all', 'pairs': 252}
    """
    import pandas as pd

    lengths = Lengths(length, threshold, tuple(bins))
    if published and (lengths.unit != "words" or lengths.longest_short != 3):
        raise UserError("the papers' rows are of differences in words up to 3 and above: leave --published out.")
    tables = pair_tables(named_subjects(runs, **options), tasks, data_dirs=data_dirs, progress=progress)
    chosen = bootstrap or Bootstrap()
    ranges = gold_ranges(pd.concat(tables.values(), ignore_index=True))
    frame = analyse(tables, ranges, lengths, Resampling(chosen.resamples, chosen.level, chosen.seed))
    # Whole numbers although the papers do not print how many pairs a value is of.
    frame = pd.concat([frame, _published_rows(lengths)], ignore_index=True) if published else frame
    return frame.astype({"pairs": "Int64"})


def _published_rows(lengths: Lengths) -> "pd.DataFrame":
    """Return what the papers print, in the same columns; the gap is the difference of what is printed."""
    import pandas as pd

    short, long = lengths.groups
    groups = {"length difference <= 3": short, "length difference > 3": long}
    rows = [
        {
            "model": f"{systems()[cell.system].title} (published)",
            "task": "Avg." if cell.setting.task == "Avg. STS" else cell.setting.task,
            "measure": measure,
            "group": groups[cell.setting.group],
            "unit": lengths.unit,
            "value": cell.score,
        }
        for name, measure in _PUBLISHED.items()
        for row in rows_of(table(name))
        for cell in row.cells
    ]
    frame = pd.DataFrame(rows)
    keys = ["model", "task", "measure", "unit"]
    wide = frame.pivot_table(index=keys, columns="group", values="value", sort=False)
    gap = (wide[short] - wide[long]).rename("value").reset_index().assign(group=GAP)
    return pd.concat([frame, gap], ignore_index=True)
