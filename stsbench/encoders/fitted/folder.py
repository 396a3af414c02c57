"""The folder of a fit: written whole or not at all, read without executing anything that is in it.

`fit.json` says what was fitted, for which model and on what; `fit.safetensors` holds the map in float32, and
numbers that stand for the sentences. The model is found again by its name, and held to the hash of its weights. A
whitening of a checkpoint is a checkpoint itself (`layered`): then the model is in the folder.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import DIGEST, atomic_folder, digest_of, sha256_of
from stsbench.base.parsing import parse_json
from stsbench.encoders.fitted.encoder import FitAbout, Map
from stsbench.encoders.fitted.layered import write_layered
from stsbench.encoders.protocol import FloatMatrix
from stsbench.encoders.transformer import TransformerEncoder

FIT = "fit.json"
"""What makes a folder that of a fit."""

TENSORS, LOG = "fit.safetensors", "log.jsonl"

_SENTENCES, _WEIGHT, _BIAS = "sentences", "weight", "bias"
_AGAIN = "fit again with `stsbench fit`"

Tensors = Mapping[str, NDArray[Any]]


def linear_map(tensors: Tensors) -> Map:
    """Return the map x W + b of a whitening, from W^T of shape (dimensions, d) and b."""
    weight = tensors[_WEIGHT].astype(np.float64).T
    bias = tensors[_BIAS].astype(np.float64)

    def apply(vectors: FloatMatrix) -> NDArray[np.float64]:
        mapped: NDArray[np.float64] = vectors.astype(np.float64) @ weight + bias
        return mapped

    return apply


def linear_tensors(mean: NDArray[np.float64], directions: NDArray[np.float64]) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of (x - mean) W as a dense layer's: W^T, and the bias -mean W."""
    weight = np.ascontiguousarray(directions.T).astype(np.float32)
    # With the weights as they are kept, so that the mean goes to zero exactly as far as float32 allows.
    return {_WEIGHT: weight, _BIAS: -(mean @ weight.T.astype(np.float64)).astype(np.float32)}


def write_fit(
    folder: Path,
    about: FitAbout,
    tensors: Tensors,
    seen: NDArray[np.uint64],
    *,
    base: TransformerEncoder | None = None,
    log: list[dict[str, Any]] | None = None,
) -> FitAbout:
    """Write a fit: complete in a folder beside, then renamed; return what was written of it.

    Args:
        folder: must not be there, be empty, or hold the same fit.
        about: what to say; the hashes of files are put in here.
        tensors: the map's.
        seen: numbers of the sentences.
        base: the model, if its files are to lie in the folder.
        log: a flow's.

    Raises:
        UserError: if the folder holds something, the disk is full, or it cannot be written.
    """
    from safetensors.numpy import save

    require_free(folder)
    with atomic_folder(folder) as building:
        (building / TENSORS).write_bytes(save({**tensors, _SENTENCES: seen}))
        covered = [TENSORS]
        if base is not None:
            covered.append(write_layered(building, base, tensors))
        if log is not None:
            lines = "".join(f"{json.dumps(line)}\n" for line in log)
            (building / LOG).write_text(lines, encoding="utf-8")
        about = about.model_copy(update={"files": {name: sha256_of(building / name) for name in covered}})
        about = about.model_copy(update={DIGEST: digest_of(about.model_dump(mode="json"))})
        (building / FIT).write_text(about.model_dump_json(indent=1) + "\n", encoding="utf-8")
        _require_same(folder, building)
    return about


def require_free(folder: Path) -> None:
    """Make sure that nothing is lost if a fit is written: the same fit may be there, or nothing.

    Raises:
        UserError: if the folder holds anything else, or is none.
    """
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / FIT).is_file())):
        raise UserError(f"{folder} is there and holds something: choose another folder with --out.")


def _require_same(folder: Path, building: Path) -> None:
    """Raise if a folder holds another fit than the one that was built, or more."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    more = {path.name for path in folder.iterdir()} - {path.name for path in building.iterdir()}
    if more or (folder / FIT).read_bytes() != (building / FIT).read_bytes():
        raise UserError(f"{folder} holds another fit: choose another folder with --out.")


def holds_fit(folder: Path) -> bool:
    """Return whether a folder is that of a fit.

    Raises:
        UserError: if it holds the tensors of one, and does not say of what.
    """
    try:
        there = [name for name in (FIT, TENSORS) if (folder / name).is_file()]
    except (OSError, ValueError):  # a name that no file can have
        return False
    if FIT in there:
        return True
    if there:
        raise UserError(f"{folder} holds {TENSORS} but no {FIT}, which says what was fitted: {_AGAIN}.")
    return False


def read_about(folder: Path) -> FitAbout:
    """Return what `fit.json` says, and make sure that the files are those that it names.

    Raises:
        UserError: if it is damaged, of another version, or a file is missing or another one.
    """
    file = folder / FIT
    try:
        content = parse_json(file.read_bytes(), once=True, nan=False)
        if isinstance(content, dict) and content.get("version") != 2:
            raise UserError(f"{file} was written by another version of stsbench: {_AGAIN}.")
        about = FitAbout.model_validate_json(json.dumps(content))
    except (OSError, ValueError, ValidationError) as error:
        raise UserError(f"{file} does not say what a fit's does, so it is damaged: {_AGAIN}.") from error
    if content.get(DIGEST) != digest_of(content) or TENSORS not in about.files:
        raise UserError(f"{file} was changed since it was written: {_AGAIN}.")
    for name, digest in about.files.items():
        path = folder / name
        if path.parent not in {folder, *(child for child in folder.iterdir() if child.is_dir())}:
            raise UserError(f"{file} names {name!r}, which is not in its folder: {_AGAIN}.")
        if not path.is_file():
            raise UserError(f"{folder} lacks {name}, which its {FIT} names: {_AGAIN}.")
        if sha256_of(path) != digest:
            raise UserError(f"{path} is not the file that its {FIT} was written with: {_AGAIN}.")
    return about


def read_seen(folder: Path, about: FitAbout) -> NDArray[np.uint64]:
    """Return the numbers of the sentences.

    Raises:
        UserError: if the file is damaged, or changed since `about` was read.
    """
    seen = _tensors(folder, about).get(_SENTENCES)
    if seen is None or seen.dtype != np.uint64 or seen.ndim != 1:
        raise _damaged(folder)
    return seen


def map_reader(folder: Path, about: FitAbout) -> Callable[[], Map]:
    """Return what reads the map when it is needed.

    Raises:
        UserError: when it is called, if the tensors are not those of such a map.
    """

    def read() -> Map:
        tensors = {name: array for name, array in _tensors(folder, about).items() if name != _SENTENCES}
        if about.method == "whitening":
            shapes = {_WEIGHT: (about.dimensions, about.width), _BIAS: (about.dimensions,)}
            if {name: array.shape for name, array in tensors.items()} != shapes:
                raise _damaged(folder)
            return linear_map(tensors)
        from stsbench.encoders.fitted.flow import FlowShape, apply_flow, flow_of

        wanted = {name: about.settings.get(name) for name in ("depth", "width", "coupling")}
        try:
            flow = flow_of(FlowShape(about.dimensions, **wanted), tensors)  # type: ignore[arg-type]
        except (ValueError, TypeError) as error:
            raise _damaged(folder) from error
        return lambda vectors: apply_flow(flow, vectors)

    return read


def _tensors(folder: Path, about: FitAbout) -> dict[str, NDArray[Any]]:
    from safetensors.numpy import load

    try:
        content = (folder / TENSORS).read_bytes()
        tensors = load(content)
    except Exception as error:  # the library raises several kinds for what is one thing to the person
        raise _damaged(folder) from error
    if hashlib.sha256(content).hexdigest() != about.files[TENSORS]:
        raise UserError(f"{folder / TENSORS} changed since the fit was loaded: load it again.")
    return tensors


def _damaged(folder: Path) -> UserError:
    return UserError(f"{folder / TENSORS} does not hold what its {FIT} says: {_AGAIN}.")
