"""A checkpoint's files: which are read, what their hash says, and how a damaged one is told."""

import json
import os
import pickle
import shutil

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders import checkpoint as checkpoint_module
from stsbench.encoders import hashed as hashed_module
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.generation import has_safe_pickles
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed


def one_sentence(told) -> str:
    message = str(told.value)
    assert "\n" not in message
    assert message.endswith((".", ")", "`"))
    return message


def encode(model, **options):
    return embed(load(model, pooling="avg", **options), ["the dog ran"], use_cache=False)


def shard(folder):
    from transformers import AutoModel

    AutoModel.from_pretrained(folder).save_pretrained(folder / "shards", max_shard_size="20KB")
    (folder / "model.safetensors").unlink()
    for file in (folder / "shards").glob("model*"):
        shutil.move(file, folder / file.name)


def test_there_is_no_such_model(tmp_path):
    with pytest.raises(UserError, match=r"no such model: \./nowhere is not a folder"):
        load("./nowhere")
    with pytest.raises(UserError, match="no such model"):
        load(tmp_path / "nowhere")


def test_a_folder_that_is_no_checkpoint_is_told(tmp_path):
    with pytest.raises(UserError, match="holds no checkpoint") as told:
        load(tmp_path)
    one_sentence(told)


def test_a_file_that_is_no_model_is_told(tmp_path):
    (tmp_path / "notes.pdf").write_text("no")
    with pytest.raises(UserError, match="a file of no known kind"):
        load(tmp_path / "notes.pdf")


def test_a_folder_without_weights_is_told_before_anything_is_encoded(tiny):
    folder = tiny()
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match="holds no model weights") as told:
        _ = load(folder, pooling="avg").identity
    one_sentence(told)


@pytest.mark.parametrize("content", ["{", "[1, 2", '"\ud800', "\x00"])
def test_a_config_that_is_not_json_is_told(content, tiny):
    folder = tiny()
    (folder / "config.json").write_bytes(content.encode("utf-8", errors="surrogatepass"))
    with pytest.raises(UserError, match=r"config\.json is not valid JSON") as told:
        load(folder)
    one_sentence(told)


@pytest.mark.parametrize(
    "entries",
    [
        {"hidden_size": "wide"},
        {"hidden_size": 64},
        {"model_type": "nonesuch"},
        {"model_type": None},
        {"vocab_size": 7},
    ],
    ids=str,
)
def test_a_config_that_makes_no_sense_is_told(entries, tiny, edit):
    folder = tiny()
    edit(folder / "config.json", **entries)
    if "model_type" in entries:
        edit(folder / "config.json", architectures=None)
    with pytest.raises(UserError) as told:
        encode(folder)
    one_sentence(told)


def test_weights_that_are_missing_are_told_rather_than_random(tiny, edit):
    folder = tiny()
    edit(folder / "config.json", num_hidden_layers=3)
    with pytest.raises(UserError, match=r"lacks the weights of encoder\.layer\.2.*would be random"):
        encode(folder)


@pytest.mark.parametrize("damage", ["garbage", "cut", "empty"])
def test_damaged_safetensors_are_told(damage, tiny):
    file = tiny() / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes({"garbage": b"junk" * 99, "cut": content[: len(content) // 2], "empty": b""}[damage])
    with pytest.raises(UserError, match=r"cannot load .*weight file is damaged") as told:
        encode(file.parent)
    one_sentence(told)


class _Evil:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return exec, (f"open({str(self.target)!r}, 'w').close()",)


@pytest.mark.skipif(not has_safe_pickles(), reason="from torch 2.6 on")
@pytest.mark.parametrize("writer", ["torch", "pickle"])
def test_code_in_a_weight_file_is_not_run(writer, tiny, tmp_path):
    import torch

    folder, mark = tiny(), tmp_path / "it-ran"
    (folder / "model.safetensors").unlink()
    if writer == "torch":
        torch.save({"embeddings.word_embeddings.weight": _Evil(mark)}, folder / "pytorch_model.bin")
    else:
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Evil(mark), protocol=2))
    with pytest.raises(UserError, match="damaged, or holds more than weights") as told:
        encode(folder)
    one_sentence(told)
    assert not mark.exists()


@pytest.mark.skipif(not has_safe_pickles(), reason="from torch 2.6 on")
def test_a_damaged_bin_file_is_told(tiny):
    folder = tiny()
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"junk" * 99)
    with pytest.raises(UserError, match="cannot load") as told:
        encode(folder)
    one_sentence(told)


def test_sharded_weights_give_the_same_vectors(tiny):
    folder, whole = tiny(), encode(tiny(name="whole"))
    shard(folder)
    assert len(load(folder, pooling="avg").checkpoint.weight_files()) > 1
    np.testing.assert_allclose(encode(folder).vectors["avg"], whole.vectors["avg"], atol=1e-6)


def test_a_missing_shard_is_told(tiny):
    folder = tiny()
    shard(folder)
    next(folder.glob("model-00002*")).unlink()
    with pytest.raises(UserError, match=r"names model-00002-of.*, which is not there") as told:
        _ = load(folder, pooling="avg").identity
    one_sentence(told)


def test_an_index_that_names_nothing_is_told(tiny):
    folder = tiny()
    (folder / "model.safetensors").rename(folder / "weights.old")
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(UserError, match="names no weight files"):
        _ = load(folder, pooling="avg").identity


def test_the_hashed_file_is_the_one_that_transformers_reads(tiny):
    folder = tiny()
    hashed = load(folder, pooling="avg").identity.weights_sha256
    (folder / "pytorch_model.bin").write_bytes(b"an older copy")
    index = {"weight_map": {"a": "pytorch_model.bin"}}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load(folder, pooling="avg").identity.weights_sha256 == hashed
    encode(folder)


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
    # In their order, and each as often as it is used: so a network's modules are.
    several = [files, files[::-1], [*files, dense], files[:1]]
    assert len({before, *map(checkpoint.sha256, several)}) == 5


def test_code_of_a_checkpoints_own_is_refused_unless_trusted(tiny, edit, tmp_path, vectors_of, sentences):
    folder, mark = tiny(), tmp_path / "it-ran"
    expected = vectors_of(load(folder, pooling="avg"), sentences)
    (folder / "modeling_own.py").write_text(
        "from transformers import BertConfig, BertModel\n"
        f"open({str(mark)!r}, 'w').close()\n"
        "class OwnConfig(BertConfig):\n    model_type = 'own'\n"
        "class OwnModel(BertModel):\n    config_class = OwnConfig\n"
    )
    auto_map = {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    edit(folder / "config.json", model_type="own", auto_map=auto_map)
    with pytest.raises(UserError, match=r"Python code of its own .*--trust-remote-code") as told:
        load(folder, pooling="avg")
    one_sentence(told)
    assert not mark.exists()

    trusted = load(folder, pooling="avg", trust_remote_code=True)
    np.testing.assert_allclose(vectors_of(trusted, sentences), expected, atol=1e-5)
    assert mark.exists()
    (folder / "modeling_own.py").write_text((folder / "modeling_own.py").read_text() + "# changed\n")
    again = load(folder, pooling="avg", trust_remote_code=True)
    assert again.identity.config_sha256 != trusted.identity.config_sha256


@pytest.mark.parametrize("place", ["table.json", "parts/table.txt"])
def test_a_file_that_code_of_a_checkpoints_own_reads_is_part_of_its_identity(
    place, tiny, edit, monkeypatch, tmp_path
):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tiny()
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text("1.0")
    (folder / "modeling_scaled.py").write_text(
        "from pathlib import Path\n"
        "from transformers import BertConfig, BertModel\n"
        "class ScaledConfig(BertConfig):\n    model_type = 'scaled'\n"
        "class ScaledModel(BertModel):\n"
        "    config_class = ScaledConfig\n"
        "    def forward(self, *args, **options):\n"
        "        output = super().forward(*args, **options)\n"
        f"        output.last_hidden_state *= float(Path({str(folder / place)!r}).read_text())\n"
        "        return output\n"
    )
    auto_map = {"AutoConfig": "modeling_scaled.ScaledConfig", "AutoModel": "modeling_scaled.ScaledModel"}
    edit(folder / "config.json", model_type="scaled", auto_map=auto_map)
    found = []
    for factor in ("1.0", "2.0", "1.0"):
        (folder / place).write_text(factor)
        encoder = load(folder, pooling="cls_before_pooler", trust_remote_code=True)
        found.append(embed(encoder, ["the dog ran"]).vectors["cls_before_pooler"])
    np.testing.assert_array_equal(found[1], 2 * found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_a_checkpoint_with_code_in_another_repository_is_not_cached_and_says_so(file, tiny, edit, tmp_path):
    folder = tiny()
    before = load(folder, pooling="avg", trust_remote_code=True)
    assert before.identity == load(folder, pooling="avg").identity  # there is no code to run
    edit(folder / file, auto_map={"AutoTokenizer": ["someone/else--code.Slow", None]})
    encoder = load(folder, pooling="avg", trust_remote_code=True)
    assert any("code from another repository (someone/else--code.Slow)" in note for note in encoder.notes)
    assert encoder.identity.weights_sha256 is None
    # What no code runs of is cached as it was.
    assert load(folder, pooling="avg").identity.weights_sha256 == before.identity.weights_sha256


def test_code_under_the_name_of_a_known_architecture_is_refused_as_well(tiny, edit):
    folder = tiny()
    edit(folder / "config.json", auto_map={"AutoModel": "someone/else--modeling_own.OwnModel"})
    with pytest.raises(UserError, match="Python code of its own"):
        load(folder)


def test_an_encoder_decoder_is_refused(tiny, edit):
    folder = tiny()
    edit(folder / "config.json", model_type="t5", is_encoder_decoder=True)
    with pytest.raises(UserError, match="is an encoder-decoder"):
        load(folder)


def test_an_unknown_precision_or_device_is_refused(tiny):
    with pytest.raises(UserError, match="unknown precision 'int4'"):
        load(tiny(), precision="int4")
    with pytest.raises(UserError, match="unknown device 'tpu'"):
        load(tiny(name="other"), device="tpu")


def test_loading_prints_nothing(tiny, capfd):
    encode(tiny())
    said = capfd.readouterr()
    assert said.out == said.err == ""


def test_a_checkpoint_is_hashed_once_and_again_when_it_changed(tmp_path, monkeypatch):
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"one")
    hashed = []
    monkeypatch.setattr(hashed_module, "sha256_of", lambda path: hashed.append(path) or path.read_text())
    monkeypatch.setattr(hashed_module, "_SETTLED_SECONDS", -1.0)

    def sha256():
        return Checkpoint("tiny", tmp_path).sha256([weights])

    assert [sha256() for _ in range(3)] == ["one"] * 3
    assert len(hashed) == 1
    weights.write_bytes(b"changed")
    assert sha256() == "changed"
    monkeypatch.setattr(hashed_module, "_SETTLED_SECONDS", 3600.0)
    weights.write_bytes(b"just now")
    assert [sha256() for _ in range(2)] == ["just now"] * 2
    assert len(hashed) == 4


def test_weights_hashed_ahead_are_read_once_and_anew_when_they_changed_meanwhile(tmp_path, monkeypatch):
    weights = tmp_path / "model.safetensors"
    weights.write_text("one")
    os.utime(weights, (0, 0))
    monkeypatch.setattr(hashed_module, "_SETTLED_SECONDS", -1.0)
    hashed = []
    monkeypatch.setattr(hashed_module, "sha256_of", lambda path: hashed.append(path) or path.read_text())
    checkpoint_module.hash_ahead(tmp_path)
    assert Checkpoint("it", tmp_path).sha256([weights]) == "one"
    assert hashed == [weights]
    checkpoint_module.hash_ahead(str(tmp_path))
    weights.write_text("another")
    assert Checkpoint("it", tmp_path).sha256([weights]) == "another"


def test_what_cannot_be_hashed_ahead_is_told_by_whoever_wants_the_hash(tmp_path):
    for model in ("no/such-model", tmp_path, "module:function", "x" * 5000):
        checkpoint_module.hash_ahead(model)
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "gone")
    checkpoint_module.hash_ahead(tmp_path)
    with pytest.raises(UserError, match=r"cannot read .*model\.safetensors"):
        Checkpoint("it", tmp_path).sha256([tmp_path / "model.safetensors"])
