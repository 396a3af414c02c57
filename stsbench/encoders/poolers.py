"""Poolers: from the hidden states of a sentence's tokens to one vector.

Choosing the wrong one is the commonest reason why a published row is not reproduced. Names follow the
SimCSE evaluation script, except that its `avg_first_last` means two things: the numbers printed in the
papers (BERT-base 56.70) used the embedding layer's output with the last layer (`avg_static_last` here);
the later code uses the first Transformer layer (`avg_first_last`, about 60.7).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Pooler = Callable[["Sequence[Tensor]", "Tensor"], "Tensor"]

AUTO = "auto"


def cls_before_pooler(hidden_states: "Sequence[Tensor]", _mask: "Tensor") -> "Tensor":
    """Return the last layer's first token. Unsupervised SimCSE and ESimCSE are scored so."""
    return hidden_states[-1][:, 0].float()


def avg(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    """Return the mean of the last layer over the real tokens."""
    return _masked_mean(hidden_states[-1], mask)


def avg_top2(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    """Return the mean over the real tokens of the last two layers."""
    return _masked_mean((hidden_states[-1].float() + hidden_states[-2].float()) / 2, mask)


def avg_first_last(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    """Return the mean over the real tokens of the first Transformer layer and the last."""
    return _masked_mean((hidden_states[1].float() + hidden_states[-1].float()) / 2, mask)


def avg_static_last(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    """Return the mean of the embedding layer's output and the last layer: the published first-last."""
    return _masked_mean((hidden_states[0].float() + hidden_states[-1].float()) / 2, mask)


def max_over_tokens(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    """Return the largest value of each dimension of the last layer over the real tokens."""
    return hidden_states[-1].float().masked_fill(~mask.bool().unsqueeze(-1), float("-inf")).amax(1)


def last(hidden_states: "Sequence[Tensor]", mask: "Tensor") -> "Tensor":
    """Return the last layer's last real token: for decoder models."""
    import torch

    rows = torch.arange(len(mask), device=mask.device)
    return hidden_states[-1][rows, mask.sum(1) - 1].float()


POOLERS: dict[str, Pooler] = {
    "cls_before_pooler": cls_before_pooler,
    "avg": avg,
    "avg_top2": avg_top2,
    "avg_first_last": avg_first_last,
    "avg_static_last": avg_static_last,
    "max": max_over_tokens,
    "last": last,
}
"""The poolers that need no weights of their own."""

NEEDS_ALL_LAYERS = frozenset({"avg_top2", "avg_first_last", "avg_static_last"})

POOLING_NAMES = ("cls", *POOLERS)
"""All poolings of a Transformers checkpoint; `cls` goes through the checkpoint's dense+tanh head."""


def _masked_mean(states: "Tensor", mask: "Tensor") -> "Tensor":
    # Sums are taken in float32 whatever the precision: half precision loses digits over long sentences.
    weights = mask.unsqueeze(-1).float()
    return (states.float() * weights).sum(1) / weights.sum(1)
