"""Heads between the pooled vector and the loss.

A recipe has up to three in a row: `head` (the papers' pooler), `projector`, and `predictor` on the query's side
only (MoCoSE, figure 1). To add a kind of `head`, write its class here and name it in `Head`; a scored one has to
be a dense layer and an activation, which `CheckpointWriter` writes. Random weights come from torch's generator.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from stsbench.base.errors import UserError
from stsbench.training.parts import BY_KIND, RecipePart

if TYPE_CHECKING:
    from torch import nn


class NoHead(RecipePart):
    kind: Literal["none"] = "none"
    evaluate: Literal[False] = False

    def build(self, width: int, std: float, pooler: "nn.Linear | None") -> "nn.Module":
        from torch import nn

        return nn.Identity()


class DenseTanh(RecipePart):
    """A random dense layer of the hidden size and tanh (SimCSE); supervised SimCSE is scored after it."""

    kind: Literal["dense-tanh"]
    evaluate: bool = False

    def build(self, width: int, std: float, pooler: "nn.Linear | None") -> "nn.Module":
        from torch import nn

        return nn.Sequential(random_dense(width, width, std), nn.Tanh())


class Dense(RecipePart):
    """A dense layer of the hidden size without tanh (MoCoSE): random, or the checkpoint's pooler."""

    kind: Literal["dense"]
    evaluate: bool = False
    start: Literal["random", "pooler"] = "random"

    def build(self, width: int, std: float, pooler: "nn.Linear | None") -> "nn.Module":
        from torch import nn

        dense = random_dense(width, width, std)
        if self.start == "pooler":
            if pooler is None:
                raise UserError("head.start pooler: the base has no trained pooler; use --set head.start=random.")
            dense.load_state_dict(pooler.state_dict())
        return nn.Sequential(dense)


Head = Annotated[NoHead | DenseTanh | Dense, Field(discriminator="kind"), BY_KIND]


class Layers(RecipePart):
    """Dense layers, each followed by a layer normalisation and dropout: MoCoSE's projector and predictor.

    Attributes:
        output: width of the last layer; None for the width of the input.
        norm_epsilon: of the layer normalisation: torch's, or BERT's 1e-12 (MoCoSE's public code).
        ends: what follows the last layer: `norm` for the same as the others, or only `tanh`.
    """

    layers: int = Field(1, ge=1, le=8)
    output: int | None = Field(None, ge=1, le=65_536)
    norm_epsilon: float = Field(1e-5, gt=0, lt=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    ends: Literal["norm", "tanh"] = "norm"

    def build(self, width: int, std: float) -> "nn.Module":
        from torch import nn

        modules: list[nn.Module] = []
        for after in (*[width] * (self.layers - 1), self.output or width):
            modules += [random_dense(width, after, std), nn.LayerNorm(after, eps=self.norm_epsilon)]
            modules += [nn.Dropout(self.dropout)]
        return nn.Sequential(*(modules if self.ends == "norm" else [*modules[:-2], nn.Tanh()]))


def random_dense(before: int, after: int, std: float) -> "nn.Linear":
    """Returns a dense layer with normal weights of deviation `std` and zero bias, as in Transformers' BERT."""
    from torch import nn

    dense = nn.Linear(before, after)
    nn.init.normal_(dense.weight, std=std)
    nn.init.zeros_(dense.bias)
    return dense
