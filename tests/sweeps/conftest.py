"""A tiny recipe, experiments of it, and one that is finished."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_experiments import in_this_process, serial

import stsbench as sb
from stsbench.data.corpus import load_corpus
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.result import Sweep

__all__ = ["serial"]

RECIPE = """
name: tiny
base: BASE
corpus: {path: CORPUS, max_length: 12}
pooling: avg
dropout: 0.1
optimiser: {batch: 8, learning_rate: 1.0e-3}
selection: {task: sample, every: 2}
saving: {every: 1}
log_every: 1
"""


@pytest.fixture(scope="session")
def tiny(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recipe file: two steps from a tiny BERT with random weights, whose folder is beside it."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "base").symlink_to(tiny_bert)
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"{sentence}\n" for sentence in load_corpus("sample")[:16]), encoding="utf-8")
    text = RECIPE.replace("BASE", json.dumps(str(folder / "base"))).replace("CORPUS", json.dumps(str(corpus)))
    (folder / "tiny.yaml").write_text(text, encoding="utf-8")
    return folder / "tiny.yaml"


@pytest.fixture(scope="session")
def experiment(tiny: Path) -> Callable[..., Experiment]:
    """Return a maker of small experiments on the sample."""

    def make(**changes: Any) -> Experiment:
        chosen: dict[str, Any] = {"name": "small", "recipe": str(tiny), "measure": {"tasks": "sample"}, **changes}
        return Experiment.model_validate(chosen)

    return make


@pytest.fixture(scope="session")
def finished(experiment: Callable[..., Experiment], tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """Return a finished experiment: two seeds, plain and whitened."""
    asked = experiment(
        about="Does whitening help?",
        axes={"postprocessing": ["none", {"whiten": 8}]},
        seeds=[1, 2],
        measure={"tasks": "sample", "analyses": ["geometry"], "last": True},
    )
    with in_this_process():
        found = sb.sweep(asked, tmp_path_factory.mktemp("finished") / "x")
    assert isinstance(found, Sweep)
    return found
