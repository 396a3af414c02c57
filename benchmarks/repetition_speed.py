"""How long the repetition probe takes to find candidates for 100 queries in a million sentences.

    python benchmarks/repetition_speed.py wiki-sentences.txt [--sentences 1000000] [--queries 100]

A smaller corpus is repeated until it is large enough. Prints the seconds that the index takes, those of the
queries once it is there (goal: under 60), and those of the plain way, which looks at every sentence, for a few
queries and carried on to all of them.
"""

import argparse
import os
import resource
import time
from itertools import cycle, islice

import numpy as np

from stsbench.analysis.repetition_bias import RepetitionProbe
from stsbench.data.corpus import load_corpus
from stsbench.statistics.seeds import generator


def plain_candidates(corpus: list[str], query: int) -> list[int]:
    wanted = set(corpus[query].casefold().split())
    found = []
    for number, sentence in enumerate(corpus):
        words = sentence.casefold().split()
        if number != query and 0.13 <= sum(word in wanted for word in words) / len(words) <= 0.17:
            found.append(number)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    corpus = list(islice(cycle(load_corpus(options.corpus)), options.sentences))

    start = time.perf_counter()
    probe = RepetitionProbe(corpus)
    built = time.perf_counter()
    drawn = probe.draw(options.queries, generator(0, "repetition"))
    done = time.perf_counter()
    few = np.random.default_rng(0).choice(len(corpus), size=3, replace=False)
    plain = time.perf_counter()
    same = all(probe.candidates(int(query)).tolist() == plain_candidates(corpus, int(query)) for query in few)
    plain = (time.perf_counter() - plain) / len(few) * options.queries

    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    print(f"{len(corpus)} sentences, {len(drawn)} queries, {cores} cores, load {load:.1f}")
    print(f"  index      {built - start:8.1f} s")
    print(f"  queries    {done - built:8.1f} s (goal: under 60)")
    print(f"  the plain way, carried on from {len(few)} queries: {plain:.0f} s; same candidates: {same}")
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
