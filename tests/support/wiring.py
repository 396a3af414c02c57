"""The scale `wiring`: every row of the papers' plans, from tiny random encoders and two training steps.

An encoder has the architecture in its name and weights drawn by its name. Corpora and word vectors are made of the
bundled sample. Everything is in the cache.
"""

from collections.abc import Mapping
from contextlib import contextmanager

import pytest
from tiny_models import SIZES, byte_pairs, sample_word_pieces, save_tiny

from stsbench.base.files import atomic_folder, atomic_path, cache_dir, fingerprint
from stsbench.data.corpus import load_corpus
from stsbench.reproduction import reproduce, table_plan
from stsbench.training.recipe import read_recipe

WIRING = {
    "about": "tiny random encoders, two steps each, on a few rows of each task; the numbers mean nothing",
    "seeds": [42],
    "set": {
        "precision": "fp32",
        "corpus.max_length": 16,
        "selection.task": "sample",
        "selection.every": 1000,
        "selection.last": True,
    },
    "last": False,
    "corpus": "sample",
    "checkpoints": True,
    "options": {"repetition-bias": {"queries": 5, "seeds": 2}},
    "silent": "random weights say nothing of a method",
}
_STEPS, _CORPUS_ROWS = 2, 2048
_SHORTEST, _LENGTHS = 1, 13
_POSITIONS = 32
_SPREAD = 0.1
"""Larger than usual, so that sentences get different vectors."""

_ARCHITECTURES = ("roberta", "mpnet", "bert")


@contextmanager
def wiring(*, on_sample=True):
    """Adds the scale `wiring` inside a block: on the sample, with one column's cells, or on the paper's tasks."""
    read, plain = table_plan.read_plan_file, reproduce.experiment_of

    def with_wiring(path):
        written = read(path)
        if path == table_plan.SCALES_FILE:
            of_demo = {key: written["demo"][key] for key in ("tasks", "options")} if on_sample else {}
            written["wiring"] = {**WIRING, **of_demo}
        return written

    def replaced(plan, name, scale, **options):
        made = plain(plan, name, scale, **options)
        columns = {"", plan.headline_of(name)}
        rows = {
            label: tried(changes)
            for label, changes in made.axes["row"].items()
            if label.partition(", ")[2] in columns or not on_sample
        }
        return made.model_copy(update={"axes": {"row": rows}})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_plan, "SCALES", (*table_plan.SCALES, "wiring"))
        patch.setattr(table_plan, "read_plan_file", with_wiring)
        patch.setattr(reproduce, "experiment_of", replaced)
        table_plan.scales.cache_clear()
        yield
    table_plan.scales.cache_clear()


def tried(changes):
    """Returns a row's changes with random encoders, a small corpus, and two training steps."""
    if "checkpoint" in changes:
        name = str(changes["checkpoint"])
        return {**changes, "checkpoint": str(encoder_folder(name))}
    replaced = {key: _with_encoders(value) for key, value in changes.items() if key != "corpus"}
    settings = {key: value for key, value in replaced.items() if key != "recipe"}
    recipe = read_recipe(str(changes["recipe"]), settings)
    changed = {
        "base": str(encoder_folder(recipe.base)),
        "corpus": str(_corpus(recipe.corpus.columns)),
        "corpus.rows": _STEPS * recipe.optimiser.batch * recipe.optimiser.accumulate,
        "optimiser.epochs": 1,
    }
    for name, task in recipe.tasks.items():
        rows = _STEPS * (task.batch or recipe.optimiser.batch)
        changed[f"tasks.{name}.rows"] = rows if task.dev else round(rows / 0.9)
        if task.dev:
            changed[f"tasks.{name}.dev_rows"] = rows
    return {**changed, **replaced}


def _with_encoders(value):
    """Returns a value of a recipe with random encoders in place of those that views read."""
    if isinstance(value, Mapping):
        return {
            key: str(encoder_folder(str(part))) if key == "model" else _with_encoders(part)
            for key, part in value.items()
        }
    return [_with_encoders(part) for part in value] if isinstance(value, list | tuple) else value


def encoder_folder(name):
    """Returns the random encoder for a name; makes it if missing."""
    known = (architecture for architecture in _ARCHITECTURES if architecture in name.casefold())
    architecture = "roberta" if "declutr" in name.casefold() else next(known)
    digest = fingerprint(f"{name} {SIZES} {_POSITIONS} {_SPREAD}")[:12]
    folder = cache_dir() / "stand-ins" / f"{architecture}-{digest}"
    if not folder.is_dir():
        with atomic_folder(folder) as building:
            _make_encoder(folder.name, building)
    return folder


def _corpus(columns):
    """Returns a corpus of the sample's sentences, cut to many lengths and numbered; makes it if missing."""
    path, sentences = cache_dir() / "stand-ins" / f"corpus-{columns}.tsv", load_corpus("sample")

    def sentence(place):
        words = sentences[place % len(sentences)].split()
        return f"{' '.join(words[: _SHORTEST + place % _LENGTHS])} {place}"

    if not path.is_file():
        rows = (map(sentence, range(first, first + _CORPUS_ROWS)) for first in range(columns))
        with atomic_path(path) as temporary:
            lines = ("\t".join(row) + "\n" for row in zip(*rows, strict=True))
            temporary.write_text("".join(lines), encoding="utf-8")
    return path


def _make_encoder(name, folder):
    """Writes an encoder with random weights, a head for masked language modelling, a pooler and a tokenizer."""
    import torch
    from transformers import AutoModel, AutoModelForMaskedLM

    def build(config):
        whole = AutoModelForMaskedLM.from_config(config)
        # A masked language model has no pooler.
        setattr(whole, whole.base_model_prefix, AutoModel.from_config(config))
        whole.tie_weights()
        return whole

    architecture, _, digest = name.partition("-")
    is_bert = architecture == "bert"
    tokenizer = sample_word_pieces(None) if is_bert else byte_pairs((), around=True, mask=True)
    with torch.random.fork_rng(devices=[]):
        save_tiny(
            folder,
            tokenizer,
            architecture,
            build=build,
            draw=lambda parameter: parameter.normal_(std=_SPREAD),
            seed=int(digest, 16),
            max_position_embeddings=_POSITIONS,
            pad_token_id=tokenizer.pad_token_id,
        )
