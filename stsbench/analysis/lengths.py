"""Lengths of sentences: units, bins, and the lengths in the items table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.parameters import parameter
from stsbench.base.errors import UserError
from stsbench.cli.options import LARGEST

UNITS = ("words", "subwords", "characters")
"""Words between spaces as released, sub-words of the model's tokeniser without special tokens, or characters."""

LENGTH: str = parameter("words", "The unit of length: `words`, `subwords` or `characters`.", choices=UNITS)
BINS: Sequence[int] = parameter(
    (),
    "The lower ends of the bins, from 0 and rising, with commas: `0,1,2,4,8`.",
    kind=int,
    example="0,1,2,4,8",
    limits=(-LARGEST, LARGEST),
)

Bins = dict[str, tuple[int, float]]
"""The first and the last length of each bin, by name."""


def bins_from(edges: Sequence[int]) -> Bins:
    """Returns bins with the given lower ends; the last bin has no upper end.

    >>> list(bins_from((0, 1, 4)).items())
    [('0', (0, 0)), ('1-3', (1, 3)), ('4+', (4, inf))]
    """
    if edges[0] != 0 or list(edges) != sorted(set(edges)):
        raise UserError(f"--bins {','.join(map(str, edges))}: give rising numbers from 0, such as 0,1,2,4,8.")
    bins: Bins = {}
    for start, end in zip(edges, [*(edge - 1 for edge in edges[1:]), float("inf")], strict=True):
        last = "+" if end == float("inf") else f"-{end:.0f}" if start < end else ""
        bins[f"{start}{last}"] = start, end
    return bins


def sides(pairs: pd.DataFrame, unit: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the lengths of the first and of the second sentence of each pair.

    Raises:
        UserError: if the lengths are unknown.
    """
    a, b = (np.asarray(pairs[f"{unit}_{side}"], dtype=float) for side in "ab")
    if (a < 0).any() or (b < 0).any():
        raise UserError(
            f"the lengths in {unit} are unknown, as the model has no tokeniser: use --length words or --length "
            "characters."
        )
    return a, b
