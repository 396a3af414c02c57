"""The grid: each task's score for all combinations of the axes.

The axes whose scores follow from the vectors at hand are scored completely. Other ways of using the encoder need
other vectors: a `Point` holds the scores of one of them.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.diagnosis.axes import AVERAGE_OF, POOLING, Axis, Change
from stsbench.diagnosis.variations import LAYER, RULES, Case, at_layer, number_of_layers, pooling_place, variations
from stsbench.encoders.poolers import POOLING_NAMES, parse_pooling
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import Use, names
from stsbench.records.kinds import AVERAGE

Scores = NDArray[np.float64]

_NEAR_LAYERS = (-2, -3, -4)


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
class Reading:
    """How the encoder is used, and the changes to the sentence in order, if no template makes them."""

    use: Use
    rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, use: Use, *, rules: tuple[str, ...] | None = None, **changes: Any) -> "Reading":
        """Returns the reading of a `Use` with changes to its fields and other rules."""
        use = replace(use, **changes)
        if rules is None or (template := use.own_template) is None:
            return cls(use, rules or ())
        return cls(replace(use, template=template.model_copy(update={"rules": rules})))

    @property
    def forward_pass(self) -> "Reading":
        """What distinguishes forward passes: one pass gives all poolings and layers."""
        return replace(self, use=replace(self.use, pooling=""))

    def encoder(self, own: Encoder) -> Encoder:
        """Returns your encoder, used in this way."""
        if not isinstance(own, TransformerEncoder):
            return own
        values = {name: getattr(self.use, name) for name in names("encoding")}
        changes = {name: value for name, value in values.items() if value != getattr(own.use, name)}
        return own.with_use(**changes) if changes else own


@dataclass(frozen=True)
class Way:
    """A reading, how it differs from yours, and whether to combine it with other poolings."""

    changes: tuple[Change, ...]
    reading: Reading
    crosses: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `stsbench run` that choose it; a layer is part of the pooling's name."""
        pooled = [change for change in self.changes if change.axis in {POOLING, LAYER}]
        others = (change.option for change in self.changes if change not in pooled)
        return (*others, *([f"--pooling {self.reading.use.pooling}"] if pooled else []))


def ways_to_read(case: Case) -> tuple[list[Way], tuple[str, ...]]:
    """Returns the ways to try, and what is not tried and why."""
    offers = {each: each.offer(case) for each in variations() if isinstance(case.encoder, each.needs)}
    ways = []
    for variation, offer in sorted(offers.items(), key=lambda item: not item[1].is_first):
        axis = replace(variation.axis, meanings={**variation.axis.meanings, **offer.meanings})
        for value, changes in offer.values.items():
            reading = Reading.of(case.use, **changes)
            if reading != Reading.of(case.use):
                ways.append(Way((Change(axis, value),), reading, variation.crosses))
    return ways, tuple(offer.without for offer in offers.values() if offer.without)


def with_poolings(case: Case, way: Way, known: Container[str]) -> Iterator[Way]:
    """Yields a way, and the way with other poolings that the same forward pass gives.

    `known` has the poolings of the encoder's own vectors. If only the sentences change, no other layer is read:
    those of unchanged sentences are not cached.
    """
    yield way
    own, encoder = way.reading.use.pooling, case.encoder
    if not isinstance(encoder, TransformerEncoder) or not way.crosses:
        return
    poolings = [name for name in (case.use.pooling, *POOLING_NAMES) if name in known]
    if way.reading.use.own_template is None:
        poolings = [name for name in poolings if not parse_pooling(name).is_of_template]
    if way.changes[0].axis != RULES and pooling_place(own):
        count = number_of_layers(encoder)
        poolings += [at_layer(own, layer) for layer in _NEAR_LAYERS if layer >= -count - 1]
    for pooling in dict.fromkeys(poolings):
        if pooling != own:
            changed = replace(way.reading, use=replace(way.reading.use, pooling=pooling))
            yield Way((*way.changes, _change_of_pooling(own, pooling)), changed)


def _change_of_pooling(own: str, pooling: str) -> Change:
    layers, own_layers = parse_pooling(pooling).layers, parse_pooling(own).layers
    if pooling_place(pooling) == pooling_place(own) and len(layers) == len(own_layers) == 1:
        return Change(LAYER, layers[0])
    return Change(POOLING, pooling)
