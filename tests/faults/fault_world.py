"""A folder with small files of every kind, and commands run in it in processes of their own."""

import importlib
import io
import json
import multiprocessing
import os
import resource
import shutil
import signal
import string
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pandas as pd
from fault_table import SCRIPTS
from tiny_models import save_tiny, word_pieces

import stsbench

SECONDS = float(os.environ.get("FAULTS_SECONDS", "60"))
"""A command that takes longer hangs."""

WORDS = ("owl", "bus", "kettle", "rain", "a", "the", "sings", "leaves", "naps", "slowly", "tonight", "again")

_EVENTS = {
    *("open", "os.chmod", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir"),
    *("os.symlink", "os.truncate", "os.utime", "tempfile.mkdtemp", "tempfile.mkstemp"),
}

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        *("torch", "transformers.models.bert.modeling_bert", "scipy.stats", "sklearn.linear_model", "seaborn"),
        *("pyarrow.dataset", "pyarrow.parquet", "sqlite3", "stsbench.__main__"),
        *(module.name for module in walk_packages(stsbench.__path__, "stsbench.")),
    ]
)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative for a signal, None if it hung), output and file operations."""

    code: int | None
    out: str = ""
    err: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class World:
    """The folder `root`, in which `here` is the working folder and `cache` the cache, and an untouched copy."""

    root: Path
    pristine: Path

    def run(self, *words: str, **fault: int) -> Ended:
        """Runs a command.

        Args:
            words: the arguments of `stsbench`.
            fault: `at=n` with `errno=` raises an error at the n-th file operation, with `signal=` sends a signal;
                `size=` limits the size of files.
        """
        return self.run_at_once([words], **fault)[0]

    def run_at_once(self, lines: list[tuple[str, ...]], **fault: int) -> list[Ended]:
        """Runs several commands at the same time."""
        started = []
        for words in lines:
            ours, theirs = _processes.Pipe(duplex=False)
            process = _processes.Process(target=_child, args=(theirs, words, str(self.root), fault))
            process.start()
            theirs.close()
            started.append((process, ours))
        ended = []
        for process, pipe in started:
            answer = None
            if has_ended := pipe.poll(SECONDS):
                with suppress(EOFError):
                    answer = Ended(*pipe.recv())
            if not has_ended:
                process.kill()
            process.join()
            ended.append(answer or Ended(process.exitcode if has_ended else None))
        return ended

    def paths(self, patterns: str) -> list[Path]:
        """Returns up to three of the files for each pattern, relative to the working folder."""
        found = []
        for pattern in patterns.split():
            places = sorted(self.root.glob(os.path.normpath(f"here/{pattern}")))
            assert places, f"no file matches {pattern}"
            found += places[:3]
        return found

    def changes(self) -> list[str]:
        """Returns the files that differ from the untouched copy, without locks and settings of libraries."""
        now, then = files_below(self.root), files_below(self.pristine)
        names = sorted(name for name in {*now, *then} if now.get(name) != then.get(name))
        return [name for name in names if not name.endswith(".lock") and not name.startswith("home/")]

    def restore(self) -> None:
        """Restores the folder from the untouched copy."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.pristine, self.root)


def files_below(folder: Path) -> dict[str, bytes]:
    """Returns the content of every regular file below a folder, by its relative path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _child(pipe: Any, words: tuple[str, ...], root: str, fault: dict[str, int]) -> None:
    importlib.import_module("stsbench.encoders.endpoint").PAUSE = 0.0  # between attempts to reach a server
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stdout = out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    sys.stderr = err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    os.chdir(f"{root}/here")
    for name in [name for name in os.environ if name.startswith(("STSBENCH", "GITHUB"))]:
        del os.environ[name]
    os.environ |= {
        "HOME": f"{root}/home",
        "TMPDIR": f"{root}/tmp",
        "MPLCONFIGDIR": f"{root}/home/matplotlib",
        "STSBENCH_CACHE": f"{root}/cache",
        "STSBENCH_DATA": "data",
        "HF_HUB_OFFLINE": "1",
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "COLUMNS": "200",
    }
    sys.argv = ["stsbench", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    events = _plant(fault, root + os.sep)
    code: Any = 0
    try:
        importlib.import_module("stsbench.__main__").main()
    except SystemExit as end:
        code = end.code or 0
        if isinstance(code, str):
            code = print(code, file=sys.stderr) or 1  # type: ignore[func-returns-value]
    except BaseException as error:
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
        traceback.print_exc()
    err.flush()
    answer = (out.buffer.getvalue().decode(errors="replace"), err.buffer.getvalue().decode())  # type: ignore[attr-defined]
    pipe.send((code, *answer, tuple(events)))
    pipe.close()
    os._exit(0)


def _plant(fault: dict[str, int], root: str) -> list[str]:
    """Plants a fault in this process; returns the list to which its file operations below a folder are added.

    Python's audit events count, and `fsync` and `os.write` where they are called. Libraries that write without
    Python are reached by the limit on sizes.
    """
    events: list[str] = []
    if "size" in fault:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault["size"], resource.RLIM_INFINITY))
        return events
    os_write, os_fsync = os.write, os.fsync

    def count(name: str, path: str = "") -> None:
        events.append(f"{name} {path}")
        if len(events) == fault.get("at"):
            if "errno" in fault:
                raise OSError(fault["errno"], os.strerror(fault["errno"]), path or None)
            os.kill(os.getpid(), fault["signal"])

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if name in _EVENTS and arguments:
            path = arguments[name in {"os.rename", "os.link", "os.symlink"}]
            if isinstance(path, str | bytes | os.PathLike):
                path = os.path.join(os.getcwd(), os.fsdecode(path))  # noqa: PTH109, PTH118
                if path.startswith(root):
                    count(name, path)

    def write(descriptor: int, content: Any) -> int:
        count("os.write")
        return os_write(descriptor, content)

    def fsync(descriptor: Any) -> None:
        count("os.fsync")
        os_fsync(descriptor)

    os.write, os.fsync = write, fsync
    sys.addaudithook(hook)
    return events


def build(root: Path) -> World:
    """Makes a world: the user's files, and what commands make of them."""
    world = World(root, root.with_name("pristine"))
    for name in ("here", "home", "tmp", "cache"):
        (root / name).mkdir(parents=True)
    write_inputs(root / "here")

    def make(line: str) -> None:
        ended = world.run(*line.split())
        assert ended.code == 0, (line, ended)

    for name, model, options in (
        ("a", "model", "--data pairs.tsv"),
        ("b", "model", "--pooling cls --data pairs.tsv"),
        ("c", "other", "--data pairs.tsv"),
        ("t", "model", "--tasks sample-questions,sample-products --kfold 2"),
        ("s", "words.txt", "--tasks sample"),
    ):
        make(f"run -m {model} {options} --out runs/{name} -q")
    make("fit whitening -m model --sentences corpus.txt -q --dimensions 3 --out white")
    make("fit flow -m model --sentences corpus.txt -q --steps 3 --out flow")
    make("embed corpus.txt -m model --out embedded.npy -q")
    make("report runs/a --no-analyses --out report -q")
    # A training that was killed after it had saved its state.
    train = ("train", "recipe.yaml", "--out", "stopped", "-q")
    events = world.run(*train).events
    saved = next(n for n, event in enumerate(events, 1) if "os.rename" in event and event.endswith("state.pt"))
    shutil.rmtree(root / "here/stopped")
    assert world.run(*train, at=saved + 12, signal=signal.SIGKILL).code == -signal.SIGKILL
    assert (root / "here/stopped/training/state.pt").is_file()
    shutil.copytree(root, world.pristine)
    return world


def write_inputs(folder: Path) -> None:
    """Writes the files that a user brings."""
    rng = np.random.default_rng(0)

    def sentence() -> str:
        return " ".join(rng.choice(WORDS, size=rng.integers(2, 7)))

    def write(name: str, *lines: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    pairs = pd.DataFrame(
        [(sentence(), sentence(), rng.integers(0, 11) / 2) for _ in range(24)],
        columns=["sentence1", "sentence2", "score"],
    )
    pairs.assign(subset=["first", "second"] * 12).to_csv(folder / "pairs.tsv", sep="\t", index=False)
    pairs.to_csv(folder / "pairs.csv", index=False)
    pairs.to_json(folder / "pairs.jsonl", orient="records", lines=True)
    pairs.to_parquet(folder / "pairs.parquet", index=False)
    sentences = list(dict.fromkeys([*pairs["sentence1"], *pairs["sentence2"]]))
    write("sentences.txt", *sentences)
    np.save(folder / "vectors.npy", rng.normal(size=(len(sentences), 8)).astype(np.float32))
    write("similarities.txt", *(f"{value:.4f}" for value in rng.normal(size=24)))
    np.save(folder / "similarities.npy", rng.normal(size=24))
    write("words.txt", *(f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=8))}" for word in _sample_words()))
    write("corpus.txt", *(sentence() for _ in range(42)))
    triples = (f"{kind}\tthe {w} {kind}\ta {w} {kind}\tthe bird {kind}" for kind in "ab" for w in WORDS[:4])
    write("triples.tsv", "kind\tsentence\tparaphrase\tchanged", *triples)
    for name, text in SCRIPTS.items():
        write(name, text)
    for subset in ("FNWN", "headlines", "OnWN"):
        place = "data/downstream/STS/STS13-en-test/STS"
        write(f"{place}.input.{subset}.txt", *(f"{sentence()}\t{sentence()}" for _ in range(12)))
        write(f"{place}.gs.{subset}.txt", *(str(rng.integers(0, 11) / 2) for _ in range(12)))
    kinds = ("ABBR:exp", "DESC:def", "ENTY:animal", "HUM:ind", "LOC:city", "NUM:count")
    for name, count in (("train_5500", 60), ("TREC_10", 24)):
        write(f"data/downstream/TREC/{name}.label", *(f"{kinds[n % 6]} {sentence()}" for n in range(count)))
    correlation = {"pearson": [0.6, 0.0], "spearman": [0.5, 0.0], "nsamples": 100}
    overall = {
        kind: dict.fromkeys(("all", "mean", "wmean"), correlation[kind][0]) for kind in ("pearson", "spearman")
    }  # type: ignore[index]
    of_subsets = dict.fromkeys(("FNWN", "headlines", "OnWN"), correlation)
    write("results/senteval.json", json.dumps({"STS13": {**of_subsets, "all": overall}}))
    scores = {"cosine_spearman": 0.5, "cosine_pearson": 0.6, "main_score": 0.5, "hf_subset": "default"}
    of_mteb = {"task_name": "STS13", "dataset_revision": "0" * 40, "mteb_version": "1.14.0"}
    write("results/mteb.json", json.dumps({**of_mteb, "scores": {"test": [scores]}}))
    places = [(query, document) for query in range(6) for document in range(5)]
    qrels = (f"q{query}\td{document}\t{(query + document) % 3}" for query, document in places)
    write("results/qrels.tsv", "query-id\tcorpus-id\tscore", *qrels)
    write(
        "results/found.trec",
        *(f"q{query} Q0 d{document} {document + 1} {5 - document} x" for query, document in places),
    )
    items = pd.DataFrame({"task": ["one"] * 8 + ["two"] * 8, "item": [*range(8)] * 2})
    items.assign(score=items.index % 5 / 4).to_parquet(folder / "results/items.parquet", index=False)
    _write_model(folder / "model", 7)
    _write_model(folder / "other", 8)


def _sample_words() -> list[str]:
    from stsbench.data.benchmarks import load_sample

    pairs = load_sample().pairs
    return sorted(
        {
            word
            for text in (*pairs["sentence1"], *pairs["sentence2"], " ".join(WORDS))
            for word in text.lower().split()
        }
    )


def _write_model(folder: Path, seed: int) -> None:
    letters = string.ascii_lowercase
    words = [word for word in WORDS if len(word) > 1]
    tokenizer = word_pieces([*words, *letters, *(f"##{letter}" for letter in letters)], model_max_length=64)
    save_tiny(folder, tokenizer, seed=seed, hidden_size=16, intermediate_size=16)
