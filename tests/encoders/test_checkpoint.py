"""A checkpoint's files: which are read and hashed, when its own code runs, and how an adapter is merged."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
from tiny_models import edit, vectors_of

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.load import load

OWN_MODEL = """
from pathlib import Path
from transformers import BertConfig, BertModel
open({mark!r}, 'w').close()
class OwnConfig(BertConfig):
    model_type = 'own'
class OwnModel(BertModel):
    config_class = OwnConfig
    def forward(self, *args, **options):
        output = super().forward(*args, **options)
        output.last_hidden_state *= float(Path({table!r}).read_text())
        return output
"""


def give_own_code(folder, mark, table):
    """Give a checkpoint a model of its own, which multiplies by the number in a file and makes another file."""
    (folder / "own.py").write_text(OWN_MODEL.format(mark=str(mark), table=str(table)))
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    edit(folder / "config.json", model_type="own", auto_map=auto_map)


def test_sharded_weights_give_the_same_vectors(tiny):
    from transformers import AutoModel

    folder, whole = tiny(), vectors(tiny(name="whole"))
    AutoModel.from_pretrained(folder).save_pretrained(folder / "shards", max_shard_size="20KB")
    (folder / "model.safetensors").unlink()
    for file in (folder / "shards").glob("model*"):
        shutil.move(file, folder / file.name)
    assert len(load(folder, pooling="avg").checkpoint.weight_files()) > 1
    np.testing.assert_allclose(vectors(folder), whole, atol=1e-6)


def test_the_hashed_file_is_the_one_that_transformers_reads(tiny):
    folder = tiny()
    hashed = load(folder, pooling="avg").identity.weights_sha256
    (folder / "pytorch_model.bin").write_bytes(b"an older copy")
    index = json.dumps({"weight_map": {"a": "pytorch_model.bin"}})
    for name in ("pytorch_model.bin.index.json", "model.safetensors.index.json"):
        (folder / name).write_text(index)
    assert load(folder, pooling="avg").identity.weights_sha256 == hashed
    vectors(folder)


def test_a_hash_covers_files_of_equal_name_in_several_folders(tiny):
    folder = tiny()
    (folder / "2_Dense").mkdir()
    dense = folder / "2_Dense" / "model.safetensors"
    dense.write_bytes(b"dense")
    files = [folder / "model.safetensors", dense]
    before = Checkpoint("it", folder).sha256(files)
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"!")
    checkpoint = Checkpoint("it", folder)
    # In their order, and each as often as it is used, as the modules of a network are.
    several = [files, files[::-1], [*files, dense], files[:1]]
    assert len({before, *map(checkpoint.sha256, several)}) == 5


def test_a_checkpoints_own_code_runs_only_if_trusted(tiny, sentences, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder, mark = tiny(), tmp_path / "it-ran"
    (folder / "parts").mkdir()
    (folder / "parts" / "table.txt").write_text("1.0")
    give_own_code(folder, mark, folder / "parts" / "table.txt")
    with pytest.raises(UserError, match=r"own\.OwnModel.*--trust-remote-code"):
        load(folder, pooling="avg")
    assert not mark.exists()
    trusted = load(folder, pooling="avg", trust_remote_code=True)
    expected = vectors_of(load(tiny(name="plain"), pooling="avg"), sentences)
    np.testing.assert_allclose(vectors_of(trusted, sentences), expected, atol=1e-5)
    assert mark.exists()
    (folder / "own.py").write_text((folder / "own.py").read_text() + "# changed\n")
    again = load(folder, pooling="avg", trust_remote_code=True)
    assert again.identity.config_sha256 != trusted.identity.config_sha256


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_a_checkpoint_with_code_in_another_repository_is_not_cached(file, tiny):
    folder = tiny()
    before = load(folder, pooling="avg", trust_remote_code=True)
    assert before.identity == load(folder, pooling="avg").identity  # there is no code to run
    edit(folder / file, auto_map={"AutoTokenizer": ["someone/else--code.Slow", None]})
    encoder = load(folder, pooling="avg", trust_remote_code=True)
    assert any("someone/else--code.Slow" in note for note in encoder.notes)
    assert encoder.identity.weights_sha256 is None
    assert load(folder, pooling="avg").identity.weights_sha256 == before.identity.weights_sha256


TEXTS = ["a cat", "Rain fell all night, and the river rose."]


def vectors(name, **options):
    return vectors_of(load(name, pooling="last", **options), TEXTS)


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


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"peft_type": "PREFIX_TUNING"}, r"adapter_config\.json: expected peft_type LORA .* 'PREFIX_TUNING' and"),
        ({"base_model_name_or_path": None}, r"expected .* a base_model_name_or_path, found 'LORA' and ''"),
        ({"base_model_name_or_path": "./gone"}, "for ./gone, which cannot be loaded: no such model"),
        ({"base_model_name_or_path": "gpt2"}, r"adapter of another base than .*gpt2, whose weights it does no"),
    ],
)
def test_an_adapter_that_cannot_be_merged_is_refused(entries, message, adapter, asked_model):
    entries = {key: str(asked_model("gpt2")) if value == "gpt2" else value for key, value in entries.items()}
    edit(adapter / "adapter_config.json", **entries)
    with pytest.raises(UserError, match=message):
        vectors(adapter)


def test_weights_that_will_not_fit_are_refused_before_they_are_read(asked_model, monkeypatch):
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: 60_000)
    with pytest.raises(UserError, match=r"llama in fp32 .* --precision bf16"):
        vectors(asked_model("llama"))
    with pytest.raises(UserError, match=r"llama in bf16 .* use a smaller model"):
        vectors(asked_model("llama"), precision="bf16")
    size = (asked_model("llama") / "model.safetensors").stat().st_size
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: size * 3 // 4)
    assert len(vectors(asked_model("llama"), precision="bf16"))  # half of the fp32 file
    with pytest.raises(UserError, match=r"llama in fp32"):
        vectors(asked_model("llama"))
