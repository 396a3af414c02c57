"""Noise inside the model, in training only: on token embeddings, on positions, on sentence vectors, in dropout.

Noise draws from torch's generator, which is seeded for each chunk of a batch, so that training resumes exactly. To
add one, write its class here and name it in `Noise`.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field, PrivateAttr

from stsbench.training.parts import BY_KIND, RecipePart

if TYPE_CHECKING:
    from torch import Tensor


class NoisePart(RecipePart):
    """A noise: methods that a subclass does not override change nothing."""

    def for_batch(self, rng: "np.random.Generator") -> "NoisePart":
        """Returns the noise for one batch, with the draws that all of its sentences share."""
        return self

    def embeddings(self, embedded: "Tensor", mask: "Tensor") -> "Tensor":
        """Returns the changed token embeddings.

        Args:
            embedded: (rows, width, d), from the table of word embeddings.
            mask: (rows, width), 1 for real tokens, special ones included.
        """
        return embedded

    def positions(self, positions: "Tensor", mask: "Tensor") -> "Tensor":
        """Returns the changed position of each token, (rows, width)."""
        return positions

    def vectors(self, pooled: "Tensor") -> "Tensor":
        """Returns the changed pooled vectors, (rows, d)."""
        return pooled


class PositionShuffle(NoisePart):
    """Shuffles the positions of a sentence's tokens, special tokens included (ConSERT; MoCoSE, table 5).

    Attributes:
        padded_to: the length to which sentences are padded, with one order of all positions for the whole batch
            (MoCoSE's public code: 32). None to shuffle each sentence's own positions.
    """

    kind: Literal["position-shuffle"]
    padded_to: int | None = Field(None, ge=1)

    _order: list[int] = PrivateAttr(default_factory=list)

    def for_batch(self, rng: "np.random.Generator") -> NoisePart:
        drawn = self.model_copy()
        drawn._order = [] if self.padded_to is None else rng.permutation(self.padded_to).tolist()
        return drawn

    def positions(self, positions: "Tensor", mask: "Tensor") -> "Tensor":
        import torch

        if self._order:
            rest = range(len(self._order), positions.shape[1])
            order = torch.tensor([*self._order, *rest], device=positions.device)
            return order[positions - positions.min()] + positions.min()
        # Padding keeps its place after the real tokens.
        order = torch.argsort(torch.rand(mask.shape, device=mask.device).masked_fill(mask == 0, 2.0), dim=1)
        return positions.gather(1, order)


class Cutoff(NoisePart):
    """Sets some numbers to zero, and does not scale the others.

    Attributes:
        rate: the probability or the share of the numbers that become zero.
        count: `chance`: each by its own draw. `share`: int(rate n) of n (ConSERT's public code). `at_least_one`:
            max(1, int(rate n)) (MoCoSE's public code).
        place: `words`: the word embeddings (MoCoSE's public code). `layer`: the output of the embedding layer,
            normalised and with positions (ConSERT's public code).
    """

    rate: float = Field(gt=0, lt=1)
    count: Literal["chance", "share", "at_least_one"] = "chance"
    place: Literal["words", "layer"] = "words"

    def embeddings(self, embedded: "Tensor", mask: "Tensor") -> "Tensor":
        return embedded * self.kept(embedded, mask) if self.place == "words" else embedded

    @abstractmethod
    def kept(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        """Returns which numbers stay, as booleans that broadcast to (rows, width, d)."""

    def chosen(self, among: "Tensor") -> "Tensor":
        import torch

        draws = torch.rand(among.shape, device=among.device)
        if self.count == "chance":
            return draws >= self.rate
        sizes = among.sum(1)
        # 0.3 of 10 is 3, although the floating-point product is slightly less.
        gone = (sizes * self.rate + 1e-6).long().clamp(min=1 if self.count == "at_least_one" else 0)
        ranks = draws.masked_fill(~among, 2.0).argsort(dim=1).argsort(dim=1)
        return ranks >= gone.unsqueeze(1)


class TokenCutoff(Cutoff):
    """Sets the embeddings of some tokens to zero (ConSERT, section 3.2; MoCoSE, table 5: token dropout).

    Attributes:
        padded_to: the length to which sentences are padded, with padding among the tokens that are counted and
            drawn (MoCoSE's public code: 32). None for real tokens only.
    """

    kind: Literal["token-cutoff"]
    padded_to: int | None = Field(None, ge=1)

    def kept(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        rows, width = mask.shape
        among = mask if self.padded_to is None else mask.new_ones((rows, max(width, self.padded_to)))
        return self.chosen(among.bool())[:, :width].unsqueeze(-1)


class FeatureCutoff(Cutoff):
    """Sets some dimensions of all token embeddings of a sentence to zero (ConSERT; MoCoSE)."""

    kind: Literal["feature-cutoff"]

    def kept(self, states: "Tensor", mask: "Tensor") -> "Tensor":
        rows, _, width = states.shape
        return self.chosen(states.new_ones((rows, width)).bool()).unsqueeze(1)


class GaussianReplacement(NoisePart):
    """Replaces some activations of the sentence vector by draws of N(0, std^2).

    This is the CS224N report's Gaussian dropout (sections 2.2 and 4.1), not the multiplicative one of Srivastava
    et al. (2014, section 10).
    """

    kind: Literal["gaussian-replacement"]
    rate: float = Field(0.1, gt=0, lt=1)
    std: float = Field(0.1, gt=0)

    def vectors(self, pooled: "Tensor") -> "Tensor":
        import torch

        replaced = torch.rand_like(pooled) < self.rate
        return torch.where(replaced, self.std * torch.randn_like(pooled), pooled)


Noise = Annotated[
    PositionShuffle | TokenCutoff | FeatureCutoff | GaussianReplacement,
    Field(discriminator="kind"),
    BY_KIND,
]


class SideNoise(RecipePart):
    """The noise on one side, in this order."""

    parts: tuple[Noise, ...] = ()


class Adversarial(RecipePart):
    """A step on the word embeddings along the gradient's sign: FGSM (Goodfellow et al. 2015; MoCoSE, section 3).

    Attributes:
        step: epsilon, the length of the step, the same on both sides.
        gradient: `own`: of the same sentences, from a clean pass before (MoCoSE's paper). `previous`: of the
            previous step, position by position, although its sentences differ; the first step is clean (its public
            code).
    """

    step: float = Field(5e-9, gt=0)
    gradient: Literal["own", "previous"] = "own"


class Noises(RecipePart):
    """The noise on both sides; hard negatives get that of the keys.

    Attributes:
        masks: whether each side draws its `own` dropout masks, or both have `shared` ones (SimCSE, table 4: "fixed
            0.1"), which needs the same tokens on both sides.
    """

    query: SideNoise = SideNoise()
    key: SideNoise = SideNoise()
    masks: Literal["own", "shared"] = "own"
    adversarial: Adversarial | None = None
