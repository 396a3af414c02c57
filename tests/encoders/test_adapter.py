"""LoRA adapters: merged at load, refused where they are another base's; shards, and memory before loading."""

import shutil
from typing import Any

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

TEXTS = ["a cat", "Rain fell all night, and the river rose."]


def vectors(name, **options):
    found = embed(load(name, pooling="last", **options), TEXTS, use_cache=False)
    return found.vectors["last"][found.rows]


@pytest.fixture
def adapter(asked_model, tmp_path):
    """Return the folder of an adapter for a language model, as its training would save it."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base = asked_model("llama")
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_pretrained(base)
    wrapped = get_peft_model(
        model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    )
    with torch.no_grad():
        for name, parameter in wrapped.named_parameters():
            if "lora_" in name:
                parameter.normal_(std=0.3)
    wrapped.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


def test_an_adapter_is_merged_into_its_base(adapter, asked_model):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = asked_model("llama")
    tokenizer = AutoTokenizer.from_pretrained(base)
    reference = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter).eval()
    rows = []
    for text in TEXTS:
        with torch.no_grad():
            output = reference(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        rows.append(output.hidden_states[-1][0, -1].numpy())
    found = vectors(adapter)
    np.testing.assert_allclose(found, np.stack(rows), rtol=0, atol=1e-5)
    assert np.abs(found - vectors(base)).max() > 0.01

    encoder: Any = load(adapter, pooling="last")
    plain: Any = load(base, pooling="last")
    assert any("is an adapter, merged into the weights of" in note for note in encoder.notes)
    assert encoder.identity.weights_sha256 != plain.identity.weights_sha256
    assert encoder.identity.modules[0] == "lora"


def test_an_adapter_of_another_base_is_refused(adapter, asked_model, edit):
    edit(adapter / "adapter_config.json", base_model_name_or_path=str(asked_model("gpt2")))
    with pytest.raises(UserError, match=r"an adapter of another base than .*gpt2, whose weights it does no"):
        vectors(adapter)
    # The same layers in another size.
    wider = shutil.copytree(asked_model("llama"), adapter.parent / "wider")
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig.from_pretrained(wider)
    config.hidden_size, config.head_dim = 64, 32
    LlamaModel(config).save_pretrained(wider)
    edit(adapter / "adapter_config.json", base_model_name_or_path=str(wider))
    with pytest.raises(UserError, match=r"an adapter of another base than .*wider, whose weights it does no"):
        vectors(adapter)


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_an_adapter_that_changed_since_it_was_hashed_is_an_error(name, adapter):
    encoder = load(adapter, pooling="last")
    _ = encoder.identity
    (adapter / name).write_bytes((adapter / name).read_bytes() + b" ")
    with pytest.raises(UserError, match=rf"adapter/{name} changed after it was hashed"):
        embed(encoder, TEXTS)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"peft_type": "PREFIX_TUNING"}, r"adapter_config\.json: expected peft_type LORA .* 'PREFIX_TUNING' and"),
        ({"base_model_name_or_path": None}, r"expected .* a base_model_name_or_path, found 'LORA' and ''"),
        (
            {"base_model_name_or_path": "./gone"},
            r"is an adapter for ./gone, which cannot be loaded: no such model",
        ),
    ],
)
def test_an_adapter_that_cannot_be_merged_is_refused(entries, message, adapter, edit):
    edit(adapter / "adapter_config.json", **entries)
    with pytest.raises(UserError, match=message):
        load(adapter)


def test_weights_that_will_not_fit_are_refused_before_they_are_read(asked_model, monkeypatch):
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: 60_000)
    with pytest.raises(UserError, match=r"the weights of .*llama take 0.0 GB of memory, of which 0.0 GB are free"):
        vectors(asked_model("llama"))
