"""The folder of a fit: written completely or not at all, read without executing code.

`fit.json` describes the fit; `fit.safetensors` has the map in float32 and the ids of the sentences. The model is
found by its name and checked by the hash of its weights. A whitening of a checkpoint is a checkpoint itself: the
folder has the model's files, and after its modules a dense layer x W + b that subtracts the mean and multiplies by
U S^-1/2, which sentence-transformers reads too.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder, files_in
from stsbench.base.manifest import Manifest
from stsbench.encoders.checkpoint import NOTES
from stsbench.encoders.fitted import FitAbout, Map
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers import pooling_config
from stsbench.encoders.transformer import TransformerEncoder

FIT = "fit.json"
"""What makes a folder that of a fit."""

TENSORS, LOG = "fit.safetensors", "log.jsonl"

_SENTENCES = "sentences"
_AGAIN = "fit again with `stsbench fit`"

Tensors = Mapping[str, NDArray[Any]]


def linear_tensors(mean: NDArray[np.float64], directions: NDArray[np.float64]) -> dict[str, NDArray[np.float32]]:
    """Returns (x - mean) W as the tensors of a dense layer: W^T, and the bias -mean W."""
    weight = np.ascontiguousarray(directions.T).astype(np.float32)
    # With the rounded weights, so that the mean maps to zero as exactly as float32 allows.
    return {"weight": weight, "bias": -(mean @ weight.T.astype(np.float64)).astype(np.float32)}


def write_fit(
    folder: Path,
    about: FitAbout,
    tensors: Tensors,
    seen: NDArray[np.uint64],
    *,
    base: TransformerEncoder | None = None,
    log: list[dict[str, Any]] | None = None,
) -> FitAbout:
    """Writes a fit completely or not at all; returns its description with the hashes of its files.

    Args:
        folder: new, empty, or of the same fit.
        about: the description.
        tensors: the map.
        seen: ids of the sentences.
        base: the model, if its files and a dense layer make a checkpoint.
        log: of a flow's training.
    """
    from safetensors.numpy import save

    require_free(folder)
    with atomic_folder(folder) as building:
        (building / TENSORS).write_bytes(save({**tensors, _SENTENCES: seen}))
        covered = [TENSORS]
        if base is not None:
            covered.append(_write_layered(building, base, tensors))
        if log is not None:
            lines = "".join(f"{json.dumps(line)}\n" for line in log)
            (building / LOG).write_text(lines, encoding="utf-8")
        manifest = Manifest.of(building, about.model_dump(mode="json", exclude={"files"}), covered)
        manifest.write(building, FIT)
        if (folder / FIT).is_file() and (folder / FIT).read_bytes() != (building / FIT).read_bytes():
            raise UserError(f"{folder} has another fit: choose another folder with --out.")
        more = {path.name for path in folder.glob("*")} - {path.name for path in building.iterdir()}
        if more:
            raise UserError(f"{folder} has other files, such as {min(more)}: choose another folder with --out.")
    return about.model_copy(update={"files": dict(manifest.files)})


def require_free(folder: Path) -> None:
    """Checks that a fit can be written without overwriting anything but a fit."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / FIT).is_file())):
        raise UserError(f"{folder} is not empty: choose another folder with --out.")


def holds_fit(folder: Path) -> bool:
    """Returns whether a folder is that of a fit."""
    try:
        is_fit, has_tensors = ((folder / name).is_file() for name in (FIT, TENSORS))
    except (OSError, ValueError):  # not a possible file name
        return False
    if has_tensors and not is_fit:
        raise UserError(f"{folder} has {TENSORS} but no {FIT}, which describes the fit: {_AGAIN}.")
    return is_fit


def read_about(folder: Path) -> FitAbout:
    """Reads `fit.json` and checks the files that it lists."""
    manifest = Manifest.read(folder, FIT, _AGAIN)
    try:
        return FitAbout.model_validate_json(json.dumps({**manifest.content, "files": manifest.files}))
    except ValidationError as error:
        raise UserError(
            f"{folder / FIT} does not describe a fit of this version of stsbench: {_AGAIN}."
        ) from error


def read_seen(folder: Path, about: FitAbout) -> NDArray[np.uint64]:
    """Returns the ids of the sentences of a fit."""
    seen: NDArray[np.uint64] = _tensors(folder, about)[_SENTENCES]
    return seen


def read_map(folder: Path, about: FitAbout) -> Map:
    """Returns the fitted map."""
    tensors = _tensors(folder, about)
    del tensors[_SENTENCES]
    if about.method == "whitening":
        weight, bias = (tensors[name].astype(np.float64) for name in ("weight", "bias"))
        return lambda vectors: vectors.astype(np.float64) @ weight.T + bias
    from stsbench.encoders.flow import FlowSettings, apply_flow, flow_of

    flow = flow_of(about.dimensions, FlowSettings(**about.settings), tensors)
    return lambda vectors: apply_flow(flow, vectors)


def _tensors(folder: Path, about: FitAbout) -> dict[str, NDArray[Any]]:
    from safetensors.numpy import load

    content = (folder / TENSORS).read_bytes()
    if hashlib.sha256(content).hexdigest() != about.files.get(TENSORS):
        raise UserError(f"{folder / TENSORS} changed after the fit was loaded: load it again.")
    return load(content)


def layerable(base: Encoder) -> TransformerEncoder | None:
    """Returns the model if its files and a dense layer make a checkpoint for sentence-transformers, else None."""
    if not isinstance(base, TransformerEncoder) or base.use.trust_remote_code:
        return None
    # The library's files cannot state an attention mask.
    if base.use.attention_mask != AUTO:
        return None
    return base if pooling_config(base.use.pooling, 1) is not None else None


def _write_layered(folder: Path, base: TransformerEncoder, layer: Tensors) -> str:
    """Writes the model's files and the layer (`weight` and `bias`); returns the file of its weights."""
    import torch

    from stsbench.encoders.library_folder import Dense, write_modules

    checkpoint, source = base.checkpoint, base.checkpoint.folder
    copied = [source / "config.json", *checkpoint.weight_files(), *checkpoint.tokenizer_files()]
    after: list[tuple[str, str, Dense | None]] = []
    for module in base.settings.modules:
        if module.kind == "normalize":
            after.append((f"{len(after) + 2}_Normalize", "Normalize", None))
        else:
            after.append((module.folder, "Dense", None))
            # At the same paths: the hash of the weights includes them.
            copied += [source / module.folder / "config.json", module.weight_file(source)]
    for path in dict.fromkeys([*copied, *files_in(source, "*.index.json", NOTES)]):
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    names = [f"{len(after) + 2}_Dense", "fitted_Dense"]
    place = next(name for name in names if name not in {folder for folder, *_ in after})
    added = Dense({name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in layer.items()})
    width = json.loads((folder / "config.json").read_bytes()).get("hidden_size", layer["weight"].shape[1])
    write_modules(folder, base.settings, width, [*after, (place, "Dense", added)])
    return f"{place}/model.safetensors"


def without_layer(folder: Path, encoder: Encoder, kind: str) -> TransformerEncoder:
    """Returns the model in a whitening's folder without the closing dense layer.

    It keeps its original kind, so that its cached vectors are found.
    """
    modules = encoder.settings.modules if isinstance(encoder, TransformerEncoder) else ()
    if not isinstance(encoder, TransformerEncoder) or not modules or modules[-1].kind != "dense":
        raise UserError(f"{folder / 'modules.json'} does not end in the fitted dense layer: fit again.")
    return replace(encoder, settings=encoder.settings.with_modules(modules[:-1]), kind=kind)
