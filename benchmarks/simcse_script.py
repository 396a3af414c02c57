"""What the SimCSE evaluation script encodes, in the plainest code: the alternative that `sts_speed.py` times.

Both sides of every pair, data set by data set; pairs sorted by their word counts, batches of 128, each padded to
its longest sentence. STS-B and SICK-R are encoded in train, dev and test, as that script does; with
`--scored-only` just the pairs that are scored. It stands alone on purpose: no line of stsbench is in it.

    python benchmarks/simcse_script.py MODEL_FOLDER SENTEVAL_FOLDER [--scored-only]

Prints one JSON object: seconds (tokenising, encoding, cosines; loading apart), sentences, tokens, padded tokens.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from transformers import AutoModel, AutoTokenizer

BATCH = 128
SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
STSB = {"train": "sts-train.csv", "dev": "sts-dev.csv", "test": "sts-test.csv"}
SICK = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}

Pair = tuple[list[str], list[str], float]


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")


def data_sets(root: Path, scored_only: bool) -> dict[str, list[Pair]]:
    sets: dict[str, list[Pair]] = {}
    for task, subsets in SUBSETS.items():
        for subset in subsets:
            folder = root / "downstream" / "STS" / f"{task}-en-test"
            golds = lines_of(folder / f"STS.gs.{subset}.txt")
            texts = [line.split("\t") for line in lines_of(folder / f"STS.input.{subset}.txt")]
            sets[f"{task} {subset}"] = [
                (text[0].split(), text[1].split(), float(gold))
                for text, gold in zip(texts, golds, strict=False)
                if gold.strip()
            ]
    for split in ["test"] if scored_only else ["train", "dev", "test"]:
        rows = [line.split("\t") for line in lines_of(root / "downstream/STS/STSBenchmark" / STSB[split])]
        sets[f"STS-B {split}"] = [(row[5].split(), row[6].split(), float(row[4])) for row in rows]
        rows = [line.split("\t") for line in lines_of(root / "downstream/SICK" / SICK[split])[1:]]
        sets[f"SICK-R {split}"] = [(row[1].split(), row[2].split(), float(row[3])) for row in rows]
    return sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--scored-only", action="store_true")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModel.from_pretrained(options.model, dtype=torch.float32).eval()
    sets = data_sets(options.data, options.scored_only)
    counts = {"sentences": 0, "tokens": 0, "padded_tokens": 0}

    def encode(batch: list[list[str]]) -> np.ndarray:
        features = tokenizer(
            [" ".join(words) for words in batch],
            padding=True,
            truncation=True,
            max_length=256,
            return_tensors="pt",
        )
        mask = features["attention_mask"]
        counts["sentences"] += len(batch)
        counts["tokens"] += int(mask.sum())
        counts["padded_tokens"] += mask.numel()
        with torch.no_grad():
            states = model(**features).last_hidden_state
        return ((states * mask.unsqueeze(-1)).sum(1) / mask.sum(-1, keepdim=True)).numpy()

    encode([["warm", "up"]])
    counts = dict.fromkeys(counts, 0)
    start = time.perf_counter()
    scores = {}
    for name, pairs in sets.items():
        ordered = sorted(pairs, key=lambda pair: (len(pair[0]), len(pair[1]), pair[2]))
        cosines: list[float] = []
        for first in range(0, len(ordered), BATCH):
            batch = ordered[first : first + BATCH]
            left, right = encode([pair[0] for pair in batch]), encode([pair[1] for pair in batch])
            cosines += [
                float(u @ v / (np.linalg.norm(u) * np.linalg.norm(v))) for u, v in zip(left, right, strict=True)
            ]
        scores[name] = float(spearmanr(cosines, [pair[2] for pair in ordered]).statistic)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, **counts, "threads": options.threads, "scores": scores}))


if __name__ == "__main__":
    main()
