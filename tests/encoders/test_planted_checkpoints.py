"""No wrong number comes out of a checkpoint whose files do not say alike: it is refused, or known as another."""

import json
import shutil
from pathlib import Path

import pytest
from planted.checkpoints import TANH, VARIANTS, WEIGHTS, Measured, add_modules, measured, outcome, write

from stsbench.base.errors import UserError


@pytest.fixture(scope="module")
def whole(_built, tmp_path_factory) -> Path:
    folder = Path(shutil.copytree(_built("bert"), tmp_path_factory.mktemp("planted") / "whole"))
    add_modules(folder)
    return folder


@pytest.fixture(scope="module")
def before(whole) -> Measured:
    return measured(whole)


@pytest.mark.parametrize("start", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_of_over_a_hundred_planted_faults_none_passes(start, whole, before):
    assert len({variant.name for variant in VARIANTS}) == len(VARIANTS) >= 130
    outcomes = {variant.name: outcome(variant, whole, before) for variant in VARIANTS[start::2]}
    assert {name for name, said in outcomes.items() if said == "wrong"} == set()
    assert sum(said == "told" for said in outcomes.values()) > len(outcomes) * 0.7
    assert not list(whole.parent.rglob("it-ran"))


def test_the_harness_sees_a_wrong_number(whole, before, monkeypatch):
    (third_layer,) = (variant for variant in VARIANTS if variant.name == "a third layer")
    monkeypatch.setattr("stsbench.encoders.network.require_own_weights", lambda *_, **__: None)
    monkeypatch.setattr("stsbench.encoders.modules.read_weights", lambda path: {})
    assert outcome(third_layer, whole, before) != "right"


@pytest.fixture
def edited(whole, tmp_path):
    """Return a function that copies the checkpoint with tensors added to its weights."""
    from safetensors.torch import load_file, save_file

    def make(*names: str, layout: str = "safetensors") -> Path:
        import torch

        folder = Path(shutil.copytree(whole, tmp_path / "edited"))
        tensors = load_file(folder / WEIGHTS)
        tensors |= {name: torch.zeros(3) for name in names}
        if layout == "safetensors":
            save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        else:
            torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=layout == "bin")
            (folder / WEIGHTS).unlink()
        return folder

    return make


@pytest.mark.parametrize("layout", ["safetensors", "bin", "old bin"])
def test_heads_and_constants_do_not_change_vectors(layout, edited, before):
    folder = edited(
        "cls.predictions.bias",
        "cls.predictions.decoder.bias",
        "classifier.weight",
        "embeddings.token_type_ids",
        "encoder.layer.0.attention.masked_bias",
        layout=layout,
    )
    assert abs(measured(folder).vectors - before.vectors).max() < 1e-6


@pytest.mark.parametrize("number", range(4))
def test_what_goes_through_the_library_is_refused_as_well(number, whole, tmp_path):
    pytest.importorskip("sentence_transformers")
    folder = Path(shutil.copytree(whole, tmp_path / "edited"))
    write(folder, "1_Pooling/config.json", {"word_embedding_dimension": 32, "pooling_mode": "weightedmean"})
    if number == 3:
        assert measured(folder).identity["kind"] == "sentence-transformers-library"
        return
    config = json.loads((folder / "config.json").read_text())
    changes = [
        ({"num_hidden_layers": 1}, TANH, "has weights that the network of its config.json does not use"),
        ({"num_hidden_layers": 3}, TANH, "lacks the weights of encoder.layer.2"),
        ({}, "own.Function", "activation_function is 'own.Function'"),
    ]
    entries, function, said = changes[number]
    write(folder, "config.json", config | entries)
    dense = json.loads((folder / "2_Dense/config.json").read_text())
    write(folder, "2_Dense/config.json", dense | {"activation_function": function})
    with pytest.raises(UserError, match=said):
        measured(folder)


def test_a_library_is_not_quoted_on_how_to_switch_its_protection_off(whole, tmp_path):
    pytest.importorskip("sentence_transformers")
    import torch

    folder = Path(shutil.copytree(whole, tmp_path / "edited"))
    write(folder, "1_Pooling/config.json", {"word_embedding_dimension": 32, "pooling_mode": "weightedmean"})
    (folder / WEIGHTS).unlink()
    torch.save({"x": Path("x")}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="weight files are damaged") as told:
        measured(folder)
    assert "weights_only" not in str(told.value)
