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

from stsbench.base.files import files_in
from stsbench.encoders.checkpoint import NOTES
from stsbench.encoders.sentence_transformers import pooling_config
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings

_LAYER = "model.safetensors"
_IDENTITY = "torch.nn.modules.linear.Identity"
_PROMPT = "fitted"


def can_be_layered(base: object) -> bool:
    """Return whether a model's files and a dense layer make a checkpoint that the library reads."""
    return (
        isinstance(base, TransformerEncoder)
        and pooling_config(base.use.pooling, 1) is not None
        and not base.use.trust_remote_code
    )


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

    checkpoint, settings, use = base.checkpoint, base.settings, base.use
    source = checkpoint.folder
    dense = [module for module in settings.tail if module.kind == "dense"]
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
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    for kind, place in [
        *((module.kind, module.folder) for module in settings.tail),
        *([("normalize", "")] if settings.normalizes else []),
    ]:
        modules.append((place, "Dense") if kind == "dense" else (f"{len(modules)}_Normalize", "Normalize"))
    taken = {place for place, _ in modules}
    place = next(name for name in (f"{len(modules)}_Dense", "fitted_Dense") if name not in taken)
    modules.append((place, "Dense"))

    outputs, inputs = layer["weight"].shape
    pooled = json.loads((source / "config.json").read_bytes()).get("hidden_size", inputs)
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


def has_layer(settings: TransformerSettings) -> bool:
    """Return whether a dense layer closes a checkpoint."""
    return not settings.normalizes and bool(settings.tail) and settings.tail[-1].kind == "dense"


def without_layer(settings: TransformerSettings) -> TransformerSettings:
    """Return how the model in a whitening's folder is used: without the dense layer that closes it."""
    rest = settings.tail[:-1]
    closing = bool(rest) and rest[-1].kind == "normalize"
    return replace(settings, tail=rest[:-1] if closing else rest, normalizes=closing)
