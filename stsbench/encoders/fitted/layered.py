"""A whitening as a checkpoint: the model's files, and behind its modules a dense layer x W + b, no activation.

sentence-transformers reads it as it reads any checkpoint: its dense layer holds the subtraction of the mean and
the multiplication by U S^-1/2.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import files_in
from stsbench.encoders.checkpoint import NOTES
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers import pooling_config
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings

_LAYER = "model.safetensors"
_IDENTITY = "torch.nn.modules.linear.Identity"
_PROMPT = "fitted"


def layerable(base: Encoder) -> TransformerEncoder | None:
    """Return a model if its files and a dense layer make a checkpoint that the library reads, else None."""
    if not isinstance(base, TransformerEncoder) or base.use.trust_remote_code:
        return None
    return base if pooling_config(base.use.pooling, 1) is not None else None


def write_layered(folder: Path, base: TransformerEncoder, layer: Mapping[str, NDArray[Any]]) -> str:
    """Write the model's files and the layer into a folder.

    Args:
        folder: that is being built.
        base: the model.
        layer: `weight`, shape (dimensions, d), and `bias`, shape (dimensions,).

    Returns:
        The file that holds the layer's weights, relative to the folder.
    """
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
            *(file for module in dense for file in (module.config_file(source), module.weight_file(source))),
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
    """Return the model in a whitening's folder: what is loaded from there, without the dense layer that closes it.

    Args:
        folder: the whitening's.
        encoder: what is loaded from there.
        kind: the model's before, by which its vectors are found in the cache.

    Raises:
        UserError: if no dense layer closes it.
    """
    modules = encoder.settings.modules if isinstance(encoder, TransformerEncoder) else ()
    if not isinstance(encoder, TransformerEncoder) or not modules or modules[-1].kind != "dense":
        raise UserError(f"{folder / 'modules.json'} no longer ends in the dense layer that was fitted: fit again.")
    return replace(encoder, settings=encoder.settings.with_modules(modules[:-1]), kind=kind)
