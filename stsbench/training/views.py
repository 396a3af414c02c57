"""Views: what is done to a sentence before the model reads it, as text or as tokens.

A view is validated data, arguments and all, and knows no other part of a recipe. The two sides of a positive pair
are two views; `identity` on both is SimCSE, where dropout alone tells them apart. To add one, write its class here
and name it in `View`.
"""

from abc import ABC, abstractmethod
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from stsbench.training.parts import RecipePart, kind_of

Tokens = NDArray[np.integer]
"""The token ids of one sentence, special tokens apart."""


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
    BeforeValidator(kind_of),
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
