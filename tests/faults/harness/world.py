"""What commands are run on: a folder with small files of every kind, put back as it was after each case.

There are two worlds of different content, so that each file has another one of its kind.
"""

import json
import os
import shutil
import signal
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tiny_words import word_pieces

from harness.parent import Case, Ended, Parent

WORDS = ("owl", "bus", "kettle", "rain", "a", "the", "sings", "leaves", "naps", "slowly", "tonight", "again")

EXPERIMENT = """
name: small
recipe: recipe.yaml
corpus: corpus.txt
axes:
  row:
    measured: {checkpoint: model, pooling: avg}
    trained: {optimiser.batch: 16}
seeds: [1, 2]
measure: {tasks: STS13}
"""

RECIPE = """\
name: tiny
base: model
corpus: {path: corpus.txt, max_length: 12}
pooling: avg
dropout: 0.1
objective: {temperature: 0.05}
optimiser: {batch: 8, learning_rate: 1.0e-3}
selection: {task: "STS-B:dev", every: 2}
saving: {every: 2, keep: 1}
log_every: 1
seed: 7
"""


@dataclass(frozen=True)
class World:
    """A folder with all that commands read.

    Attributes:
        root: `here` in it is the working folder, `cache` the cache.
        pristine: a copy, to put things back from.
        parent: runs commands.
    """

    root: Path
    pristine: Path
    parent: Parent

    @property
    def here(self) -> Path:
        """The working folder."""
        return self.root / "here"

    def case(self, *arguments: str, **options: Any) -> Case:
        """Return a command in this world."""
        environment = {
            "HOME": str(self.root / "home"),
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.root / "tmp"),
            "MPLCONFIGDIR": str(self.root.parent / "matplotlib"),
            "STSBENCH_CACHE": str(self.root / "cache"),
            "STSBENCH_DATA": "data",
            "HF_HUB_OFFLINE": "1",
            # Nobody answers there, which is told at once.
            "HF_ENDPOINT": "http://127.0.0.1:9",
            # The same on every machine, and CUDA does not start in a child of a warm parent.
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "COLUMNS": "200",
            "PYTHONWARNINGS": "ignore",
        }
        environment |= options.pop("variables", {})
        return Case(arguments, str(self.here), environment, **options)

    def run(self, *arguments: str, **options: Any) -> Ended:
        """Run a command."""
        return self.parent.run(self.case(*arguments, **options))

    def paths(self, pattern: str) -> list[Path]:
        """Return the files that a pattern, relative to the working folder, names."""
        paths = sorted(path for path in self.here.glob(pattern) if path.is_file())
        if pattern.startswith("../"):
            paths = sorted(path for path in self.root.glob(pattern[3:]) if path.is_file())
        return paths

    def changes(self) -> dict[str, tuple[Path, Path]]:
        """Return what differs from how it was: by its name in the world, what is there and what was."""
        now, then = dict(_entries(self.root)), _entries_once(self.pristine)
        names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
        return {name: (self.root / name, self.pristine / name) for name in sorted(names)}

    def restore(self) -> None:
        """Put everything back as it was."""
        for name, (here, there) in self.changes().items():
            if os.path.lexists(here):
                _delete(here)
            if there.is_dir():
                here.mkdir(exist_ok=True)
            elif there.exists() and (self.root / name).parent.is_dir():
                shutil.copy2(there, here)
        for name, folder in _folders_once(self.pristine):
            # What was deleted with a folder, deepest last.
            if not (self.root / name).is_dir():
                shutil.copytree(folder, self.root / name)
        for name, folder in _folders(self.root):
            if not (self.pristine / name).is_dir():
                shutil.rmtree(folder, ignore_errors=True)


def _entries(folder: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield each file with what shows that it was touched."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            status = path.lstat()
            yield str(path.relative_to(folder)), (status.st_mode, status.st_size, status.st_mtime_ns)


def _folders(folder: Path) -> list[tuple[str, Path]]:
    return [
        (str((Path(place) / name).relative_to(folder)), Path(place) / name)
        for place, names, _ in os.walk(folder)
        for name in names
    ]


@cache
def _entries_once(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return the files of a folder that nothing changes."""
    return dict(_entries(folder))


@cache
def _folders_once(folder: Path) -> list[tuple[str, Path]]:
    return _folders(folder)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o755)
        shutil.rmtree(path)
    else:
        path.unlink()


def build(root: Path, parent: Parent, seed: int, *, is_whole: bool = True) -> World:
    """Make a world: the person's own files, and what commands make of them, all of it or two records."""
    world = World(root, root.with_name(f"{root.name}-pristine"), parent)
    for name in ("here", "home", "tmp"):
        (root / name).mkdir(parents=True)
    (root.parent / "matplotlib").mkdir(exist_ok=True)
    write_inputs(world.here, seed)

    def made(*arguments: str, **options: Any) -> Ended:
        ended = world.run(*arguments, **options)
        assert ended.code in {0, -signal.SIGKILL}, (arguments, ended)
        return ended

    measure = ("--data", "pairs.tsv", "-q")
    if not is_whole:
        for name, pooling in (("a", "avg"), ("b", "cls")):
            made("run", "-m", "model", "--pooling", pooling, *measure, "--out", f"runs/{name}")
        shutil.copytree(root, world.pristine)
        return world
    made("train", "recipe.yaml", "--out", "trained", "-q")
    for name, model, pooling in (
        ("a", "model", "avg"),
        ("b", "model", "cls"),
        ("c", "trained", "avg"),
        ("d", "trained", "cls"),
    ):
        made("run", "-m", model, "--pooling", pooling, *measure, "--out", f"runs/{name}")
    made("run", "-m", "model", "--tasks", "TREC,MRPC", "--kfold", "2", "--out", "runs/t", "-q")
    made("run", "-m", "model", "--tasks", "STS-B:test,STS13", "--out", "runs/s", "-q")
    made("run", "-m", "words.txt", "--data", "kinds.tsv", "--out", "runs/k", "-q")
    fitted = ("-m", "model", "--sentences", "corpus.txt", "-q")
    made("fit", "whitening", *fitted, "--dimensions", "3", "--out", "white")
    made("fit", "flow", *fitted, "--steps", "3", "--out", "flow")
    made("embed", "corpus.txt", "-m", "model", "--out", "embedded.npy", "-q")
    made("report", "runs/a", "--no-analyses", "--out", "report", "-q")
    # Killed when it has saved once: one to go on with.
    events = made("train", "recipe.yaml", "--out", "stopped", "-q", fault={"count": True}).events
    saved = next(n for n, event in enumerate(events, 1) if "os.rename" in event and event.endswith("state.pt"))
    shutil.rmtree(world.here / "stopped")
    made("train", "recipe.yaml", "--out", "stopped", "-q", fault={"at": saved + 12, "signal": int(signal.SIGKILL)})
    assert (world.here / "stopped" / "training" / "state.pt").is_file()
    shutil.copytree(root, world.pristine)
    return world


def write_inputs(folder: Path, seed: int) -> None:
    """Write the files that a person brings."""
    rng = np.random.default_rng(seed)

    def sentence() -> str:
        return " ".join(rng.choice(WORDS, size=rng.integers(2, 7)))

    def pairs(count: int) -> list[tuple[str, str, float]]:
        return [(sentence(), sentence(), float(rng.integers(0, 11)) / 2) for _ in range(count)]

    def write(name: str, text: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    own = pairs(24)
    halves = ["first" if number % 2 else "second" for number in range(len(own))]
    rows = [f"{one}\t{two}\t{gold}\t{half}\n" for (one, two, gold), half in zip(own, halves, strict=True)]
    write("pairs.tsv", "sentence1\tsentence2\tscore\tsubset\n" + "".join(rows))
    write("pairs.csv", "sentence1,sentence2,score\n" + "".join(f"{one},{two},{gold}\n" for one, two, gold in own))
    lines = [json.dumps({"sentence1": one, "sentence2": two, "score": gold}) for one, two, gold in own]
    write("pairs.jsonl", "\n".join(lines) + "\n")
    import pandas as pd

    frame = pd.DataFrame(own, columns=["sentence1", "sentence2", "score"])
    frame.to_parquet(folder / "items.parquet", index=False)
    distinct = list(dict.fromkeys(side for one, two, _ in own for side in (one, two)))
    write("sentences.txt", "\n".join(distinct) + "\n")
    np.save(folder / "vectors.npy", rng.normal(size=(len(distinct), 8)).astype(np.float32))
    write("similarities.txt", "".join(f"{value:.4f}\n" for value in rng.normal(size=len(own))))
    np.save(folder / "similarities.npy", rng.normal(size=len(own)))
    meta = {"model_name": "owner/model", "revision": None}
    values = {"cosine_scores": [round(gold / 5, 4) for _, _, gold in own]}
    write("own_predictions.json", json.dumps({"mteb_model_meta": meta, "default": {"test": values}}))
    vectors = [f"{word} {' '.join(f'{value:.4f}' for value in rng.normal(size=8))}\n" for word in WORDS]
    write("words.txt", "".join(vectors))
    write("template.yaml", f"title: a test\ntexts: '{WORDS[seed]} {{sentence}}'\nrules: [strip]\npooling: avg\n")
    write("corpus.txt", "".join(f"{sentence()}\n" for _ in range(42)))
    near = [WORDS[(seed + number) % len(WORDS)] for number in range(6)]
    triples = (
        f"{kind}\tthe {word} {kind}\ta {word} {kind}\tthe {other} {kind}\n"
        for kind in "ab"
        for word, other in pairwise(near)
    )
    write("triples.tsv", "kind\tsentence\tparaphrase\tchanged\n" + "".join(triples))
    write("recipe.yaml", RECIPE.replace("seed: 7", f"seed: {7 + seed}"))
    write("experiment.yaml", EXPERIMENT)
    write("mymodel.py", "def encode(sentences):\n    return [[len(s), s.count('a'), 1] for s in sentences]\n")

    downstream = folder / "data" / "downstream"
    for split in ("train", "dev", "test"):
        parts = [
            f"captions\tfile\t2012\t{number}\t{gold}\t{one}\t{two}\n"
            for number, (one, two, gold) in enumerate(pairs(20))
        ]
        write(f"{downstream}/STS/STSBenchmark/sts-{split}.csv", "".join(parts))
    for subset in ("FNWN", "headlines", "OnWN"):
        subset_pairs = pairs(12)
        sts13 = f"{downstream}/STS/STS13-en-test/STS"
        write(f"{sts13}.input.{subset}.txt", "".join(f"{one}\t{two}\n" for one, two, _ in subset_pairs))
        write(f"{sts13}.gs.{subset}.txt", "".join(f"{gold}\n" for _, _, gold in subset_pairs))
    kinds = ("ABBR:exp", "DESC:def", "ENTY:animal", "HUM:ind", "LOC:city", "NUM:count")
    for name, count in (("train_5500", 60), ("TREC_10", 24)):
        write(f"{downstream}/TREC/{name}.label", "".join(f"{kinds[n % 6]} {sentence()}\n" for n in range(count)))
    for name, count in (("train", 40), ("test", 24)):
        head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        body = "".join(f"{n % 2}\t{n}\t{n}\t{sentence()}\t{sentence()}\n" for n in range(count))
        write(f"{downstream}/MRPC/msr_paraphrase_{name}.txt", head + body)
    labels = [("entailment", "contradiction", "neutral")[number % 3] for number in range(30)]
    for name, column in (
        ("s1", [WORDS[number // 3] for number in range(30)]),
        ("s2", [sentence() for _ in range(30)]),
        ("labels", labels),
    ):
        write(f"nli/{name}.train", "".join(f"{cell}\n" for cell in column))
    write("results/senteval.json", json.dumps(_senteval_results(rng)))
    for task in ("STS13", "STS14"):
        write(f"results/mteb/{task}.json", json.dumps(_mteb_results(task, rng)))
    apart = [
        (" ".join([WORDS[place % 7]] * 2), " ".join([WORDS[place // 7]] * (2 + 4 * (place % 2))), place % 5)
        for place in range(seed, 80 + seed)
    ]
    rows = [f"{one}\t{two}\t{gold}\n" for one, two, gold in apart]
    write("kinds.tsv", "sentence1\tsentence2\tscore\n" + "".join(rows))
    for name, text in _retrieval(seed).items():
        write(name, text)
    scored = pd.DataFrame({"task": ["one"] * 8 + ["two"] * 8, "item": [*range(8)] * 2})
    scored.assign(score=(scored.index + seed) % 5 / 4, group=scored["item"] // 2).to_parquet(
        folder / "results" / "items.parquet", index=False
    )
    _write_model(folder / "model", seed)


def _retrieval(seed: int) -> dict[str, str]:
    """Return qrels and a TREC run of six queries over five documents."""
    places = [(query, document, (query + document + seed) % 5) for query in range(6) for document in range(5)]
    qrels = "".join(f"q{query}\td{document}\t{place % 3}\n" for query, document, place in places)
    run = "".join(f"q{query} Q0 d{document} {place + 1} {5 - place} tag\n" for query, document, place in places)
    return {"results/qrels.tsv": f"query-id\tcorpus-id\tscore\n{qrels}", "results/found.trec": run}


def _senteval_results(rng: np.random.Generator) -> dict[str, Any]:
    def correlation() -> dict[str, Any]:
        value = float(rng.uniform(0.3, 0.9))
        return {"pearson": [value, 0.0], "spearman": [value - 0.01, 0.0], "nsamples": 100}

    subsets = {name: correlation() for name in ("FNWN", "headlines", "OnWN")}
    mean = {
        kind: float(np.mean([subset[kind][0] for subset in subsets.values()])) for kind in ("pearson", "spearman")
    }
    over = {kind: {"mean": mean[kind], "wmean": mean[kind]} for kind in mean}
    both = {kind: {"all": mean[kind], **over[kind]} for kind in mean}
    return {"STS13": {**subsets, "all": {kind: both[kind] for kind in both}}}


def _mteb_results(task: str, rng: np.random.Generator) -> dict[str, Any]:
    value = float(rng.uniform(0.3, 0.9))
    scores = {
        "cosine_spearman": value,
        "cosine_pearson": value - 0.01,
        "main_score": value,
        "hf_subset": "default",
        "languages": ["eng-Latn"],
    }
    return {
        "task_name": task,
        "dataset_revision": "0" * 40,
        "mteb_version": "1.14.0",
        "evaluation_time": 1.0,
        "scores": {"test": [scores]},
    }


def _write_model(folder: Path, seed: int) -> None:
    """Write a sentence-transformers checkpoint: a BERT with random weights, and mean pooling."""
    import torch
    from transformers import BertConfig, BertModel

    letters = string.ascii_lowercase
    words = [word for word in WORDS if len(word) > 1]
    tokenizer = word_pieces([*words, *letters, *(f"##{letter}" for letter in letters)], model_max_length=64)
    torch.manual_seed(7 + seed)
    model = BertModel(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=64,
        )
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

    def write(name: str, content: Any) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")

    write(
        "modules.json",
        [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
    )
    write("1_Pooling/config.json", {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True})
    write("sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": False})
