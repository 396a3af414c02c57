"""How long the intervals of a run take, and `stsbench compare` from the shell, against the bootstrap in one run.

    python benchmarks/interval_speed.py [--tasks sts] [--data-dir FOLDER] [--repeat 3]

Two invented models (gold and noise) are recorded on the tasks' real pairs. Of the first all intervals are computed
from its pair table, of every task, subset and aggregation and of the average, in closed form (`dyadic`) and by the
bootstrap with its 1,000 resamples, in turns. Then the two are compared by the command, a process each time, in
closed form and by the bootstrap with its 5,000. Prints seconds on the clock and of computing (on a machine that
others use too, the second says more) and their ratios (goals on two cores: intervals in 1 s, `compare` in 2.5 s).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import stsbench as sb
from stsbench.records.signature import Signature
from stsbench.scoring.settings import Intervals
from stsbench.scoring.sts import average, score_task
from stsbench.statistics.intervals import IntervalMethod

METHODS: tuple[IntervalMethod, ...] = ("dyadic", "bootstrap")


class Seconds(NamedTuple):
    """On the clock, and of computing, of this process and those that it started."""

    wall: float
    cpu: float


def seconds_of(work: Callable[[], object]) -> Seconds:
    def computing() -> float:
        return sum(os.times()[:4])

    wall, cpu = time.perf_counter(), computing()
    work()
    return Seconds(time.perf_counter() - wall, computing() - cpu)


def measured(name: str, noise: float, seed: int, tasks: str, data_dirs: list[Path], folder: Path) -> sb.RunRecord:
    """Record similarities that are gold and noise, of which the models share half."""
    plain = sb.evaluate(
        lambda texts: [[len(text), 1.0] for text in texts],
        tasks,
        data_dirs=data_dirs,
        intervals=Intervals(None),
        use_cache=False,
    )
    gold = plain.pairs["gold"].to_numpy()
    common, own = (np.random.default_rng(draw).normal(size=len(gold)) for draw in (0, seed))
    np.save(folder / f"{name}.npy", gold / 5 + noise * (common + own))
    return sb.evaluate_similarities(folder / f"{name}.npy", tasks, data_dirs=data_dirs, out=folder / name)


def all_intervals(record: sb.RunRecord, interval: IntervalMethod) -> None:
    """Compute every interval of a run's STS tasks again, and the scores that they are of."""
    how = Intervals(interval=interval)
    pairs = record.pair_table()
    protocol = sb.protocol("simcse")
    results = [
        score_task(
            pairs.take(pairs["task"] == task.task),
            protocol=protocol,
            similarity=record.protocol.similarity,
            signature=Signature.parse(task.signature),
            data=task.data,
            intervals=how,
        )
        for task in record.tasks
    ]
    average(results, how)


def compared(folder: Path, interval: str) -> None:
    """Compare the two runs as a person does."""
    command = [sys.executable, "-m", "stsbench", "compare", str(folder / "one"), str(folder / "two"), "--quiet"]
    subprocess.run([*command, "--interval", interval], check=True, stdout=subprocess.DEVNULL)


def told(what: str, taken: dict[str, list[Seconds]], goal: str) -> None:
    medians = {
        method: Seconds(*(statistics.median(times) for times in zip(*seconds, strict=True)))
        for method, seconds in taken.items()
    }
    for method, seconds in medians.items():
        print(f"{what:9} {method:9} {seconds.wall:7.2f} s, {seconds.cpu:7.2f} s of computing")
    closed, drawn = (medians[method] for method in METHODS)
    ratio = drawn.cpu / max(closed.cpu, 0.01)
    print(f"{what:9} ratio     {ratio:7.1f} times as much by the bootstrap (goal of the closed form: {goal})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="sts")
    parser.add_argument("--data-dir", type=Path, action="append", default=[])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        record = measured("one", 0.3, 1, options.tasks, options.data_dir, folder)
        measured("two", 0.32, 2, options.tasks, options.data_dir, folder)
        print(f"{len(record.pairs):,} pairs of {len(record.tasks)} tasks, median of {options.repeat}")
        all_intervals(record, METHODS[0])  # libraries are loaded at the first call
        intervals: dict[str, list[Seconds]] = {method: [] for method in METHODS}
        comparisons: dict[str, list[Seconds]] = {method: [] for method in METHODS}
        for _ in range(options.repeat):
            for method in METHODS:
                intervals[method].append(seconds_of(partial(all_intervals, record, method)))
                comparisons[method].append(seconds_of(partial(compared, folder, method)))
        told("intervals", intervals, "1 s")
        told("compare", comparisons, "2.5 s")


if __name__ == "__main__":
    main()
