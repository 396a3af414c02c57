"""Parallel computation of blocks, each with single-threaded linear algebra, so that results are reproducible."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Part = TypeVar("Part")

_MOST = 4
"""Largest number of threads; it bounds memory on machines with many cores."""


def in_threads(function: Callable[[Item], Part], items: Sequence[Item]) -> Iterator[Part]:
    """Yields the results of a function for the items, in order, computed in up to four threads.

    The number of threads is that of NumPy's linear algebra (the cores, or `OMP_NUM_THREADS`). Meanwhile each
    matrix product or decomposition uses one thread: rounding depends on how BLAS splits a matrix between threads,
    so this makes results the same on any number of cores.

    >>> list(in_threads(lambda exponent: 10**exponent, range(3)))
    [1, 10, 100]
    """
    blas = ThreadpoolController().select(user_api="blas")
    threads = max((library["num_threads"] for library in blas.info()), default=1)
    workers = min(threads, _MOST, len(items))
    with blas.limit(limits=1):
        if workers <= 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(function, items)
