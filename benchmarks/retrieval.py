"""Exact search among many documents, and how often the intervals of retrieval hold.

    python benchmarks/retrieval.py                       # time and peak memory of a search
    python benchmarks/retrieval.py --coverage minilm     # intervals of the mean over 50 queries

A search reads vectors from a memory-mapped file, in a process of its own for each number of documents (goals:
100,000 documents and 1,000 queries in 10 s on two cores; peak memory at 1,000,000 documents within 20 % of that).
Coverage is of samples of 50 queries from real scores by query (goal: 94 to 96 %): queries are the first sentences
of STS-B's pairs with a gold score from 4, documents all its sentences; the second model is the first cut to 16
dimensions.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import stsbench as sb
from stsbench.data.benchmarks import load_sts
from stsbench.data.qrels import load_retrieval
from stsbench.scoring.kinds.retrieval import BLOCK, search
from stsbench.scoring.statistic import MeanShare
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.intervals import plain_interval


def searched(path: str, queries: int) -> None:
    """Searches in a file of vectors; prints seconds of wall and processor time, and peak memory in MB."""
    rows, width = np.load(path, mmap_mode="r").shape

    def blocks() -> Iterator[NDArray[np.float32]]:
        for start in range(0, rows, BLOCK):
            # Mapped anew, because the pages that a mapping has read count as memory of the process.
            yield np.asarray(np.load(path, mmap_mode="r")[start : start + BLOCK])

    wanted = np.random.default_rng(1).normal(size=(queries, width)).astype(np.float32)
    began, computed = time.perf_counter(), time.process_time()
    search(wanted, blocks(), 100)
    seconds, computed = time.perf_counter() - began, time.process_time() - computed
    # Not `ru_maxrss`, which a process inherits from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(seconds, computed, int(status.partition("VmHWM:")[2].split()[0]) / 1024)


def speed(sizes: list[int], queries: int, width: int) -> None:
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path, rng = Path(folder) / "documents.npy", np.random.default_rng(0)
            vectors = np.lib.format.open_memmap(path, "w+", np.float32, (size, width))
            for start in range(0, size, BLOCK):
                vectors[start : start + BLOCK] = rng.normal(size=vectors[start : start + BLOCK].shape)
            del vectors
            command = [sys.executable, __file__, "--search", str(path), "--queries", str(queries)]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds, computed, peak = map(float, printed.split())
            print(f"{size:,} documents: {seconds:.1f} s, of computing {computed:.1f} s, peak memory {peak:.0f} MB")


def coverage(model: str, task: str, draws: int, size: int) -> None:
    pairs = load_sts(task, "all" if task == "STS-B" else "test", "senteval" if task == "STS-B" else task).pairs
    texts = list(dict.fromkeys([*pairs["sentence1"], *pairs["sentence2"]]))
    number = {text: f"d{place}" for place, text in enumerate(texts)}
    alike = pairs[(pairs["gold"] >= 4) & (pairs["sentence1"] != pairs["sentence2"])]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "sts"
        (folder / "qrels").mkdir(parents=True)
        queries = {text: f"q{number[text]}" for text in alike["sentence1"]}
        for name, ids in (("corpus", number), ("queries", queries)):
            rows = [json.dumps({"_id": key, "text": text}) for text, key in ids.items()]
            (folder / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
        judged = {(queries[first], number[second]) for first, second in alike[["sentence1", "sentence2"]].values}
        rows = [f"{query}\t{document}\t1" for query, document in sorted(judged)]
        (folder / "qrels" / "test.tsv").write_text(
            "query-id\tcorpus-id\tscore\n" + "\n".join(rows), encoding="utf-8"
        )
        data = load_retrieval(folder)
        one, other = (
            sb.evaluate(sb.load(model, dimensions=dimensions), data).items["score"] for dimensions in (None, 16)
        )
    rng, numbers = np.random.default_rng(0), np.arange(size, dtype=np.uint64)
    alone = Sharing.of(numbers, numbers)
    for name, values in (("score", one), ("score of 16 dimensions", other), ("difference", one - other)):
        population, truth, held = values.to_numpy(), float(values.mean()), 0
        for _ in range(draws):
            sample = rng.choice(population, size)
            mean, spread = sample.mean(), variance((sample - sample.mean()) / size, alone, "dyadic")
            limits = (
                plain_interval(mean, spread, 0.95)
                if name == "difference"
                else MeanShare().limits(mean, spread, size, 0.95)
            )
            held += limits.low <= truth <= limits.high
        print(
            f"{name}: mean {100 * truth:.2f} of {len(population):,} queries, coverage {100 * held / draws:.2f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--search", help="a file of vectors to search in")
    parser.add_argument("--coverage", metavar="MODEL")
    parser.add_argument("--task", default="STS-B")
    parser.add_argument("--draws", type=int, default=10_000)
    options = parser.parse_args()
    if options.search:
        searched(options.search, options.queries)
    elif options.coverage:
        coverage(options.coverage, options.task, options.draws, 50)
    else:
        speed(options.documents, options.queries, options.width)


if __name__ == "__main__":
    main()
