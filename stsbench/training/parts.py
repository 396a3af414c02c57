"""The parts of a recipe that bring their own code: views change a sentence, heads change its vector.

A part is validated data, arguments and all, and knows no other part. The two sides of a positive pair are two
views; `identity` on both is SimCSE, where dropout alone tells them apart. To add a view or a head, write its class
here and name it in `View` or `Head`.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

if TYPE_CHECKING:
    from torch import nn

Tokens = NDArray[np.integer]
"""The token ids of one sentence, special tokens apart."""


class RecipePart(BaseModel):
    """A part of a recipe: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _kind_of(value: Any) -> Any:
    """Read a bare name as a part without arguments: `identity` is `{kind: identity}`."""
    return {"kind": value} if isinstance(value, str) else value


class TokenView(RecipePart, ABC):
    """A view of the sub-words that the model reads, special tokens apart."""

    @property
    def once(self) -> bool:
        """Whether a sentence's draw is the same each time it is seen."""
        return False

    @property
    def cut(self) -> bool:
        """Whether a sentence that became longer is cut back to the maximum length."""
        return True

    @abstractmethod
    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
        """Return the changed tokens."""


class TextView(RecipePart, ABC):
    """A view of the sentence before it is tokenised."""

    @abstractmethod
    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the changed sentence."""


class Unchanged(TokenView):
    """The sentence as it is."""

    kind: Literal["identity"] = "identity"

    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
        """Return the tokens unchanged."""
        return tokens


class SubwordRepetition(TokenView):
    """Some sub-words twice, each beside itself (ESimCSE, section 3.1, equations 3 and 4).

    `paper`: the number of doubled sub-words is uniform on 0 .. max(2, int(rate n)), n being the sub-words without
    the special tokens; drawn anew each time; the longer sentence is cut back to the maximum length. `released`, as
    the public code has it: uniform on 0 .. min(10, int(rate L)) - 1, L counting two special tokens; drawn once for
    each sentence; not cut back.

    Attributes:
        rate: the paper's dup_rate.
        variant: which of the two.
    """

    kind: Literal["subword-repetition"]
    rate: float = Field(gt=0, le=1)
    variant: Literal["paper", "released"] = "paper"

    @property
    def once(self) -> bool:
        """Whether a sentence's draw is the same each time it is seen."""
        return self.variant == "released"

    @property
    def cut(self) -> bool:
        """Whether a sentence that became longer is cut back to the maximum length."""
        return self.variant == "paper"

    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
        """Return the tokens, some of them doubled."""
        most = _most_paper if self.variant == "paper" else _most_released
        return np.repeat(tokens, 1 + doubled(len(tokens), most(self.rate, len(tokens)), rng))


class WordRepetition(TextView):
    """Some words twice, before the sentence is tokenised (ESimCSE, section 5.2); counts as in `SubwordRepetition`.

    Words are what stands between spaces.
    """

    kind: Literal["word-repetition"]
    rate: float = Field(gt=0, le=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the sentence, some of its words doubled.

        >>> view = WordRepetition(kind="word-repetition", rate=1)
        >>> view.text("slow trains", np.random.default_rng(5))
        'slow slow trains trains'
        """
        words = sentence.split()
        times = 1 + doubled(len(words), _most_paper(self.rate, len(words)), rng)
        return " ".join(word for word, count in zip(words, times, strict=True) for _ in range(count))


View = Annotated[
    Annotated[Unchanged | SubwordRepetition | WordRepetition, Field(discriminator="kind")],
    BeforeValidator(_kind_of),
]
"""Any view, by its `kind`."""


def doubled(size: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for each of `size` positions 1 if it is doubled and 0 if not.

    How many are is uniform on 0 .. `most` (equation 3), and `size` where more were drawn than there are; which
    ones is uniform (equation 4).
    """
    marks = np.zeros(size, dtype=np.int64)
    count = min(int(rng.integers(max(0, most) + 1)), size)
    marks[rng.permutation(size)[:count]] = 1
    return marks


def _most_paper(rate: float, size: int) -> int:
    return max(2, int(rate * size))


def _most_released(rate: float, size: int) -> int:
    return min(10, int(rate * (size + 2))) - 1


class NoHead(RecipePart):
    """The pooled vector itself."""

    kind: Literal["none"] = "none"
    evaluate: Literal[False] = False

    def build(self, _width: int, _std: float) -> "nn.Module":
        """Return a module that changes nothing."""
        from torch import nn

        return nn.Identity()


class DenseTanh(RecipePart):
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


Head = Annotated[Annotated[NoHead | DenseTanh, Field(discriminator="kind")], BeforeValidator(_kind_of)]
"""Any head, by its `kind`."""
