"""How far a task's raters agree: what the pair table keeps of their ratings, and the ceiling that they set."""

import math

import numpy as np

from stsbench.data.tables import PlainTable
from stsbench.records.parts import RaterPart
from stsbench.statistics.correlations import ceiling, reliability

RATINGS = "ratings"
"""The column of `StsData.pairs` with each pair's ratings, of sets that publish them."""

COUNT, VARIANCE = "raters", "rater_variance"
"""What a pair table keeps of them: how many there are, and their variance (NaN of a single one)."""


def with_spread(pairs: PlainTable) -> PlainTable:
    """Return a table of pairs with the number and the variance of the ratings in place of the ratings.

    A table without ratings is returned as it is.
    """
    if RATINGS not in pairs.columns:
        return pairs
    given = pairs[RATINGS]
    return pairs.select(name for name in pairs.columns if name != RATINGS).with_columns(
        {
            COUNT: np.array([len(ratings) for ratings in given], dtype=np.float64),
            VARIANCE: np.array([_variance(ratings) for ratings in given], dtype=np.float64),
        }
    )


def rater_part(pairs: PlainTable) -> RaterPart | None:
    """Return what a task's raters allow, from its rows of the pair table; None where no ratings are published."""
    if not {COUNT, VARIANCE} <= set(pairs.columns):
        return None
    counts, variances = (pairs[column].astype(np.float64) for column in (COUNT, VARIANCE))
    rated = np.isfinite(variances) & (counts >= 2)
    if not rated.any():
        return None
    reliable = reliability(pairs["gold"], counts, variances)
    highest = ceiling(reliable)
    return RaterPart(
        pairs=int(rated.sum()),
        ratings=float(counts[rated].mean()),
        reliability=None if math.isnan(reliable) else reliable,
        ceiling=None if math.isnan(highest) else highest,
    )


def _variance(ratings: tuple[float, ...]) -> float:
    return float(np.var(ratings, ddof=1)) if len(ratings) > 1 else math.nan
