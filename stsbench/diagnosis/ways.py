"""The ways of using the encoder that need other vectors: each value of `VARIATIONS`, with other poolings."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from stsbench.diagnosis.axes import POOLING, Change
from stsbench.diagnosis.variations import LAYER, Case, at_layer, number_of_layers, pooling_place, variations
from stsbench.encoders.poolers import POOLING_NAMES, parse_pooling
from stsbench.encoders.prompts import SidedEncoder
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import Use, names

_NEAR_LAYERS = (-2, -3, -4)


@dataclass(frozen=True)
class Reading:
    """One way of turning pairs of sentences into similarities.

    Attributes:
        use: how the encoder is used; its template has no rules.
        rules: changes to the sentence, in order.
        similarity_in: the precision of the similarity, `bf16` or `fp16`; empty for float64.
    """

    use: Use
    rules: tuple[str, ...] = ()
    similarity_in: str = ""

    @classmethod
    def of(cls, use: Use, **changes: Any) -> "Reading":
        """Returns the reading of a `Use` with changes to its fields, or to those of a reading."""
        own = {option.name: changes.pop(option.name) for option in fields(cls) if option.name in changes}
        use = replace(use, **changes)
        if (template := use.own_template) is not None:
            own.setdefault("rules", template.rules)
            use = replace(use, template=template.model_copy(update={"rules": ()}))
        return cls(use, **own)

    @property
    def forward_pass(self) -> "Reading":
        """What distinguishes forward passes: one pass gives all poolings and layers."""
        return replace(self, use=replace(self.use, pooling=""), similarity_in="")

    def encoder(self, own: Encoder) -> Encoder:
        """Returns your encoder, used in this way."""
        if not isinstance(own, TransformerEncoder):
            return own
        use = self.use
        if (template := use.own_template) is not None:
            use = replace(use, template=template.model_copy(update={"rules": self.rules}))
        changes = {
            name: getattr(use, name) for name in names("encoding") if getattr(use, name) != getattr(own.use, name)
        }
        if (prompts := changes.pop("prompts", None)) is not None:
            return SidedEncoder(
                (own.with_use(**changes, prompt=prompts[0]), own.with_use(**changes, prompt=prompts[1]))
            )
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
    has_template = way.reading.use.own_template is not None
    poolings = [
        name
        for name in (case.use.pooling, *POOLING_NAMES)
        if name in known and (has_template or not parse_pooling(name).is_of_template)
    ]
    if way.reading.use != Reading.of(case.use).use and pooling_place(own):
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
