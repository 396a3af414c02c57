"""How long uniformity takes per pair of vectors, against a plain matrix product in blocks, and how much memory.

    python benchmarks/uniformity_speed.py [--vectors 100000] [--dimensions 768] [--repeat 3]

Both see the same pairs i < j of the same float32 vectors in blocks of the same size, in one process, in turns,
with the same number of threads. The plain product normalises nothing, takes no exponential and adds up nothing.
Prints seconds, nanoseconds per pair, their ratio (goal: at most 2), and by how much the process grew beyond the
vectors themselves while uniformity was computed (goal: under 1 GB).
"""

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stsbench.statistics.geometry import _PAIR_ROWS, uniformity


def plain_product(vectors: np.ndarray) -> None:
    """Multiply every block with itself and with all that follow."""
    for start in range(0, len(vectors), _PAIR_ROWS):
        left = vectors[start : start + _PAIR_ROWS]
        for other in range(start, len(vectors), _PAIR_ROWS):
            np.matmul(left, vectors[other : other + _PAIR_ROWS].T)


class Seconds(NamedTuple):
    """On the clock, and of computing: on a machine that others use too, the second says more."""

    wall: float
    cpu: float


def seconds_of(work: Callable[[np.ndarray], object], vectors: np.ndarray) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    work(vectors)
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((options.vectors, options.dimensions), dtype=np.float32)
    uniformity(vectors[:64])  # libraries start their threads at the first call
    before = peak_mb()
    ours, plain = [seconds_of(uniformity, vectors)], []
    grown = peak_mb() - before
    plain.append(seconds_of(plain_product, vectors))
    for _ in range(options.repeat - 1):
        ours.append(seconds_of(uniformity, vectors))
        plain.append(seconds_of(plain_product, vectors))

    pairs = options.vectors * (options.vectors - 1) / 2
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    print(
        f"{options.vectors} x {options.dimensions} float32, {options.repeat} runs, {cores} cores, load {load:.1f}"
    )
    for clock in Seconds._fields:
        times = {
            name: [getattr(one, clock) for one in seconds]
            for name, seconds in (("uniformity", ours), ("product", plain))
        }
        for name, seconds in times.items():
            middle = statistics.median(seconds)
            print(
                f"  {clock:4} {name:11} {middle:8.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
                f"  {1e9 * middle / pairs:6.2f} ns a pair"
            )
        ratios = [a / b for a, b in zip(*times.values(), strict=True)]
        middle = statistics.median(ratios)
        print(f"  {clock:4} ratio       {middle:8.2f} ({min(ratios):.2f} to {max(ratios):.2f}; goal: at most 2)")
    print(f"  memory beyond the vectors: {grown:.0f} MB (goal: under 1000)")


if __name__ == "__main__":
    main()
