"""A checkpoint's files: which are read, what their hash covers, and when its own code runs."""

import json
import shutil

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

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


@pytest.fixture
def own_code(tiny, edit, tmp_path, monkeypatch):
    """Return a checkpoint whose own code reads `parts/table.txt`, and the file that running it makes."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder, mark = tiny(), tmp_path / "it-ran"
    table = folder / "parts" / "table.txt"
    table.parent.mkdir()
    table.write_text("1.0")
    (folder / "own.py").write_text(OWN_MODEL.format(mark=str(mark), table=str(table)))
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    edit(folder / "config.json", model_type="own", auto_map=auto_map)
    return folder, mark


def encode(model, **options):
    return embed(load(model, pooling="avg", **options), ["the dog ran"], use_cache=False)


def test_sharded_weights_give_the_same_vectors(tiny):
    from transformers import AutoModel

    folder, whole = tiny(), encode(tiny(name="whole"))
    AutoModel.from_pretrained(folder).save_pretrained(folder / "shards", max_shard_size="20KB")
    (folder / "model.safetensors").unlink()
    for file in (folder / "shards").glob("model*"):
        shutil.move(file, folder / file.name)
    assert len(load(folder, pooling="avg").checkpoint.weight_files()) > 1
    np.testing.assert_allclose(encode(folder).vectors["avg"], whole.vectors["avg"], atol=1e-6)


def test_the_hashed_file_is_the_one_that_transformers_reads(tiny):
    folder = tiny()
    hashed = load(folder, pooling="avg").identity.weights_sha256
    (folder / "pytorch_model.bin").write_bytes(b"an older copy")
    index = json.dumps({"weight_map": {"a": "pytorch_model.bin"}})
    for name in ("pytorch_model.bin.index.json", "model.safetensors.index.json"):
        (folder / name).write_text(index)
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
    # In their order, and each as often as it is used, as the modules of a network are.
    several = [files, files[::-1], [*files, dense], files[:1]]
    assert len({before, *map(checkpoint.sha256, several)}) == 5


def test_a_checkpoints_own_code_runs_only_if_trusted(own_code, tiny, sentences, vectors_of):
    folder, mark = own_code
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
def test_a_checkpoint_with_code_in_another_repository_is_not_cached(file, tiny, edit):
    folder = tiny()
    before = load(folder, pooling="avg", trust_remote_code=True)
    assert before.identity == load(folder, pooling="avg").identity  # there is no code to run
    edit(folder / file, auto_map={"AutoTokenizer": ["someone/else--code.Slow", None]})
    encoder = load(folder, pooling="avg", trust_remote_code=True)
    assert any("someone/else--code.Slow" in note for note in encoder.notes)
    assert encoder.identity.weights_sha256 is None
    assert load(folder, pooling="avg").identity.weights_sha256 == before.identity.weights_sha256
