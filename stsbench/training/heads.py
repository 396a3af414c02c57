"""Heads: what stands between the pooled vector and the loss.

A recipe has up to three, one behind the other: `head` (the papers' pooler), `projector`, and on the query's side
alone `predictor` (MoCoSE, figure 1). To add a kind, write its class here and name it in `Head` or `Layers`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, WrapValidator

from stsbench.base.errors import UserError
from stsbench.encoders.weights import ACTIVATIONS
from stsbench.training.parts import RecipePart, part_of

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class HeadBase:
    """What a head is built for.

    Attributes:
        width: of the vectors that it gets.
        std: of its random weights: what the checkpoint's own were drawn with (0.02 in BERT).
        pooler: the dense layer of the checkpoint's own pooler, if its weights were read.
    """

    width: int
    std: float
    pooler: "nn.Linear | None" = None


class HeadPart(RecipePart, ABC):
    """A head of a recipe."""

    evaluate: bool = False

    @abstractmethod
    def build(self, base: HeadBase) -> "nn.Module":
        """Return the module; random weights come from torch's generator as it is.

        Raises:
            UserError: if it starts from weights that the checkpoint lacks.
        """


class NoHead(HeadPart):
    """The pooled vector itself."""

    kind: Literal["none"] = "none"
    evaluate: Literal[False] = False

    def build(self, base: HeadBase) -> "nn.Module":
        from torch import nn

        return nn.Identity()


class DenseTanh(HeadPart):
    """A dense layer of the hidden size and tanh (SimCSE), randomly initialised.

    Supervised SimCSE is scored behind it, unsupervised before it.
    """

    kind: Literal["dense-tanh"]

    def build(self, base: HeadBase) -> "nn.Module":
        from torch import nn

        return nn.Sequential(random_dense(base.width, base.width, base.std), nn.Tanh())


class Dense(HeadPart):
    """A dense layer of the hidden size alone (MoCoSE's pooler, which has no tanh).

    It starts from random weights, or from those of the checkpoint's own pooler.
    """

    kind: Literal["dense"]
    start: Literal["random", "pooler"] = "random"

    def build(self, base: HeadBase) -> "nn.Module":
        from torch import nn

        dense = random_dense(base.width, base.width, base.std)
        if self.start == "pooler":
            if base.pooler is None:
                raise UserError(
                    "head.start pooler: the base has no pooler with trained weights; use --set head.start=random."
                )
            dense.load_state_dict(base.pooler.state_dict())
        return nn.Sequential(dense)


Head = Annotated[
    SerializeAsAny[Annotated[NoHead | DenseTanh | Dense, Field(discriminator="kind")]],
    WrapValidator(part_of(HeadPart)),
]
"""Any head behind the pooling, by its `kind`; or a `HeadPart` of one's own."""


class Layers(RecipePart):
    """Dense layers, each followed by a layer normalisation and dropout: MoCoSE's projector and predictor.

    Attributes:
        width: of what stands between them; None for the width that comes in.
        output: of the last; None for the width that comes in.
        norm: what follows each layer.
        norm_epsilon: of the layer normalisation, added to the variance: torch's, or BERT's own 1e-12 (MoCoSE's
            public code).
        ends: how the last layer ends: `norm` like the others, `linear` with nothing behind it, or `tanh`.
        evaluate: whether the vector is scored behind it, and behind the head before it (a projector without
            normalisation alone).
    """

    layers: int = Field(1, ge=1, le=8)
    width: int | None = Field(None, ge=1, le=65_536)
    output: int | None = Field(None, ge=1, le=65_536)
    norm: Literal["layer", "none"] = "layer"
    norm_epsilon: float = Field(1e-5, gt=0, lt=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    ends: Literal["norm", "linear", "tanh"] = "norm"
    evaluate: bool = False

    @property
    def normalises(self) -> bool:
        """Whether a layer normalisation stands in it."""
        return self.norm == "layer" and (self.layers > 1 or self.ends == "norm")

    def output_of(self, width: int) -> int:
        """Return the width of what comes out, of what comes in."""
        return self.output or width

    def build(self, base: HeadBase) -> "nn.Module":
        """Return the module."""
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


def dense_layers(head: "nn.Module") -> dict[str, dict[str, Any]]:
    """Return the dense layers of a head that is scored, as the configurations that a checkpoint holds.

    Each stands under the name of its module within the head; dropout does nothing there. What is no dense layer
    with an activation of `ACTIVATIONS` behind it is refused.
    """
    from torch import nn

    paths = {path.rpartition(".")[2]: path for path in ACTIVATIONS}
    layers: dict[str, dict[str, Any]] = {}
    last: dict[str, Any] | None = None  # the layer that an activation may follow
    for name, module in head.named_modules():
        kind = type(module).__name__
        is_plain = type(module) is getattr(nn, kind, None)
        if is_plain and isinstance(module, nn.Sequential | nn.Dropout | nn.Identity):
            continue
        if is_plain and isinstance(module, nn.Linear):
            last = layers[name] = {
                "in_features": module.in_features,
                "out_features": module.out_features,
                "bias": module.bias is not None,
                "activation_function": paths["Identity"],
            }
        elif is_plain and last is not None and kind in paths and repr(module) == repr(type(module)()):
            last["activation_function"] = paths[kind]
            last = None
        else:
            raise UserError(
                f"evaluate: a head with {kind} cannot be put into a checkpoint, where dense layers can, each with "
                f"one of {', '.join(paths)} behind it: set evaluate to false."
            )
    return layers


def random_dense(before: int, behind: int, std: float) -> "nn.Linear":
    """Return a dense layer with normal weights and no bias, as Transformers' BERT starts."""
    from torch import nn

    dense = nn.Linear(before, behind)
    nn.init.normal_(dense.weight, std=std)
    nn.init.zeros_(dense.bias)
    return dense
