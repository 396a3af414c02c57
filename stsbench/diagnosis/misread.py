"""Mistakes about the padding of a batch in other programs, which `diagnose` tries.

In stsbench a vector never depends on its batch. Elsewhere it does if the tokenizer pads on another side than the
pooling code assumes, or if the mean includes the padding.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Misread:
    """A mistake about the padding.

    Attributes:
        name: of the mistake.
        padding: the side on which shorter rows are padded.
        places: the places of poolings that it changes; see `poolers.PLACES`.
        shifts_positions: whether positions count the padding, which changes all poolings of a network with
            position embeddings.
    """

    name: str
    padding: str
    places: tuple[str, ...]
    shifts_positions: bool = False

    def __str__(self) -> str:
        """Returns its name."""
        return self.name

    def spans(self, place: str, spans: "Tensor", mask: "Tensor") -> "Tensor":
        """Returns first and end column of what is read in each row, shape (rows, 2).

        Args:
            place: the pooling's.
            spans: the correct columns.
            mask: 1 for real tokens, shape (rows, width).
        """
        import torch

        if place not in self.places:
            return spans
        width, lengths = torch.full_like(spans[:, 0], mask.shape[1]), mask.sum(1)
        if place == "last":
            stop = lengths if self.padding == "left" else width
            return torch.stack([stop - 1, stop], dim=1)
        return torch.stack([width * 0, width * 0 + 1 if place == "cls_before_pooler" else width], dim=1)


LEFT = Misread("left", "left", ("cls_before_pooler",), shifts_positions=True)
"""Padded on the left: positions are counted from the first column, and `cls` reads that column
(sentence-transformers 3208)."""

LEFT_AS_RIGHT = Misread("left, read as right", "left", ("last",))
"""Padded on the left; the last token is looked for at the number of tokens."""

RIGHT_AS_LEFT = Misread("right, read as left", "right", ("last",))
"""Padded on the right; the last token is looked for in the last column."""

WITH_PADDING = Misread("right, read with the padding", "right", ("avg", "cls_avg", "max", "weighted_avg"))
"""Padded on the right; the mean includes the padding."""

MISREADINGS = (LEFT, LEFT_AS_RIGHT, RIGHT_AS_LEFT, WITH_PADDING)
