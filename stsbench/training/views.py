"""Views: changes to a sentence before the model reads it, as text or as tokens.

The two sides of a positive pair are two views; `identity` on both is SimCSE, where the sides differ only by
dropout. To add a view, write its class here and name it in `View`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stsbench.training.parts import BY_KIND, RecipePart

Tokens = NDArray[np.integer]
"""The token ids of one sentence, without special tokens."""

Inserted = TypeVar("Inserted", bound=str | None)


class TextView(RecipePart):
    """A view of the sentence before it is tokenised; overrides `text`, or `texts` to compute a batch at once."""

    def require(self, device: str) -> tuple[Path, ...]:
        """Returns the files that the view reads besides the sentences, before a training begins or resumes.

        Args:
            device: where models among the files will compute.

        Raises:
            UserError: if something is missing.
        """
        return ()

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        raise NotImplementedError

    def texts(self, sentences: Sequence[str], rng: np.random.Generator) -> list[str]:
        return [self.text(sentence, rng) for sentence in sentences]


class Unchanged(RecipePart):
    kind: Literal["identity"] = "identity"
    as_released: ClassVar[bool] = False

    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
        return tokens


class SubwordRepetition(RecipePart):
    """Doubles some sub-words in place (ESimCSE, section 3.1, equations 3 and 4).

    `paper`: the number of doubled sub-words is uniform on 0 .. max(2, int(rate n)) for n sub-words without special
    tokens; drawn anew each time; the longer sentence is cut back to the maximum length. `released`, as in the
    public code: uniform on 0 .. min(10, int(rate L)) - 1, L counting two special tokens; drawn once for each
    sentence; not cut back. The rate is the paper's dup_rate.
    """

    kind: Literal["subword-repetition"]
    rate: float = Field(gt=0, le=1)
    variant: Literal["paper", "released"] = "paper"

    @property
    def as_released(self) -> bool:
        """Whether a sentence has the same draw each time, and is not cut back to the maximum length."""
        return self.variant == "released"

    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
        size = len(tokens)
        most = min(10, int(self.rate * (size + 2))) - 1 if self.as_released else _most_doubled(self.rate, size)
        return np.repeat(tokens, 1 + doubled(size, most, rng))


class WordRepetition(TextView):
    """Doubles some words; counts as in `SubwordRepetition`.

    >>> view = WordRepetition(kind="word-repetition", rate=1)
    >>> view.text("slow trains", np.random.default_rng(5))
    'slow slow trains trains'
    """

    kind: Literal["word-repetition"]
    rate: float = Field(gt=0, le=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        return " ".join(_with_insertions(sentence.split(), self.rate, rng, lambda word: word))


class StopWords(TextView):
    """Inserts stop words after some words (ESimCSE, section 5.2); counts as in `SubwordRepetition`.

    They are random ones of scikit-learn's English list, as the paper names none.
    """

    kind: Literal["stop-words"]
    rate: float = Field(gt=0, le=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        choices = _stop_words()
        words = _with_insertions(
            sentence.split(), self.rate, rng, lambda _: choices[int(rng.integers(len(choices)))]
        )
        return " ".join(words)


class MaskInsertion(TextView):
    """Inserts mask tokens after some words (ESimCSE, section 5.2); counts as in `SubwordRepetition`.

    Attributes:
        mask: the token as the tokenizer reads it in a text.
    """

    kind: Literal["mask-insertion"]
    rate: float = Field(gt=0, le=1)
    mask: str = "[MASK]"

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        return " ".join(_with_insertions(sentence.split(), self.rate, rng, lambda _: self.mask))


class Crop(TextView):
    """Keeps consecutive words (SimCSE, table 2: crop k %): the share 1 - `rate` of them, at least one."""

    kind: Literal["crop"]
    rate: float = Field(gt=0, lt=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Returns consecutive words; their start is uniform.

        >>> Crop(kind="crop", rate=0.5).text("a b c d", np.random.default_rng(0))
        'c d'
        """
        words = sentence.split()
        length = _kept(len(words), self.rate)
        start = int(rng.integers(len(words) - length + 1)) if words else 0
        return " ".join(words[start : start + length])


class WordDeletion(TextView):
    """Deletes some words (SimCSE, table 2: word deletion k %, and delete one word).

    Attributes:
        rate: the share of deleted words, k / 100; at least one word stays. None for one word.
    """

    kind: Literal["word-deletion"]
    rate: float | None = Field(None, gt=0, lt=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        words = sentence.split()
        length = max(1, len(words) - 1) if self.rate is None else _kept(len(words), self.rate)
        places = np.sort(rng.permutation(len(words))[:length])
        return " ".join(words[place] for place in places)


class Typos(TextView):
    """Misspells some words: a letter missing, doubled, or swapped with the next (MoCoSE, table 5).

    Attributes:
        rate: the probability of each word of at least two letters.
    """

    kind: Literal["typos"]
    rate: float = Field(gt=0, le=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        return " ".join(
            _misspelt(word, rng) if len(word) > 1 and rng.random() < self.rate else word
            for word in sentence.split()
        )


class MaskedPrediction(TextView):
    """A view in which a masked-language model writes words.

    All masks of a sentence are filled in one forward pass, each with the best guess, one token of that model.

    Attributes:
        model: a checkpoint with a masked-language head, as `load` takes it; it is not trained.
    """

    model: str

    def require(self, device: str) -> tuple[Path, ...]:
        from stsbench.training.guesses import guesser

        return tuple(guesser(self.model).to(device).checkpoint.weight_files())

    def texts(self, sentences: Sequence[str], rng: np.random.Generator) -> list[str]:
        from stsbench.training.guesses import guesser

        masked = [self.masked(sentence.split(), rng) for sentence in sentences]
        return [" ".join(words) for words in guesser(self.model).fill(masked)]

    @abstractmethod
    def masked(self, words: list[str], rng: np.random.Generator) -> list[str | None]:
        """Returns the words of a sentence, with None where the model writes one."""


class MaskedInsertion(MaskedPrediction):
    """Inserts guesses after some words (ESimCSE, section 5.2); counts as in `SubwordRepetition`."""

    kind: Literal["masked-insertion"]
    rate: float = Field(gt=0, le=1)

    def masked(self, words: list[str], rng: np.random.Generator) -> list[str | None]:
        return _with_insertions(words, self.rate, rng, lambda _: None)


class MaskedReplacement(MaskedPrediction):
    """Replaces some words by guesses, which may be the words themselves (SimCSE, table 2: MLM 15 %).

    The paper does not state whether all words are masked at once and whether the best guess is taken; here both
    are true.

    Attributes:
        rate: the share of replaced words; at least one is.
    """

    kind: Literal["masked-replacement"]
    rate: float = Field(gt=0, le=1)

    def masked(self, words: list[str], rng: np.random.Generator) -> list[str | None]:
        count = max(1, round(self.rate * len(words)))
        open_places = set(rng.permutation(len(words))[:count].tolist())
        return [None if place in open_places else word for place, word in enumerate(words)]


_TextView: TypeAlias = (
    WordRepetition | StopWords | MaskInsertion | Crop | WordDeletion | Typos | MaskedInsertion | MaskedReplacement
)


class InTurn(TextView):
    """Applies several views of text in turn (SimCSE, table 2: crop 10 % + MLM 15 %)."""

    kind: Literal["in-turn"]
    views: tuple[Annotated[_TextView, Field(discriminator="kind"), BY_KIND], ...] = Field(min_length=1)

    def require(self, device: str) -> tuple[Path, ...]:
        return tuple(file for view in self.views for file in view.require(device))

    def texts(self, sentences: Sequence[str], rng: np.random.Generator) -> list[str]:
        texts = list(sentences)
        for view in self.views:
            texts = view.texts(texts, rng)
        return texts


View = Annotated[Unchanged | SubwordRepetition | _TextView | InTurn, Field(discriminator="kind"), BY_KIND]


class Views(RecipePart):
    """The two sides of a positive pair: `query` is a view of a row's first sentence, `key` of its last.

    With hard negatives, `key` is a view of the second sentence.
    """

    query: View = Unchanged()
    key: View = Unchanged()


def doubled(size: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns 1 for each of `size` positions that is doubled, else 0.

    Their number is uniform on 0 .. `most` (equation 3), but at most `size`; which ones is uniform (equation 4).
    """
    marks = np.zeros(size, dtype=np.int64)
    count = min(int(rng.integers(max(0, most) + 1)), size)
    marks[rng.permutation(size)[:count]] = 1
    return marks


def _most_doubled(rate: float, size: int) -> int:
    return max(2, int(rate * size))


def _with_insertions(
    words: Sequence[str], rate: float, rng: np.random.Generator, inserted: Callable[[str], Inserted]
) -> list[str | Inserted]:
    marks = doubled(len(words), _most_doubled(rate, len(words)), rng)
    longer: list[str | Inserted] = []
    for word, mark in zip(words, marks, strict=True):
        longer += [word, inserted(word)] if mark else [word]
    return longer


def _kept(size: int, rate: float) -> int:
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
