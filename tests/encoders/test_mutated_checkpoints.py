"""Whatever the value of a key in a checkpoint's files: one sentence or vectors, never a traceback."""

import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from planted.checkpoints import DENSE, TEXTS, WEIGHTS, add_modules, write
from safetensors.numpy import load_file, save_file

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

VALUES: tuple[Any, ...] = (None, True, -1, 5, "x", [], {})
SHARE = 4
"""Each how many-eth mutation the gate tries; all of them in the long run."""

REPORTED = (
    ("config.json", "architectures", 5),
    ("config.json", "auto_map", 5),
    ("config.json", "num_attention_heads", -1),
    ("tokenizer_config.json", "model_max_length", "x"),
    ("tokenizer_config.json", "unk_token", {}),
    ("1_Pooling/config.json", "pooling_mode", 5),
)
"""Those that once ended in a traceback."""


class Mutation(NamedTuple):
    """One key of one file, and what stands there in the place of its value."""

    file: str
    path: tuple[str | int, ...]
    value: Any


@pytest.fixture(scope="module")
def static(_built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that both sentence-transformers and model2vec read: the tokens' vectors without the network."""
    built, folder = _built("bert"), tmp_path_factory.mktemp("mutated") / "static"
    folder.mkdir()
    shutil.copy(built / "tokenizer.json", folder)
    rows = load_file(built / WEIGHTS)["embeddings.word_embeddings.weight"]
    save_file({"embeddings": rows}, folder / WEIGHTS)
    write(folder, "config.json", {"model_type": "model2vec", "normalize": True, "max_length": 64})
    kinds = {"": "StaticEmbedding", "1_Normalize": "Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    write(folder, "modules.json", [about | {"idx": idx, "name": str(idx)} for idx, about in enumerate(modules)])
    return folder


@pytest.fixture(scope="module")
def whole(_built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(_built("bert"), tmp_path_factory.mktemp("mutated") / "whole"))
    add_modules(folder)
    write(folder, "stsbench.json", {"notes": ["a note"]})
    return folder


def _mutations(folder: Path) -> Iterator[Mutation]:
    for path in sorted(folder.rglob("*.json")):
        name, content = path.relative_to(folder).as_posix(), json.loads(path.read_text(encoding="utf-8"))
        for place in _places(content):
            for value in VALUES:
                yield Mutation(name, place, value)
    for name in (name for name in (WEIGHTS, DENSE) if (folder / name).is_file()):
        first = next(tensor for tensor in _header(folder / name)[0] if tensor != "__metadata__")
        for key in ("dtype", "shape", "data_offsets"):
            for value in (*VALUES, ["x", "x"], [None, -1]):
                yield Mutation(name, (first, key), value)


def _places(content: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield where the keys of a file are: of an object's objects, too, and of a list's."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(content, dict):
            yield (key,)
        if isinstance(value, dict) and len(value) < 12:
            yield from ((key, inner) for inner in value)


def _header(path: Path) -> tuple[dict[str, Any], bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _set(content: Any, path: tuple[str | int, ...], value: Any) -> None:
    for key in path[:-1]:
        content = content[key]
    content[path[-1]] = value


def _plant(folder: Path, mutation: Mutation) -> None:
    file = folder / mutation.file
    if file.suffix == ".safetensors":
        header, numbers = _header(file)
        _set(header, mutation.path, mutation.value)
        said = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(said)) + said + numbers)
        return
    content = json.loads(file.read_text(encoding="utf-8"))
    _set(content, mutation.path, mutation.value)
    write(folder, mutation.file, content)


def _said(whole: Path, mutation: Mutation) -> str:
    """Return what is wrong with how a mutation is met; empty for one sentence or for vectors."""
    folder = whole.with_name(f"{whole.name}-mutated")
    if not folder.is_dir():
        shutil.copytree(whole, folder)
    _plant(folder, mutation)
    try:
        encoder = load(folder)
        found = embed(encoder, TEXTS, use_cache=False)
        vectors = found.vectors[encoder.identity.use.pooling][found.rows]
        return "" if vectors.shape[0] == len(TEXTS) and np.isfinite(vectors).all() else "no vectors"
    except UserError as error:
        return "several lines" if "\n" in str(error) else ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what is looked for; tokenizers panics with no Exception
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.copy(whole / mutation.file, folder / mutation.file)


def _met(whole: Path, mutations: list[Mutation]) -> None:
    wrong = [f"{mutation}: {said}" for mutation in mutations if (said := _said(whole, mutation))]
    assert not wrong, "\n".join(wrong)


def test_mutations_that_once_ended_in_a_traceback_end_in_a_sentence_or_in_vectors(whole: Path) -> None:
    _met(whole, [Mutation(file, (key,), value) for file, key, value in REPORTED])


@pytest.mark.parametrize("kind", ["whole", "static"])
def test_a_share_of_all_mutations_ends_in_a_sentence_or_in_vectors(
    kind: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    mutations = list(_mutations(folder))
    assert len(mutations) > {"whole": 600, "static": 100}[kind]
    _met(folder, mutations[::SHARE])


@pytest.mark.long
@pytest.mark.parametrize("kind", ["whole", "static"])
@pytest.mark.parametrize("start", range(1, SHARE))
def test_every_mutation_ends_in_a_sentence_or_in_vectors(
    start: int, kind: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    _met(folder, list(_mutations(folder))[start::SHARE])
