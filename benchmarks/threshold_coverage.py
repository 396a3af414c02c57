"""Whether a threshold keeps its promise: the share of draws in which the true rate meets the target.

Similarities are normal: matches are two units higher, and a sentence adds the same amount to all of its pairs. In
`hubs` five pairs share one sentence, in `cliques` four sentences form six pairs. No cutoff counts as kept.

    python benchmarks/threshold_coverage.py --draws 2000
"""

import argparse

import numpy as np
from scipy.stats import norm

from stsbench.analysis.cutoffs import FALSE, PRECISION, RECALL, LabelledPairs, cutoff_of
from stsbench.statistics.dependence import Sharing

APART = 2.0
BLOCKS = {
    "independent": [(0, 1)],
    "hubs": [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)],
    "cliques": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
}
TARGETS = {FALSE: 0.05, RECALL: 0.9, PRECISION: 0.9}


def drawn(kind: str, size: int, shared: float, rng: np.random.Generator) -> LabelledPairs:
    """Draws pairs; sentences have the share `shared` of the variance of a similarity."""
    block = np.array(BLOCKS[kind])
    starts = (block.max() + 1) * np.arange(size // len(block) + 1)
    first, second = (starts[:, np.newaxis, np.newaxis] + block).reshape(-1, 2)[:size].T
    of_sentences = rng.normal(scale=(shared / 2) ** 0.5, size=second.max() + 1)
    matches = rng.random(size) < 0.5
    noise = rng.normal(scale=(1 - shared) ** 0.5, size=size)
    similarity = APART * matches + of_sentences[first] + of_sentences[second] + noise
    return LabelledPairs("drawn", similarity, matches, Sharing.of(first, second))


def true_rate(target: str, cutoff: float) -> float:
    false, recall = norm.sf(cutoff), norm.sf(cutoff - APART)
    return float({FALSE: false, RECALL: recall, PRECISION: recall / (recall + false)}[target])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--shared", type=float, default=0.6, help="share of the variance that sentences have")
    arguments = parser.parse_args()
    print("target,pairs are,pairs,kept,no cutoff")
    for target, rate in TARGETS.items():
        for kind in BLOCKS:
            for size in (200, 1000, 5000):
                rng, kept, none = np.random.default_rng(size), 0, 0
                for _ in range(arguments.draws):
                    cutoff = cutoff_of(drawn(kind, size, arguments.shared, rng), target, rate, "dyadic")
                    true = true_rate(target, cutoff)
                    none += bool(np.isnan(cutoff))
                    kept += bool(np.isnan(cutoff) or (true <= rate if target == FALSE else true >= rate))
                print(f"{target},{kind},{size},{kept / arguments.draws:.3f},{none}", flush=True)


if __name__ == "__main__":
    main()
