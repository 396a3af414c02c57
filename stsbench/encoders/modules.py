"""What follows the pooling: dense layers, a normalisation, and the head that SimCSE's training leaves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import AGAIN, Checkpoint
from stsbench.encoders.libraries import reporting_failures
from stsbench.encoders.weights import described, read_weights

if TYPE_CHECKING:
    from torch import Tensor, nn

# The prefix under which SimCSE's training code stores its dense+tanh head.
_HEAD = "mlp.dense."

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
        if {f"{_HEAD}weight", f"{_HEAD}bias"} & described(path).keys():
            tensors |= read_weights(path)
    head = {name.removeprefix(_HEAD): tensor for name, tensor in tensors.items() if name.startswith(_HEAD)}
    return nn.Sequential(_dense(head, width, checkpoint.name), nn.Tanh()) if head else None


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
        file = module.weight_file(checkpoint.folder)
        weights = {name.removeprefix("linear."): tensor for name, tensor in read_weights(file).items()}
        has_bias = "bias" in weights
        if checkpoint.json(module.folder, "config.json").get("bias", has_bias) != has_bias:
            raise UserError(f"{file} does not hold the dense layer that its config.json describes. {AGAIN}")
        dense = _dense(weights, width, str(file))
        steps += [dense.to(device).eval(), getattr(nn, module.activation)()]
        width = dense.out_features

    def apply(vectors: "Tensor") -> "Tensor":
        for step in steps:
            vectors = step(vectors)
        return vectors

    return apply


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
