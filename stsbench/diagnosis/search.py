"""Which settings of the grid give the claimed numbers, simplest first; and how telling that is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stsbench.diagnosis.choices import Change
from stsbench.diagnosis.claim import Claim, Value
from stsbench.diagnosis.grid import Grid, Place, Point, Scores, inside

NEIGHBOURHOOD = 2.0
"""Points around a claim in which other claims are imagined, to see how many would be explained as well."""

WEAK = 0.05
"""From this chance on, that a setting gives the claim is called weak evidence."""

_EVERY_OTHER = 0.5
"""Settings that give more than this share of all claims nearby explain none of them."""


@dataclass(frozen=True)
class Candidate:
    """A setting, and what it gives.

    `scores` has one for each claimed number, `distance` is the largest difference to one of them, and it `fits` if
    every one is within tolerance. The `changes` of its point of the lazy axes stand first; `count` counts choices.
    """

    point: Point
    changes: tuple[Change, ...]
    count: int
    scores: tuple[float, ...]
    distance: float
    fits: bool

    @property
    def choices(self) -> dict[str, str]:
        """What it changes to what, as tables and JSON call them."""
        return {change.choice.name: str(change.value) for change in self.changes}

    def farthest(self, values: Sequence[Value]) -> tuple[float, Value]:
        """Return the score that is farthest from the claimed number, and that number."""
        differences = [score - value.score for score, value in zip(self.scores, values, strict=True)]
        worst = int(np.argmax(np.abs(differences)))
        return self.scores[worst], values[worst]


@dataclass(frozen=True)
class Cause:
    """Settings that print the same numbers, so that the claim cannot tell them apart: the simplest is the best."""

    best: Candidate
    alike: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Search:
    """A claim held against a grid.

    Attributes:
        grid: every score that was made.
        claim: what is to be explained.
        is_beyond: whether it is held against the points of the lazy axes, and else against the scores that the
            person's own way of using the encoder gives.
    """

    grid: Grid
    claim: Claim
    is_beyond: bool = False

    @cached_property
    def beyond(self) -> "Search":
        """The claim held against what the lazy axes gave."""
        return replace(self, is_beyond=True)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The ways of using the encoder that it is held against, the person's own first."""
        return (self.grid.own_alone, *self.grid.points) if self.is_beyond else (self.grid.own,)

    @cached_property
    def default(self) -> Candidate:
        """What the person's own setting gives."""
        return self.at(self.grid.default)

    @cached_property
    def explanations(self) -> tuple[Cause, ...]:
        """The settings that give the claim, none of whose changes could be left out, simplest first.

        Several changes explain nothing where as many would give most claims nearby.
        """
        counts = {explanation.best.count for explanation in self._fitting}
        telling = {count for count in counts if count <= 1 or self.chance(count) <= _EVERY_OTHER}
        return tuple(explanation for explanation in self._fitting if explanation.best.count in telling)

    @property
    def coincidences(self) -> tuple[Cause, ...]:
        """The other settings that give the claim: as many choices at once give nearly every number."""
        return self._fitting[len(self.explanations) :]

    @cached_property
    def nearest(self) -> Candidate:
        """The setting nearest to the claim; of equally near ones the one with the fewest changes."""
        return self._nearest(np.isfinite(self._distances))

    @cached_property
    def nearest_single(self) -> Candidate:
        """The nearest setting with at most one change."""
        return self._nearest(np.isfinite(self._distances) & (self._counts <= 1))

    @cached_property
    def most(self) -> Candidate:
        """The setting that gives the most of the claimed numbers; of several, the one with the fewest changes."""
        given = np.where(np.isfinite(self._distances), self._given.sum(axis=0), -1)
        return self._nearest(given == given.max(), simplest=True)

    @property
    def settings(self) -> int:
        """How many settings were compared."""
        return int(np.isfinite(self._distances).sum())

    def chance(self, count: int) -> float:
        """Return which share of all claims nearby so few changes would give as well.

        That is the share of the numbers within two points of the claimed one that are within tolerance of a
        setting with at most so many changes. Of several claimed numbers, an upper bound of it, at most 1.
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
        # The centres are in order, and all intervals have one length: each adds what the one before leaves.
        covered = ends - np.maximum(begins, np.concatenate([[low], ends])[: len(begins)])
        return float(covered.sum() / (high - low))

    def alone(self, value: Value) -> "Search":
        """Return the search for one of the claimed numbers alone."""
        return replace(self, claim=Claim((value,)))

    def given_by(self, candidate: Candidate) -> list[bool]:
        """Return for each claimed number whether a setting gives it."""
        scores = zip(candidate.scores, self.claim.values, strict=True)
        return [abs(score - value.score) <= value.tolerance for score, value in scores]

    def at(self, place: Place) -> Candidate:
        """Return the setting at a place of the grid in the person's own way of using the encoder."""
        return self._candidate(int(np.ravel_multi_index(inside(self.shape, place), self.shape)))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each choice has that make a difference to the claim."""
        return self._shapes[0]

    def _candidate(self, setting: int) -> Candidate:
        """Return a setting by its number: those of each point stand one after the other."""
        sizes = [math.prod(shape) for shape in self._shapes]
        point = self.points[int(np.searchsorted(np.cumsum(sizes), setting, side="right"))]
        chosen = zip(self.grid.axes, self._places[setting].tolist(), strict=True)
        changed = [axis.changed_to(value) for axis, value in chosen if value != axis.default]
        return Candidate(
            point=point,
            changes=(*point.changes, *changed),
            count=int(self._counts[setting]),
            scores=tuple(self._scores[:, setting].tolist()),
            distance=float(self._distances[setting]),
            fits=bool(self._fits[setting]),
        )

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Of each point, how many values the choices have that make a difference to the claim there."""
        tasks, points = self.claim.tasks, self.points
        return [np.broadcast_shapes(*(self.grid.of(task, point).shape for task in tasks)) for point in points]

    @cached_property
    def _places(self) -> NDArray[np.int16]:
        """Where each setting stands along the axes, (settings, axes)."""
        parts = []
        for shape in self._shapes:
            places = np.indices(shape, dtype=np.int16).reshape(len(shape), -1).T
            parts.append(np.where(np.array(shape) > 1, places, np.array(self.grid.default, dtype=np.int16)))
        return np.concatenate(parts)

    @cached_property
    def _lazy_places(self) -> NDArray[np.int64]:
        """Where each setting stands along the lazy axes, (settings, axes)."""
        return np.repeat(self.grid.lazy_places(self.points), [math.prod(shape) for shape in self._shapes], axis=0)

    @cached_property
    def _fitting(self) -> tuple[Cause, ...]:
        """All settings that give the claim, those merged that print the same numbers."""
        groups: dict[tuple[str, ...], list[Candidate]] = {}
        for candidate in self._minimal(np.flatnonzero(self._fits)):
            printed = zip(candidate.scores, self.claim.values, strict=True)
            groups.setdefault(tuple(f"{score:.{value.decimals}f}" for score, value in printed), []).append(
                candidate
            )
        return tuple(Cause(best, tuple(alike)) for best, *alike in groups.values())

    @cached_property
    def _scores(self) -> Scores:
        """What each setting gives, (claimed numbers, settings of all points one after the other)."""
        of_points = [
            [np.broadcast_to(self.grid.of(task, point), shape).ravel() for task in self.claim.tasks]
            for point, shape in zip(self.points, self._shapes, strict=True)
        ]
        return np.concatenate(of_points, axis=1)

    @cached_property
    def _differences(self) -> Scores:
        claimed: Scores = np.reshape([value.score for value in self.claim.values], (-1, 1))
        return self._scores - claimed

    @cached_property
    def _given(self) -> NDArray[np.bool_]:
        """Whether each setting gives a number, one array per claimed number."""
        return self._within([value.tolerance for value in self.claim.values])

    @cached_property
    def _distances(self) -> Scores:
        distances: Scores = np.abs(self._differences).max(axis=0)
        return distances

    @cached_property
    def _fits(self) -> NDArray[np.bool_]:
        return np.asarray(self._given.all(axis=0))

    def _within(self, tolerances: Sequence[float]) -> NDArray[np.bool_]:
        """Return whether each setting is within its tolerance of each claimed number."""
        return np.asarray(np.abs(self._differences) <= np.reshape(tolerances, (-1, 1)))

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many choices each setting changes."""
        counts: NDArray[np.int64] = (self._lazy_places > 0).sum(axis=1)
        for axis, places in zip(self.grid.axes, self._places.T, strict=True):
            counts += np.array(axis.changes)[places]
        return counts

    def _minimal(self, settings: NDArray[np.intp]) -> list[Candidate]:
        """Return those settings of which no part of the changes would do, simplest first."""
        settings = settings[self._order(settings)]
        places = np.hstack([self._lazy_places[settings], self._places[settings]])
        # The person's own way of using the encoder is 0 along the lazy axes.
        default = np.array([*np.zeros(self._lazy_places.shape[1], dtype=int), *self.grid.default])
        kept = []
        while len(settings):
            kept.append(int(settings[0]))
            is_apart = ((places != places[0]) & (places[0] != default)).any(axis=1)
            settings, places = settings[is_apart], places[is_apart]
        return [self._candidate(setting) for setting in kept]

    def _order(self, settings: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the order by number of changes, then by distance, then by which choices people get wrong most."""
        same_choice = self._places[settings] == np.array(self.grid.default)
        # What prints the claimed number is as near as can be told.
        are_alike = self._within([0.5 * 10.0**-value.decimals for value in self.claim.values])
        distances = np.where(are_alike[:, settings].all(axis=0), 0.0, self._distances[settings])
        return np.lexsort([*same_choice.T[::-1], distances, self._counts[settings]])

    def _nearest(self, allowed: NDArray[np.bool_], *, simplest: bool = False) -> Candidate:
        counts, distances = self._counts[allowed], self._distances[allowed]
        # Rounding noise must not make a setting nearer than one with fewer changes.
        order = (distances.round(6), counts) if simplest else (counts, distances.round(6))
        return self._candidate(int(np.flatnonzero(allowed)[np.lexsort(order)[0]]))
