"""What was read is what was hashed: files that change between the two, or later, are reported."""

import json
import os
from typing import Any

import numpy as np
import pytest
from tiny_models import edit, vectors_of

from stsbench.base.errors import UserError
from stsbench.encoders import network as network_module
from stsbench.encoders import tokenizer as tokenizer_module
from stsbench.encoders.load import load
from stsbench.encoders.sentence_transformers import write_modules
from stsbench.encoders.template import Template
from stsbench.encoders.transformer import TransformerSettings, recut
from stsbench.encoders.use import Use

TEXTS = ["the dog ran home .", "she reads .", "a small cat"]


def vectors(encoder, *, use_cache=True):
    return vectors_of(encoder, TEXTS, use_cache=use_cache)


def scaled(weights):
    """Return a weight file's bytes with other numbers in them, of the same length."""
    from safetensors.torch import load, save

    return save({name: tensor * -1.5 for name, tensor in load(weights.read_bytes()).items()}, {"format": "pt"})


@pytest.fixture
def two(tiny):
    """Return a checkpoint, and the weights of another of its size."""
    folder = tiny(name="here")
    other = folder.with_name("other.safetensors")
    other.write_bytes(scaled(folder / "model.safetensors"))
    return folder, other


def before(monkeypatch, module, name, act):
    """Let something happen once, right before a function of a module is called."""
    called, waiting = getattr(module, name), [act]

    def then(*args, **options):
        while waiting:
            waiting.pop()()
        return called(*args, **options)

    monkeypatch.setattr(module, name, then)


def refused(file, encoder, **options):
    with pytest.raises(UserError, match=rf"{file} changed after it was hashed"):
        vectors(encoder, **options)


@pytest.mark.parametrize("way", ["renamed", "written", "touched back"])
def test_weights_replaced_between_hashing_and_reading_are_reported(way, two, monkeypatch):
    folder, other = two
    weights = folder / "model.safetensors"

    def replace():
        stamps = weights.stat()
        if way == "renamed":
            other.rename(weights)
            return
        weights.write_bytes(other.read_bytes())
        if way == "touched back":
            os.utime(weights, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))

    encoder = load(folder, pooling="avg")
    before(monkeypatch, network_module, "require_memory_for", replace)
    refused(r"here/model\.safetensors", encoder)
    # Nothing went into the cache under the wrong name.
    mine = vectors(load(folder, pooling="avg"))
    np.testing.assert_array_equal(mine, vectors(load(folder, pooling="avg"), use_cache=False))


@pytest.mark.parametrize("variant", ["plain", "template", "cut", "half"])
def test_weights_overwritten_in_use_are_reported_by_every_encoder_that_shares_them(variant, two):
    folder, other = two
    encoder: Any = load(folder, pooling="avg")
    vectors(encoder, use_cache=False)
    shared: Any = {
        "plain": encoder,
        "template": encoder.with_template(Template(name="it", texts="it: {sentence}", pooling="avg")),
        "cut": recut(encoder, 5),
        "half": encoder.with_use(precision="bf16"),
    }[variant]
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.write(other.read_bytes())
    refused(r"here/model\.safetensors", shared, use_cache=False)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
def test_a_tokenizer_that_changes_while_it_is_read_is_reported(name, two, monkeypatch):
    path = two[0] / name
    encoder = load(two[0], pooling="avg")
    before(monkeypatch, tokenizer_module, "quiet_transformers", lambda: path.write_text(f"{path.read_text()} "))
    refused(f"here/{name}", encoder)


def test_files_of_other_modules_that_change_after_their_hash_are_reported(tiny):
    pytest.importorskip("sentence_transformers")
    folder = tiny()
    write_modules(folder, TransformerSettings(Use(pooling="avg")), 32, [])
    config = folder / "1_Pooling" / "config.json"
    config.write_text(json.dumps({"word_embedding_dimension": 32, "pooling_mode": "mean_sqrt_len_tokens"}))
    by_library = load(folder)
    assert by_library.identity.kind == "sentence-transformers-library"
    edit(config, pooling_mode="weightedmean")
    refused(r"1_Pooling/config\.json", by_library)
