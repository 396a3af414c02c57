"""Noise inside the model: on token embeddings, on positions, on sentence vectors, and in its dropout.

Views change what the model reads; noise changes what it computes of it, in training alone. A noise is validated
data, and draws from torch's generator, which is seeded for each chunk of a batch: so nothing has to be remembered
for a training to be resumed. To add one, write its class here and name it in `Noise`.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

import numpy as np
from pydantic import Field, SerializeAsAny, WrapValidator, model_validator

from stsbench.training.parts import RecipePart, part_of

if TYPE_CHECKING:
    from torch import Tensor


class NoisePart(RecipePart):
    """A noise; it changes what its methods change, and leaves the rest as it is."""

    def for_batch(self, rng: "np.random.Generator") -> "NoisePart":
        """Return the noise for one batch, with what is drawn once for all of the batch's sentences."""
        return self

    def embeddings(self, embedded: "Tensor", mask: "Tensor") -> "Tensor":
        """Return the changed token embeddings.

        Args:
            embedded: (rows, width, d), looked up in the table of words.
            mask: (rows, width), 1 for real tokens, special ones included.
        """
        return embedded

    def positions(self, positions: "Tensor", mask: "Tensor") -> "Tensor":
        """Return the changed position of each token, (rows, width) as it came."""
        return positions

    def embedding_layer(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        """Return the changed output of the embedding layer, (rows, width, d): words and positions added up,
        normalised, after its dropout. A noise that has this method says so in `changes_embedding_layer`.
        """
        return states

    @property
    def changes_embedding_layer(self) -> bool:
        """Whether it changes the output of the embedding layer."""
        return False

    def vectors(self, pooled: "Tensor") -> "Tensor":
        """Return the changed pooled vectors, (rows, d) as they came."""
        return pooled


class PositionShuffle(NoisePart):
    """The positions of a sentence's tokens in random order, special tokens included (ConSERT; MoCoSE, table 5).

    Attributes:
        padded_to: the length that sentences are padded to, whose positions have one order for the whole batch, so
            that a short sentence gets some of those behind it (MoCoSE's public code: 32). None for an order of
            each sentence's own positions.
    """

    kind: Literal["position-shuffle"]
    padded_to: int | None = Field(None, ge=1)

    def for_batch(self, rng: "np.random.Generator") -> NoisePart:
        return (
            self if self.padded_to is None else _Reordered(order=tuple(rng.permutation(self.padded_to).tolist()))
        )

    def positions(self, positions: "Tensor", mask: "Tensor") -> "Tensor":
        """Return the positions, those of each row's real tokens shuffled among themselves."""
        import torch

        # Real tokens come first, in random order, and padding keeps its place behind them.
        order = torch.argsort(torch.rand(mask.shape, device=mask.device).masked_fill(mask == 0, 2.0), dim=1)
        return positions.gather(1, order)


class _Reordered(NoisePart):
    """The positions in one order for all sentences; those behind the last of it stay.

    Attributes:
        order: the new position of each, counted from the first.
    """

    order: tuple[int, ...]

    def positions(self, positions: "Tensor", mask: "Tensor") -> "Tensor":
        import torch

        first = positions.min()
        order = torch.arange(max(positions.shape[1], len(self.order)), device=positions.device)
        order[: len(self.order)] = torch.tensor(self.order, device=positions.device)
        return first + order[positions - first]


class Cutoff(NoisePart):
    """What the cut-offs have in common: some numbers are set to zero, and what is left is not scaled.

    Attributes:
        rate: the chance of each to go; or of how many there are the share that goes.
        count: `chance`: each goes by its own draw. `share`: int(rate n) of n go (ConSERT's public code).
            `at_least_one`: max(1, int(rate n)) (MoCoSE's public code).
        place: `words`: the embeddings as they are looked up (MoCoSE's public code). `layer`: the output of the
            embedding layer, normalised and with positions (ConSERT's public code).
    """

    rate: float = Field(gt=0, lt=1)
    count: Literal["chance", "share", "at_least_one"] = "chance"
    place: Literal["words", "layer"] = "words"

    def embeddings(self, embedded: "Tensor", mask: "Tensor") -> "Tensor":
        return embedded * self.kept(embedded, mask) if self.place == "words" else embedded

    def embedding_layer(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        return states * self.kept(states, mask) if self.place == "layer" else states

    @property
    def changes_embedding_layer(self) -> bool:
        return self.place == "layer"

    @abstractmethod
    def kept(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        """Return which numbers stay, true or false, in a shape that fits (rows, width, d)."""

    def chosen(self, among: "Tensor") -> "Tensor":
        """Return which of the true places of each row, (rows, n), stay."""
        import torch

        draws = torch.rand(among.shape, device=among.device)
        if self.count == "chance":
            return draws >= self.rate
        sizes = among.sum(1)
        # 0.3 of 10 are 3, though the product is a little less.
        gone = (sizes * self.rate + 1e-6).long().clamp(min=1 if self.count == "at_least_one" else 0)
        ranks = draws.masked_fill(~among, 2.0).argsort(dim=1).argsort(dim=1)
        return ranks >= gone.unsqueeze(1)


class TokenCutoff(Cutoff):
    """The embeddings of some real tokens set to zero (ConSERT, section 3.2; MoCoSE, table 5: token dropout).

    Attributes:
        padded_to: the length that sentences are padded to, whose tokens are counted and drawn from, padding too:
            of a short sentence fewer real ones go (MoCoSE's public code: 32). None to count real tokens.
    """

    kind: Literal["token-cutoff"]
    padded_to: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _counts_padding_of_a_share(self) -> Self:
        if self.padded_to is not None and self.count == "chance":
            raise ValueError(
                "padded_to: where each token goes by a chance of its own nothing is counted; set count"
            )
        return self

    def kept(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        rows, width = mask.shape
        among = mask if self.padded_to is None else mask.new_ones((rows, max(width, self.padded_to)))
        return self.chosen(among.bool())[:, :width].unsqueeze(-1)


class FeatureCutoff(Cutoff):
    """Some dimensions of a sentence's token embeddings set to zero, the same of all tokens (ConSERT; MoCoSE)."""

    kind: Literal["feature-cutoff"]

    def kept(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        rows, _, width = states.shape
        return self.chosen(states.new_ones((rows, width)).bool()).unsqueeze(1)


class ElementCutoff(Cutoff):
    """Single numbers of the token embeddings set to zero, the rest not scaled (ConSERT, section 3.2: dropout)."""

    kind: Literal["element-cutoff"]

    def kept(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        among = mask.bool().unsqueeze(-1).expand_as(states)
        return self.chosen(among.flatten(1)).view_as(states)


class GaussianReplacement(NoisePart):
    """Some activations of the sentence vector replaced by draws from a normal distribution.

    Gaussian dropout as the CS224N report has it (section 2.2 and 4.1: probability 0.1, mean 0, standard deviation
    0.1). What Srivastava et al. (2014, section 10) call by that name multiplies: see `dropout` of the recipe.

    Attributes:
        rate: the chance of each activation.
        std: of the draws, whose mean is 0.
    """

    kind: Literal["gaussian-replacement"]
    rate: float = Field(0.1, gt=0, lt=1)
    std: float = Field(0.1, gt=0)

    def vectors(self, pooled: "Tensor") -> "Tensor":
        import torch

        replaced = torch.rand_like(pooled) < self.rate
        return torch.where(replaced, self.std * torch.randn_like(pooled), pooled)


_Known: TypeAlias = PositionShuffle | TokenCutoff | FeatureCutoff | ElementCutoff | GaussianReplacement
Noise = Annotated[
    SerializeAsAny[Annotated[_Known, Field(discriminator="kind")]], WrapValidator(part_of(NoisePart))
]
"""Any noise, by its `kind`; or a `NoisePart` of one's own."""


class SideNoise(RecipePart):
    """What is done to one side of the pairs inside the model.

    Attributes:
        dropout: the rate in the encoder on this side; None for that of the recipe.
    """

    dropout: float | None = Field(None, ge=0, lt=1)
    parts: tuple[Noise, ...] = ()


class Adversarial(RecipePart):
    """A step on the word embeddings that makes the loss grow: FGSM (Goodfellow et al. 2015; MoCoSE, section 3).

    The step is `step` times the sign of the gradient, the same on both sides.

    Attributes:
        step: epsilon, added to each number of the embeddings.
        gradient: `own`: that of the same sentences, from a clean pass before, which costs a second forward and
            backward pass (MoCoSE's paper). `previous`: that of the step before, position by position, though those
            were other sentences; the first step is clean (its public code).
    """

    step: float = Field(5e-9, gt=0)
    gradient: Literal["own", "previous"] = "own"


class Noises(RecipePart):
    """Noise on either side. Hard negatives are treated as the keys are.

    Attributes:
        masks: `own`: each side has dropout masks of its own; `shared`: both have the same (SimCSE, table 4: "fixed
            0.1"), which needs the same tokens on both sides.
    """

    query: SideNoise = SideNoise()
    key: SideNoise = SideNoise()
    masks: Literal["own", "shared"] = "own"
    adversarial: Adversarial | None = None
