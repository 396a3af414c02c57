"""The part of a grid that fits on a page: every pooler, crossed with every other single choice."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stsbench.verify.diagnose_grid import POOLING
from stsbench.verify.diagnose_phrases import label
from stsbench.verify.diagnose_search import Candidate, Search

OWN = "your setting"


@dataclass(frozen=True)
class Heat:
    """What a heat map shows.

    Attributes:
        rows: the poolers, the person's own first.
        columns: the person's own setting, then every setting with one other choice.
        groups: for each column the choice that it changes; empty for the first.
        scores: (rows, columns) what each gives: of several claimed numbers, that which is farthest off.
        differences: (rows, columns) the same less what is claimed; NaN where there is no score.
        fits: (rows, columns) whether it gives the whole claim.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    scores: NDArray[np.float64]
    differences: NDArray[np.float64]
    fits: NDArray[np.bool_]


def heat_of(search: Search) -> Heat:
    """Return the poolers crossed with every other single choice that makes a difference to the claim."""
    axes, default = search.grid.axes, search.grid.default
    free = [number for number, size in enumerate(search.shape) if size > 1]
    columns = [("", OWN, default)]
    for number in free:
        axis = axes[number]
        if axis.name != POOLING:
            others = [value for value in range(len(axis.values)) if value != axis.default]
            columns += [
                (axis.name, label(axis.name, axis.values[value]), _moved(default, number, value))
                for value in others
            ]
    poolings = next(axis for axis in axes if axis.name == POOLING)
    place = axes.index(poolings)
    order = [poolings.default, *(p for p in range(len(poolings.values)) if p != poolings.default)]
    rows = order if place in free else order[:1]
    cells = [[search.at(_moved(column, place, row)) for _, _, column in columns] for row in rows]
    worst = np.array([[_worst(search, cell) for cell in row] for row in cells])
    return Heat(
        rows=tuple(poolings.values[row] + (" (yours)" if row == order[0] else "") for row in rows),
        columns=tuple(label for _, label, _ in columns),
        groups=tuple(group for group, _, _ in columns),
        scores=worst[..., 0],
        differences=worst[..., 1],
        fits=np.array([[cell.fits for cell in row] for row in cells]),
    )


def _worst(search: Search, cell: Candidate) -> tuple[float, float]:
    differences = [score - value.score for score, value in zip(cell.scores, search.claim.values, strict=True)]
    worst = int(np.argmax(np.abs(differences)))
    return cell.scores[worst], differences[worst]


def _moved(place: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*place[:axis], value, *place[axis + 1 :])
