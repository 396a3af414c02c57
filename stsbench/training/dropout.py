"""Dropout in the encoder: its rate, everywhere or for one pass, its kind, and who draws its masks."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from stsbench.base.errors import UserError

_LEVELS = 2**16
"""A draw of NumPy's is one of so many: a rate is met to 1/131,072, and what is left is scaled by the rate met."""

_SEEDS: ContextVar[torch.Generator | None] = ContextVar("the seeds of NumPy's masks", default=None)
"""Where a thread draws the seeds of its masks; None for torch's own generator, which all threads share."""

_ATTENTION = "stsbench_{}"
"""What Transformers' table of attention functions calls ours."""

_RATES = ("attention_dropout", "dropout_prob", "dropout", "activation_dropout")
"""What Transformers calls a rate that a module hands to torch's function instead of a module of its own."""


class GaussianDropout(nn.Dropout):
    """Multiplies by draws of a normal with mean 1 and variance p / (1 - p) (Srivastava et al. 2014, section 10).

    Mean and variance are those of ordinary dropout at the rate p.
    """

    def forward(self, values: Tensor) -> Tensor:
        """Return the values, each multiplied by a draw of its own; unchanged in evaluation."""
        return values * _factors(values, self.p) if self.training and self.p > 0 else values


class NumpyDropout(nn.Dropout):
    """Ordinary dropout by masks of NumPy's, which a CPU draws several times faster than torch's."""

    def forward(self, values: Tensor) -> Tensor:
        """Return the values, each set to zero at the rate or else scaled up; unchanged in evaluation."""
        return values * drawn_by_numpy(values, self.p) if self.training and self.p > 0 else values


def set_dropout(transformer: nn.Module, rate: float) -> None:
    """Set every dropout of a Transformer, and say so in its configuration."""
    for module, name in dropout_places(transformer):
        setattr(module, name, rate)
    config: Any = transformer.config
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if isinstance(getattr(config, name, None), float | int):
            setattr(config, name, rate)


def make_gaussian(transformer: nn.Module) -> None:
    """Put Gaussian noise in the place of every dropout of a Transformer, that of its attention weights too."""
    _exchange(transformer, GaussianDropout, _gaussian_attention, "dropout_kind", "gaussian", "binary")


def let_numpy_draw(transformer: nn.Module) -> None:
    """Let NumPy draw the masks of every dropout of a Transformer, those of its attention weights too."""
    _exchange(transformer, NumpyDropout, _binary_attention, "dropout_draws", "numpy", "torch")


@torch.no_grad()
def numpy_draws(transformer: Any) -> bool:
    """Return whether NumPy draws all that a Transformer in training draws: torch's generator stays as it is."""
    if any(
        isinstance(module, nn.Dropout) and not isinstance(module, NumpyDropout) for module in transformer.modules()
    ):
        return False
    words = torch.zeros((1, 4, transformer.get_input_embeddings().weight.shape[1]))
    with torch.random.fork_rng(devices=()), dropout_at(0.5, transformer), drawing_by(0):
        before = torch.get_rng_state()
        transformer(inputs_embeds=words, attention_mask=torch.ones((1, 4), dtype=torch.long))
        return torch.equal(before, torch.get_rng_state())


def _exchange(  # noqa: PLR0917 - of two lines above
    transformer: Any, layer: type[nn.Dropout], attention: Callable[..., Any], key: str, chosen: str, allowed: str
) -> None:
    """Exchange a Transformer's dropouts, and let a function of ours compute its attention.

    What a model does not let be exchanged is told as a choice of the recipe's `key` that it does not allow.
    """
    name = _ATTENTION.format(chosen)
    for module in list(transformer.modules()):
        for place, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, place, layer(child.p).train(child.training))
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import eager_mask, sdpa_mask

        if chosen == "numpy" and transformer.config._attn_implementation != "sdpa":
            return  # its attention is of its own kind, with the dropouts of above
        AttentionInterface.register(name, attention)
        AttentionMaskInterface.register(name, eager_mask if chosen == "gaussian" else sdpa_mask)
        transformer.set_attn_implementation(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"{key} {chosen}: the attention of {type(transformer).__name__} cannot be replaced with this "
            f"version of Transformers; use --set {key}={allowed}."
        ) from error


def dropout_places(network: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """Yield each place of a network that holds a rate of dropout: a module, and the name of its attribute."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            yield module, "p"
        else:
            yield from ((module, name) for name in _RATES if isinstance(getattr(module, name, None), float))


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


def drawn_by_numpy(values: Tensor, rate: float) -> Tensor:
    """Return for each value what it is multiplied by: 0, at a rate, or else 1 / (1 - rate).

    Values are on a CPU, the rate is above 0 and below 1: its nearest multiple of 1/65,536 counts, at least one.
    The seed of each call is drawn from torch's own generator, or that of `drawing_by`: whoever has seeded that one
    has seeded this.

    >>> _ = torch.manual_seed(0)
    >>> drawn_by_numpy(torch.ones(2, 8), 0.5).unique().tolist()
    [0.0, 2.0]
    """
    dropped = min(max(round(rate * _LEVELS), 1), _LEVELS - 1)
    seed = int(torch.randint(2**63 - 1, (), generator=_SEEDS.get()))
    # Four draws to a word of 64 bits, by the fastest of NumPy's generators.
    words = np.random.SFC64(seed).random_raw(-(-values.numel() // 4)).astype("<u8", copy=False)
    draws = torch.from_numpy(words.view("<i2")[: values.numel()]).view(values.shape)
    factors = torch.empty(values.shape, dtype=values.dtype)
    torch.ge(draws, dropped - _LEVELS // 2, out=factors)
    return factors.mul_(_LEVELS / (_LEVELS - dropped))


@contextmanager
def drawing_by(seed: int | None) -> Iterator[None]:
    """Let masks of NumPy's follow from a seed for a while, as by `torch.manual_seed`, in this thread alone."""
    token = _SEEDS.set(None if seed is None else torch.Generator().manual_seed(seed))
    try:
        yield
    finally:
        _SEEDS.reset(token)


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
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """Return attention as Transformers' plain function does, its weights multiplied by Gaussian factors.

    Query, key and value are (rows, heads, width, d); the mask is added to the scores, (rows, 1, 1 or width,
    width).
    """
    added, key, value = _of_every_head(query, key, value, attention_mask, causal=False, **others)
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    weights = torch.softmax(scores if added is None else scores + added, dim=-1)
    if dropout > 0 and module.training:
        weights = weights * _factors(weights, dropout)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def _binary_attention(  # noqa: PLR0917 - as Transformers calls it
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """Return attention with dropout of its weights by masks of NumPy's; without dropout, Transformers' own.

    Query, key and value are (rows, heads, width, d); the mask is true where a token is seen, (rows, 1, width,
    width).
    """
    if dropout == 0 or not module.training:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
        return attended
    causal = getattr(module, "is_causal", True) if others.get("is_causal") is None else others["is_causal"]
    added, key, value = _of_every_head(query, key, value, attention_mask, causal=causal, **others)
    rows, heads, width, size = query.shape
    query, key, value = (states.reshape(rows * heads, -1, size) for states in (query, key, value))
    scale = size**-0.5 if scaling is None else scaling
    if added is None:
        scores = torch.baddbmm(query.new_empty(()), query, key.transpose(1, 2), beta=0, alpha=scale)
    else:
        added = added.to(query.dtype).expand(rows, heads, width, -1).reshape(rows * heads, width, -1)
        scores = torch.baddbmm(added, query, key.transpose(1, 2), alpha=scale)
    weights = torch.softmax(scores, dim=-1)
    weights = weights * drawn_by_numpy(weights, dropout)
    return torch.bmm(weights, value).view(rows, heads, width, size).transpose(1, 2), None


def _of_every_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    causal: bool,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return what is added to the scores of attention (None for nothing), and a key and a value for each head.

    A mask is true where a token is seen, or already what is added. Where there is none, a `causal` attention sees
    what stands before a token.
    """
    unknown = [name for name in ("softcap", "s_aux") if others.get(name) is not None]
    if unknown:
        raise UserError(
            f"the attention of this base has {unknown[0]}, for which there is no dropout of ours: use --set "
            "dropout_kind=binary, with dropout_draws=torch."
        )
    groups, width = query.shape[1] // key.shape[1], query.shape[2]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    if mask is None and causal and width > 1:
        mask = torch.ones((width, width), dtype=torch.bool, device=query.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=query.dtype, device=query.device).masked_fill_(~mask, -math.inf)
    if position_bias is not None:
        mask = position_bias if mask is None else mask + position_bias
    return mask, key, value
