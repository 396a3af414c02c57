"""Poolings: from token vectors to one sentence vector.

Names follow the SimCSE evaluation script, but its `avg_first_last` has two meanings: the numbers in the papers
(BERT-base 56.70) used the embedding layer's output with the last layer (`avg_static_last` here), the later code
uses the first Transformer layer (`avg_first_last`, about 60.7).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion

if TYPE_CHECKING:
    from torch import Tensor

AUTO = "auto"

POOLING_NAMES = ("cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", "avg_static_last", "max", "last")
"""The named poolings of a Transformers checkpoint.

`cls`: the last layer's first token through the checkpoint's dense+tanh head; `cls_before_pooler`: without the
head, as unsupervised SimCSE is scored. `avg`: the mean of the last layer over the real tokens; `avg_top2`: of the
last two layers; `avg_first_last` and `avg_static_last`: of the first or the embedding layer's output and the last.
`max`: the maximum of each dimension over the real tokens. `last`: the last real token, for decoders.
"""

_LAYERS = {"avg_top2": (-1, -2), "avg_first_last": (1, -1), "avg_static_last": (0, -1)}

PLACES = (
    "cls_before_pooler",
    "avg",
    "max",
    "last",
    "cls_avg",
    "weighted_avg",
    "mask",
    "sentence",
    "from_sentence",
)
"""The places that can be read in any layer.

`cls_avg`: the mean of the first token and the mean (AnglE). `weighted_avg`: the mean weighted by position. In a
template: `mask`, `sentence` (the mean over the sentence's tokens) and `from_sentence` (from there to the end); a
number selects one of several masks or copies of the sentence, from 1: `mask2`, `sentence2`.
"""

_IN_TEMPLATES = ("mask", "sentence", "from_sentence")
_POOLING = re.compile(
    r"(?P<place>[a-z]\w*?)(?P<number>[1-9]\d?)?(?P<head>\+head)?(?:@(?P<layers>-?\d+(?:,-?\d+)*))?"
)


@dataclass(frozen=True)
class Reading:
    """A parsed pooling.

    Attributes:
        place: one of `PLACES`.
        number: which mask or copy of the sentence, from 1.
        head: whether the checkpoint's head follows.
        layers: the layers to average.
    """

    place: str
    number: int = 1
    head: bool = False
    layers: tuple[int, ...] = (-1,)

    @property
    def is_of_template(self) -> bool:
        """Whether only a template has this place."""
        return self.place in _IN_TEMPLATES

    @property
    def needs_all_layers(self) -> bool:
        """Whether a layer other than the last is read."""
        return self.layers != (-1,)

    def span(
        self, length: int, masks: Sequence[int] = (), copies: Sequence[tuple[int, int]] = ()
    ) -> tuple[int, int]:
        """Returns the tokens to read, as (start, stop).

        Args:
            length: of the token sequence.
            masks: the positions of the template's masks.
            copies: (start, stop) of each copy of the sentence.
        """
        spans = [(place, place + 1) for place in masks] if self.place == "mask" else copies
        if self.is_of_template and self.number > len(spans):
            raise UserError(
                f"pooling {self.place}{self.number}: the template has {len(spans)} places of that kind. Choose "
                "another --pooling, or extend the template."
            )
        match self.place:
            case "cls_before_pooler":
                return 0, 1
            case "last":
                return length - 1, length
            case "mask" | "sentence":
                return spans[self.number - 1]
            case "from_sentence":
                return spans[self.number - 1][0], length
        return 0, length


def parse_pooling(name: str, also: Iterable[str] = ()) -> Reading:
    """Parses a pooling's name.

    Args:
        name: as the user wrote it.
        also: other valid values, for the message.

    Raises:
        UserError: if there is no such pooling, with the nearest name.

    >>> parse_pooling("avg_first_last").layers, parse_pooling("cls").head
    ((1, -1), True)
    >>> parse_pooling("mask2+head@-2")
    Reading(place='mask', number=2, head=True, layers=(-2,))
    """
    if name == "cls":
        return Reading("cls_before_pooler", head=True)
    if name in _LAYERS:
        return Reading("avg", layers=_LAYERS[name])
    match = _POOLING.fullmatch(name)
    place = match["place"] if match else name
    if match is None or place not in PLACES or (match["number"] and place not in _IN_TEMPLATES):
        choices = tuple(dict.fromkeys((*also, *POOLING_NAMES, *PLACES)))
        # Other programs call the average the mean.
        raise UserError(f"unknown pooling {name!r}: {suggestion('avg' if place == 'mean' else place, choices)}")
    layers = tuple(int(layer) for layer in (match["layers"] or "-1").split(","))
    return Reading(place, int(match["number"] or 1), bool(match["head"]), layers)


class NoHeadError(UserError):
    """A pooling needs a head that the checkpoint lacks."""


def pooling_name(place: str, *, head: bool = False, layers: Iterable[int] = ()) -> str:
    """Returns the full name of a pooling.

    >>> pooling_name("last", layers=[-2]), pooling_name("mask", head=True)
    ('last@-2', 'mask+head')
    """
    suffix = ",".join(map(str, layers))
    return place + ("+head" if head else "") + (f"@{suffix}" if suffix else "")


def read_vectors(reading: Reading, hidden_states: "Sequence[Tensor]", spans: "Tensor") -> "Tensor":
    """Returns one vector per sequence, before any head.

    Args:
        reading: the pooling.
        hidden_states: each layer's output, shape (rows, width, dimensions).
        spans: (start, stop) of each row's tokens, shape (rows, 2).

    Returns:
        Shape (rows, dimensions), float32; zeros for an empty span.
    """
    import torch

    rows, width = torch.arange(len(spans), device=spans.device), hidden_states[-1].shape[1]
    firsts = rows, spans[:, 0].clamp(max=width - 1)
    if reading.place in {"cls_before_pooler", "last", "mask"}:
        return _mean(hidden_states[layer][firsts] for layer in reading.layers)
    states = _mean(hidden_states[layer] for layer in reading.layers)
    starts, stops = spans[:, :1], spans[:, 1:]
    places = torch.arange(width, device=states.device).unsqueeze(0)
    outside = ((places < starts) | (places >= stops)).unsqueeze(-1)
    if reading.place == "max":
        return states.masked_fill(outside, float("-inf")).amax(1)
    weights = places - starts + 1 if reading.place == "weighted_avg" else torch.ones_like(places - starts)
    weights = weights.float().unsqueeze(-1).masked_fill(outside, 0)
    # Filled, not multiplied by zero: padding may hold NaN.
    mean = (states.masked_fill(outside, 0) * weights).sum(1) / weights.sum(1).clamp(min=1)
    return (states[firsts] + mean) / 2 if reading.place == "cls_avg" else mean


def _mean(layers: "Iterable[Tensor]") -> "Tensor":
    # Summed in float32: half precision loses digits over long sentences.
    first, *others = (states.float() for states in layers)
    return sum(others, start=first) / (1 + len(others)) if others else first
