"""The template without its sentence, whose vector PromptBERT and CoT-BERT subtract (`Template.subtract`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.encoders.poolers import Reading
from stsbench.encoders.rendering import Alone, Part
from stsbench.encoders.template import FROM_ZERO, OWN

if TYPE_CHECKING:
    from torch import Tensor


class _Gap(NamedTuple):
    """What a sentence adds to its template: tokens, and positions, which are fewer if some tokens take none."""

    tokens: int
    positions: int

    @classmethod
    def of(cls, ids: Sequence[int], alone: Sequence[int], pad_position: int | None) -> "_Gap":
        tokens = max(0, len(ids) - len(alone))
        return cls(tokens, max(0, tokens - ids.count(pad_position) + alone.count(pad_position)))


@dataclass
class EmptyTemplate:
    """The vectors of a template without its sentence.

    They depend on the sentence's length only, through the positions after it, and are computed once per length;
    each alone, so that its last bits do not depend on a batch.

    Attributes:
        texts: the template's texts without the sentence.
        with_padding: whether attended padding takes the sentence's place.
        positions: `Template.positions`.
    """

    texts: Sequence[Alone]
    with_padding: bool
    positions: str
    _known: "dict[tuple[str, int, _Gap], Tensor]" = field(default_factory=dict)

    def is_alone(self, part: Part) -> bool:
        """Returns whether the sentence in the template is empty."""
        return any(part.ids == text.part.ids for text in self.texts)

    def vectors(self, network: Any, pooling: str, reading: Reading, parts: Sequence[Part]) -> "Tensor":
        """Returns the vectors to subtract, computed by a `Network`, shape (len(parts), dimensions).

        In `parts`, all texts of the first sentence precede those of the second.
        """
        import torch

        vectors = []
        for number, part in enumerate(parts):
            text = number % len(self.texts)
            alone = self.texts[text]
            key = pooling, text, _Gap.of(part.ids, alone.part.ids, network.pad_position)
            if key not in self._known:
                self._known[key] = self._computed(network, pooling, reading, alone, key[-1])
            vectors.append(self._known[key])
        return torch.stack(vectors)

    def _computed(self, network: Any, pooling: str, reading: Reading, alone: Alone, gap: _Gap) -> "Tensor":
        import torch

        ids, at = alone.part.ids, alone.gap
        from_zero = self.positions == FROM_ZERO
        row = torch.tensor([ids])
        places = range(len(ids)) if from_zero else network.own_positions(row, torch.ones_like(row))[0].tolist()
        first = at if from_zero or network.pad_position is None else at + network.pad_position + 1
        fill = gap.tokens if self.with_padding else 0
        masks = tuple(place + fill if place >= at else place for place in alone.part.masks)
        part = Part((*ids[:at], *[network.pad_id] * fill, *ids[at:]), masks, ((at, at + fill),))
        shift = gap.tokens if from_zero else gap.positions
        after = [place + shift for place in places[at:]]
        positions = None if self.positions == OWN else [[*places[:at], *range(first, first + fill), *after]]
        vector: Tensor = network.read([part], {pooling: reading}, positions=positions)[pooling][0]
        return vector
