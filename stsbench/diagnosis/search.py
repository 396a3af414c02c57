"""The scores of all settings, and those that give the claimed numbers, simplest first.

The axes whose scores follow from the vectors at hand are scored completely. Other ways of using the encoder need
other vectors: a `Point` holds the scores of one of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.diagnosis.axes import AVERAGE_OF, Axis, Change, Claim
from stsbench.records.kinds import AVERAGE

Scores = NDArray[np.float64]


NEIGHBOURHOOD = 2.0
"""Points around a claim in which other claims are imagined, to see how many would be explained as well."""

WEAK = 0.05
"""From this chance on, a setting that gives the claim is called weak evidence."""

_EVERY_OTHER = 0.5
"""Settings that give more than this share of all claims nearby explain none of them."""

_MOST_NAMED = 4
"""Ways that were not tried and are named in a note."""


@dataclass(frozen=True)
class Point:
    """The scores of one way of using the encoder.

    Attributes:
        changes: how it differs from your own; empty for your own.
        scores: of each task that was scored, x 100, with one dimension per axis, as in `Grid`.
        options: of `stsbench run`.
    """

    changes: tuple[Change, ...] = ()
    scores: Mapping[str, Scores] = field(default_factory=dict, compare=False)
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Returns its changes, as in tables."""
        return ", ".join(change.label for change in self.changes)


@dataclass(frozen=True)
class Grid:
    """The scores of all settings.

    Attributes:
        axes: the choices that are scored completely; the last is what an average is taken over.
        scores: for each task an array with one dimension per axis, x 100: of length 1 if the choice does not
            affect the task, NaN where there is no score.
        points: other ways of using the encoder; only some of the axes have more than your setting there.
    """

    axes: tuple[Axis, ...]
    scores: Mapping[str, Scores]
    points: tuple[Point, ...] = ()

    def of(self, task: str, point: Point | None = None) -> Scores:
        """Returns the scores of a task, or of the average, at a point or for your way of using the encoder."""
        scores, unknown = (point or self).scores, np.full((1,) * len(self.axes), np.nan)
        if task != AVERAGE:
            return scores.get(task, unknown)
        means = [
            mean.of({task: scores.get(task, unknown) for task in mean.tasks}) for mean in self.axes[-1].values
        ]
        return np.concatenate(np.broadcast_arrays(*means), axis=-1)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The grid as a table, one row per score of a task.

        Columns: task, split (empty if a task has a single one), the other axes, score (x 100), changes (how many
        choices differ from yours). A choice that does not affect a task has your value. If other ways of using the
        encoder were tried, `variation` names what each changes.
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
        splits = {f"{task} split" for task in self.scores}
        for axis, place in zip(self.axes, places.T, strict=True):
            name = "split" if axis.name == f"{task} split" else axis.name
            if name not in {AVERAGE_OF, *splits}:
                columns[name] = np.array([*map(str, axis.values)], dtype=object)[place]
        changes = (places > 0).sum(axis=1) + (len(point.changes) if point else 0)
        columns |= {"score": scores[tuple(places.T)], "changes": changes}
        return pd.DataFrame(columns | ({"variation": str(point)} if point else {}))


def along(axes: Sequence[Axis], dimensions: Sequence[str], scores: Scores) -> Scores:
    """Returns scores with one dimension per axis, of length 1 if `dimensions` does not name it."""
    names = [axis.name for axis in axes]
    order = sorted(range(len(dimensions)), key=lambda number: (names + list(dimensions)).index(dimensions[number]))
    sizes = dict(zip(dimensions, scores.shape, strict=True))
    return scores.transpose(order).reshape([sizes.get(name, 1) for name in names])


@dataclass(frozen=True)
class Candidate:
    """A setting: how it differs from yours (the changes of its point first), and a score for each claimed number.

    `distance` is the largest difference to a claimed number; the setting `fits` if all are within tolerance.
    """

    point: Point
    changes: tuple[Change, ...]
    scores: tuple[float, ...]
    distance: float
    fits: bool

    @property
    def count(self) -> int:
        """The number of changes."""
        return len(self.changes)

    @property
    def choices(self) -> dict[str, str]:
        """The changed values by the names of their axes."""
        return {change.axis.name: str(change.value) for change in self.changes}


@dataclass(frozen=True)
class Cause:
    """Settings that print the same numbers, so that the claim cannot distinguish them; the simplest is `best`."""

    best: Candidate
    alike: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Search:
    """A claim compared with the settings of a grid.

    Attributes:
        grid: every score.
        claim: the numbers to explain.
        is_beyond: whether to compare with the grid's points instead of your own way of using the encoder.
    """

    grid: Grid
    claim: Claim
    is_beyond: bool = False

    @cached_property
    def beyond(self) -> "Search":
        """The claim compared with your setting alone and the grid's points."""
        return replace(self, is_beyond=True)

    @cached_property
    def default(self) -> Candidate:
        """Your setting."""
        return self._candidate(0)

    @property
    def explanations(self) -> tuple[Cause, ...]:
        """The settings that give the claim, none of whose changes could be left out, simplest first.

        Several changes explain nothing if as many would give most claims nearby.
        """
        return tuple(cause for cause in self._fitting if cause.best.count not in self._vacuous)

    @property
    def coincidences(self) -> tuple[Cause, ...]:
        """The other settings that give the claim: as many changes would give nearly every number."""
        return tuple(cause for cause in self._fitting if cause.best.count in self._vacuous)

    @cached_property
    def nearest(self) -> Candidate:
        """The setting nearest to the claim; of equally near ones the one with the fewest changes."""
        return self._nearest(np.isfinite(self._distances))

    @cached_property
    def nearest_single(self) -> Candidate:
        """The nearest setting with at most one change."""
        return self._nearest(np.isfinite(self._distances) & (self._counts <= 1))

    @property
    def settings(self) -> int:
        """How many settings were compared."""
        return int(np.isfinite(self._distances).sum())

    def chance(self, count: int) -> float:
        """Returns the share of all claims nearby that settings with so few changes would give as well.

        That is the share of the numbers within two points of the claimed one that are within tolerance of a
        setting with at most `count` changes. For several claimed numbers, an upper bound of it, at most 1.
        """
        near = (np.abs(self._differences) <= NEIGHBOURHOOD).all(axis=0) & (self._counts <= count)
        if len(self.claim.values) > 1:
            # Settings with the same numbers reach the same claims.
            reached = np.unique(self._scores[:, near].round(6), axis=1).shape[1]
            shares = [min(1.0, value.tolerance / NEIGHBOURHOOD) for value in self.claim.values]
            return float(min(1.0, reached * np.prod(shares)))
        (value,) = self.claim.values
        centres = np.unique(self._scores[0][near])
        low, high = value.score - NEIGHBOURHOOD, value.score + NEIGHBOURHOOD
        begins = np.clip(centres - value.tolerance, low, high)
        ends = np.clip(centres + value.tolerance, low, high)
        # The centres are sorted and all intervals are equally long: each adds what the one before leaves.
        covered = ends - np.maximum(begins, np.concatenate([[low], ends])[: len(begins)])
        return float(covered.sum() / (high - low))

    def _candidate(self, setting: int) -> Candidate:
        """Returns a setting by its number; the first is yours."""
        point = self._points[self._numbers[setting]]
        chosen = zip(self.grid.axes, self._places[setting].tolist(), strict=True)
        return Candidate(
            point=point,
            changes=(*point.changes, *(Change(axis, axis.values[place]) for axis, place in chosen if place)),
            scores=tuple(self._scores[:, setting].tolist()),
            distance=float(self._distances[setting]),
            fits=bool(self._fits[setting]),
        )

    @cached_property
    def _points(self) -> tuple[Point, ...]:
        own = Point(scores=self.grid.scores)
        if not self.is_beyond:
            return (own,)
        alone = {task: scores[(slice(1),) * scores.ndim] for task, scores in own.scores.items()}
        return (Point(scores=alone), *self.grid.points)

    @cached_property
    def _arrays(self) -> list[list[Scores]]:
        """For each point the scores of each claimed number."""
        of_points = [[self.grid.of(task, point) for task in self.claim.tasks] for point in self._points]
        return [list(np.broadcast_arrays(*arrays)) for arrays in of_points]

    @cached_property
    def _scores(self) -> Scores:
        """The scores of each setting, (claimed numbers, settings)."""
        return np.hstack([np.reshape(arrays, (len(arrays), -1)) for arrays in self._arrays])

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """The number of each setting's point."""
        return np.repeat(np.arange(len(self._arrays)), [arrays[0].size for arrays in self._arrays])

    @cached_property
    def _places(self) -> NDArray[np.int16]:
        """The place of each setting, (settings, axes); 0 is yours."""
        shapes = (arrays[0].shape for arrays in self._arrays)
        return np.hstack([np.indices(shape, np.int16).reshape(len(shape), -1) for shape in shapes]).T

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many choices each setting changes."""
        of_points = np.array([len(point.changes) for point in self._points])
        return np.asarray(of_points[self._numbers] + (self._places > 0).sum(axis=1))

    @cached_property
    def _differences(self) -> Scores:
        return np.asarray(self._scores - self._of_values("score"))

    @cached_property
    def _distances(self) -> Scores:
        return np.asarray(np.abs(self._differences).max(axis=0))

    @cached_property
    def _fits(self) -> NDArray[np.bool_]:
        return np.asarray((np.abs(self._differences) <= self._of_values("tolerance")).all(axis=0))

    def _of_values(self, name: str) -> Any:
        return np.array([[getattr(value, name)] for value in self.claim.values])

    @cached_property
    def _fitting(self) -> tuple[Cause, ...]:
        """All settings that give the claim; those that print the same numbers are one cause."""
        groups: dict[tuple[str, ...], list[Candidate]] = {}
        for candidate in self._minimal(self._ordered(np.flatnonzero(self._fits))):
            printed = zip(candidate.scores, self.claim.values, strict=True)
            key = tuple(f"{score:.{value.decimals}f}" for score, value in printed)
            groups.setdefault(key, []).append(candidate)
        return tuple(Cause(best, tuple(alike)) for best, *alike in groups.values())

    @cached_property
    def _vacuous(self) -> set[int]:
        """The numbers of changes that would give most claims nearby."""
        counts = {cause.best.count for cause in self._fitting}
        return {count for count in counts if count > 1 and self.chance(count) > _EVERY_OTHER}

    def _minimal(self, settings: NDArray[np.intp]) -> Iterator[Candidate]:
        """Yields the settings of which no part of the changes would do."""
        kept: list[set[Change]] = []
        for candidate in map(self._candidate, settings):
            changes = set(candidate.changes)
            if not any(fewer <= changes for fewer in kept):
                kept.append(changes)
                yield candidate
            if not changes:
                return

    def _ordered(self, settings: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sorts by number of changes, then by distance, then by which choices people get wrong most."""
        digits = 0.5 * 10.0 ** -self._of_values("decimals")
        # Settings that print the claimed number are equally near.
        are_alike = (np.abs(self._differences[:, settings]) <= digits).all(axis=0)
        distances = np.where(are_alike, 0.0, self._distances[settings])
        is_default = self._places[settings] == 0
        return settings[np.lexsort([*is_default.T[::-1], distances, self._counts[settings]])]

    def _nearest(self, allowed: NDArray[np.bool_]) -> Candidate:
        counts, distances = self._counts[allowed], self._distances[allowed]
        # Rounding noise must not make a setting nearer than one with fewer changes.
        return self._candidate(int(np.flatnonzero(allowed)[np.lexsort((counts, distances.round(6)))[0]]))


@dataclass
class Further:
    """What was searched beyond the grid.

    Attributes:
        tried: the ways that were tried.
        untried: the ways that were left out, with why if it was not for the time.
        sentences: the number of sentences that were encoded.
        seconds: how long it took.
    """

    tried: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    sentences: int = 0
    seconds: float = 0.0

    @property
    def note(self) -> str:
        """What was tried, what it took, and what was left out."""
        count, ways = len(self.tried), "way" if len(self.tried) == 1 else "ways"
        note = f"Beyond the grid: {count} other {ways}, {self.sentences:,} sentences, {self.seconds:.1f} s."
        if self.untried:
            more = len(self.untried) - _MOST_NAMED
            left = [*self.untried[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
            note += f" Not tried for lack of time (--budget) or memory: {'; '.join(left)}."
        return note
