"""The grid: each choice an axis of typed values, and each task's score at every crossing.

What the vectors at hand give is scored at once. How the encoder is used has axes, too; these are lazy, as each of
their crossings takes vectors of its own: a `Point` holds what one gave when it was asked for.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.words import listed
from stsbench.diagnosis.choices import (
    AGGREGATION,
    AVERAGE_OF,
    COMPARISON,
    LAYER,
    METRIC,
    POOLING,
    SAMPLE_ALONE,
    Change,
    Choice,
    Comparing,
    Mean,
    split_of,
)
from stsbench.records.kinds import AVERAGE

SCORED_AT_POINTS = (COMPARISON, METRIC, AGGREGATION)
"""The choices that are crossed with a point of the lazy axes; all others are the person's own there."""

Scores = NDArray[np.float64]
Place = tuple[int, ...]
"""A crossing: for each axis, which of its values."""


@dataclass(frozen=True)
class Axis:
    """The values of a choice that are tried.

    Attributes:
        choice: what is chosen.
        values: what may be chosen.
        default: the place of the person's own setting among them.
        notes: by value, what is to be said of it for this checkpoint.
    """

    choice: Choice
    values: tuple[Any, ...]
    default: int = 0
    notes: Mapping[Any, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, choice: Choice, values: Iterable[Any], default: Any) -> "Axis":
        """Return an axis whose default is one of its values."""
        values = tuple(values)
        return cls(choice, values, values.index(default))

    @property
    def name(self) -> str:
        """The choice's name."""
        return self.choice.name

    @property
    def changes(self) -> tuple[int, ...]:
        """How many changes each value takes from the default, where the similarity and the scaling are two."""
        default = self.values[self.default]
        if isinstance(default, Comparing):
            return tuple(default.changes_to(value) for value in self.values)
        return tuple(int(value != default) for value in self.values)

    def changed_to(self, place: int) -> Change:
        """Return what the value at a place changes."""
        value = self.values[place]
        return Change(self.choice, value, self.values[self.default], self.notes.get(value, ""))


def axis_of_means(tasks: Sequence[str], *, with_sample: bool) -> Axis:
    """Return what people take an average of some tasks to be, the plain mean of all first.

    Besides: the mean of the scores rounded to two decimals, as public scripts take it; without SICK-R, as in
    ESimCSE's six tasks, or without STS-B; the five years alone; one task taken for all; the bundled sample.
    """
    means = [Mean("of all tasks", tuple(tasks))]
    if len(tasks) > 1:
        means.append(Mean("of rounded scores", tuple(tasks), rounded=True))
        for left_out in (("SICK-R",), ("STS-B",), ("STS-B", "SICK-R")):
            kept = tuple(task for task in tasks if task not in left_out)
            if len(kept) > 1 and len(kept) + len(left_out) == len(tasks):
                means.append(Mean(f"without {listed(left_out)}", kept))
        means += [Mean(f"{task} alone", (task,)) for task in tasks]
    if with_sample:
        means.append(SAMPLE_ALONE)
    return Axis(AVERAGE_OF, tuple(means))


@dataclass(frozen=True)
class Point:
    """A crossing of the lazy axes: one way of using the encoder.

    Attributes:
        changes: in what it differs from the person's own; nothing in that itself.
        scores: for each task that was scored there, x 100, as in `Grid`.
        pooling: the full name of the pooling that it reads; empty in the person's own way.
    """

    changes: tuple[Change, ...] = ()
    scores: Mapping[str, Scores] = field(default_factory=dict, compare=False)
    pooling: str = ""

    def __str__(self) -> str:
        """Return its changes, as a table has them."""
        return ", ".join(change.choice.label_of(change.value) for change in self.changes)

    @property
    def options(self) -> list[str]:
        """Return what gives it, of `stsbench run`; a layer is a part of the pooling's name."""
        read = {POOLING, LAYER}
        usual = [c for c in self.changes if c.choice.option and c.choice not in read]
        options = [f"{change.choice.option} {shlex.quote(str(change.value))}" for change in usual]
        return [*options, *[f"{POOLING.option} {self.pooling}" for c in self.changes if c.choice in read]]


@dataclass(frozen=True)
class Grid:
    """Every score that the choices give.

    Attributes:
        axes: the choices that are scored at once; the last is what an average is taken over.
        scores: for each task an array with one dimension per axis, x 100: of length 1 where the choice makes no
            difference to the task, NaN where there is no such score.
        points: of the lazy axes, those that were asked for; each has arrays of the same dimensions, of length 1
            where only the default was scored.
    """

    axes: tuple[Axis, ...]
    scores: Mapping[str, Scores]
    points: tuple[Point, ...] = ()

    @property
    def default(self) -> Place:
        """The place of the person's own setting."""
        return tuple(axis.default for axis in self.axes)

    def default_of(self, choice: Choice) -> Any:
        """Return the person's own setting of a choice."""
        return next(axis.values[axis.default] for axis in self.axes if axis.choice == choice)

    @cached_property
    def own(self) -> Point:
        """The person's own way of using the encoder."""
        return Point(scores=self.scores)

    @cached_property
    def own_alone(self) -> Point:
        """The person's own setting alone, as a point that the lazy axes start from."""
        alone: dict[str, Scores] = {}
        for task in self.axes[-1].values[0].tasks:
            sizes = zip(self.axes, self.scores[task].shape, strict=True)
            scores = np.full([size if axis.choice in SCORED_AT_POINTS else 1 for axis, size in sizes], np.nan)
            scores[inside(scores.shape, self.default)] = self.value(task, self.default)
            alone[task] = scores
        return Point(scores=alone)

    @cached_property
    def lazy_axes(self) -> tuple[Axis, ...]:
        """The axes of how else the encoder is used, as far as they were asked for; None is the person's own."""
        values: dict[Choice, dict[Any, None]] = {}
        for point in self.points:
            for change in point.changes:
                values.setdefault(change.choice, {None: None})[change.value] = None
        return tuple(Axis(choice, tuple(chosen)) for choice, chosen in values.items())

    def with_points(self, points: Iterable[Point]) -> "Grid":
        """Return the grid with further points of the lazy axes."""
        return replace(self, points=(*self.points, *points))

    def lazy_places(self, points: Sequence[Point]) -> NDArray[np.int64]:
        """Return where points are along the lazy axes, (points, axes)."""
        numbers = [{value: number for number, value in enumerate(axis.values)} for axis in self.lazy_axes]
        columns = {axis.choice: column for column, axis in enumerate(self.lazy_axes)}
        places = np.zeros((len(points), len(columns)), dtype=np.int64)
        for row, point in enumerate(points):
            for change in point.changes:
                column = columns[change.choice]
                places[row, column] = numbers[column][change.value]
        return places

    def of(self, task: str, point: Point | None = None) -> Scores:
        """Return the scores of a task, or of the average along its axis, at a point or in the person's own way."""
        scores, unknown = (point or self.own).scores, np.full((1,) * len(self.axes), np.nan)
        if task != AVERAGE:
            return scores.get(task, unknown)
        together = [
            mean.of({task: scores.get(task, unknown) for task in mean.tasks}) for mean in self.axes[-1].values
        ]
        shape = np.broadcast_shapes(*(part.shape for part in together))
        return np.concatenate([np.broadcast_to(part, shape) for part in together], axis=-1)

    def value(self, task: str, place: Place) -> float:
        """Return the score of a task, or the average, at one crossing."""
        scores = self.of(task)
        return float(scores[inside(scores.shape, place)])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The grid as a table, one row per score of a task.

        Columns: task, split (empty where a task has but one), the other choices, score (x 100), changes (how many
        choices differ from the default). A choice that makes no difference to a task has the default's value.
        Where points of the lazy axes were asked for, `variation` says what each changes.
        """
        frame = pd.concat([self._frame_of(task) for task in self.scores], ignore_index=True)
        if not self.points:
            return frame
        tasks = dict.fromkeys(task for point in self.points for task in point.scores)
        parts = [self._frame_of(task, point) for task in tasks for point in self.points if task in point.scores]
        return pd.concat([frame.assign(variation=""), *parts], ignore_index=True)

    def _frame_of(self, task: str, point: Point | None = None) -> pd.DataFrame:
        scores = self.of(task, point)
        places = np.argwhere(~np.isnan(scores))
        columns: dict[str, Any] = {"task": np.full(len(places), task, dtype=object), "split": ""}
        changes = np.full(len(places), len(point.changes) if point else 0, dtype=np.int64)
        of_other_tasks = {AVERAGE_OF, *map(split_of, self.scores)} - {split_of(task)}
        for axis, size, place in zip(self.axes, scores.shape, places.T, strict=True):
            # Where there is nothing to choose, the place is that of the default.
            chosen = place if size > 1 else np.full(len(places), axis.default)
            changes += np.array(axis.changes)[chosen]
            if axis.choice not in of_other_tasks:
                name = "split" if axis.choice == split_of(task) else axis.name
                columns[name] = np.array([*map(str, axis.values)], dtype=object)[chosen]
        columns |= {"score": scores[tuple(places.T)], "changes": changes}
        return pd.DataFrame(columns | ({"variation": str(point)} if point else {}))


def inside(shape: Place, place: Place) -> Place:
    """Return a place in an array of this shape: the first wherever there is nothing to choose.

    >>> inside((1, 3), (2, 2))
    (0, 2)
    """
    return tuple(chosen if size > 1 else 0 for chosen, size in zip(place, shape, strict=True))
