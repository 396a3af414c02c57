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
    """Returns the map x W + b of a whitening, from W^T of shape (dimensions, d) and b."""
    weight, bias = tensors[_WEIGHT].astype(np.float64).T, tensors[_BIAS].astype(np.float64)

    def apply(vectors: FloatMatrix) -> NDArray[np.float64]:
        mapped: NDArray[np.float64] = vectors.astype(np.float64) @ weight + bias
        return mapped

    return apply


def linear_tensors(mean: NDArray[np.float64], directions: NDArray[np.float64]) -> dict[str, NDArray[np.float32]]:
    """Returns (x - mean) W as the tensors of a dense layer: W^T, and the bias -mean W."""
    weight = np.ascontiguousarray(directions.T).astype(np.float32)
    # With the rounded weights, so that the mean maps to zero as exactly as float32 allows.
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
        _require_same(folder, building)
    return about.model_copy(update={"files": dict(manifest.files)})


def require_free(folder: Path) -> None:
    """Checks that a fit can be written without overwriting anything but a fit."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / FIT).is_file())):
        raise UserError(f"{folder} is not empty: choose another folder with --out.")


def _require_same(folder: Path, building: Path) -> None:
    if not folder.exists() or not any(folder.iterdir()):
        return
    more = {path.name for path in folder.iterdir()} - {path.name for path in building.iterdir()}
    if more or (folder / FIT).read_bytes() != (building / FIT).read_bytes():
        raise UserError(f"{folder} has another fit: choose another folder with --out.")


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
    if manifest.content.get("version") != 3:
        raise UserError(f"{folder / FIT} was written by another version of stsbench: {_AGAIN}.")
    try:
        about = FitAbout.model_validate_json(json.dumps({**manifest.content, "files": manifest.files}))
    except ValidationError as error:
        raise UserError(f"{folder / FIT} does not describe a fit: {_AGAIN}.") from error
    if TENSORS not in about.files:
        raise UserError(f"{folder / FIT} does not describe a fit: it does not list {TENSORS}; {_AGAIN}.")
    return about


def read_seen(folder: Path, about: FitAbout) -> NDArray[np.uint64]:
    """Returns the ids of the sentences of a fit."""
    seen: NDArray[np.uint64] = _tensors(folder, about)[_SENTENCES].astype(np.uint64)
    return seen


def read_map(folder: Path, about: FitAbout) -> Map:
    """Returns the fitted map."""
    tensors = {name: array for name, array in _tensors(folder, about).items() if name != _SENTENCES}
    try:
        if about.method == "whitening":
            return linear_map({name: tensors[name].reshape(shape) for name, shape in _linear_shapes(about)})
        from stsbench.encoders.flow import FlowShape, apply_flow, flow_of

        shape = {name: about.settings[name] for name in ("depth", "width", "coupling")}
        flow = flow_of(FlowShape(about.dimensions, **shape), tensors)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{folder / TENSORS} does not have the tensors that {FIT} states: {_AGAIN}.") from error
    return lambda vectors: apply_flow(flow, vectors)


def _linear_shapes(about: FitAbout) -> list[tuple[str, tuple[int, ...]]]:
    return [(_WEIGHT, (about.dimensions, about.width)), (_BIAS, (about.dimensions,))]


def _tensors(folder: Path, about: FitAbout) -> dict[str, NDArray[Any]]:
    from safetensors.numpy import load

    content = (folder / TENSORS).read_bytes()
    if hashlib.sha256(content).hexdigest() != about.files[TENSORS]:
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
    checkpoint, source = base.checkpoint, base.checkpoint.folder
    dense = [module for module in base.settings.tail if module.kind == "dense"]
    for path in dict.fromkeys(
        [
            source / "config.json",
            *checkpoint.weight_files(),
            *files_in(source, "*.index.json", NOTES),
            *checkpoint.tokenizer_files(),
            # At the same paths: the hash of the weights includes them.
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
    """Returns folder and kind of each module; the last is the added layer."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    for module in settings.modules:
        is_dense = module.kind == "dense"
        modules.append((module.folder, "Dense") if is_dense else (f"{len(modules)}_Normalize", "Normalize"))
    folders = {folder for folder, _ in modules}
    added = next(name for name in (f"{len(modules)}_Dense", "fitted_Dense") if name not in folders)
    return [*modules, (added, "Dense")]


def without_layer(folder: Path, encoder: Encoder, kind: str) -> TransformerEncoder:
    """Returns the model in a whitening's folder without the closing dense layer.

    It keeps its original kind, so that its cached vectors are found.
    """
    modules = encoder.settings.modules if isinstance(encoder, TransformerEncoder) else ()
    if not isinstance(encoder, TransformerEncoder) or not modules or modules[-1].kind != "dense":
        raise UserError(f"{folder / 'modules.json'} does not end in the fitted dense layer: fit again.")
    return replace(encoder, settings=encoder.settings.with_modules(modules[:-1]), kind=kind)
