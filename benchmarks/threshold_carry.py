"""How well a carried cutoff does on pairs that did not choose it, beside the old number and a cutoff fitted there.

For each two of three encoders: the cutoff of the first with the best balanced accuracy is carried to the second on
one half of the pairs (no sentence is in both halves), and judged on the other half; then the halves change places.
`fitted` is the cutoff of the judged half itself with as many false matches as the first encoder makes there, and
`best` has the best balanced accuracy on the half that carries. Needs MRPC and STS-B; your own pairs with --data.

    python benchmarks/threshold_carry.py --data pairs.tsv
"""

import argparse
import re
from itertools import permutations
from typing import Any
from zlib import crc32

import numpy as np

import stsbench as sb
from stsbench.analysis.cutoffs import LabelledPairs, carried_cutoff
from stsbench.analysis.inputs import Estimates, analysable
from stsbench.analysis.threshold import Threshold
from stsbench.scoring.settings import Intervals


def counted(texts: list[str], pattern: str, width: int = 4096) -> np.ndarray:
    """Counts the parts of each text that a pattern finds, in hashed columns."""
    vectors = np.full((len(texts), width), 1e-4)
    for row, text in zip(vectors, texts, strict=True):
        for part in re.findall(pattern, f" {text.lower()} "):
            row[crc32(part.encode()) % width] += 1
    return vectors


ENCODERS: dict[str, Any] = {
    "minilm": "minilm",
    "words": lambda texts: counted(texts, r"\w+"),
    "trigrams": lambda texts: counted(texts, r"(?=(...))"),
}


def balanced(pairs: LabelledPairs, cutoff: float) -> float:
    """Returns the balanced accuracy x 100 of a cutoff."""
    matched = pairs.similarity >= cutoff
    return 50 * float(matched[pairs.matches].mean() + (~matched[~pairs.matches]).mean())


def best(pairs: LabelledPairs) -> float:
    return float(max(np.unique(pairs.similarity), key=lambda cutoff: balanced(pairs, cutoff)))


def carried(pairs: LabelledPairs, origin: LabelledPairs, cutoff: float) -> float:
    estimates = Estimates(Intervals(None))
    estimates.block(pairs.name, pairs.sharing)
    return carried_cutoff(pairs, origin, cutoff, estimates)["value"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", action="append", default=[], help="your own pairs")
    arguments = parser.parse_args()
    print("pairs,from,to,old cutoff,carried,fitted,best,old number kept")
    choices: list[dict[str, Any]] = [
        {"tasks": ["MRPC"]},
        {"tasks": ["STS-B"], "positive": 4.0},
        *({"data": [own]} for own in arguments.data),
    ]
    for choice in choices:
        subjects = analysable([sb.load(encoder) for encoder in ENCODERS.values()])
        analysis = Threshold(**choice)
        found = analysis.inputs(subjects)
        pairs = dict(zip(ENCODERS, (parts[0] for parts in found.values()), strict=True))
        for old, new in permutations(pairs, 2):
            cutoff, rows = best(pairs[old]), []
            half = pairs[new].sharing.components % 2 == 0
            for inside in (half, ~half):
                origin, target, judged = pairs[old].take(inside), pairs[new].take(inside), pairs[new].take(~inside)
                there = carried(judged, pairs[old].take(~inside), cutoff)
                cutoffs = carried(target, origin, cutoff), there, best(target), cutoff
                rows.append([balanced(judged, value) for value in cutoffs])
            means = ",".join(f"{value:.2f}" for value in np.mean(rows, axis=0))
            print(f"{pairs[new].name},{old},{new},{cutoff:.3f},{means}", flush=True)


if __name__ == "__main__":
    main()
