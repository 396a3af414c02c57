"""The sample's own test of length bias: pairs designed to cross meaning with difference in length.

In each cell of the design (same, related or different meaning; same or different length) the pairs were written to
a gold score and a length difference, so that the two are not mixed up as they are in data that was found.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from stsbench.analysis.estimates import Floats, Resampling, ratio, sums_of, with_interval

if TYPE_CHECKING:
    import pandas as pd

CONTRAST, MARGIN = "design contrast", "design margin"
MEANINGS = ("same-meaning", "related", "different-meaning")
AGAINST, WITH = "length against meaning", "length with meaning"


def design_rows(pairs: "pd.DataFrame", resampling: Resampling) -> Iterator[dict[str, Any]]:
    """Yield how similarity answers to length at one meaning, and to meaning where length is against it.

    `design contrast`: mean error (similarity less scaled gold, x 100) of the pairs of same length less that of the
    pairs of different length, for each meaning and as their mean. An unbiased model has 0, one that finds
    sentences more alike for being of like length is above. `design margin`: mean similarity x 100 of pairs of the
    same meaning less that of pairs of different meaning; `length against meaning` takes the former with different,
    the latter with same length, `length with meaning` the reverse. Below 0 length has got the better of meaning.

    Args:
        pairs: rows of the sample with `task`, `design`, `error` (x 100) and `similarity`.
        resampling: how intervals are computed: over pairs, drawn inside each cell.
    """
    task = str(pairs["task"].iloc[0])
    cells: dict[str, tuple[int, Floats, Floats]] = {}
    for design, part in pairs.groupby("design"):
        terms = np.stack([np.ones(len(part)), part["error"], 100 * part["similarity"]])
        n, error, similarity = sums_of(terms, resampling, "design", str(design))
        cells[str(design)] = len(part), ratio(error, n), ratio(similarity, n)

    def row(measure: str, group: str, of: tuple[str, ...], estimate: Floats) -> dict[str, Any]:
        about = {"task": task, "measure": measure, "group": group, "length_difference": float("nan")}
        return about | {"pairs": sum(cells[cell][0] for cell in of)} | with_interval(estimate, resampling)

    contrasts = []
    for meaning in MEANINGS:
        same, different = f"{meaning}-same-length", f"{meaning}-different-length"
        contrasts.append(cells[same][1] - cells[different][1])
        yield row(CONTRAST, meaning, (same, different), contrasts[-1])
    yield row(CONTRAST, "mean", tuple(cells), np.mean(contrasts, axis=0))
    for group, of in (
        (AGAINST, ("same-meaning-different-length", "different-meaning-same-length")),
        (WITH, ("same-meaning-same-length", "different-meaning-different-length")),
    ):
        yield row(MARGIN, group, of, cells[of[0]][2] - cells[of[1]][2])
