"""Parts of a computation at the same time, each with a linear algebra of one thread: NumPy's, or PyTorch's."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Part = TypeVar("Part")

_MOST = 4
"""Parts computed at the same time: each holds blocks of its own, and memory is to be bounded on large machines."""


def in_threads(function: Callable[[Item], Part], items: Sequence[Item]) -> Iterator[Part]:
    """Yield what a function returns for each item, in the items' order, some of them computed at the same time.

    As many as NumPy's linear algebra would take threads (the cores, or fewer where `OMP_NUM_THREADS` says so), at
    most four; while it lasts, a product or a decomposition is computed by one thread. So what lies between two
    products is shared out as well, and the numbers are the same on one core and on many: rounding depends on how a
    matrix is cut for threads.

    The function spends its time in NumPy, which lets other threads go on.

    >>> list(in_threads(lambda exponent: 10**exponent, range(3)))
    [1, 10, 100]
    """
    from threadpoolctl import ThreadpoolController

    blas = ThreadpoolController().select(user_api="blas")
    threads = max((library["num_threads"] for library in blas.info()), default=1)
    workers = min(threads, _MOST, len(items))
    with blas.limit(limits=1):
        yield from map(function, items) if workers <= 1 else _in_pool(function, items, workers)


def in_torch_threads(function: Callable[[Item], Part], items: Sequence[Item]) -> Iterator[Part]:
    """Yield what a function returns for each item, as `in_threads` does, where PyTorch computes on the processor.

    As many at the same time as PyTorch would take threads, each with one; a single item has them all. The function
    spends its time in PyTorch.

    >>> import torch
    >>> list(in_torch_threads(lambda size: int(torch.ones(size).sum()), [2, 3]))
    [2, 3]
    """
    import torch

    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    if workers <= 1:
        yield from map(function, items)
        return
    torch.set_num_threads(1)
    try:
        yield from _in_pool(function, items, workers)
    finally:
        torch.set_num_threads(threads)


def _in_pool(function: Callable[[Item], Part], items: Sequence[Item], workers: int) -> Iterator[Part]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(function, items)
