"""Comparisons as tables and figures for readers."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.comparison.overlap import EVERYWHERE, Overlap
from stsbench.comparison.result import AVERAGES, Comparison, Difference
from stsbench.comparison.seeds import SeedsComparison, SeedsDifference
from stsbench.render.charts import forest
from stsbench.render.figures import save_figure, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_TESTS = {"sts": "Williams", "transfer": "McNemar"}
_EFFECTS = {"sts": "q", "transfer": "h"}


def tables(comparison: Comparison | SeedsComparison, *, subsets: bool = False) -> "list[pd.DataFrame]":
    """Return the tables for readers: of each kind of task, or of the seeds; then what was found in corpora.

    Args:
        comparison: what to show.
        subsets: whether to show every subset too.
    """
    import pandas as pd

    tail = 50 * (1 - comparison.level)
    limits = (f"{tail:g} %", f"{100 - tail:g} %")
    if isinstance(comparison, SeedsComparison):
        shown = [pd.DataFrame([_seeds_row(row, limits, comparison.b) for row in comparison.rows])]
        shown = [table.dropna(axis="columns", how="all") for table in shown]
    else:
        rows = [row for row in comparison.rows if subsets or not row.subset]
        by_kind = [[_row(row, limits, subsets) for row in rows if row.kind == kind] for kind in AVERAGES]
        shown = [pd.DataFrame(own) for own in by_kind if own]
    if comparison.overlaps:
        shown.append(pd.DataFrame([_overlap_row(entry) for entry in comparison.overlaps]))
    return shown


def legend(comparison: Comparison | SeedsComparison) -> list[str]:
    """Return which is A and which is B."""
    return [f"{letter}: {name}" for letter, name in (("A", comparison.a), ("B", comparison.b)) if name]


def figure(comparison: Comparison | SeedsComparison) -> "Figure":
    """Return a forest plot: the differences with their intervals, filled where they are real; or, of seeds, the
    means with their ranges.
    """
    import pandas as pd

    if isinstance(comparison, SeedsComparison):
        rows = [
            {
                "label": row.task,
                "series": name,
                "value": getattr(row, f"{side}_mean"),
                "low": getattr(row, f"{side}_lowest"),
                "high": getattr(row, f"{side}_highest"),
                "filled": True,
                "summary": not row.is_task,
            }
            for row in comparison.rows
            for side, name in (("a", comparison.a), ("b", comparison.b))
            if name
        ]
        return forest(pd.DataFrame(rows), "mean and range over seeds")
    alpha = 1 - comparison.level
    rows = [
        {
            "label": row.task,
            "series": "",
            "value": row.difference,
            "low": row.low,
            "high": row.high,
            "filled": (row.p_holm if row.is_task else row.p) < alpha,
            "summary": not row.is_task,
        }
        for row in comparison.rows
        if not row.subset
    ]
    label = f"{shortened(comparison.b)} less {shortened(comparison.a)} (filled: real at {100 * alpha:g} % by Holm)"
    return forest(pd.DataFrame(rows), label, reference=0.0)


def save(comparison: Comparison | SeedsComparison, path: str | Path) -> Path:
    """Draw a comparison into a file; see `figure`.

    Raises:
        UserError: if the name's ending is no format, or the file cannot be written.
    """
    return save_figure(figure(comparison), path)


def overlap_sentences(comparison: Comparison | SeedsComparison) -> list[str]:
    """Return what was found in each corpus, in a sentence each."""
    corpora = dict.fromkeys(entry.corpus for entry in comparison.overlaps)
    totals = {
        corpus: next(
            entry
            for entry in sorted(comparison.overlaps, key=lambda entry: entry.task != EVERYWHERE)
            if entry.corpus == corpus
        )
        for corpus in corpora
    }
    return [
        f"{corpus} holds {total.found} of {total.sentences} test sentences ({total.share:.1%}); whatever the "
        f"tokenisation and punctuation, {total.found_by_letters} ({total.share_by_letters:.1%})."
        for corpus, total in totals.items()
    ]


def _row(row: Difference, limits: tuple[str, str], subsets: bool) -> dict[str, object]:
    return {
        "task": row.task,
        **({"subset": row.subset} if subsets else {}),
        "A": row.a,
        "B": row.b,
        "B − A": row.difference,
        limits[0]: row.low,
        limits[1]: row.high,
        _EFFECTS[row.kind]: None if math.isnan(row.effect) else f"{row.effect:.3f}",
        "p": p_text(row.p),
        "p (Holm)": p_text(row.p_holm),
        f"{_TESTS[row.kind]} p (Holm)": p_text(row.test_p_holm),
    }


def _seeds_row(row: SeedsDifference, limits: tuple[str, str], b: str) -> dict[str, object]:
    sides = {"A": "a", "B": "b"} if b else {"A": "a"}
    told: dict[str, object] = {"task": row.task}
    for name, side in sides.items():
        runs, mean, sd, lowest, highest = (
            getattr(row, f"{side}_{part}") for part in ("runs", "mean", "sd", "lowest", "highest")
        )
        told |= {
            name: mean,
            f"sd {name}": sd,
            f"range {name}": f"{lowest:.2f} to {highest:.2f}" if runs > 1 else None,
        }
    return told | {
        "B − A": row.difference,
        limits[0]: row.low,
        limits[1]: row.high,
        "p": p_text(row.p),
        "p (Holm)": p_text(row.p_holm),
        "permutation p": p_text(row.permutation_p),
    }


def _overlap_row(entry: Overlap) -> dict[str, object]:
    return {
        "corpus": entry.corpus,
        "task": entry.task,
        "sentences": entry.sentences,
        "found": entry.found,
        "% found": 100 * entry.share,
        "by letters": entry.found_by_letters,
        "% by letters": 100 * entry.share_by_letters,
    }


def p_text(p: float) -> str | None:
    """Return a p-value as it is printed: three digits, or that it is smaller.

    >>> p_text(0.0312), p_text(0.0002), p_text(float("nan"))
    ('0.031', '<0.001', None)
    """
    if math.isnan(p):
        return None
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
