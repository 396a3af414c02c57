"""Weight files: tensors read without running code, and checks that they are the weights of the loaded network.

Transformers reports which weights were missing from a file and which tensors of the file were not used. Missing
weights would be random. Unused tensors are allowed if they belong to a head that training needed and sentence
vectors do not; any other means that the weights belong to another configuration.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.libraries import reporting_failures

if TYPE_CHECKING:
    from torch import Tensor

# Constants that a network computes itself; heads on top of the last layer, after which pooling begins; and poolers
# of architectures that have none, for which pooling `cls` is an error.
_UNUSED = re.compile(
    r"(.*\.)?(position_ids|token_type_ids|(attn|attention|self_attn)\.(masked_)?bias)"
    r"|(.*\.)?rotary_emb\.(inv_freq|cos_cached|sin_cached)"
    r"|(cls\.(predictions|seq_relationship)|lm_head|vocab_(transform|layer_norm|projector)"
    r"|((lm|mask|generator|discriminator)_)?predictions|generator_lm_head|discriminator_lm_head"
    r"|(pre_)?classifier|score|sop_classifier|qa_outputs|logits_proj"
    r"|mlp|projector|projection_head|predictor|generator|discriminator)\..*"
    r"|(head\.(dense|norm)|decoder|(.*\.)?pooler(\.dense)?)\.(weight|bias)"
)

_FLOATS = {"F64", "F32", "F16", "BF16"}


def is_harmless(name: str) -> bool:
    """Returns whether sentence vectors do not depend on a tensor that the network did not use.

    >>> is_harmless("lm_head.dense.weight"), is_harmless("encoder.layer.12.output.dense.weight")
    (True, False)
    """
    return _UNUSED.fullmatch(name) is not None


def require_own_weights(name: str, loading: Mapping[str, Collection[str]]) -> None:
    """Checks Transformers' report on loading: nothing missing but a pooler, nothing unused but heads.

    Args:
        name: the checkpoint's, for messages.
        loading: Transformers' `loading_info`.
    """
    # A missing pooler is an error only where it is used.
    if missing := [tensor for tensor in loading["missing_keys"] if not tensor.startswith("pooler.")]:
        raise UserError(
            f"{name} lacks the weights of {_first_of(missing)}: they would be random. "
            "Use a checkpoint of this architecture."
        )
    if unknown := [tensor for tensor in loading["unexpected_keys"] if not is_harmless(tensor)]:
        raise UserError(
            f"{name} has weights that the network of its config.json does not use, {_first_of(unknown)}. "
            "Use the config.json that they were trained with."
        )


def require_floats(files: Iterable[Path]) -> None:
    """Checks that weights are floating-point numbers: quantised integers would be taken for the weights."""
    for file in files:
        for tensor, (kind, _) in described(file).items():
            if kind not in _FLOATS and not is_harmless(tensor):
                raise UserError(f"{file} stores {tensor} as {kind}. Use the checkpoint before quantisation.")


def require_memory_for(checkpoint: Checkpoint, precision: str) -> None:
    """Checks that the weights fit in memory before they are read."""
    numbers = sum(_count(file) for file in checkpoint.weight_files())
    is_full = precision == "fp32"
    require_memory(
        numbers * (4 if is_full else 2),
        f"the weights of {checkpoint.name} in {precision}",
        f"use {'--precision bf16, ' if is_full else ''}a smaller model or a machine with more memory",
    )


def _count(path: Path) -> int:
    if path.suffix != ".safetensors":
        return path.stat().st_size // 4
    return sum(prod(tensor.shape) for tensor in described(path).values())


def read_weights(path: Path, device: str = "cpu") -> "dict[str, Tensor]":
    """Returns the tensors of a weight file without executing code in it.

    On the device `meta`, a file saved by torch gives names, shapes and kinds only.
    """
    import torch
    from safetensors.torch import load_file

    with reporting_failures(f"read {path}"):
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location=device, weights_only=True)
        return {str(name): tensor for name, tensor in content.items()}


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Returns the tensors of a weight file as NumPy arrays; bfloat16, which NumPy lacks, as float32.

    Torch is imported only for files that NumPy cannot read.
    """
    if path.suffix == ".safetensors" and all(kind != "BF16" for kind, _ in described(path).values()):
        from safetensors.numpy import load_file

        with reporting_failures(f"read {path}"):
            return load_file(path)
    return {
        name: (tensor.float() if tensor.is_floating_point() else tensor).numpy()
        for name, tensor in read_weights(path).items()
    }


class Described(NamedTuple):
    """A tensor's kind of numbers, as safetensors names it, and its shape."""

    kind: str
    shape: Sequence[int]


def described(path: Path) -> dict[str, Described]:
    """Returns kind and shape of each tensor of a weight file; nothing for a damaged safetensors file.

    Every kind of floating-point number in a file saved by torch is reported as F32.
    """
    if path.suffix != ".safetensors":
        return {
            tensor: Described("F32" if value.is_floating_point() else str(value.dtype), tuple(value.shape))
            for tensor, value in read_weights(path, device="meta").items()
        }
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_slice(name) for name in sorted(file.keys())}
            return {name: Described(tensor.get_dtype(), tensor.get_shape()) for name, tensor in tensors.items()}
    except (OSError, SafetensorError):  # reported when the weights are loaded
        return {}


def _first_of(names: Collection[str]) -> str:
    others = len(names) - 1
    return min(names) + (f" and {others} more" if others else "")
