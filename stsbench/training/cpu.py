"""Training on a CPU: concurrent passes, one per core, which wait for each other only once in a step."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

T = TypeVar("T")


def passes_at_once(
    compute: Callable[[int, Tensor], Tensor],
    parts: Sequence[Tensor],
    parameters: Sequence[Tensor],
    groups: Sequence[Sequence[int]],
) -> Tensor:
    """Return the concatenated results of `compute` for each part, with gradients to parts and parameters.

    Args:
        compute: from a part's number and the part to a tensor (rows, d); called in several threads.
        parts: the inputs of the passes.
        parameters: other tensors with a gradient.
        groups: numbers of parts, computed concurrently by group; gradients are added in the order of the groups,
            so that the same groups give the same bits.
    """
    if torch.is_grad_enabled():
        together: Tensor = _Passes.apply(compute, groups, len(parts), *parts, *parameters)  # type: ignore[no-untyped-call]
        return together

    def passed(group: Sequence[int]) -> list[Tensor]:
        with torch.no_grad():  # which is per thread
            return [compute(number, parts[number]) for number in group]

    return torch.cat(_in_order(groups, _at_once(groups, passed)))


def balanced(costs: Sequence[int], count: int) -> list[list[int]]:
    """Return the indices of costs in at most `count` groups of similar cost, the highest first.

    >>> balanced([8, 7, 6, 5, 4], 2)
    [[0, 3, 4], [1, 2]]
    """
    groups: list[list[int]] = [[] for _ in range(min(count, len(costs)))]
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        min(groups, key=lambda group: sum(costs[other] for other in group)).append(number)
    return groups


class _Passes(torch.autograd.Function):
    """Passes with one thread for each group, forward and backward."""

    @staticmethod
    def forward(
        ctx: Any,
        compute: Callable[[int, Tensor], Tensor],
        groups: Sequence[Sequence[int]],
        count: int,
        *tensors: Tensor,
    ) -> Tensor:
        # Each pass has its own graph, which begins here.
        ctx.parts = [part.detach().requires_grad_(part.requires_grad) for part in tensors[:count]]
        ctx.parameters, ctx.groups = tensors[count:], groups

        def passed(group: Sequence[int]) -> list[Tensor]:
            with torch.enable_grad():
                return [compute(number, ctx.parts[number]) for number in group]

        ctx.results = _in_order(groups, _at_once(groups, passed))
        return torch.cat([result.detach() for result in ctx.results])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        of_results = torch.split(gradient, [len(result) for result in ctx.results])

        def passed_back(group: Sequence[int]) -> dict[int, Tensor]:
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


def _at_once(groups: Sequence[Sequence[int]], compute: Callable[[Sequence[int]], T]) -> list[T]:
    """Return the results of `compute` for each group, in threads that share the cores."""
    threads = torch.get_num_threads()

    def computed(group: Sequence[int]) -> T:
        torch.set_num_threads(max(1, threads // len(groups)))
        return compute(group)

    try:
        with ThreadPoolExecutor(len(groups)) as pool:
            return list(pool.map(computed, groups))
    finally:
        # A number that is set in a thread applies to new threads.
        torch.set_num_threads(threads)


def _in_order(groups: Sequence[Sequence[int]], results: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Return the results of groups in the order of their numbers."""
    by_number = {
        number: result
        for group, of_group in zip(groups, results, strict=True)
        for number, result in zip(group, of_group, strict=True)
    }
    return [by_number[number] for number in range(len(by_number))]
