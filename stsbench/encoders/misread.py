"""How programs mistake the padding of a batch: what they read then, of which positions.

Here a vector never depends on what else is in a batch. In other programs it does where the tokenizer pads on
another side than the code that pools believes, or where the mean is taken over the padding, too. `diagnose` tries
these.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Misread:
    """A mistake about the padding.

    Attributes:
        name: what it is called.
        padding: the side on which shorter rows are padded.
        places: the places of poolings that read something else for it; see `poolers.PLACES`.
        shifts_positions: whether the padding is counted among the positions, so that all poolings of a network
            with position embeddings are changed.
    """

    name: str
    padding: str
    places: tuple[str, ...]
    shifts_positions: bool = False

    def __str__(self) -> str:
        """Return its name."""
        return self.name

    def spans(self, place: str, spans: "Tensor", mask: "Tensor") -> "Tensor":
        """Return what is read, as the first column and the one behind the last of each row, shape (rows, 2).

        Args:
            place: the pooling's.
            spans: what ought to be read.
            mask: 1 for real tokens, shape (rows, width).
        """
        import torch

        if place not in self.places:
            return spans
        width = torch.full_like(spans[:, 0], mask.shape[1])
        lengths = mask.sum(1)
        first, behind = {
            "cls_before_pooler": (width * 0, width * 0 + 1),
            "last": (lengths - 1, lengths) if self.padding == "left" else (width - 1, width),
        }.get(place, (width * 0, width))
        return torch.stack([first, behind], dim=1)


LEFT = Misread("left", "left", ("cls_before_pooler",), shifts_positions=True)
"""Padded on the left: positions are counted from the first column, and `cls` reads what stands there
(sentence-transformers 3208)."""

LEFT_AS_RIGHT = Misread("left, read as right", "left", ("last",))
"""Padded on the left, where the code takes the column at the number of tokens for the last one."""

RIGHT_AS_LEFT = Misread("right, read as left", "right", ("last",))
"""Padded on the right, where the code takes the last column for the last token."""

WITH_PADDING = Misread("right, read with the padding", "right", ("avg", "cls_avg", "max", "weighted_avg"))
"""Padded on the right, where the mean is taken over all columns (`angle_emb` up to 0.1)."""

MISREADINGS = (LEFT, LEFT_AS_RIGHT, RIGHT_AS_LEFT, WITH_PADDING)
