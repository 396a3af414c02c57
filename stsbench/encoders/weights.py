"""Weights: read without running code, and checked to be those of the network.

The module also loads LoRA adapters, which are merged into the network, and the layers after the pooling.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.base.errors import UserError, require
from stsbench.base.machine import require_memory
from stsbench.encoders.checkpoint import (
    ADAPTER_CONFIG,
    AGAIN,
    Checkpoint,
    find_checkpoint,
    reason_of,
    reporting_failures,
)
from stsbench.encoders.use import FP32

if TYPE_CHECKING:
    from torch import Tensor, nn

_FLOATS = {"F64", "F32", "F16", "BF16"}


def require_own_weights(name: str, model: Any, loading: Mapping[str, Collection[str]]) -> None:
    """Checks Transformers' report on loading: nothing missing but a pooler, nothing unused within the network.

    Missing weights would be random. Unused ones outside the network are heads that training needed; unused ones
    within it belong to another configuration.
    """
    # A missing pooler is an error only where it is used.
    if missing := [tensor for tensor in loading["missing_keys"] if not tensor.startswith("pooler.")]:
        raise UserError(
            f"{name} lacks the weights of {_first_of(missing)}: they would be random. "
            "Use a checkpoint of this architecture."
        )
    modules = {module for module, _ in model.named_children()}
    constants = {buffer for buffer, _ in model.named_buffers()}
    unused = [
        tensor
        for tensor in map(_without_prefix_of(model), loading["unexpected_keys"])
        if tensor.partition(".")[0] in modules - {"pooler"}
        and tensor not in constants
        and not tensor.endswith(".masked_bias")
    ]
    if unused:
        raise UserError(
            f"{name} has weights that the network of its config.json does not use, {_first_of(unused)}. "
            "Use the config.json that they were trained with."
        )


def require_floats(model: Any, files: Iterable[Path]) -> None:
    """Checks that stored weights are floating-point numbers: quantised integers would be read as weights."""
    parameters, name_of = {name for name, _ in model.named_parameters()}, _without_prefix_of(model)
    for file in files:
        for tensor, (kind, _) in described(file).items():
            if kind not in _FLOATS and name_of(tensor) in parameters:
                raise UserError(f"{file} stores {tensor} as {kind}. Use the checkpoint before quantisation.")


def require_memory_for(checkpoint: Checkpoint, precision: str) -> None:
    """Checks that the weights fit in memory in the precision of the computation, not that of the files."""
    numbers = sum(prod(tensor.shape) for file in checkpoint.weight_files() for tensor in described(file).values())
    is_full = precision == FP32
    require_memory(
        numbers * (4 if is_full else 2),
        f"the weights of {checkpoint.name} in {precision}",
        f"use {'--precision bf16, ' if is_full else ''}a smaller model or a machine with more memory",
    )


def _without_prefix_of(model: Any) -> Callable[[str], str]:
    return lambda tensor: tensor.removeprefix(f"{model.base_model_prefix}.")


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


class Described(NamedTuple):
    """A tensor's kind of numbers, as safetensors names it, and its shape."""

    kind: str
    shape: Sequence[int]


def described(path: Path) -> dict[str, Described]:
    """Returns kind and shape of each tensor of a weight file; nothing for a damaged safetensors file.

    Every kind of floating-point number in a file saved by torch is reported as F32.
    """
    if path.suffix != ".safetensors":
        from torch import Tensor

        weights = read_weights(path, device="meta")
        if others := [name for name, value in weights.items() if not isinstance(value, Tensor)]:
            raise UserError(
                f"{path} holds {_first_of(others)}, which is not a tensor. Use a checkpoint of weights."
            )
        return {
            name: Described("F32" if value.is_floating_point() else str(value.dtype), tuple(value.shape))
            for name, value in weights.items()
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


def find_base(adapter: Checkpoint) -> Checkpoint:
    """Finds the model that an adapter was trained on, under the adapter's name."""
    config = adapter.json(ADAPTER_CONFIG)
    kind, base, place = config.get("peft_type"), base_of(adapter), adapter.folder / ADAPTER_CONFIG
    if kind != "LORA" or not base:
        raise UserError(
            f"{place}: expected peft_type LORA and a base_model_name_or_path, found {kind!r} and {base!r}. Merge "
            "the adapter into its base model and use that."
        )
    try:
        checkpoint = replace(find_checkpoint(base, revision=config.get("revision")), name=adapter.name)
    except UserError as error:
        raise UserError(
            f"{adapter.name} is an adapter for {base}, which cannot be loaded: {str(error).rstrip('.')}; download "
            f"it, or correct its path in {place}."
        ) from error
    if (checkpoint.folder / ADAPTER_CONFIG).is_file():  # Transformers would merge that one silently
        raise UserError(
            f"{adapter.name} is an adapter for {base}, which is an adapter itself: merge that one first."
        )
    return checkpoint


def adapter_file(adapter: Checkpoint) -> Path:
    """Returns the file of an adapter's weights."""
    return _weights_in(adapter.folder, "adapter_model.safetensors", "adapter_model.bin")


def _weights_in(folder: Path, *names: str) -> Path:
    for name in names:
        if (path := folder / name).is_file():
            return path
    raise UserError(f"{folder} has no {names[0]}. {AGAIN}")


def hash_with(adapter: Checkpoint, base: str, *files: Path) -> str:
    """Returns one hash of a base's hash and files of its adapter."""
    return hashlib.sha256(f"{base} {adapter.sha256(files)}".encode()).hexdigest()


def base_of(adapter: Checkpoint) -> str:
    """Returns the name of the model that an adapter was trained on, or ""."""
    return adapter.json(ADAPTER_CONFIG).get("base_model_name_or_path") or ""


def merge_adapter(model: Any, adapter: Checkpoint) -> Any:
    """Returns the base's network with an adapter's differences added to its weights.

    An adapter of a language model has its prefix in all names (`model.layers.0`), which the network without a head
    lacks (`layers.0`). peft silently skips such names, so they are matched here, and all must match.
    """
    require("peft", f"{adapter.name} is an adapter, which")
    from peft import LoraConfig, get_peft_model

    foreign = f"{adapter.name} is an adapter of another base than {base_of(adapter)}"
    advice = f"name the base that it was trained on in {adapter.folder / ADAPTER_CONFIG}"
    tensors = read_weights(adapter_file(adapter))
    try:
        config = LoraConfig.from_pretrained(str(adapter.folder))
        # The network has no head of a language model.
        config.task_type, config.inference_mode = None, True
        wrapped = get_peft_model(model, config)
        own = [name for name in wrapped.state_dict() if ".lora_" in name]
        matched = {full: name for full in own for name in tensors if name.endswith(_ending_of(full))}
        if unmatched := sorted({*tensors} - {*matched.values()}) or sorted({*own} - matched.keys()):
            raise UserError(f"{foreign}: only one of them has {unmatched[0]}; {advice}.")
        wrapped.load_state_dict({full: tensors[name] for full, name in matched.items()}, strict=False)
    except (ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = "sizes of other layers" if "size mismatch" in str(error) else reason_of(error).rstrip(".")
        raise UserError(f"{foreign}, whose weights it does not fit ({reason}): {advice}.") from error
    return wrapped.merge_and_unload()


def _ending_of(name: str) -> str:
    """Returns how an adapter's file ends the name of a tensor of the wrapped network."""
    return "." + name.removeprefix("base_model.model.").replace(".default", "")


# The prefix under which SimCSE's training code stores its dense+tanh head.
_HEAD = "mlp.dense."

ACTIVATIONS = {"torch.nn.modules.linear.Identity": "Identity"} | {
    f"torch.nn.modules.activation.{name}": name for name in ("Tanh", "ReLU", "GELU", "Sigmoid")
}
"""The activations of dense modules that are read natively, by their names in configurations."""


@dataclass(frozen=True)
class TailModule:
    """A module after the pooling.

    Attributes:
        kind: `dense` or `normalize`.
        folder: of a dense module's weights, relative to the checkpoint.
        activation: of a dense module, a class name in `torch.nn`.
    """

    kind: str
    folder: str = ""
    activation: str = "Identity"

    @property
    def label(self) -> str:
        """Its class or activation, without the weights."""
        return f"{self.kind}:{self.activation}" if self.kind == "dense" else self.kind

    def weight_file(self, checkpoint: Path) -> Path:
        """Returns the file of a dense module's weights."""
        return _weights_in(checkpoint / self.folder, "model.safetensors", "pytorch_model.bin")


def weight_files(checkpoint: Checkpoint, tail: Sequence[TailModule]) -> list[Path]:
    """Returns the weight files of a network: the checkpoint's, then each dense module's."""
    dense = [module.weight_file(checkpoint.folder) for module in tail if module.kind == "dense"]
    return [*checkpoint.weight_files(), *dense]


def trained_head(checkpoint: Checkpoint, width: int | None) -> "nn.Module | None":
    """Returns the dense+tanh head that SimCSE-style training leaves in a checkpoint, or None."""
    from torch import nn

    tensors: dict[str, Tensor] = {}
    for path in checkpoint.weight_files():
        if {f"{_HEAD}weight", f"{_HEAD}bias"} & described(path).keys():
            tensors |= read_weights(path)
    head = {name.removeprefix(_HEAD): tensor for name, tensor in tensors.items() if name.startswith(_HEAD)}
    return nn.Sequential(_dense(head, width, checkpoint.name), nn.Tanh()) if head else None


def load_tail(
    checkpoint: Checkpoint, modules: Sequence[TailModule], *, width: int | None, device: str
) -> "Callable[[Tensor], Tensor]":
    """Returns a function that applies the modules to vectors of shape (rows, dimensions).

    Dense layers always compute in float32, because they see only one vector per sentence.
    """
    from torch import nn
    from torch.nn import functional

    steps: list[Callable[[Tensor], Tensor]] = []
    for module in modules:
        if module.kind == "normalize":
            steps.append(lambda vectors: functional.normalize(vectors, dim=-1))
            continue
        file = module.weight_file(checkpoint.folder)
        weights = {name.removeprefix("linear."): tensor for name, tensor in read_weights(file).items()}
        has_bias = "bias" in weights
        if checkpoint.json(module.folder, "config.json").get("bias", has_bias) != has_bias:
            raise UserError(f"{file} does not hold the dense layer that its config.json describes. {AGAIN}")
        dense = _dense(weights, width, str(file))
        steps += [dense.to(device).eval(), getattr(nn, module.activation)()]
        width = dense.out_features

    return lambda vectors: reduce(lambda made, step: step(made), steps, vectors)


def _dense(weights: "Mapping[str, Tensor]", width: int | None, name: str) -> "nn.Linear":
    """Returns the dense layer of some weights, for vectors of `width` dimensions."""
    from torch import nn

    with reporting_failures(f"load the dense layer of {name}"):
        outputs, inputs = weights["weight"].shape
        dense = nn.Linear(inputs, outputs, bias="bias" in weights)
        if not all(tensor.is_floating_point() for tensor in weights.values()):
            raise ValueError("its weights are quantised")
        dense.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    if width is not None and inputs != width:
        raise UserError(f"{name}: the dense layer reads {inputs} dimensions, but there are {width}. {AGAIN}")
    return dense
