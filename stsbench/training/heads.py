"""Heads between the pooled vector and the loss.

A recipe has up to three in a row: `head` (the papers' pooler), `projector`, and `predictor` on the query's side
only (MoCoSE, figure 1). To add a kind, write its class here and name it in `Head`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, SerializeAsAny, WrapValidator

from stsbench.base.errors import UserError
from stsbench.encoders.weights import ACTIVATIONS
from stsbench.training.parts import RecipePart, part_of

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class HeadBase:
    """The properties of a base that a head is built for.

    Attributes:
        width: of the input vectors.
        std: the standard deviation of random weights (0.02 in BERT).
        pooler: the dense layer of the checkpoint's pooler, if it has one.
    """

    width: int
    std: float
    pooler: "nn.Linear | None" = None


class HeadPart(RecipePart, ABC):
    evaluate: bool = False

    @abstractmethod
    def build(self, base: HeadBase) -> "nn.Module":
        """Return the module; random weights are drawn from torch's generator."""


class NoHead(HeadPart):
    kind: Literal["none"] = "none"
    evaluate: Literal[False] = False

    def build(self, base: HeadBase) -> "nn.Module":
        from torch import nn

        return nn.Identity()


class DenseTanh(HeadPart):
    """A random dense layer of the hidden size and tanh (SimCSE); supervised SimCSE is scored after it."""

    kind: Literal["dense-tanh"]

    def build(self, base: HeadBase) -> "nn.Module":
        from torch import nn

        return nn.Sequential(random_dense(base.width, base.width, base.std), nn.Tanh())


class Dense(HeadPart):
    """A dense layer of the hidden size without tanh (MoCoSE): random, or the checkpoint's pooler."""

    kind: Literal["dense"]
    start: Literal["random", "pooler"] = "random"

    def build(self, base: HeadBase) -> "nn.Module":
        from torch import nn

        dense = random_dense(base.width, base.width, base.std)
        if self.start == "pooler":
            if base.pooler is None:
                raise UserError("head.start pooler: the base has no trained pooler; use --set head.start=random.")
            dense.load_state_dict(base.pooler.state_dict())
        return nn.Sequential(dense)


Head = Annotated[
    SerializeAsAny[Annotated[NoHead | DenseTanh | Dense, Field(discriminator="kind")]],
    WrapValidator(part_of(HeadPart)),
]
"""Any head, by its `kind`; or your own `HeadPart`."""


class Layers(RecipePart):
    """Dense layers, each followed by a layer normalisation and dropout: MoCoSE's projector and predictor.

    Attributes:
        width: between the layers; None for that of the input.
        output: of the last layer; None for the width of the input.
        norm: what follows each layer.
        norm_epsilon: of the layer normalisation: torch's, or BERT's 1e-12 (MoCoSE's public code).
        ends: the end of the last layer: `norm` like the others, `linear` for none, or `tanh`.
    """

    layers: int = Field(1, ge=1, le=8)
    width: int | None = Field(None, ge=1, le=65_536)
    output: int | None = Field(None, ge=1, le=65_536)
    norm: Literal["layer", "none"] = "layer"
    norm_epsilon: float = Field(1e-5, gt=0, lt=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    ends: Literal["norm", "linear", "tanh"] = "norm"

    def output_of(self, width: int) -> int:
        return self.output or width

    def build(self, base: HeadBase) -> "nn.Module":
        from torch import nn

        widths = [base.width, *[self.width or base.width] * (self.layers - 1), self.output_of(base.width)]
        modules: list[nn.Module] = []
        for number, (before, behind) in enumerate(pairwise(widths), 1):
            modules.append(random_dense(before, behind, base.std))
            if number < self.layers or self.ends == "norm":
                modules += [nn.LayerNorm(behind, eps=self.norm_epsilon)] if self.norm == "layer" else []
                modules.append(nn.Dropout(self.dropout))
        if self.ends == "tanh":
            modules.append(nn.Tanh())
        return nn.Sequential(*modules)


def dense_layers(head: "nn.Module") -> dict[str, str]:
    """Return the activation behind each dense layer of a scored head, as a checkpoint names it, by module name.

    Raises:
        UserError: if it has other modules than dense layers, each with an activation of `ACTIVATIONS`, and
        dropout.
    """
    from torch import nn

    paths = {path.rpartition(".")[2]: path for path in ACTIVATIONS}
    layers: dict[str, str] = {}
    last: str | None = None  # the layer that an activation may follow
    for name, module in head.named_modules():
        kind = type(module).__name__
        is_plain = type(module) is getattr(nn, kind, None)
        if is_plain and isinstance(module, nn.Linear):
            layers[name], last = paths["Identity"], name
        elif is_plain and last is not None and kind in paths and repr(module) == repr(type(module)()):
            layers[last], last = paths[kind], None
        elif not (is_plain and isinstance(module, nn.Sequential | nn.Dropout | nn.Identity)):
            raise UserError(
                f"evaluate: a checkpoint cannot hold a head with {kind}, only dense layers, each followed by one "
                f"of {', '.join(paths)}: set evaluate to false."
            )
    return layers


def random_dense(before: int, behind: int, std: float) -> "nn.Linear":
    """Return a dense layer with normal weights and zero bias, like those of Transformers' BERT."""
    from torch import nn

    dense = nn.Linear(before, behind)
    nn.init.normal_(dense.weight, std=std)
    nn.init.zeros_(dense.bias)
    return dense
