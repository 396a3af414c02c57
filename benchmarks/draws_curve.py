"""Dev curves of trainings with masks drawn by NumPy and chunks cut by tokens, against torch's and 16 sentences.

The first is how a CPU trains unless a recipe says otherwise.

    STSBENCH_DATA=FOLDER python benchmarks/draws_curve.py --corpus FILE [--seeds 5] [--recipes simcse,esimcse]
        [--rows 960] [--batch 32] [--every 10] [--rate 3e-5]

Trains each recipe with each seed both ways, on a CPU, and prints each curve: Spearman x 100 on the dev set of
STS-B at the base and at every so many steps. At last, for each recipe and step, both means over the seeds with
their 95 % intervals by Student's t, and whether each mean is within the other's interval. The intervals are those
of few seeds: they would not show a harm of a tenth of a point.
"""

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import t

from stsbench import train

WAYS = {
    "torch": ["dropout_draws=torch", "optimiser.chunk_tokens=null", "optimiser.chunk=16"],
    "numpy": ["dropout_draws=numpy", "optimiser.chunk=null", "optimiser.chunk_tokens=640"],
}


def interval(scores: np.ndarray) -> tuple[float, float]:
    """Return the mean of some seeds' scores and half the width of its 95 % interval."""
    half = t.ppf(0.975, len(scores) - 1) * scores.std(ddof=1) / np.sqrt(len(scores))
    return float(scores.mean()), float(half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="sample")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--recipes", default="simcse,esimcse")
    parser.add_argument("--rows", type=int, default=960)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--rate", type=float, default=3e-5)
    options = parser.parse_args()

    changes = [
        f"corpus.rows={options.rows}",
        f"optimiser.batch={options.batch}",
        f"optimiser.learning_rate={options.rate}",
        f"selection.every={options.every}",
    ]
    for name in options.recipes.split(","):
        curves: dict[str, list[list[float]]] = defaultdict(list)
        with tempfile.TemporaryDirectory() as root:
            for seed in range(options.seeds):
                for way, more in WAYS.items():
                    trained = train(
                        f"minilm-{name}",
                        options.corpus,
                        Path(root) / f"{way}-{seed}",
                        seed=seed,
                        device="cpu",
                        overrides=[*changes, *more],
                        shared=Path(root) / "shared",
                    )
                    curve = [
                        (line["step"], 100 * line["dev"]) for line in trained.log if line.get("dev") is not None
                    ]
                    steps = [step for step, _ in curve]
                    curves[way].append([score for _, score in curve])
                    print(name, way, f"seed {seed}", *(f"{score:.2f}" for _, score in curve), flush=True)
        for place, step in enumerate(steps):
            means = {way: interval(np.array(curves[way])[:, place]) for way in WAYS}
            (first, half), (second, other) = means.values()
            within = abs(first - second) <= min(half, other)
            described = ", ".join(f"{way} {mean:.3f} +- {width:.3f}" for way, (mean, width) in means.items())
            print(f"{name} step {step}: {described}, within each other's interval: {within}")


if __name__ == "__main__":
    main()
