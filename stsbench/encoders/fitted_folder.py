"""The folder of a fit: written whole or not at all, read without executing anything that is in it.

`fit.json` says what was fitted, for which model and on what; `fit.safetensors` holds the map in float32, and
numbers that stand for the sentences. The model is found again by its name, and held to the hash of its weights.

A whitening of a checkpoint is a checkpoint itself: then the folder holds the model's files, and behind its modules
a dense layer x W + b without activation, for the subtraction of the mean and the multiplication by U S^-1/2.
sentence-transformers reads it as it reads any checkpoint.
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
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.sentence_transformers import pooling_config
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings

FIT = "fit.json"
"""What makes a folder that of a fit."""

TENSORS, LOG = "fit.safetensors", "log.jsonl"

_SENTENCES, _WEIGHT, _BIAS = "sentences", "weight", "bias"
_AGAIN = "fit again with `stsbench fit`"
_LAYER = "model.safetensors"
_IDENTITY = "torch.nn.modules.linear.Identity"
_PROMPT = "fitted"

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
    """Write a fit, whole or not at all; return what its `fit.json` says, with the hashes of its files."""
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
        _require_same(folder, building)
    return about.model_copy(update={"files": dict(manifest.files)})


def require_free(folder: Path) -> None:
    """Make sure that nothing is lost if a fit is written: the same fit may be there, or nothing."""
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
    """Return whether a folder is that of a fit."""
    try:
        is_fit, has_tensors = ((folder / name).is_file() for name in (FIT, TENSORS))
    except (OSError, ValueError):  # a name that no file can have
        return False
    if has_tensors and not is_fit:
        raise UserError(f"{folder} holds {TENSORS} but no {FIT}, which says what was fitted: {_AGAIN}.")
    return is_fit


def read_about(folder: Path) -> FitAbout:
    """Return the content of `fit.json`, after checking the files that it names."""
    manifest = Manifest.read(folder, FIT, _AGAIN)
    if manifest.content.get("version") != 2:
        raise UserError(f"{folder / FIT} was written by another version of stsbench: {_AGAIN}.")
    try:
        about = FitAbout.model_validate_json(json.dumps({**manifest.content, "files": manifest.files}))
    except ValidationError as error:
        raise UserError(f"{folder / FIT} does not describe a fit: {_AGAIN}.") from error
    if TENSORS not in about.files:
        raise UserError(f"{folder / FIT} does not describe a fit, as it names no {TENSORS}: {_AGAIN}.")
    return about


def read_seen(folder: Path, about: FitAbout) -> NDArray[np.uint64]:
    """Return the numbers of the sentences."""
    seen = _tensors(folder, about).get(_SENTENCES)
    if seen is None or seen.dtype != np.uint64 or seen.ndim != 1:
        raise _damaged(folder)
    return seen


def read_map(folder: Path, about: FitAbout) -> Map:
    """Return the map that was fitted."""
    tensors = {name: array for name, array in _tensors(folder, about).items() if name != _SENTENCES}
    if about.method == "whitening":
        shapes = {_WEIGHT: (about.dimensions, about.width), _BIAS: (about.dimensions,)}
        if {name: array.shape for name, array in tensors.items()} != shapes:
            raise _damaged(folder)
        return linear_map(tensors)
    from stsbench.encoders.flow import FlowShape, apply_flow, flow_of

    shape = {name: about.settings.get(name) for name in ("depth", "width", "coupling")}
    try:
        flow = flow_of(FlowShape(about.dimensions, **shape), tensors)  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        raise _damaged(folder) from error
    return lambda vectors: apply_flow(flow, vectors)


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


def layerable(base: Encoder) -> TransformerEncoder | None:
    """Return a model if its files and a dense layer make a checkpoint that the library reads, else None."""
    if not isinstance(base, TransformerEncoder) or base.use.trust_remote_code:
        return None
    # The library's files have no place for a mask, and it would read the model with its own.
    if base.use.attention_mask != AUTO:
        return None
    return base if pooling_config(base.use.pooling, 1) is not None else None


def _write_layered(folder: Path, base: TransformerEncoder, layer: Tensors) -> str:
    """Write the model's files and the layer (a `weight` and a `bias`); return where the layer's weights are."""
    from safetensors.numpy import save

    settings, use = base.settings, base.use
    _copy_model(folder, base)
    modules = _modules(settings)
    place, _ = modules[-1]
    outputs, inputs = layer["weight"].shape
    pooled = json.loads((folder / "config.json").read_bytes()).get("hidden_size", inputs)
    about = {"in_features": inputs, "out_features": outputs, "bias": True, "activation_function": _IDENTITY}
    listing = [
        {"idx": number, "name": str(number), "path": where, "type": f"sentence_transformers.models.{kind}"}
        for number, (where, kind) in enumerate(modules)
    ]
    files: dict[str, Any] = {
        "1_Pooling/config.json": pooling_config(use.pooling, pooled),
        "sentence_bert_config.json": {
            "max_seq_length": use.max_length,
            "do_lower_case": settings.lower_case,
        },
        f"{place}/config.json": about,
        "modules.json": listing,
    }
    if use.prompt:
        files["config_sentence_transformers.json"] = {
            "prompts": {_PROMPT: use.prompt},
            "default_prompt_name": _PROMPT,
        }
    for where, _ in modules:
        (folder / where).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tensors = {f"linear.{name}": np.ascontiguousarray(array) for name, array in layer.items()}
    (folder / place / _LAYER).write_bytes(save(tensors))
    return f"{place}/{_LAYER}"


def _copy_model(folder: Path, base: TransformerEncoder) -> None:
    """Copy the files of a model's network and tokenizer."""
    checkpoint, source = base.checkpoint, base.checkpoint.folder
    dense = [module for module in base.settings.tail if module.kind == "dense"]
    for path in dict.fromkeys(
        [
            source / "config.json",
            *checkpoint.weight_files(),
            *files_in(source, "*.index.json", NOTES),
            *checkpoint.tokenizer_files(),
            # Where they were: the hash of the model's weights goes by their paths.
            *(
                file
                for module in dense
                for file in (source / module.folder / "config.json", module.weight_file(source))
            ),
        ]
    ):
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _modules(settings: TransformerSettings) -> list[tuple[str, str]]:
    """Return the folder and the kind of each module, of which the last is the layer that is added."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    for module in settings.modules:
        is_dense = module.kind == "dense"
        modules.append((module.folder, "Dense") if is_dense else (f"{len(modules)}_Normalize", "Normalize"))
    folders = {folder for folder, _ in modules}
    added = next(name for name in (f"{len(modules)}_Dense", "fitted_Dense") if name not in folders)
    return [*modules, (added, "Dense")]


def without_layer(folder: Path, encoder: Encoder, kind: str) -> TransformerEncoder:
    """Return the model that a whitening's folder loads, without the closing dense layer.

    It gets the kind that it had before, by which its vectors are found in the cache.
    """
    modules = encoder.settings.modules if isinstance(encoder, TransformerEncoder) else ()
    if not isinstance(encoder, TransformerEncoder) or not modules or modules[-1].kind != "dense":
        raise UserError(f"{folder / 'modules.json'} no longer ends in the dense layer that was fitted: fit again.")
    return replace(encoder, settings=encoder.settings.with_modules(modules[:-1]), kind=kind)
