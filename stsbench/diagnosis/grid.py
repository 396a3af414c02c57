"""The grid of choices as data: its axes, and the score of every task at every crossing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.records.record import AVERAGE
from stsbench.scoring.tasks import SAMPLE

if TYPE_CHECKING:
    import pandas as pd

Scores = NDArray[np.float64]

POOLING, MAX_LENGTH, TEXT = "pooling", "max_length", "text"
COMPARISON, METRIC, AGGREGATION = "comparison", "metric", "aggregation"
CHOICES = (POOLING, AGGREGATION, METRIC, TEXT, MAX_LENGTH, COMPARISON)
AVERAGE_OF = "average"

METRICS: tuple[Literal["spearman", "pearson"], ...] = ("spearman", "pearson")

SCALED, UNSCALED = ", scaled to unit length", ", not scaled to unit length"
"""What follows the name of a similarity of vectors that are scaled otherwise than the model scales them.

In the place of a similarity may also stand `supervised`, for the regressors that SentEval trains.
"""

PLAIN = "of all tasks"
"""The plain mean, full precision."""

ROUNDED = "of rounded scores"
_WITHOUT = "without "
_ALONE = " alone"


REGRESSED = frozenset({"STS-B", "SICK-R"})
"""The tasks that have such a regressor."""


def split_of(task: str) -> str:
    """Return the name of the choice of a task's split."""
    return f"{task} split"


class Axis(NamedTuple):
    """One choice.

    Attributes:
        name: of the choice.
        values: what may be chosen.
        default: which of them the person's own setting is.
        costs: for each of them, how many choices it changes: 0 for the default, 1 for others, 2 for a similarity
            together with a scaling of the vectors.
    """

    name: str
    values: tuple[str, ...]
    default: int
    costs: tuple[int, ...]

    @classmethod
    def of(cls, name: str, values: tuple[str, ...], default: str) -> "Axis":
        """Return a choice whose every value but the default is one change."""
        place = values.index(default)
        return cls(name, values, place, tuple(int(number != place) for number in range(len(values))))


@dataclass(frozen=True)
class Grid:
    """Every score that the choices give.

    Attributes:
        axes: the choices; the last is what an average is taken over.
        scores: for each task an array with one dimension per axis, x 100: of length 1 where the choice makes no
            difference to the task, NaN where there is no such score.
    """

    axes: tuple[Axis, ...]
    scores: Mapping[str, Scores]

    @property
    def default(self) -> tuple[int, ...]:
        """The place of the person's own setting."""
        return tuple(axis.default for axis in self.axes)

    def of(self, task: str) -> Scores:
        """Return the scores of a task, or of the average along its axis."""
        return self._averages if task == AVERAGE else self.scores[task]

    def value(self, task: str, place: tuple[int, ...]) -> float:
        """Return the score of a task, or the average, at one crossing."""
        scores = self.of(task)
        return float(scores[_inside(scores, place)])

    @cached_property
    def _averages(self) -> Scores:
        together = [_average_of(name, self.scores) for name in self.axes[-1].values]
        shape = np.broadcast_shapes(*(scores.shape for scores in together))
        return np.concatenate([np.broadcast_to(scores, shape) for scores in together], axis=-1)

    def table(self) -> "pd.DataFrame":
        """Return the grid as a table, one row per score of a task.

        Columns: task, split (empty where a task has but one), the six other choices, score (x 100), changes (how
        many choices differ from the default). A choice that makes no difference to a task has the default's value.
        """
        import pandas as pd

        return pd.DataFrame(self._rows())

    def _rows(self) -> Iterator[dict[str, object]]:
        for task, scores in self.scores.items():
            for place in np.ndindex(scores.shape):
                if np.isnan(scores[place]):
                    continue
                # Where there is nothing to choose, the place is that of the default.
                chosen = [
                    p if size > 1 else a.default for p, size, a in zip(place, scores.shape, self.axes, strict=True)
                ]
                values = {a.name: a.values[p] for a, p in zip(self.axes, chosen, strict=True)}
                yield {
                    "task": task,
                    "split": values.get(split_of(task), ""),
                    **{name: values[name] for name in CHOICES if name in values},
                    "score": float(scores[place]),
                    "changes": sum(a.costs[p] for a, p in zip(self.axes, chosen, strict=True)),
                }


def averages_of(tasks: tuple[str, ...], *, with_sample: bool) -> Axis:
    """Return what people take an average of these tasks to be, the plain mean of all first.

    Besides: the mean of the scores rounded to two decimals, as public scripts take it; without SICK-R, as in
    ESimCSE's six tasks, or without STS-B; the five years alone; one task taken for all; the bundled sample.
    """
    names = [PLAIN]
    if len(tasks) > 1:
        names += [ROUNDED]
        names += [_WITHOUT + task for task in ("SICK-R", "STS-B") if task in tasks and len(tasks) > 2]
        if {"STS-B", "SICK-R"} < set(tasks) and len(tasks) > 3:
            names += [_WITHOUT + "STS-B and SICK-R"]
        names += [task + _ALONE for task in tasks]
    if with_sample:
        names += [SAMPLE]
    return Axis.of(AVERAGE_OF, tuple(names), PLAIN)


def tasks_in(average: str, tasks: Sequence[str]) -> list[str]:
    """Return which of some tasks an average is taken over.

    >>> tasks_in("without SICK-R", ["STS16", "STS-B", "SICK-R", "sample"])
    ['STS16', 'STS-B']
    """
    if average == SAMPLE:
        return [SAMPLE]
    left_out = average.removeprefix(_WITHOUT).split(" and ") if average.startswith(_WITHOUT) else []
    alone = average.removesuffix(_ALONE) if average.endswith(_ALONE) else None
    return [task for task in tasks if (task == alone if alone else task not in {SAMPLE, *left_out})]


def _average_of(average: str, scores: Mapping[str, Scores]) -> Scores:
    parts = [scores[task] for task in tasks_in(average, list(scores))]
    return _mean([np.round(part, 2) for part in parts] if average == ROUNDED else parts)


def _mean(parts: list[Scores]) -> Scores:
    # Summed one by one: the arrays have different shapes, and numpy broadcasts them.
    total = np.zeros((1,) * parts[0].ndim)
    for part in parts:
        total = total + part
    return total / len(parts)


def _inside(scores: Scores, place: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(p if size > 1 else 0 for p, size in zip(place, scores.shape, strict=True))
