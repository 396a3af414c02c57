"""The scores of all settings, and those that give the claimed numbers, simplest first.

One grid has the settings whose scores follow from your vectors. Another has the ways of using the encoder that
need other vectors; they are the values of its first axis.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.diagnosis.axes import Axis, Change, Claim, Way
from stsbench.records.kinds import AVERAGE

Scores = NDArray[np.float64]


NEIGHBOURHOOD = 2.0
"""Points around a claim: settings are judged by how many other claims in this range they would explain, too."""

WEAK = 0.05
"""At this chance or above, a setting that gives the claim is weak evidence."""

_EVERY_OTHER = 0.5
"""Settings that give more than this share of all claims nearby explain none of them."""

_MOST_NAMED = 4
"""The number of untried ways that a note lists."""


@dataclass(frozen=True)
class Grid:
    """The scores of all settings.

    Attributes:
        axes: the choices; the last is what an average is taken over.
        scores: for each task an array with one dimension per axis, x 100: of length 1 if the choice does not
            affect the task, NaN where there is no score.
    """

    axes: tuple[Axis, ...]
    scores: Mapping[str, Scores]

    def of(self, task: str) -> Scores:
        """Returns the scores of a task, or of the average."""
        unknown = np.full((1,) * len(self.axes), np.nan)
        if task != AVERAGE:
            return self.scores.get(task, unknown)
        means = [
            mean.of({task: self.scores.get(task, unknown) for task in mean.tasks}) for mean in self.axes[-1].values
        ]
        return np.concatenate(np.broadcast_arrays(*means), axis=-1)

    def beyond(self, ways: Mapping[Way, Mapping[str, Scores]]) -> "Grid":
        """Returns the scores of your setting alone and of other ways of using the encoder, where each has some.

        The first axis, `variation`, has the ways as its values.
        """
        scores = {}
        for task, own in self.scores.items():
            unknown = np.full((1,) * own.ndim, np.nan)
            parts = [own[(slice(1),) * own.ndim], *(of_way.get(task, unknown) for of_way in ways.values())]
            sizes = np.broadcast_shapes(*(part.shape for part in parts))
            scores[task] = np.full((len(parts), *sizes), np.nan)
            for place, part in enumerate(parts):
                scores[task][place][tuple(map(slice, part.shape))] = part
        return Grid((Axis("variation", (Way(), *ways)), *self.axes), scores)

    def changes(self, places: NDArray[np.integer]) -> NDArray[np.int64]:
        """Returns how many choices settings change; their places have the shape (axes, settings)."""
        counts = np.zeros(places.shape[1], dtype=np.int64)
        for axis, column in zip(self.axes, places, strict=True):
            counts += np.array([len(axis.changes_at(place)) for place in range(len(axis.values))])[column]
        return counts

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The grid as a table, one row per score of a task.

        Columns: task, split (empty if a task has a single one), the other axes, score (x 100), changes (how many
        choices differ from yours). A choice that does not affect a task has your value.
        """
        return pd.concat([self._frame_of(task) for task in self.scores], ignore_index=True)

    def _frame_of(self, task: str) -> pd.DataFrame:
        scores = self.of(task)
        places = np.argwhere(~np.isnan(scores)).T
        columns: dict[str, Any] = {"task": np.full(places.shape[1], task, dtype=object), "split": ""}
        for axis, column in zip(self.axes[:-1], places[:-1], strict=True):
            if axis.task in {"", task}:
                values = np.array(list(map(str, axis.values)), dtype=object)
                columns["split" if axis.task else axis.name] = values[column]
        return pd.DataFrame(columns | {"score": scores[tuple(places)], "changes": self.changes(places)})


def along(axes: Sequence[Axis], dimensions: Sequence[Axis], scores: Scores) -> Scores:
    """Returns scores with one dimension per axis, of length 1 if it is not one of `dimensions`."""
    order = sorted(range(len(dimensions)), key=lambda number: [*axes, *dimensions].index(dimensions[number]))
    sizes = dict(zip(dimensions, scores.shape, strict=True))
    return scores.transpose(order).reshape([sizes.get(axis, 1) for axis in axes])


@dataclass(frozen=True)
class Candidate:
    """A setting: how it differs from yours, and a score for each claimed number.

    `distance` is the largest difference to a claimed number; the setting `fits` if all are within tolerance. The
    claim cannot distinguish it from the less simple ones in `alike`, which print the same numbers.
    """

    changes: Way
    scores: tuple[float, ...]
    distance: float
    fits: bool
    alike: "tuple[Candidate, ...]" = field(default=(), compare=False)

    @property
    def count(self) -> int:
        """The number of changes."""
        return len(self.changes)

    @property
    def choices(self) -> dict[str, str]:
        """The changed values by the names of their axes."""
        return {change.axis.name: str(change.value) for change in self.changes}


@dataclass(frozen=True)
class Search:
    """A claim compared with the settings of a grid.

    Attributes:
        grid: every score.
        claim: the numbers to explain.
    """

    grid: Grid
    claim: Claim

    @cached_property
    def default(self) -> Candidate:
        """Your setting."""
        return self._candidate(0)

    @property
    def explanations(self) -> tuple[Candidate, ...]:
        """The settings that give the claim and need every change, simplest first.

        Several changes do not count as an explanation if as many would give most claims nearby.
        """
        return tuple(candidate for candidate in self._fitting if candidate.count not in self._vacuous)

    @property
    def coincidences(self) -> tuple[Candidate, ...]:
        """The settings that give the claim by coincidence: as many changes would give nearly every number."""
        return tuple(candidate for candidate in self._fitting if candidate.count in self._vacuous)

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
        """Returns the share of all claims nearby that settings with at most `count` changes would give.

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
        # The centres are sorted and all intervals are equally long: each adds its uncovered part.
        covered = ends - np.maximum(begins, np.concatenate([[low], ends])[: len(begins)])
        return float(covered.sum() / (high - low))

    def _candidate(self, setting: int) -> Candidate:
        """Returns a setting by its number; the first is yours."""
        places = zip(self.grid.axes, self._places[:, setting].tolist(), strict=True)
        return Candidate(
            changes=Way(change for axis, place in places for change in axis.changes_at(place)),
            scores=tuple(self._scores[:, setting].tolist()),
            distance=float(self._distances[setting]),
            fits=bool(self._fits[setting]),
        )

    @cached_property
    def _scores(self) -> Scores:
        """The scores of each setting, (claimed numbers, settings)."""
        arrays = np.broadcast_arrays(*map(self.grid.of, self.claim.tasks))
        return np.reshape(arrays, (len(arrays), -1))

    @cached_property
    def _places(self) -> NDArray[np.int16]:
        """The place of each setting, (axes, settings); 0 is yours."""
        shape = np.broadcast_shapes(*(self.grid.of(task).shape for task in self.claim.tasks))
        return np.indices(shape, np.int16).reshape(len(shape), -1)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        return self.grid.changes(self._places)

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
    def _fitting(self) -> tuple[Candidate, ...]:
        """All settings that give the claim; those that print the same numbers are one cause."""
        groups: dict[tuple[str, ...], list[Candidate]] = {}
        for candidate in self._minimal(self._ordered(np.flatnonzero(self._fits))):
            printed = zip(candidate.scores, self.claim.values, strict=True)
            key = tuple(f"{score:.{value.decimals}f}" for score, value in printed)
            groups.setdefault(key, []).append(candidate)
        return tuple(replace(best, alike=tuple(alike)) for best, *alike in groups.values())

    @cached_property
    def _vacuous(self) -> set[int]:
        """The numbers of changes that would give most claims nearby."""
        counts = {candidate.count for candidate in self._fitting}
        return {count for count in counts if count > 1 and self.chance(count) > _EVERY_OTHER}

    def _minimal(self, settings: NDArray[np.intp]) -> Iterator[Candidate]:
        """Yields the settings that need every one of their changes."""
        kept: list[set[Change]] = []
        for candidate in map(self._candidate, settings):
            changes = set(candidate.changes)
            if not any(fewer <= changes for fewer in kept):
                kept.append(changes)
                yield candidate
            if not changes:
                return

    def _ordered(self, settings: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sorts by number of changes, then by distance, then by the most frequent mistakes."""
        digits = 0.5 * 10.0 ** -self._of_values("decimals")
        # Settings that print the claimed number are equally near.
        are_alike = (np.abs(self._differences[:, settings]) <= digits).all(axis=0)
        distances = np.where(are_alike, 0.0, self._distances[settings])
        is_default = self._places[:, settings] == 0
        return settings[np.lexsort([*is_default[::-1], distances, self._counts[settings]])]

    def _nearest(self, allowed: NDArray[np.bool_]) -> Candidate:
        counts, distances = self._counts[allowed], self._distances[allowed]
        # Rounding noise must not make a setting nearer than one with fewer changes.
        return self._candidate(int(np.flatnonzero(allowed)[np.lexsort((counts, distances.round(6)))[0]]))


@dataclass
class Further:
    """What was searched beyond the grid.

    Attributes:
        search: the claim compared with your setting alone and with the ways that were tried.
        tried: their names.
        untried: the ways that were left out, with the reason if it was not time.
        sentences: the number of sentences that were encoded.
        seconds: how long it took.
    """

    search: Search
    tried: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    sentences: int = 0
    seconds: float = 0.0

    @property
    def note(self) -> str:
        """What was tried, how long it took, and what was left out."""
        count, ways = len(self.tried), "way" if len(self.tried) == 1 else "ways"
        note = f"Beyond the grid: {count} other {ways}, {self.sentences:,} sentences, {self.seconds:.1f} s."
        if self.untried:
            more = f"; {len(self.untried) - _MOST_NAMED} more" if len(self.untried) > _MOST_NAMED else ""
            named = "; ".join(self.untried[:_MOST_NAMED]) + more
            note += f" Not tried for lack of time (--budget) or memory: {named}."
        return note

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as plain data, with the number of settings for the search."""
        fields = {name: value for name, value in vars(self).items() if name != "search"}
        return {**fields, "settings": self.search.settings}
