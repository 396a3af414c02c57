"""A score of both models with its paired replicates, and the row that it makes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics import percentile_interval, percentile_p_value
from stsbench.verify.differences import Difference, Kind

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """A score of A and of B: on a task, a subset, or on average.

    Attributes:
        values: (2,) the scores, A first, from 0 or -1 to 1.
        replicates: (2, resamples) of the bootstrap; each column is of one resample.
    """

    values: Floats
    replicates: Floats

    @classmethod
    def mean(cls, scores: "Sequence[Scored]") -> "Scored":
        """Return the mean over tasks. They are resampled independently: k-th replicates average to one."""
        return cls(
            np.mean([own.values for own in scores], axis=0), np.mean([own.replicates for own in scores], axis=0)
        )


def fisher(correlations: Floats) -> Floats:
    """Return Fisher's z of correlations; their difference is Cohen's q (Cohen 1988, chapter 4)."""
    return np.arctanh(correlations)


def arcsine(shares: Floats) -> Floats:
    """Return twice the arcsine of the roots of shares; their difference is Cohen's h (Cohen 1988, chapter 6)."""
    return 2 * np.arcsin(np.sqrt(shares))


def row_of(
    scores: Scored, kind: Kind, task: str, size: int, *, level: float, subset: str = "", **test: Any
) -> Difference:
    """Return the row of a score: difference, interval and p-value of the paired bootstrap, effect size.

    Args:
        scores: of both models.
        kind: as in `Difference`, and so are the others.
        task: its name.
        size: of pairs or items.
        level: of the intervals.
        subset: its name.
        test: the test's fields of `Difference`.
    """
    scale = fisher if kind == "sts" else arcsine
    replicates = scores.replicates[1] - scores.replicates[0]
    low, high = percentile_interval(100 * replicates, level)
    # A perfect correlation is infinitely far from the others on Fisher's scale, and undefined from another such.
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = float(np.diff(scale(scores.values))[0])
        effects = np.diff(scale(scores.replicates), axis=0)[0]
        effect_low, effect_high = percentile_interval(effects, level)
    a, b = (100 * scores.values).tolist()
    return Difference(
        kind=kind,
        task=task,
        subset=subset,
        size=size,
        a=a,
        b=b,
        difference=b - a,
        low=low,
        high=high,
        p=percentile_p_value(replicates),
        effect=effect,
        effect_low=effect_low,
        effect_high=effect_high,
        **test,
    )
