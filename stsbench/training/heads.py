"""Heads: what stands between the pooled vector and the loss. A head is a part of the recipe.

To add one, write its class and name it in `Head`.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from stsbench.training.part import Part, kind_of

if TYPE_CHECKING:
    from torch import nn


class NoHead(Part):
    """The pooled vector itself."""

    kind: Literal["none"] = "none"
    evaluate: Literal[False] = False

    def build(self, _width: int, _std: float) -> "nn.Module":
        """Return a module that changes nothing."""
        from torch import nn

        return nn.Identity()


class DenseTanh(Part):
    """A dense layer of the hidden size and tanh (SimCSE), randomly initialised.

    Attributes:
        evaluate: whether the vector is scored behind the head (supervised SimCSE) or before it (unsupervised).
    """

    kind: Literal["dense-tanh"]
    evaluate: bool = False

    def build(self, width: int, std: float) -> "nn.Module":
        """Return the module; weights normal with deviation `std`, as Transformers makes BERT's, and no bias."""
        from torch import nn

        dense = nn.Linear(width, width)
        nn.init.normal_(dense.weight, std=std)
        nn.init.zeros_(dense.bias)
        return nn.Sequential(dense, nn.Tanh())


Head = Annotated[Annotated[NoHead | DenseTanh, Field(discriminator="kind")], BeforeValidator(kind_of)]
"""Any head, by its `kind`."""
