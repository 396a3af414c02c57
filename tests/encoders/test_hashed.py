"""What was read is what was hashed: files that change between the two, or later, are told."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders import checkpoint as checkpoint_module
from stsbench.encoders import generation
from stsbench.encoders import hashed as hashed_module
from stsbench.encoders import network as network_module
from stsbench.encoders import tokenizer as tokenizer_module
from stsbench.encoders.hashed import HashedFiles
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.transformer import recut
from stsbench.encoders.vector_files import SavedVectors

TEXTS = ["the dog ran home .", "she reads .", "a small cat"]
CHANGED = r"changed after it was hashed, so vectors would be attributed to the wrong file: load the"

Tiny = Callable[..., Path]


def vectors(encoder: Any, **options: Any) -> Any:
    found = embed(encoder, TEXTS, **options)
    return found.vectors[encoder.identity.use.pooling][found.rows]


def scaled(weights: Path) -> bytes:
    """Return a weight file's bytes with other numbers in them, of the same length."""
    from safetensors.torch import load, save

    return save({name: tensor * -1.5 for name, tensor in load(weights.read_bytes()).items()}, {"format": "pt"})


@pytest.fixture
def two(tiny: Tiny) -> tuple[Path, Path]:
    """Return a checkpoint, and the weights of another of its size."""
    folder = tiny(name="here")
    other = folder.with_name("other.safetensors")
    other.write_bytes(scaled(folder / "model.safetensors"))
    return folder, other


def before(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]) -> None:
    """Let something happen once, right before a function of a module is called."""
    called, waiting = getattr(module, name), [act]

    def then(*args: Any, **options: Any) -> Any:
        while waiting:
            # In another thread, as another process would.
            thread = threading.Thread(target=waiting.pop())
            thread.start()
            thread.join()
        return called(*args, **options)

    monkeypatch.setattr(module, name, then)


@pytest.mark.parametrize("way", ["renamed", "written", "touched back"])
def test_weights_replaced_between_hashing_and_reading_are_told(
    way: str, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = two
    weights = folder / "model.safetensors"

    def replace() -> None:
        import os

        stamps = weights.stat()
        if way == "renamed":
            other.rename(weights)
            return
        weights.write_bytes(other.read_bytes())
        if way == "touched back":
            os.utime(weights, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))

    encoder = load(folder, pooling="avg")
    before(monkeypatch, network_module, "require_memory_for", replace)
    with pytest.raises(UserError, match=rf"here/model\.safetensors {CHANGED}"):
        embed(encoder, TEXTS)
    # Nothing went into the cache by the wrong name.
    mine = vectors(load(folder, pooling="avg"))
    np.testing.assert_array_equal(mine, vectors(load(folder, pooling="avg"), use_cache=False))


def test_weights_replaced_before_the_first_look_are_those_that_are_named(two: tuple[Path, Path]) -> None:
    folder, other = two
    encoder = load(folder, pooling="avg")
    other.rename(folder / "model.safetensors")
    found = vectors(encoder)
    again = load(folder, pooling="avg")
    assert encoder.identity == again.identity
    np.testing.assert_array_equal(found, vectors(again, use_cache=False))


@pytest.mark.parametrize("variant", ["plain", "template", "cut", "half"])
def test_weights_written_over_while_they_are_used_are_told_by_whatever_shares_them(
    variant: str, two: tuple[Path, Path]
) -> None:

    from stsbench.encoders.template import Template

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
    with pytest.raises(UserError, match=rf"here/model\.safetensors {CHANGED}"):
        vectors(shared, use_cache=False)


def test_a_change_within_one_tick_of_the_clock_is_told(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = two
    weights = folder / "model.safetensors"
    real = hashed_module._state_of
    frozen = {path: real(path) for path in (weights,)}
    # As on a file system whose clock ticks once in two seconds.
    monkeypatch.setattr(hashed_module, "_state_of", lambda path: frozen.get(path) or real(path))
    encoder = load(folder, pooling="avg")
    before(monkeypatch, network_module, "require_memory_for", lambda: weights.write_bytes(other.read_bytes()))
    with pytest.raises(UserError, match=CHANGED):
        embed(encoder, TEXTS)


def test_a_file_that_has_settled_is_hashed_once_and_one_just_written_until_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = tmp_path / "file", []
    path.write_text("one")
    monkeypatch.setattr(hashed_module, "sha256_of", lambda path: read.append(path) or path.read_text())
    files = HashedFiles()
    assert files.sha256(path) == "one"
    files.require_unchanged()
    assert len(read) == 2
    monkeypatch.setattr(hashed_module, "_SETTLED_SECONDS", -1.0)
    for _ in range(3):
        files.require_unchanged()
    assert len(read) == 3


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "added_tokens.json"])
def test_a_tokenizer_that_changes_or_grows_while_it_is_read_is_told(
    name: str, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = two
    path = folder / name

    def change() -> None:
        path.write_text(f"{path.read_text()} " if path.is_file() else "{}")

    encoder = load(folder, pooling="avg")
    before(monkeypatch, tokenizer_module, "quiet_transformers", change)
    with pytest.raises(UserError, match=rf"here/{name} {CHANGED}"):
        embed(encoder, TEXTS)


def test_safetensors_that_come_beside_pickled_weights_are_told(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file

    folder = tiny()
    safe = folder / "model.safetensors"
    torch.save(load_file(safe), folder / "pytorch_model.bin")
    waiting = safe.rename(folder / "waiting")
    encoder = load(folder, pooling="avg")
    before(monkeypatch, network_module, "require_memory_for", lambda: waiting.rename(safe))
    with pytest.raises(UserError, match=rf"model\.safetensors {CHANGED}"):
        embed(encoder, TEXTS)


def test_weights_that_a_configuration_names_are_those_that_are_hashed(
    tiny: Tiny, edit: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import __version__ as transformers_version

    folder = tiny()
    (folder / "named.safetensors").write_bytes(scaled(folder / "model.safetensors"))
    plain = load(folder, pooling="avg")
    first = vectors(plain)
    edit(folder / "config.json", transformers_weights="named.safetensors")
    named = load(folder, pooling="avg")
    assert named.identity.weights_sha256 != plain.identity.weights_sha256
    if Version(transformers_version) >= Version("4.52"):
        assert np.abs(vectors(named) - first).max() > 0.1
        monkeypatch.setattr(generation, "_transformers", lambda: Version("4.51.3"))
    with pytest.raises(UserError, match=r"which Transformers 4\.\S+ ignores: install Transformers 4\.52"):
        embed(load(folder, pooling="avg"), TEXTS, use_cache=False)


def test_a_changed_file_of_word_vectors_is_told(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("dog 1 2\ncat 3 4\n")
    encoder = load(path)
    _ = encoder.identity
    path.write_text("dog 5 2\ncat 3 4\n")
    with pytest.raises(UserError, match=rf"words\.txt {CHANGED}"):
        embed(encoder, ["dog"])


def test_saved_vectors_written_over_while_they_are_looked_up_are_told(tmp_path: Path) -> None:
    (tmp_path / "sentences.txt").write_text("a\nb\n")
    np.save(tmp_path / "vectors.npy", np.eye(2))
    encoder = SavedVectors(tmp_path / "vectors.npy", tmp_path / "sentences.txt")
    assert embed(encoder, ["b"]).vectors["own"].tolist() == [[0, 1]]
    with (tmp_path / "vectors.npy").open("r+b") as stream:
        stream.seek(-8, 2)
        stream.write(b"\0" * 8)
    with pytest.raises(UserError, match=rf"vectors\.npy {CHANGED}"):
        embed(encoder, ["b"])


def test_the_map_of_a_fit_that_changed_since_it_was_loaded_is_told(tiny: Tiny, tmp_path: Path) -> None:
    words = ["dog", "cat", "rain", "river", "she", "reads", "home", "old"]
    texts = [f"{one} {other}" for one in words for other in words]
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder, some in zip(folders, (texts, texts[:40]), strict=True):
        sb.fit(
            "whitening",
            load(tiny(name=f"base-{folder.name}"), pooling="avg"),
            sentences=some,
            out=folder,
            dimensions=4,
        )
    encoder = load(folders[0])
    shutil.copyfile(folders[1] / "fit.safetensors", folders[0] / "fit.safetensors")
    with pytest.raises(UserError, match=r"fit\.safetensors changed after the fit was loaded: load it again\."):
        embed(encoder, TEXTS)


def test_the_library_is_told_of_a_file_that_changed_since_it_was_hashed(
    tiny: Tiny, edit: Callable[..., None]
) -> None:
    pytest.importorskip("sentence_transformers")
    folder = tiny()
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_sqrt_len_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    encoder = load(folder)
    assert encoder.identity.kind == "sentence-transformers-library"
    edit(
        folder / "1_Pooling" / "config.json",
        pooling_mode_mean_sqrt_len_tokens=False,
        pooling_mode_weightedmean_tokens=True,
    )
    with pytest.raises(UserError, match=rf"1_Pooling/config\.json {CHANGED}"):
        embed(encoder, TEXTS)


def test_an_adapter_of_an_adapter_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    base = tiny()
    about = {"peft_type": "LORA", "base_model_name_or_path": str(tiny(name="deeper"))}
    (base / "adapter_config.json").write_text(json.dumps(about))
    (tmp_path / "adapter").mkdir()
    about["base_model_name_or_path"] = str(base)
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(about))
    with pytest.raises(UserError, match=r"is an adapter for .*tiny-bert, which is an adapter itself: merge that"):
        load(tmp_path / "adapter")


def test_every_file_that_a_tokenizer_of_transformers_reads_is_hashed() -> None:
    import re
    from fnmatch import fnmatchcase

    import transformers

    root = Path(transformers.__file__).parent
    files: set[str] = set()
    for module in (root / "models").rglob("tokenization_*.py"):
        for names in re.findall(
            r"VOCAB_FILES_NAMES\s*=\s*\{(.*?)\}", module.read_text(encoding="utf-8"), re.DOTALL
        ):
            files |= set(re.findall(r":\s*\"([^\"]+)\"", names))
    assert len(files) > 20
    patterns = checkpoint_module._TOKENIZER_PATTERNS
    assert [name for name in sorted(files) if not any(fnmatchcase(name, each) for each in patterns)] == []
