"""Dropout in the encoder: its rate, everywhere or for one pass, and Gaussian noise in its place."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from stsbench.base.errors import UserError

_ATTENTION = "stsbench_gaussian"
"""How Transformers knows the attention function of ours."""


class GaussianDropout(nn.Dropout):
    """Multiplies by draws of a normal with mean 1 and variance p / (1 - p) (Srivastava et al. 2014, section 10).

    Mean and variance are those of ordinary dropout at the rate p.
    """

    def forward(self, values: Tensor) -> Tensor:
        """Return the values, each multiplied by a draw of its own; unchanged in evaluation."""
        return values * _factors(values, self.p) if self.training and self.p > 0 else values


def set_dropout(transformer: nn.Module, rate: float) -> None:
    """Set every dropout of a Transformer, and say so in its configuration."""
    for module, name in dropout_places(transformer):
        setattr(module, name, rate)
    config: Any = transformer.config
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if isinstance(getattr(config, name, None), float | int):
            setattr(config, name, rate)


def make_gaussian(transformer: nn.Module) -> None:
    """Put Gaussian noise in the place of every dropout of a Transformer, that of its attention weights too.

    Raises:
        UserError: if the model's code does not let its attention be replaced.
    """
    for module in list(transformer.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, GaussianDropout(child.p).train(child.training))
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import eager_mask

        AttentionInterface.register(_ATTENTION, _gaussian_attention)
        AttentionMaskInterface.register(_ATTENTION, eager_mask)
        whole: Any = transformer
        whole.set_attn_implementation(_ATTENTION)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"dropout_kind gaussian: the attention of {type(transformer).__name__} cannot be replaced with this "
            "version of Transformers; use --set dropout_kind=binary."
        ) from error


def dropout_places(network: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """Yield each place of a network that holds a rate of dropout: a module, and the name of its attribute."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            yield module, "p"
        elif isinstance(getattr(module, "attention_dropout", None), float):
            yield module, "attention_dropout"


@contextmanager
def dropout_at(rate: float | None, *networks: nn.Module) -> Iterator[None]:
    """Set every dropout of some networks to a rate for a while; None leaves them."""
    if rate is None:
        yield
        return
    # A module that stands in two networks is listed once.
    places = {
        (id(module), name): (module, name) for network in networks for module, name in dropout_places(network)
    }
    before = {place: getattr(module, name) for place, (module, name) in places.items()}
    try:
        for module, name in places.values():
            setattr(module, name, rate)
        yield
    finally:
        for place, (module, name) in places.items():
            setattr(module, name, before[place])


def draws(network: nn.Module) -> bool:
    """Return whether a network as it is draws anything in a forward pass."""
    return any(isinstance(module, nn.Dropout) and module.training and module.p > 0 for module in network.modules())


def _factors(values: Tensor, rate: float) -> Tensor:
    return 1 + torch.randn_like(values) * math.sqrt(rate / (1 - rate))


def _gaussian_attention(  # noqa: PLR0917 - as Transformers calls it
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_others: Any,
) -> tuple[Tensor, Tensor]:
    """Return attention as Transformers' plain function does, its weights multiplied by Gaussian factors.

    Args:
        module: the attention layer.
        query: (rows, heads, width, d), and so `key` and `value`.
        key: see `query`.
        value: see `query`.
        attention_mask: added to the scores, (rows, 1, 1 or width, width); None for none.
        scaling: of the scores; None for 1 / sqrt(d).
        dropout: the rate; 0 in evaluation.
    """
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    weights = torch.softmax(scores if attention_mask is None else scores + attention_mask, dim=-1)
    if dropout > 0 and module.training:
        weights = weights * _factors(weights, dropout)
    return (weights @ value).transpose(1, 2).contiguous(), weights
