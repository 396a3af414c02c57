"""What a sentence-transformers checkpoint applies after pooling: dense layers and normalisation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.encoders.checkpoint import read_weights
from stsbench.foundation.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "Identity",
    "torch.nn.modules.activation.Tanh": "Tanh",
    "torch.nn.modules.activation.ReLU": "ReLU",
    "torch.nn.modules.activation.GELU": "GELU",
    "torch.nn.modules.activation.Sigmoid": "Sigmoid",
}
"""The activations of a dense module that are read natively, by the name its configuration gives them."""


@dataclass(frozen=True)
class TailModule:
    """One module after the pooling.

    Attributes:
        kind: `dense` or `normalize`.
        folder: where a dense module's weights are, relative to the checkpoint.
        activation: the class name in `torch.nn` of a dense module's activation.
    """

    kind: str
    folder: str = ""
    activation: str = "Identity"

    def config_file(self, checkpoint: Path) -> Path:
        """Return the file that names a dense module's activation."""
        return checkpoint / self.folder / "config.json"

    def weight_file(self, checkpoint: Path) -> Path:
        """Return the file that holds a dense module's weights.

        Raises:
            UserError: if there is none.
        """
        for name in ("model.safetensors", "pytorch_model.bin"):
            if (path := checkpoint / self.folder / name).is_file():
                return path
        raise UserError(f"{checkpoint / self.folder} holds no weights for its dense layer: fetch it again.")


def load_tail(checkpoint: Path, modules: Sequence[TailModule], *, device: str) -> "Callable[[Tensor], Tensor]":
    """Return one function that applies the modules in order to vectors of shape (rows, dimensions).

    Dense layers compute in float32 whatever the precision of the network: they see one vector a sentence.

    Raises:
        UserError: if a dense layer's weights are not there, or are not those of a dense layer.
    """
    from torch import nn
    from torch.nn import functional

    steps: list[Callable[[Tensor], Tensor]] = []
    for module in modules:
        if module.kind == "normalize":
            steps.append(lambda vectors: functional.normalize(vectors, dim=-1))
            continue
        file = module.weight_file(checkpoint)
        weights = {name.removeprefix("linear."): tensor.float() for name, tensor in read_weights(file).items()}
        if "weight" not in weights or not weights.keys() <= {"weight", "bias"}:
            raise UserError(f"{file} does not hold the weights of one dense layer: fetch it again.")
        outputs, inputs = weights["weight"].shape
        dense = nn.Linear(inputs, outputs, bias="bias" in weights)
        dense.load_state_dict(weights)
        steps += [dense.to(device).eval(), getattr(nn, module.activation)()]

    def apply(vectors: "Tensor") -> "Tensor":
        for step in steps:
            vectors = step(vectors)
        return vectors

    return apply
