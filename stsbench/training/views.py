"""Views: what is done to a sentence before the model reads it, as text or as tokens.

A view is validated data, arguments and all, and knows no other part of a recipe. The two sides of a positive pair
are two views; `identity` on both is SimCSE, where dropout alone tells them apart. To add one, write its class here
and name it in `View`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny, WrapValidator

from stsbench.training.parts import RecipePart, part_of

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


class Crop(TextView):
    """A stretch of the sentence, the rest cut off at both ends (SimCSE, table 1: crop k %).

    Attributes:
        rate: the share of words that goes, k / 100; at least one word stays.
    """

    kind: Literal["crop"]
    rate: float = Field(gt=0, lt=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the words of a stretch whose start is uniform.

        >>> Crop(kind="crop", rate=0.5).text("a b c d", np.random.default_rng(0))
        'c d'
        """
        words = sentence.split()
        length = _kept(len(words), self.rate)
        start = int(rng.integers(len(words) - length + 1)) if words else 0
        return " ".join(words[start : start + length])


class WordDeletion(TextView):
    """Some words left out (SimCSE, table 1: word deletion k %, and delete one word).

    Attributes:
        rate: the share of words that goes, k / 100; at least one word stays. None for one word.
    """

    kind: Literal["word-deletion"]
    rate: float | None = Field(None, gt=0, lt=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the words that are left, in order; which ones go is uniform.

        >>> WordDeletion(kind="word-deletion").text("a b c d", np.random.default_rng(0))
        'a b c'
        """
        words = sentence.split()
        length = max(1, len(words) - 1) if self.rate is None else _kept(len(words), self.rate)
        places = np.sort(rng.permutation(len(words))[:length])
        return " ".join(words[place] for place in places)


class StopWords(TextView):
    """A random stop-word behind some words (ESimCSE, section 5.2); counts as in `SubwordRepetition`.

    The paper names no list: these are scikit-learn's English ones.
    """

    kind: Literal["stop-words"]
    rate: float = Field(gt=0, le=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the sentence with stop-words in it."""
        return _with_words(sentence, self.rate, rng, lambda: _stop_words()[int(rng.integers(len(_stop_words())))])


class MaskInsertion(TextView):
    """A mask token behind some words (ESimCSE, section 5.2); counts as in `SubwordRepetition`.

    Attributes:
        mask: the token as the tokenizer reads it in a text.
    """

    kind: Literal["mask-insertion"]
    rate: float = Field(gt=0, le=1)
    mask: str = "[MASK]"

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the sentence with masks in it.

        >>> view = MaskInsertion(kind="mask-insertion", rate=1)
        >>> view.text("slow trains", np.random.default_rng(5))
        'slow [MASK] trains [MASK]'
        """
        return _with_words(sentence, self.rate, rng, lambda: self.mask)


class Typos(TextView):
    """Some words misspelt: a letter left out, doubled, or swapped with the next (MoCoSE, table 5: typos).

    The paper took a package's; these are ours.

    Attributes:
        rate: the chance of each word of at least two letters.
    """

    kind: Literal["typos"]
    rate: float = Field(gt=0, le=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the sentence, some words misspelt."""
        return " ".join(
            _misspelt(word, rng) if len(word) > 1 and rng.random() < self.rate else word
            for word in sentence.split()
        )


View = Annotated[
    SerializeAsAny[
        Annotated[
            Unchanged
            | SubwordRepetition
            | WordRepetition
            | StopWords
            | MaskInsertion
            | Crop
            | WordDeletion
            | Typos,
            Field(discriminator="kind"),
        ]
    ],
    WrapValidator(part_of(TextView, TokenView)),
]
"""Any view, by its `kind`; or a `TextView` or `TokenView` of one's own."""


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


def _with_words(sentence: str, rate: float, rng: np.random.Generator, further: Callable[[], str]) -> str:
    """Return a sentence with a further word behind each of some words, as many as the paper doubles."""
    words = sentence.split()
    marks = doubled(len(words), _most_paper(rate, len(words)), rng)
    pieces = [[word, further()] if mark else [word] for word, mark in zip(words, marks, strict=True)]
    return " ".join(word for piece in pieces for word in piece)


def _kept(size: int, rate: float) -> int:
    # 0.7 of 10 words are 7, whatever the last bit of the product says.
    return max(1, min(size, round(size * (1 - rate)))) if size else 0


def _misspelt(word: str, rng: np.random.Generator) -> str:
    place = int(rng.integers(len(word) - 1))
    before, letter, behind = word[:place], word[place], word[place + 1 :]
    match int(rng.integers(3)):
        case 0:
            return before + behind
        case 1:
            return before + 2 * letter + behind
        case _:
            return before + behind[0] + letter + behind[1:]


@cache
def _stop_words() -> tuple[str, ...]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return tuple(sorted(ENGLISH_STOP_WORDS))


def _most_released(rate: float, size: int) -> int:
    return min(10, int(rate * (size + 2))) - 1
