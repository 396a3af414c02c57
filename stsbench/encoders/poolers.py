"""Poolers: from the hidden states of a sentence's tokens to one vector.

A pooling is a name: one of `POOLING_NAMES`, or a place (`PLACES`), behind it `+head` for the checkpoint's
dense+tanh head and `@` with the layers to read, the mean of several: `last@-2`, `avg@-1,-2`, `mask2`, `mask+head`.
Layer 0 is the embedding layer's output and -1 the last. So places and layers are poolings like the others, and one
forward pass gives several.

Choosing the wrong one is the commonest reason why a published row is not reproduced. Names follow the
SimCSE evaluation script, except that its `avg_first_last` means two things: the numbers printed in the
papers (BERT-base 56.70) used the embedding layer's output with the last layer (`avg_static_last` here);
the later code uses the first Transformer layer (`avg_first_last`, about 60.7).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion

if TYPE_CHECKING:
    from torch import Tensor

Pooler = Callable[["Sequence[Tensor]", "Tensor"], "Tensor"]
"""From the hidden states of every layer, and a mask with 1 for real tokens, to vectors."""

AUTO = "auto"

POOLING_NAMES = ("cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", "avg_static_last", "max", "last")
"""All poolings of a Transformers checkpoint that have a name of their own.

`cls`: the last layer's first token behind the checkpoint's dense+tanh head. `cls_before_pooler`: the same without
the head, as unsupervised SimCSE and ESimCSE are scored. `avg`: the mean of the last layer over the real tokens;
`avg_top2`: of the last two layers, `avg_first_last`: of the first Transformer layer and the last,
`avg_static_last`: of the embedding layer's output and the last (the published first-last). `max`: the largest
value of each dimension over the real tokens. `last`: the last real token, for decoder models.
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
"""Where a vector can be read, of any layer.

`cls_avg`: the mean of the first token and of the mean (AnglE). `weighted_avg`: the mean weighted by position. In a
template: `mask`, `sentence` (the mean over the sentence's own tokens) and `from_sentence` (from there to the end);
a number behind them counts the masks or the copies of the sentence from 1: `mask2`, `sentence2`.
"""

_IN_TEMPLATES = ("mask", "sentence", "from_sentence")
_POOLING = re.compile(
    r"(?P<place>[a-z]\w*?)(?P<number>[1-9]\d?)?(?P<head>\+head)?(?:@(?P<layers>-?\d+(?:,-?\d+)*))?"
)


@dataclass(frozen=True)
class Reading:
    """What a pooling's name says.

    Attributes:
        place: one of `PLACES`.
        number: which mask or copy of the sentence, from 1.
        head: whether the checkpoint's head stands behind it.
        layers: the layers that are read, the mean of several.
    """

    place: str
    number: int = 1
    head: bool = False
    layers: tuple[int, ...] = (-1,)

    @property
    def is_of_template(self) -> bool:
        """Whether the place is one that only a template has."""
        return self.place in _IN_TEMPLATES

    @property
    def needs_all_layers(self) -> bool:
        """Whether another layer than the last is read."""
        return self.layers != (-1,)

    def span(
        self, length: int, masks: Sequence[int] = (), copies: Sequence[tuple[int, int]] = ()
    ) -> tuple[int, int]:
        """Return the first token that is read, and the one behind the last.

        Args:
            length: of the token sequence.
            masks: the places of the template's masks in it.
            copies: the first token of each copy of the sentence, and the one behind its last.

        Raises:
            UserError: if there is no such mask or copy.
        """
        if self.is_of_template:
            places, what = (masks, "masks") if self.place == "mask" else (copies, "copies of the sentence")
            if self.number > len(places):
                raise UserError(
                    f"pooling {self.place}{self.number} reads number {self.number} of the {what}, and the "
                    f"template has {len(places)}: choose another --pooling, or write it into the template."
                )
        match self.place:
            case "cls_before_pooler":
                return 0, 1
            case "last":
                return length - 1, length
            case "mask":
                return masks[self.number - 1], masks[self.number - 1] + 1
            case "sentence":
                return copies[self.number - 1]
            case "from_sentence":
                return copies[self.number - 1][0], length
        return 0, length


def parse_pooling(name: str, also: Iterable[str] = ()) -> Reading:
    """Read a pooling's name.

    Args:
        name: as the person wrote it.
        also: what the person could have written instead, for the message.

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
        raise UserError(f"unknown pooling {name!r}: {suggestion(place, choices)}")
    layers = tuple(int(layer) for layer in (match["layers"] or "-1").split(","))
    return Reading(place, int(match["number"] or 1), bool(match["head"]), layers)


class NoHeadError(UserError):
    """A pooling reads behind a head that the checkpoint does not have."""


def pooling_problem(name: str) -> str:
    """Return what is wrong with a pooling's name, as a sentence; empty if nothing is."""
    try:
        parse_pooling(name)
    except UserError as error:
        return str(error)
    return ""


def pooling_name(place: str, *, head: bool = False, layers: Iterable[int] = ()) -> str:
    """Return the full name of a pooling.

    >>> pooling_name("last", layers=[-2]), pooling_name("mask", head=True)
    ('last@-2', 'mask+head')
    """
    behind = ",".join(map(str, layers))
    return place + ("+head" if head else "") + (f"@{behind}" if behind else "")


def read_vectors(reading: Reading, hidden_states: "Sequence[Tensor]", spans: "Tensor") -> "Tensor":
    """Return one vector a sequence, read where a pooling says, without its head.

    Args:
        reading: what the pooling's name says.
        hidden_states: each layer's output, shape (rows, width, dimensions).
        spans: of each row the first token that is read and the one behind the last, shape (rows, 2).

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
    # Not multiplied by zero: behind padding that attends to nothing there may be no numbers.
    weights = (
        places - starts + 1 if reading.place == "weighted_avg" else torch.ones_like(places - starts)
    ).float()
    weights = weights.unsqueeze(-1).masked_fill(outside, 0)
    mean = (states.masked_fill(outside, 0) * weights).sum(1) / weights.sum(1).clamp(min=1)
    return (states[firsts] + mean) / 2 if reading.place == "cls_avg" else mean


def _mean(layers: "Iterable[Tensor]") -> "Tensor":
    # Sums are taken in float32 whatever the precision: half precision loses digits over long sentences.
    first, *others = (states.float() for states in layers)
    return sum(others, start=first) / (1 + len(others)) if others else first


def _first(hidden_states: "Sequence[Tensor]", _mask: "Tensor") -> "Tensor":
    return hidden_states[-1][:, 0].float()


def _masked_mean(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    weights = mask.unsqueeze(-1).float()
    return (hidden_states[-1].float() * weights).sum(1) / weights.sum(1)


def _max(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    return hidden_states[-1].float().masked_fill(~mask.bool().unsqueeze(-1), float("-inf")).amax(1)


def _last(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    import torch

    rows = torch.arange(len(mask), device=mask.device)
    return hidden_states[-1][rows, mask.sum(1) - 1].float()


POOLERS: dict[str, Pooler] = {"cls_before_pooler": _first, "avg": _masked_mean, "max": _max, "last": _last}
"""What `read_vectors` gives of a last layer that is padded on the right, in as few kernels as training wants."""
