"""A tiny checkpoint and recipe, experiments of them, and one that is finished."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_experiments import in_this_process
from tiny_words import sample_word_pieces

import stsbench as sb
from stsbench.data.benchmarks import sample_sentences
from stsbench.experiments.experiment import Experiment
from stsbench.experiments.result import Sweep

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
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recipe file: two steps from a tiny BERT with random weights, whose folder is beside it."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = sample_word_pieces(150)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
    )
    torch.manual_seed(3)
    model = transformers.BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"{sentence}\n" for sentence in sample_sentences()[:16]), encoding="utf-8")
    text = RECIPE.replace("BASE", json.dumps(str(folder / "base"))).replace("CORPUS", json.dumps(str(corpus)))
    (folder / "tiny.yaml").write_text(text, encoding="utf-8")
    return folder / "tiny.yaml"


@pytest.fixture
def small(tiny: Path) -> dict[str, Any]:
    """Return changes that make every training two steps of a tiny base."""
    return {
        "base": str(tiny.parent / "base"),
        "reinitialise": 0,
        "corpus.rows": 16,
        "corpus.max_length": 12,
        "optimiser.batch": 8,
        "optimiser.learning_rate": 0.001,
    }


@pytest.fixture(scope="session")
def experiment(tiny: Path) -> Callable[..., Experiment]:
    """Return a maker of small experiments on the sample."""

    def make(**changes: Any) -> Experiment:
        chosen: dict[str, Any] = {"name": "small", "recipe": str(tiny), "measure": {"tasks": "sample"}, **changes}
        return Experiment.model_validate(chosen)

    return make


@pytest.fixture
def serial() -> Iterator[list[str]]:
    """Run units in this process; return the list of those that ran."""
    with in_this_process() as ran:
        yield ran


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
