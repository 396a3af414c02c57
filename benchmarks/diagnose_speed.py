"""How long `diagnose` takes against one plain run, as a ratio measured in one process tree on one machine.

    STSBENCH_DATA=path/to/senteval python benchmarks/diagnose_speed.py [--repeat 1]

Times, with the packaged all-MiniLM-L6-v2 in float32, the same number of threads, and an empty cache each:

- `run`: `evaluate` on the seven STS tasks, with intervals, writing cache and record; import and loading apart;
- `diagnose`: `diagnose` of an average, its whole default grid, writing the cache of every pooler;
- `again`: the same from the cache, as for a second claim.

Prints seconds, tokens, the peak of memory, and the ratio, whose goal is at most 3.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CLAIM = "76.25"


def timed(what: str, threads: int) -> None:
    """Time one thing in this process and print a JSON of it."""
    import torch

    import stsbench as sb

    torch.set_num_threads(threads)
    encoder = sb.load("minilm", device="cpu")
    encoder.prepare(weights=True)
    encoder.forward(encoder.tokenize(["warm up"]).sequences, ["avg"])
    start = time.perf_counter()
    if what == "run":
        record = sb.evaluate(encoder, "sts", out=Path(os.environ["STSBENCH_CACHE"]) / "run")
        stages, encoding = record.seconds, record.encoding
    else:
        found = sb.diagnose(encoder, CLAIM, budget=0)
        stages, encoding = found.seconds, found.encoding
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "tokens": encoding["tokens"], "peak_mb": peak, "stages": stages}))


def measured(what: str, threads: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", what, "--threads", str(threads)]
    finished = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(finished.stdout.strip().splitlines()[-1])


def compare(repeat: int, threads: int) -> None:
    found: dict[str, list[dict[str, Any]]] = {"run": [], "diagnose": [], "again": []}
    for _ in range(repeat):
        for names in (("run",), ("diagnose", "again")):
            with tempfile.TemporaryDirectory() as cache:
                os.environ["STSBENCH_CACHE"] = cache
                for name in names:
                    found[name].append(measured("run" if name == "run" else "diagnose", threads))
    print(f"{threads} threads, {repeat} runs, seconds as median (least to most)")
    for name, times in found.items():
        seconds = [one["seconds"] for one in times]
        last = times[-1]
        print(
            f"  {name:9} {statistics.median(seconds):8.2f} ({min(seconds):.2f} to {max(seconds):.2f})  "
            f"{last['tokens']:>9,} tokens encoded, peak {last['peak_mb']:,.0f} MB, stages {last['stages']}"
        )
    for name in ("diagnose", "again"):
        ratios = [a["seconds"] / b["seconds"] for a, b in zip(found[name], found["run"], strict=True)]
        goal = " (goal: at most 3)" if name == "diagnose" else ""
        print(f"  {name} / run {statistics.median(ratios):5.2f}{goal}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", choices=["run", "diagnose"])
    options = parser.parse_args()
    if options.only:
        timed(options.only, options.threads)
    else:
        compare(options.repeat, options.threads)


if __name__ == "__main__":
    main()
