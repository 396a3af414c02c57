"""How long it takes to rank 50 models on the seven STS tasks, reading their records included.

    python benchmarks/rank_speed.py [--models 50] [--tasks sts] [--threads 1]

The models are the gold scores with noise of their own, more of it from model to model. Prints the seconds
that it takes (goal: under 10), the median of so many rounds.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--tasks", default="sts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))

    import numpy as np

    import stsbench as sb

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        no_intervals = sb.Intervals(None)
        plain = sb.evaluate(
            lambda texts: [[len(s), s.count("e")] for s in texts], options.tasks, intervals=no_intervals
        )
        gold, rng = plain.items["gold"], np.random.default_rng(0)
        shared = rng.normal(size=len(gold))
        runs = []
        for model in range(options.models):
            similarity = gold + shared + (1 + model / 100) * rng.normal(size=len(gold))
            np.save(folder / f"{model}.npy", similarity)
            runs.append(folder / "runs" / str(model))
            sb.import_results(folder / f"{model}.npy", gold=options.tasks, out=runs[-1])
        seconds, worked = [], []
        for _ in range(options.rounds):
            start, working = time.perf_counter(), time.process_time()
            ranking = sb.rank(runs)
            seconds.append(time.perf_counter() - start)
            worked.append(time.process_time() - working)
    load = os.getloadavg()[0]
    print(f"{len(ranking.models)} models, {len(gold)} pairs, {options.threads} threads, load {load:.1f}")
    print(f"  rank {median(seconds):6.2f} s ({min(seconds):.2f} to {max(seconds):.2f}; goal: under 10)")
    print(f"  of them at work {median(worked):.2f} s: the rest is what else the machine does")


if __name__ == "__main__":
    main()
