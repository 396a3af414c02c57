"""Training on a CPU: dropout with masks from NumPy, and several passes at once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

T = TypeVar("T")

_LEVELS = 2**16
"""The number of values of a NumPy draw: a rate is rounded to 1/65,536, and kept values are scaled accordingly."""

_SEEDS: ContextVar[torch.Generator | None] = ContextVar("the seeds of NumPy's masks", default=None)
"""The generator of a thread's mask seeds; None for torch's own generator, which all threads share."""

_ATTENTION = "stsbench_numpy"

_RATES = ("attention_dropout", "dropout_prob", "dropout", "activation_dropout")
"""Attributes of Transformers' modules with a dropout rate for torch's function, instead of a dropout module."""


class NumpyDropout(nn.Dropout):
    """Ordinary dropout with masks from NumPy, which a CPU draws several times faster than torch's."""

    def forward(self, values: Tensor) -> Tensor:
        return values * drawn_by_numpy(values, self.p) if self.training and self.p > 0 else values


def set_dropout(transformer: nn.Module, rate: float) -> None:
    """Sets every dropout of a Transformer, in its configuration too."""
    for module, name in dropout_places(transformer):
        setattr(module, name, rate)
    config: Any = transformer.config
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if isinstance(getattr(config, name, None), float | int):
            setattr(config, name, rate)


def let_numpy_draw(transformer: Any) -> None:
    """Lets NumPy draw the masks of every dropout of a Transformer, and of its attention weights where possible."""
    for module in list(transformer.modules()):
        for place, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, place, NumpyDropout(child.p).train(child.training))
    # Where attention cannot be replaced, torch draws its masks.
    with suppress(ImportError, AttributeError, ValueError):
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask

        if transformer.config._attn_implementation == "sdpa":
            AttentionInterface.register(_ATTENTION, _attention)
            AttentionMaskInterface.register(_ATTENTION, sdpa_mask)
            transformer.set_attn_implementation(_ATTENTION)


@torch.no_grad()
def numpy_draws(transformer: Any) -> bool:
    """Returns whether NumPy draws all masks of a Transformer in training, without torch's generator."""
    if any(
        isinstance(module, nn.Dropout) and not isinstance(module, NumpyDropout) for module in transformer.modules()
    ):
        return False
    words = torch.zeros((1, 4, transformer.get_input_embeddings().weight.shape[1]))
    with torch.random.fork_rng(devices=()), dropout_at(0.5, transformer), drawing_by(0):
        before = torch.get_rng_state()
        transformer(inputs_embeds=words, attention_mask=torch.ones((1, 4), dtype=torch.long))
        return torch.equal(before, torch.get_rng_state())


def dropout_places(network: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """Yields each dropout rate of a network: a module, and the name of its attribute."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            yield module, "p"
        else:
            yield from ((module, name) for name in _RATES if isinstance(getattr(module, name, None), float))


@contextmanager
def dropout_at(rate: float, *networks: nn.Module) -> Iterator[None]:
    """Sets every dropout of some networks to a rate within the context."""
    # A module that two networks share is listed once.
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
    return any(isinstance(module, nn.Dropout) and module.training and module.p > 0 for module in network.modules())


def drawn_by_numpy(values: Tensor, rate: float) -> Tensor:
    """Returns the factor of each value: 0 with probability `rate`, else 1 / (1 - rate).

    Values are on a CPU. The rate is above 0 and below 1, and rounded to a multiple of 1/65,536, at least one. The
    seed of each call is drawn from torch's generator, or that of `drawing_by`.

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
    token = _SEEDS.set(None if seed is None else torch.Generator().manual_seed(seed))
    try:
        yield
    finally:
        _SEEDS.reset(token)


def _attention(  # noqa: PLR0917 - as Transformers calls it
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """Returns attention with dropout of its weights by NumPy's masks.

    Query, key and value are (rows, heads, width, d); the mask is true where a token is seen, (rows, 1, width,
    width). Evaluation, and attention that differs from BERT's, is Transformers' own.
    """
    is_causal = others.get("is_causal")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    differs = (
        query.shape[1] != key.shape[1]
        or (attention_mask is not None and attention_mask.dtype != torch.bool)
        or (attention_mask is None and causal)
        or any(others.get(name) is not None for name in ("position_bias", "softcap", "s_aux"))
    )
    if dropout == 0 or not module.training or differs:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **others
        )
        return attended
    rows, heads, width, size = query.shape
    query, key, value = (states.reshape(rows * heads, -1, size) for states in (query, key, value))
    scale = size**-0.5 if scaling is None else scaling
    if attention_mask is None:
        scores = torch.baddbmm(query.new_empty(()), query, key.transpose(1, 2), beta=0, alpha=scale)
    else:
        added = torch.zeros(attention_mask.shape, dtype=query.dtype, device=query.device)
        added = added.masked_fill_(~attention_mask, -torch.inf).expand(rows, heads, width, -1)
        scores = torch.baddbmm(added.reshape(rows * heads, width, -1), query, key.transpose(1, 2), alpha=scale)
    weights = torch.softmax(scores, dim=-1)
    weights = weights * drawn_by_numpy(weights, dropout)
    return torch.bmm(weights, value).view(rows, heads, width, size).transpose(1, 2), None


def passes_at_once(
    compute: Callable[[int, Tensor], Tensor],
    parts: Sequence[Tensor],
    parameters: Sequence[Tensor],
    at_once: int,
) -> Tensor:
    """Returns the concatenated results of `compute` for each part, with gradients to parts and parameters.

    Args:
        compute: from a part's number and the part to a tensor (rows, d); called in several threads.
        parts: the inputs of the passes.
        parameters: other tensors with a gradient.
        at_once: how many threads take the passes in turn. Gradients are added in the order of the threads, so the
            same number of threads gives identical results.
    """
    groups = [range(first, len(parts), at_once) for first in range(min(at_once, len(parts)))]
    if torch.is_grad_enabled():
        together: Tensor = _Passes.apply(compute, groups, len(parts), *parts, *parameters)  # type: ignore[no-untyped-call]
        return together

    def passed(group: range) -> list[Tensor]:
        with torch.no_grad():  # which is per thread
            return [compute(number, parts[number]) for number in group]

    return torch.cat(_in_order(_at_once(groups, passed)))


class _Passes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        compute: Callable[[int, Tensor], Tensor],
        groups: Sequence[range],
        count: int,
        *tensors: Tensor,
    ) -> Tensor:
        # Each pass has its own graph, which begins here.
        ctx.parts = [part.detach().requires_grad_(part.requires_grad) for part in tensors[:count]]
        ctx.parameters, ctx.groups = tensors[count:], groups

        def passed(group: range) -> list[Tensor]:
            with torch.enable_grad():
                return [compute(number, ctx.parts[number]) for number in group]

        ctx.results = _in_order(_at_once(groups, passed))
        return torch.cat([result.detach() for result in ctx.results])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        of_results = torch.split(gradient, [len(result) for result in ctx.results])

        def passed_back(group: range) -> dict[int, Tensor]:
            begins = [ctx.parts[number] for number in group]
            wanted = [tensor for tensor in (*begins, *ctx.parameters) if tensor.requires_grad]
            found = torch.autograd.grad(
                [ctx.results[number] for number in group],
                wanted,
                [of_results[number] for number in group],
                allow_unused=True,
            )
            return {id(tensor): of for tensor, of in zip(wanted, found, strict=True) if of is not None}

        by_group = _at_once(ctx.groups, passed_back)

        def total(tensor: Tensor) -> Tensor | None:
            found = [gradients[id(tensor)] for gradients in by_group if id(tensor) in gradients]
            return sum(found[1:], found[0]) if found else None

        return None, None, None, *map(total, (*ctx.parts, *ctx.parameters))


def _at_once(groups: Sequence[range], compute: Callable[[range], T]) -> list[T]:
    threads = torch.get_num_threads()

    def computed(group: range) -> T:
        torch.set_num_threads(max(1, threads // len(groups)))
        return compute(group)

    try:
        with ThreadPoolExecutor(len(groups)) as pool:
            return list(pool.map(computed, groups))
    finally:
        # A number of threads set in a thread applies to new threads.
        torch.set_num_threads(threads)


def _in_order(by_group: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    count = len(by_group)
    return [by_group[number % count][number // count] for number in range(sum(map(len, by_group)))]
