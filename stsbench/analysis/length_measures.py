"""What length bias is measured by: unit, threshold and bins of length differences; the names of the numbers."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion

GAP, ALL = "gap", "all"
SPEARMAN, SIGNED, ABSOLUTE = "spearman", "signed difference", "absolute difference"
PARTIAL, SLOPE, ERROR, RELATIVE = "partial spearman", "slope", "error", "relative error"
CONTRAST, MARGIN = "design contrast", "design margin"

THRESHOLDS = {"words": 3, "subwords": 3, "characters": 15}
"""The largest difference that counts as short, by unit; the papers' is 3."""

EDGES = {
    "words": (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20),
    "subwords": (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20),
    "characters": (0, 5, 10, 15, 20, 30, 40, 60, 80, 120),
}
"""Where bins begin, by unit; the last has no end."""


@dataclass(frozen=True)
class Lengths:
    """How pairs are told apart by the difference of their sentences' lengths.

    Attributes:
        unit: `words` (whitespace tokens as released; the papers do not say what theirs is), `subwords` (of the
            model's tokeniser, without special tokens) or `characters`.
        threshold: the largest difference that counts as short; by default 3, for characters 15.
        edges: where the bins of the curve begin, from 0 and rising; the last has no end.
    """

    unit: str = "words"
    threshold: int | None = None
    edges: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check what a person may have set."""
        if self.unit not in THRESHOLDS:
            raise UserError(f"unknown length unit {self.unit!r}: {suggestion(self.unit, THRESHOLDS)}")
        if self.threshold is not None and self.threshold < 0:
            raise UserError(f"a threshold of {self.threshold}: length differences start at 0.")
        if self.edges and (self.edges[0] != 0 or list(self.edges) != sorted(set(self.edges))):
            raise UserError(
                f"bins {','.join(map(str, self.edges))}: give where each begins, from 0 and rising, "
                "such as 0,1,2,4,8."
            )

    @property
    def longest_short(self) -> int:
        """The largest difference that counts as short."""
        return THRESHOLDS[self.unit] if self.threshold is None else self.threshold

    @property
    def groups(self) -> tuple[str, str]:
        """The names of the groups of short and of long difference."""
        return f"<= {self.longest_short}", f"> {self.longest_short}"

    @property
    def bins(self) -> dict[str, tuple[int, float]]:
        """The first and the last difference of each bin, by its name.

        >>> list(Lengths(edges=(0, 1, 4)).bins.items())
        [('0', (0, 0)), ('1-3', (1, 3)), ('4+', (4, inf))]
        """
        starts = self.edges or EDGES[self.unit]
        ends = [*(edge - 1 for edge in starts[1:]), float("inf")]
        bins = {}
        for start, end in zip(starts, ends, strict=True):
            last = "+" if end == float("inf") else f"-{end:.0f}" if start < end else ""
            bins[f"{start}{last}"] = start, end
        return bins

    def sides(self, pairs: pd.DataFrame) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """Return the lengths of each pair's two sentences in a pair table; refuse one without such lengths."""
        a, b = (np.asarray(pairs[f"{self.unit}_{side}"], dtype=float) for side in "ab")
        if (a < 0).any() or (b < 0).any():
            raise UserError(
                f"the lengths in {self.unit} are unknown, as the model has no tokeniser: "
                "use --length words or --length characters."
            )
        return a, b

    def differences(self, pairs: pd.DataFrame) -> "NDArray[np.float64]":
        """Return the length difference of each pair of a pair table."""
        a, b = self.sides(pairs)
        difference: NDArray[np.float64] = abs(a - b)
        return difference
