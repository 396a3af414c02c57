"""From the similarities of a task's pairs, compared in many ways, to its part of the grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics import aggregate
from stsbench.statistics.columns import Gold, correlate_rows

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Part:
    """Pairs that are correlated together."""

    pairs: NDArray[np.intp]
    gold: Gold


@dataclass(frozen=True)
class Scorer:
    """A task whose gold scores are made ready, to be held against similarities again and again.

    Attributes:
        splits: which splits are scored; `all` for all pairs.
        subsets: for each split, its subsets and then the whole.
    """

    splits: tuple[str, ...]
    subsets: tuple[tuple[_Part, ...], ...]

    @classmethod
    def of(cls, pairs: "pd.DataFrame", splits: Sequence[str]) -> "Scorer":
        """Make a task ready.

        Args:
            pairs: its scored pairs, with the columns gold, subset and split.
            splits: the splits to score.
        """
        gold, subset, split = (pairs[name].to_numpy() for name in ("gold", "subset", "split"))
        found = []
        for name in splits:
            chosen = np.flatnonzero((split == name) | (name == "all") | (len(splits) == 1))
            names = list(dict.fromkeys(subset[chosen]))
            groups = [chosen[subset[chosen] == one] for one in names] if len(names) > 1 else []
            found.append(tuple(_Part(rows, Gold.of(gold[rows])) for rows in (*groups, chosen)))
        return cls(tuple(splits), tuple(found))

    @property
    def has_subsets(self) -> bool:
        """Whether aggregation makes a difference."""
        return any(len(parts) > 1 for parts in self.subsets)

    def __call__(self, similarities: Floats) -> Floats:
        """Return the task's scores.

        Args:
            similarities: (k, n) of the n pairs, compared in k ways.

        Returns:
            (k, 2, a, s) x 100: by Spearman and Pearson, aggregated by `all`, `mean` and `wmean` (a is 1 where
            there are no subsets), on each split.
        """
        scores: Floats = 100 * np.stack([self._of_split(parts, similarities) for parts in self.subsets], axis=-1)
        return scores

    def _of_split(self, parts: tuple[_Part, ...], similarities: Floats) -> Floats:
        # (parts, 2, k)
        values: Floats = np.array([correlate_rows(part.gold, similarities[:, part.pairs]) for part in parts])
        whole: Floats = values[-1].T
        if not self.has_subsets:
            return whole[:, :, np.newaxis]
        own = values[:-1] if len(parts) > 1 else values
        sizes = [len(part.pairs) for part in parts[: len(own)]]
        three = aggregate(np.moveaxis(own, 0, -1), values[-1], sizes)
        return np.stack([three[name].T for name in ("all", "mean", "wmean")], axis=-1)
