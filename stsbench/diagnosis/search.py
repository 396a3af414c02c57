"""Which settings give the claimed numbers, simplest first, and how strong that evidence is."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stsbench.diagnosis.axes import Change, Claim, Value
from stsbench.diagnosis.grid import Grid, Place, Point, Scores, inside

NEIGHBOURHOOD = 2.0
"""Points around a claim in which other claims are imagined, to see how many would be explained as well."""

WEAK = 0.05
"""From this chance on, a setting that gives the claim is called weak evidence."""

_EVERY_OTHER = 0.5
"""Settings that give more than this share of all claims nearby explain none of them."""


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

    def farthest(self, values: Sequence[Value]) -> tuple[float, Value]:
        """Returns the score that is farthest from the claimed number, and that number."""
        pairs = list(zip(self.scores, values, strict=True))
        return pairs[int(np.argmax([abs(score - value.score) for score, value in pairs]))]


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
        """The claim compared with the grid's points."""
        return replace(self, is_beyond=True)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The ways of using the encoder, your own first."""
        return (self.grid.own_alone, *self.grid.points) if self.is_beyond else (self.grid.own,)

    @cached_property
    def default(self) -> Candidate:
        """Your setting."""
        return self.at(self.grid.default)

    @cached_property
    def explanations(self) -> tuple[Cause, ...]:
        """The settings that give the claim, none of whose changes could be left out, simplest first.

        Several changes explain nothing if as many would give most claims nearby.
        """
        return tuple(cause for cause in self._fitting if not self._is_coincidence(cause))

    @cached_property
    def coincidences(self) -> tuple[Cause, ...]:
        """The other settings that give the claim: as many changes would give nearly every number."""
        return tuple(cause for cause in self._fitting if self._is_coincidence(cause))

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

    def given_by(self, candidate: Candidate) -> list[bool]:
        """Returns for each claimed number whether a setting gives it."""
        scores = zip(candidate.scores, self.claim.values, strict=True)
        return [abs(score - value.score) <= value.tolerance for score, value in scores]

    def at(self, place: Place) -> Candidate:
        """Returns the setting at a place of the grid, for the first way of using the encoder."""
        return self._candidate(int(np.ravel_multi_index(inside(self.shape, place), self.shape)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each axis that affect the claim."""
        return self._shapes[0]

    def _is_coincidence(self, cause: Cause) -> bool:
        return cause.best.count > 1 and self.chance(cause.best.count) > _EVERY_OTHER

    def _candidate(self, setting: int) -> Candidate:
        """Returns a setting by its number; the settings of one point follow each other."""
        point = self.points[self._points[setting]]
        chosen = zip(self.grid.axes, self._places[setting].tolist(), strict=True)
        return Candidate(
            point=point,
            changes=(*point.changes, *(Change(axis, axis.values[place]) for axis, place in chosen if place)),
            scores=tuple(self._scores[:, setting].tolist()),
            distance=float(self._distances[setting]),
            fits=bool(self._given[:, setting].all()),
        )

    @cached_property
    def _shapes(self) -> list[Place]:
        """For each point the number of values of each axis that affect the claim."""
        arrays = [[self.grid.of(task, point) for task in self.claim.tasks] for point in self.points]
        return [np.broadcast_shapes(*(scores.shape for scores in of_point)) for of_point in arrays]

    @cached_property
    def _points(self) -> NDArray[np.int64]:
        """The number of each setting's point."""
        return np.repeat(np.arange(len(self._shapes)), [math.prod(shape) for shape in self._shapes])

    @cached_property
    def _places(self) -> NDArray[np.int16]:
        """The place of each setting, (settings, axes); 0 is yours."""
        parts = [np.indices(shape, dtype=np.int16).reshape(len(shape), -1).T for shape in self._shapes]
        return np.concatenate(parts)

    @cached_property
    def _point_places(self) -> NDArray[np.int16]:
        """The place of each point on the axes that only points change, (points, axes); 0 is yours."""
        axes: dict[str, dict[object, int]] = defaultdict(dict)
        places = np.zeros(
            (len(self.points), len({c.axis for p in self.points for c in p.changes})), dtype=np.int16
        )
        for row, point in enumerate(self.points):
            for change in point.changes:
                values = axes[change.axis.name]
                places[row, list(axes).index(change.axis.name)] = values.setdefault(change.value, len(values) + 1)
        return places

    @cached_property
    def _fitting(self) -> tuple[Cause, ...]:
        """All settings that give the claim; those that print the same numbers are one cause."""
        groups: dict[tuple[str, ...], list[Candidate]] = {}
        for candidate in self._minimal(np.flatnonzero(self._given.all(axis=0))):
            printed = zip(candidate.scores, self.claim.values, strict=True)
            key = tuple(f"{score:.{value.decimals}f}" for score, value in printed)
            groups.setdefault(key, []).append(candidate)
        return tuple(Cause(best, tuple(alike)) for best, *alike in groups.values())

    @cached_property
    def _scores(self) -> Scores:
        """The scores of each setting, (claimed numbers, settings)."""
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
    def _distances(self) -> Scores:
        distances: Scores = np.abs(self._differences).max(axis=0)
        return distances

    @cached_property
    def _given(self) -> NDArray[np.bool_]:
        """Whether each setting gives each claimed number, (claimed numbers, settings)."""
        tolerances = np.reshape([value.tolerance for value in self.claim.values], (-1, 1))
        return np.asarray(np.abs(self._differences) <= tolerances)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many choices each setting changes."""
        of_points = (self._point_places > 0).sum(axis=1)
        return np.asarray(of_points[self._points] + (self._places > 0).sum(axis=1))

    def _minimal(self, settings: NDArray[np.intp]) -> list[Candidate]:
        """Returns the settings of which no part of the changes would do, simplest first."""
        settings = settings[self._order(settings)]
        places = np.hstack([self._point_places[self._points[settings]], self._places[settings]])
        kept = []
        while len(settings):
            kept.append(int(settings[0]))
            lacks_a_change = ((places != places[0]) & (places[0] > 0)).any(axis=1)
            settings, places = settings[lacks_a_change], places[lacks_a_change]
        return [self._candidate(setting) for setting in kept]

    def _order(self, settings: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sorts by number of changes, then by distance, then by which choices people get wrong most."""
        digits = np.reshape([0.5 * 10.0**-value.decimals for value in self.claim.values], (-1, 1))
        # Settings that print the claimed number are equally near.
        are_alike = (np.abs(self._differences[:, settings]) <= digits).all(axis=0)
        distances = np.where(are_alike, 0.0, self._distances[settings])
        is_default = self._places[settings] == 0
        return np.lexsort([*is_default.T[::-1], distances, self._counts[settings]])

    def _nearest(self, allowed: NDArray[np.bool_]) -> Candidate:
        counts, distances = self._counts[allowed], self._distances[allowed]
        # Rounding noise must not make a setting nearer than one with fewer changes.
        return self._candidate(int(np.flatnonzero(allowed)[np.lexsort((counts, distances.round(6)))[0]]))
