"""Whether a threshold keeps its promise: the share of draws in which the true rate meets the target.

Similarities are normal: matches are `--apart` units higher, and a sentence adds the same amount to all of its
pairs. In `hubs` five pairs share one sentence, in `cliques` four sentences form six pairs. No cutoff
counts as kept.

    python benchmarks/threshold_coverage.py --draws 2000
    python benchmarks/threshold_coverage.py --draws 2000 --apart 0.5 --matches 0.8    # a weak model
"""

import argparse

import numpy as np
from scipy.stats import norm

from stsbench.analysis.cutoffs import FALSE, PRECISION, RECALL, LabelledPairs, cutoff_of
from stsbench.statistics.dependence import Sharing

BLOCKS = {
    "independent": [(0, 1)],
    "hubs": [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)],
    "cliques": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
}
TARGETS = {FALSE: 0.05, RECALL: 0.9, PRECISION: 0.9}


def drawn(kind: str, size: int, how: argparse.Namespace, rng: np.random.Generator) -> LabelledPairs:
    """Draws pairs of a kind."""
    block = np.array(BLOCKS[kind])
    starts = (block.max() + 1) * np.arange(size // len(block) + 1)
    first, second = (starts[:, np.newaxis, np.newaxis] + block).reshape(-1, 2)[:size].T
    of_sentences = rng.normal(scale=(how.shared / 2) ** 0.5, size=second.max() + 1)
    matches = rng.random(size) < how.matches
    noise = rng.normal(scale=(1 - how.shared) ** 0.5, size=size)
    similarity = how.apart * matches + of_sentences[first] + of_sentences[second] + noise
    return LabelledPairs("drawn", similarity, matches, Sharing.of(first, second))


def true_rate(target: str, cutoff: float, how: argparse.Namespace) -> float:
    false, recall = norm.sf(cutoff), norm.sf(cutoff - how.apart)
    true = how.matches * recall
    return float({FALSE: false, RECALL: recall, PRECISION: true / (true + (1 - how.matches) * false)}[target])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--shared", type=float, default=0.6, help="share of the variance that sentences have")
    parser.add_argument("--apart", type=float, default=2.0, help="how much higher the similarity of matches is")
    parser.add_argument("--matches", type=float, default=0.5, help="share of matches among the pairs")
    arguments = parser.parse_args()
    print("target,pairs are,pairs,kept,no cutoff")
    for target, rate in TARGETS.items():
        for kind in BLOCKS:
            for size in (200, 1000, 5000):
                rng, kept, none = np.random.default_rng(size), 0, 0
                for _ in range(arguments.draws):
                    cutoff = cutoff_of(drawn(kind, size, arguments, rng), target, rate, "dyadic")
                    true = true_rate(target, cutoff, arguments)
                    none += bool(np.isnan(cutoff))
                    kept += bool(np.isnan(cutoff) or (true <= rate if target == FALSE else true >= rate))
                print(f"{target},{kind},{size},{kept / arguments.draws:.3f},{none}", flush=True)


if __name__ == "__main__":
    main()
