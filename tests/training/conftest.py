"""Tiny checkpoints to start from, a small corpus, and the plain reference computations."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_models import sample_word_pieces, save_tiny

import stsbench as sb
from stsbench.base.errors import InterruptError
from stsbench.data.corpus import load_corpus
from stsbench.training.folder import RunFolder

RECIPE = """
name: tiny
base: BASE
corpus: {max_length: 12}
pooling: avg
dropout: 0.1
objective: {temperature: 0.05}
optimiser: {batch: 8, learning_rate: 1.0e-3}
selection: {task: sample, every: 4}
saving: {every: 4, keep: 1}
log_every: 2
seed: 7
"""


@pytest.fixture(autouse=True)
def _pictures_are_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no dev curve, which takes as long as the steps of a tiny training."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: Path(path).touch())


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny BERT with random weights, its pooler and its masked-language head."""
    from transformers import BertForPreTraining

    folder, sizes = tmp_path_factory.mktemp("base") / "tiny", {"hidden_size": 16, "intermediate_size": 24}
    return save_tiny(folder, sample_word_pieces(150), build=BertForPreTraining, seed=3, **sizes)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a file of 42 sentences: five batches of eight, and a short one."""
    return write_corpus(tmp_path)


@pytest.fixture
def recipe_file(tmp_path: Path, base: Path) -> Path:
    """Return a small SimCSE recipe from the tiny base."""
    return write_recipe(tmp_path, base)


@pytest.fixture(scope="session")
def _stopped(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped")
    recipe, corpus = write_recipe(folder, base), write_corpus(folder)

    def stop(line: dict[str, Any]) -> None:
        if line["step"] > 4:
            raise KeyboardInterrupt

    changes = ("saving.every=2", "log_every=1")
    with pytest.raises(InterruptError):
        sb.train(recipe, corpus, folder / "run", overrides=changes, device="cpu", listeners=[stop])
    return folder / "run"


@pytest.fixture
def stopped(_stopped: Path, tmp_path: Path) -> RunFolder:
    """Return the folder of a training of six steps that was stopped behind its fourth, which was saved."""
    return RunFolder(Path(shutil.copytree(_stopped, tmp_path / "run")))


def write_corpus(folder: Path) -> Path:
    path = folder / "corpus.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in load_corpus("sample")[:42]), encoding="utf-8")
    return path


def write_recipe(folder: Path, base: Path) -> Path:
    path = folder / "tiny.yaml"
    path.write_text(RECIPE.replace("BASE", json.dumps(str(base))), encoding="utf-8")
    return path


@pytest.fixture
def tasks(tmp_path: Path, benchmark_folder: Path) -> str:
    """Return recipe keys of three tasks on small tables, none of whose pairs is the benchmark's."""
    from stsbench.data.benchmarks import load_sample

    pairs = load_sample().pairs
    rows = list(zip(pairs["sentence1"], pairs["sentence2"], pairs["gold"], strict=True))[:30]
    lines = ["text\tlabel\n", *(f"{text}\t{len(text.split()) % 3}\n" for text, _, _ in rows)]
    (tmp_path / "mood.tsv").write_text("".join(lines), encoding="utf-8")
    lines = ["a\tb\tsame\tgold\n", *(f"{a}\t{b}\t{int(gold > 2)}\t{gold}\n" for a, b, gold in rows[:21])]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return (
        f"labelled.folder={tmp_path}\n"
        "tasks.mood={kind: classification, train: mood.tsv, columns: [text, label], batch: 6, "
        "classes: [0, 1, 2]}\n"
        "tasks.same={kind: pair-classification, train: pairs.tsv, columns: [a, b, same], rate: once, batch: 4, "
        "classes: [0, 1]}\n"
        "tasks.score={kind: regression, train: pairs.tsv, columns: [a, b, gold], scale: [0, 5], weight: 0.5, "
        "rate: once}"
    )


@pytest.fixture
def train(recipe_file: Path, corpus: Path, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that trains the tiny model in a folder, with changes to the recipe."""

    def run(*overrides: str, out: str = "run", **options: Any) -> Any:
        given = {"recipe": recipe_file, "corpus": corpus, "out": tmp_path / out, "device": "cpu"} | options
        return sb.train(overrides=overrides, **given)

    return run


@pytest.fixture
def assembled(base: Path, recipe_file: Path, corpus: Path, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that puts a trainer together, with changes to the recipe."""
    from stsbench.data.corpus import read_rows
    from stsbench.training.base import find_base
    from stsbench.training.batches import open_store
    from stsbench.training.distributed import World
    from stsbench.training.labelled import read_tasks
    from stsbench.training.recipe import read_recipe
    from stsbench.training.trainer import Trainer

    def make(
        *overrides: str, file: Path = corpus, world: World | None = None, data_dirs: Sequence[Path] = ()
    ) -> Any:
        recipe = read_recipe(recipe_file, overrides)
        found = find_base(recipe, "cpu")
        rows = read_rows(file, recipe.corpus.columns)
        store = open_store(
            tmp_path / "tokens",
            {"file": str(file), "columns": recipe.corpus.columns},
            rows,
            found.tokenizer,
            limit=recipe.corpus.max_length - 2,
            with_text=recipe.reads_text,
        )
        tasks = read_tasks(recipe, data_dirs)
        return Trainer(recipe, store, found, world or World(), "cpu", tasks=tasks)

    return make
