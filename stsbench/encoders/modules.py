"""What follows the pooling: dense layers, a normalisation, and the head that SimCSE's training leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import AGAIN, Checkpoint
from stsbench.encoders.weights import read_weights, tensor_names

if TYPE_CHECKING:
    from torch import Tensor, nn

# The names under which SimCSE's training code stores its dense+tanh head.
_HEAD_WEIGHT, _HEAD_BIAS = "mlp.dense.weight", "mlp.dense.bias"

ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "Identity",
    "torch.nn.modules.activation.Tanh": "Tanh",
    "torch.nn.modules.activation.ReLU": "ReLU",
    "torch.nn.modules.activation.GELU": "GELU",
    "torch.nn.modules.activation.Sigmoid": "Sigmoid",
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
        """What it computes, apart from its weights."""
        return f"{self.kind}:{self.activation}" if self.kind == "dense" else self.kind

    def weight_file(self, checkpoint: Path) -> Path:
        """Returns the file of a dense module's weights."""
        for name in ("model.safetensors", "pytorch_model.bin"):
            if (path := checkpoint / self.folder / name).is_file():
                return path
        raise UserError(f"{checkpoint / self.folder} holds no weights of a dense layer. {AGAIN}")


def weight_files(checkpoint: Checkpoint, tail: Sequence[TailModule]) -> list[Path]:
    """Returns the weight files of a network: the checkpoint's, then each dense module's."""
    dense = [module.weight_file(checkpoint.folder) for module in tail if module.kind == "dense"]
    return [*checkpoint.weight_files(), *dense]


def trained_head(checkpoint: Checkpoint, width: int | None) -> "nn.Module | None":
    """Returns the dense+tanh head that SimCSE-style training leaves in a checkpoint, or None."""
    from torch import nn

    tensors: dict[str, Tensor] = {}
    for path in checkpoint.weight_files():
        if names := {_HEAD_WEIGHT, _HEAD_BIAS} & tensor_names(path):
            content = read_weights(path)
            tensors |= {name: content[name] for name in names if name in content}
    if not tensors:
        return None
    shapes = [tuple(tensors[name].shape) if name in tensors else () for name in (_HEAD_WEIGHT, _HEAD_BIAS)]
    if len(shapes[0]) != 2 or shapes[1] != shapes[0][:1] or shapes[0][1] != (width or shapes[0][1]):
        raise UserError(f"{checkpoint.name}: {' and '.join(sorted(tensors))} are not a dense layer. {AGAIN}")
    return nn.Sequential(_dense(tensors[_HEAD_WEIGHT], tensors[_HEAD_BIAS]), nn.Tanh())


def load_tail(
    checkpoint: Checkpoint, modules: Sequence[TailModule], *, width: int | None, device: str
) -> "Callable[[Tensor], Tensor]":
    """Returns a function that applies the modules to vectors of shape (rows, dimensions).

    Dense layers compute in float32 whatever the network's precision: they see one vector per sentence.
    """
    from torch import nn
    from torch.nn import functional

    steps: list[Callable[[Tensor], Tensor]] = []
    for module in modules:
        if module.kind == "normalize":
            steps.append(lambda vectors: functional.normalize(vectors, dim=-1))
            continue
        dense = _read_dense(checkpoint, module, width)
        steps += [dense.to(device).eval(), getattr(nn, module.activation)()]
        width = dense.out_features

    def apply(vectors: "Tensor") -> "Tensor":
        for step in steps:
            vectors = step(vectors)
        return vectors

    return apply


def _read_dense(checkpoint: Checkpoint, module: TailModule, width: int | None) -> "nn.Linear":
    """Returns a dense layer for vectors of `width` dimensions, checked against its configuration."""
    file, config = module.weight_file(checkpoint.folder), checkpoint.json(module.folder, "config.json")
    weights = {name.removeprefix("linear."): tensor for name, tensor in read_weights(file).items()}
    weight, bias = weights.get("weight"), weights.get("bias")
    if weight is None or weight.ndim != 2 or not weights.keys() <= {"weight", "bias"}:
        raise UserError(f"{file} does not hold the weights of a single dense layer. {AGAIN}")
    if not all(tensor.is_floating_point() for tensor in weights.values()):
        raise UserError(f"{file} holds whole numbers, expected floating-point weights. {AGAIN}")
    outputs, inputs = weight.shape
    for name, value in {"in_features": inputs, "out_features": outputs, "bias": bias is not None}.items():
        if config.get(name, value) != value:
            raise UserError(f"{file}: {name} is {value!r}, but {config[name]!r} in its config.json. {AGAIN}")
    if inputs != (width or inputs) or (bias is not None and tuple(bias.shape) != (outputs,)):
        raise UserError(
            f"{file}: a dense layer from {inputs} to {outputs} dimensions fits neither its bias nor the {width} "
            f"dimensions before it. {AGAIN}"
        )
    return _dense(weight.float(), None if bias is None else bias.float())


def _dense(weight: "Tensor", bias: "Tensor | None") -> "nn.Linear":
    from torch import nn

    dense = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    dense.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    return dense
