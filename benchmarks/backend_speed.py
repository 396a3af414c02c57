"""What other back ends and precisions take, as ratios to torch in fp32 in one run, and what they do to scores.

    python benchmarks/backend_speed.py [--task STS-B] [--rounds 3] [--models minilm]

Encodes the distinct sentences of one task with the packaged all-MiniLM-L6-v2 (or the models named) in batches
sorted by length, of one token budget: torch fp32 and bf16, OpenVINO fp32 and int8. Rounds take
turns; the first pass, which loads or compiles, is told apart. Behind the ratio are the score (Spearman x 100) and
the cosines to torch in fp32. A back end that is not installed is left out, and named.
"""

import argparse
import statistics
import time

import numpy as np

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample, load_sts
from stsbench.encoders.fitted import normalize
from stsbench.encoders.plan import embed
from stsbench.statistics.correlations import spearman

NAMES = ("fp32", "bf16", "openvino-fp32", "openvino-int8")
POOLINGS = ("avg", "cls_before_pooler")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="STS-B")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["minilm"])
    parser.add_argument("--precisions", nargs="+", default=list(NAMES))
    wanted = parser.parse_args()
    data = load_sample() if wanted.task == "sample" else load_sts(wanted.task)
    firsts, seconds = data.pairs["sentence1"].tolist(), data.pairs["sentence2"].tolist()
    gold = data.pairs["gold"].to_numpy()
    for model in wanted.models:
        encoders = {}
        for name in wanted.precisions:
            backend, _, precision = name.rpartition("-")
            try:
                encoders[name] = sb.load(model, backend=backend or "torch", precision=precision, device="cpu")
            except UserError as error:
                print(f"left out: {error}")
        times: dict[str, list[float]] = {name: [] for name in encoders}
        ready, vectors = {}, {}
        for name, encoder in encoders.items():
            start = time.perf_counter()
            embed(encoder, firsts[:8], use_cache=False)
            ready[name] = time.perf_counter() - start
        for _ in range(wanted.rounds):
            for name, encoder in encoders.items():
                start = time.perf_counter()
                vectors[name] = embed(encoder, [*firsts, *seconds], poolings=POOLINGS, use_cache=False)
                times[name].append(time.perf_counter() - start)
        print(f"{model}, {wanted.task}, {len(vectors['fp32'].vectors['avg'])} sequences, {wanted.rounds} rounds")
        print(
            "precision       first s  seconds (all)            ratio  " + "  ".join(f"{p:>30}" for p in POOLINGS)
        )
        baseline = statistics.median(times["fp32"])
        for name, taken in times.items():
            told = []
            for pooling in POOLINGS:
                one, other = (
                    normalize(found.vectors[pooling])[found.rows] for found in (vectors[name], vectors["fp32"])
                )
                left, right = one[: len(gold)], one[len(gold) :]
                score = 100 * spearman(gold, (left * right).sum(axis=1))
                cosines = (one * other).sum(axis=1)
                told.append(f"{score:6.2f}, cos {cosines.mean():.4f} >= {cosines.min():.4f}")
            each = " ".join(f"{second:.2f}" for second in taken)
            ratio = baseline / statistics.median(taken)
            print(f"{name:15} {ready[name]:7.1f}  {each:24} {ratio:5.2f}  " + "  ".join(f"{t:>30}" for t in told))
        worst = {name: float(np.min(taken)) for name, taken in times.items()}
        print(f"best of rounds: {', '.join(f'{name} {second:.2f} s' for name, second in worst.items())}")


if __name__ == "__main__":
    main()
