"""What older versions of Transformers and torch cannot do: computed in another way, or refused in a sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from stsbench.base.errors import UserError
from stsbench.encoders import generation
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.unpadded import is_faster_unpadded
from stsbench.training.dropout import GaussianDropout, dropout_at, make_gaussian, plain_attention

Tiny = Callable[..., Path]


def encode(folder: Path) -> None:
    embed(load(folder, pooling="avg"), ["the dog ran"], use_cache=False)


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "_transformers", lambda: Version("4.57.6"))


@pytest.mark.parametrize("missing", ["attention's table", "torch's function"])
def test_older_libraries_pad(missing: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    model = load(tiny(), pooling="avg", device="cpu")._network.model.to(torch.bfloat16)  # type: ignore[attr-defined]
    monkeypatch.setattr(generation, "_transformers", lambda: Version("5.0"))
    monkeypatch.setattr(generation, "find_spec", lambda _name: object())
    assert is_faster_unpadded(model, "cuda")
    if missing == "torch's function":
        monkeypatch.setattr(generation, "find_spec", lambda _name: None)
    else:
        monkeypatch.setattr(generation, "_transformers", lambda: Version("4.57.6"))
    assert not is_faster_unpadded(model, "cuda")


@pytest.mark.usefixtures("older")
def test_what_is_to_draw_in_attention_needs_the_plain_one_of_older_libraries() -> None:
    assert plain_attention("gaussian", "torch") == plain_attention("binary", "numpy") == "eager"
    assert plain_attention("binary", "torch") == "auto"


def test_newer_libraries_choose_attention_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "_transformers", lambda: Version("5.0"))
    assert plain_attention("gaussian", "torch") == "auto"


@pytest.mark.usefixtures("older")
def test_attention_that_draws_by_itself_is_set_to_a_rate_and_is_not_taken_for_exchanged() -> None:
    from torch import nn

    class Attention(nn.Module):
        """As the attention of BERT and its kin is before Transformers 5.0: torch's function is told the rate."""

        dropout_prob = 0.1

    model = nn.Sequential(nn.Dropout(0.1), Attention())
    with dropout_at(0.0, model):
        assert model[1].dropout_prob == 0.0
    assert model[1].dropout_prob == 0.1
    with pytest.raises(UserError, match=r"dropout_kind gaussian: the attention of Sequential cannot be replaced"):
        make_gaussian(model)
    plain = nn.Sequential(nn.Dropout(0.1))
    make_gaussian(plain)
    assert type(plain[0]) is GaussianDropout


@pytest.mark.parametrize("name", ["tiny-bert", "without-a-hint"])
def test_an_architecture_is_not_guessed_from_a_folders_name(
    name: str, tiny: Tiny, edit: Callable[..., None], tmp_path: Path
) -> None:
    folder = tiny().rename(tmp_path / name)
    edit(folder / "config.json", model_type=None)
    with pytest.raises(UserError, match=r"config\.json has no model_type"):
        encode(folder)


@pytest.mark.parametrize(("key", "value"), [("hidden_act", -1), ("layer_norm_eps", "x")])
def test_what_older_libraries_meet_in_the_middle_is_told_before(
    key: str, value: object, tiny: Tiny, edit: Callable[..., None]
) -> None:
    folder = tiny()
    edit(folder / "config.json", **{key: value})
    with pytest.raises(UserError, match="cannot load"):
        encode(folder)


def test_a_torch_that_transformers_leaves_alone_is_told(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny()
    monkeypatch.setattr("transformers.utils.is_torch_available", lambda: False)
    with pytest.raises(UserError, match=r"torch \S+ is too old for Transformers .* install a newer torch"):
        encode(folder)


def test_pickled_weights_are_not_read_where_reading_them_can_run_code(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file

    folder = tiny()
    safe = folder / "model.safetensors"
    torch.save(load_file(safe), folder / "pytorch_model.bin")
    monkeypatch.setattr(generation, "version", lambda _name: "2.5.1")
    encode(folder)
    safe.unlink()
    with pytest.raises(
        UserError, match=r"pytorch_model\.bin needs torch 2\.6 or newer, because torch 2\.5\.1 can"
    ):
        encode(folder)


def test_missing_weights_are_named_as_in_the_network() -> None:
    class Bert:
        base_model_prefix = "bert"

    report = {"missing_keys": ["bert.pooler.dense.bias", "encoder.x"], "unexpected_keys": ["bert.y"]}
    expected = {"missing_keys": ["pooler.dense.bias", "encoder.x"], "unexpected_keys": ["bert.y"]}
    assert generation.report_of_loading(Bert(), report) == expected
