"""Writes the files that make a checkpoint one of sentence-transformers, for training and for `fit`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.encoders.sentence_transformers import pooling_config
from stsbench.encoders.transformer import TransformerSettings

if TYPE_CHECKING:
    from torch import Tensor

_PROMPT = "own"
"""The name of the prompt that is put before every sentence."""


class Dense(NamedTuple):
    """A dense layer after the pooling: x W^T + b, then an activation.

    Attributes:
        tensors: `weight`, shape (outputs, inputs), and `bias` unless the layer has none.
        activation: the full name of a class of `torch.nn`.
    """

    tensors: "Mapping[str, Tensor]"
    activation: str = "torch.nn.modules.linear.Identity"


def write_modules(
    folder: Path, settings: TransformerSettings, width: int, after: Sequence[tuple[str, str, Dense | None]]
) -> None:
    """Writes pooling, maximum length, prompt, and what follows the pooling, beside a network and its tokenizer.

    Args:
        folder: of the checkpoint.
        settings: the pooling, maximum length, prompt and casing.
        width: dimensions of the pooled vectors.
        after: what follows the pooling, as (folder, class, layer), with None for the layer if the folder has its
            files already or the class has no weights.
    """
    use, pooling = settings.use, pooling_config(settings.use.pooling, width)
    if pooling is None:
        raise UserError(f"sentence-transformers has no pooling {use.pooling}: choose another.")
    places = [("", "Transformer"), ("1_Pooling", "Pooling"), *((place, kind) for place, kind, _ in after)]
    listing = [
        {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for number, (place, kind) in enumerate(places)
    ]
    _write_json(folder / "modules.json", listing)
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    about = {"max_seq_length": use.max_length, "do_lower_case": settings.lower_case}
    _write_json(folder / "sentence_bert_config.json", about)
    if use.prompt:
        prompts = {"prompts": {_PROMPT: use.prompt}, "default_prompt_name": _PROMPT}
        _write_json(folder / "config_sentence_transformers.json", prompts)
    for place, _, layer in after:
        (folder / place).mkdir(parents=True, exist_ok=True)
        if layer is not None:
            _write_dense(folder / place, layer)


def _write_dense(folder: Path, layer: Dense) -> None:
    from safetensors.torch import save_file

    outputs, inputs = layer.tensors["weight"].shape
    config = {"in_features": inputs, "out_features": outputs, "bias": "bias" in layer.tensors}
    _write_json(folder / "config.json", {**config, "activation_function": layer.activation})
    tensors = {f"linear.{name}": tensor.detach().cpu().clone() for name, tensor in layer.tensors.items()}
    save_file(tensors, folder / "model.safetensors")


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
