"""Views: what is done to a sentence before the model reads it, as text or as tokens.

A view is validated data, arguments and all, and knows no other part of a recipe. The two sides of a positive pair
are two views; `identity` on both is SimCSE, where dropout alone tells them apart. To add one, write its class here
and name it in `View`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny, WrapValidator, model_validator

from stsbench.base.errors import UserError
from stsbench.training.lexicon import lexicon_files, read_lexicon
from stsbench.training.parts import RecipePart, part_of

Tokens = NDArray[np.integer]
"""The token ids of one sentence, special tokens apart."""

Further = TypeVar("Further", bound=str | None)


class SentenceView(RecipePart, ABC):
    """What views of text and of sub-words have in common."""

    @property
    def once(self) -> bool:
        """Whether a sentence's draw is the same each time it is seen."""
        return False


class TokenView(SentenceView):
    """A view of the sub-words that the model reads, special tokens apart."""

    @property
    def cut(self) -> bool:
        """Whether a sentence that became longer is cut back to the maximum length."""
        return True

    @abstractmethod
    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
        """Return the changed tokens."""


class TextView(SentenceView):
    """A view of the sentence before it is tokenised."""

    def require(self, device: str) -> tuple[Path, ...]:
        """Return the files that it reads beside the sentences; models among them will compute on the device.

        It is called before a training begins, and raises a UserError if something is missing. When the training is
        resumed the files have to be the same.
        """
        return ()

    def with_paths(self, change: Callable[[str], str]) -> Self:
        """Return it with each name changed that may be one of the person's files or folders."""
        return self

    @abstractmethod
    def text(self, sentence: str, rng: np.random.Generator) -> str:
        """Return the changed sentence."""

    def texts(self, sentences: Sequence[str], draws: Sequence[np.random.Generator]) -> list[str]:
        """Return the changed sentences of a batch; a view that computes for all at once does so here.

        The draws of each come from one generator for all, or if `once` from one of its own.
        """
        return [self.text(sentence, rng) for sentence, rng in zip(sentences, draws, strict=True)]


class Unchanged(TokenView):
    """The sentence as it is."""

    kind: Literal["identity"] = "identity"

    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
        return tokens


class SubwordRepetition(TokenView):
    """Some sub-words twice, each beside itself (ESimCSE, section 3.1, equations 3 and 4).

    `paper`: the number of doubled sub-words is uniform on 0 .. max(2, int(rate n)), n being the sub-words without
    the special tokens; drawn anew each time; the longer sentence is cut back to the maximum length. `released`, as
    the public code has it: uniform on 0 .. min(10, int(rate L)) - 1, L counting two special tokens; drawn once for
    each sentence; not cut back. The rate is the paper's dup_rate.
    """

    kind: Literal["subword-repetition"]
    rate: float = Field(gt=0, le=1)
    variant: Literal["paper", "released"] = "paper"

    @property
    def once(self) -> bool:
        return self.variant == "released"

    @property
    def cut(self) -> bool:
        return self.variant == "paper"

    def tokens(self, tokens: Tokens, rng: np.random.Generator) -> Tokens:
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
        return " ".join(_with_further(sentence.split(), self.rate, rng, lambda word: word))


class Crop(TextView):
    """A stretch of the sentence, the rest cut off at both ends (SimCSE, table 2: crop k %).

    The share `rate` of the words goes, k / 100; at least one word stays.
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
    """Some words left out (SimCSE, table 2: word deletion k %, and delete one word).

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
        choices, words = _stop_words(), sentence.split()
        return " ".join(_with_further(words, self.rate, rng, lambda _: choices[int(rng.integers(len(choices)))]))


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
        return " ".join(_with_further(sentence.split(), self.rate, rng, lambda _: self.mask))


class Typos(TextView):
    """Some words misspelt: a letter left out, doubled, or swapped with the next (MoCoSE, table 5: typos).

    The paper took a package's; these are ours.

    Attributes:
        rate: the chance of each word of at least two letters.
    """

    kind: Literal["typos"]
    rate: float = Field(gt=0, le=1)

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        return " ".join(
            _misspelt(word, rng) if len(word) > 1 and rng.random() < self.rate else word
            for word in sentence.split()
        )


class Synonyms(TextView):
    """Some words replaced by one of their synonyms, each of them as likely.

    A word is looked up without the punctuation around it and without case, which the synonym then takes on.

    Attributes:
        rate: the chance of each word that the lexicon knows.
        lexicon: a table of one's own or WordNet's database (see `read_lexicon`). A recipe may leave it open, a
            training may not.
    """

    kind: Literal["synonyms"]
    rate: float = Field(gt=0, le=1)
    lexicon: str | None = None

    def require(self, device: str) -> tuple[Path, ...]:
        if self.lexicon is None:
            raise UserError(
                "the view synonyms has no lexicon: name one with --set views.key.lexicon=FILE, a table of words "
                "and their synonyms or the folder of WordNet's database."
            )
        read_lexicon(self.lexicon)
        return lexicon_files(self.lexicon)

    def with_paths(self, change: Callable[[str], str]) -> Self:
        return self if self.lexicon is None else self.model_copy(update={"lexicon": change(self.lexicon)})

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        if self.lexicon is None:
            self.require("cpu")
        lexicon = read_lexicon(str(self.lexicon))
        words = sentence.split()
        for place, word in enumerate(words):
            before, inner, behind = _without_punctuation(word)
            synonyms = lexicon.get(inner.casefold())
            if synonyms and rng.random() < self.rate:
                words[place] = before + _cased_as(inner, synonyms[int(rng.integers(len(synonyms)))]) + behind
        return " ".join(words)


class MaskedPrediction(TextView):
    """What the two views have in common that let a masked-language model of their own write words.

    All masks of a sentence are filled in one forward pass. A guess is one token of that model, written as text.

    Attributes:
        model: a checkpoint with a masked-language head, as `load` takes it; it is not the model in training and
            is not trained.
        top: how many of the best guesses one is drawn from, by their probabilities; 1 for the best.
        drawn: whether a sentence's places and draws are new each time it is seen, or always the same.
    """

    model: str
    top: int = Field(1, ge=1, le=10_000)
    drawn: Literal["each_time", "once"] = "each_time"

    @property
    def once(self) -> bool:
        return self.drawn == "once"

    def require(self, device: str) -> tuple[Path, ...]:
        from stsbench.training.guesses import guesser

        return tuple(guesser(self.model, device).checkpoint.weight_files())

    def with_paths(self, change: Callable[[str], str]) -> Self:
        return self.model_copy(update={"model": change(self.model)})

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        return self.texts([sentence], [rng])[0]

    def texts(self, sentences: Sequence[str], draws: Sequence[np.random.Generator]) -> list[str]:
        from stsbench.training.guesses import guesser

        masked = [self.masked(sentence.split(), rng) for sentence, rng in zip(sentences, draws, strict=True)]
        uniform = [
            [float(rng.random()) for piece in pieces if piece is None]
            for pieces, rng in zip(masked, draws, strict=True)
        ]
        return [" ".join(words) for words in guesser(self.model).fill(masked, uniform, self.top)]

    @abstractmethod
    def masked(self, words: list[str], rng: np.random.Generator) -> list[str | None]:
        """Return the words of a sentence with None where the model is to write one."""


class MaskedInsertion(MaskedPrediction):
    """The best guess of a masked-language model behind some words (ESimCSE, section 5.2: masked prediction).

    Attributes:
        rate: as in `SubwordRepetition`, whose counts these are.
    """

    kind: Literal["masked-insertion"]
    rate: float = Field(gt=0, le=1)

    def masked(self, words: list[str], rng: np.random.Generator) -> list[str | None]:
        return _with_further(words, self.rate, rng, lambda _: None)


class MaskedReplacement(MaskedPrediction):
    """Some words replaced by what a masked-language model guesses in their place (SimCSE, table 2: MLM 15 %).

    The paper says neither whether all words are masked at once nor whether the best guess is taken: here both. The
    guess may be the word that stood there.

    Attributes:
        rate: the share of words that are replaced, at least one.
    """

    kind: Literal["masked-replacement"]
    rate: float = Field(gt=0, le=1)

    def masked(self, words: list[str], rng: np.random.Generator) -> list[str | None]:
        count = max(1, round(self.rate * len(words)))
        open_places = set(rng.permutation(len(words))[:count].tolist())
        return [None if place in open_places else word for place, word in enumerate(words)]


class InTurn(TextView):
    """Several views of the text, each of what the one before left (SimCSE, table 2: crop 10 % + MLM 15 %)."""

    kind: Literal["in-turn"]
    views: "tuple[AnyTextView, ...]" = Field(min_length=1)

    @model_validator(mode="after")
    def _alike(self) -> Self:
        if len({view.once for view in self.views}) > 1:
            raise ValueError("of views in turn all are drawn once, or none")
        return self

    @property
    def once(self) -> bool:
        return self.views[0].once

    def require(self, device: str) -> tuple[Path, ...]:
        return tuple(file for view in self.views for file in view.require(device))

    def with_paths(self, change: Callable[[str], str]) -> Self:
        return self.model_copy(update={"views": tuple(view.with_paths(change) for view in self.views)})

    def text(self, sentence: str, rng: np.random.Generator) -> str:
        return self.texts([sentence], [rng])[0]

    def texts(self, sentences: Sequence[str], draws: Sequence[np.random.Generator]) -> list[str]:
        """Return the sentences after the last view.

        >>> crop, delete = {"kind": "crop", "rate": 0.5}, "word-deletion"
        >>> InTurn(kind="in-turn", views=(crop, delete)).text("a b c d", np.random.default_rng(0))
        'c'
        """
        texts = list(sentences)
        for view in self.views:
            texts = view.texts(texts, draws)
        return texts


_KnownTextView: TypeAlias = (
    WordRepetition
    | StopWords
    | MaskInsertion
    | Crop
    | WordDeletion
    | Typos
    | Synonyms
    | MaskedInsertion
    | MaskedReplacement
    | InTurn
)

AnyTextView = Annotated[
    SerializeAsAny[Annotated[_KnownTextView, Field(discriminator="kind")]], WrapValidator(part_of(TextView))
]
"""Any view of text, by its `kind`; or a `TextView` of one's own."""

InTurn.model_rebuild()

View = Annotated[
    SerializeAsAny[Annotated[Unchanged | SubwordRepetition | _KnownTextView, Field(discriminator="kind")]],
    WrapValidator(part_of(TextView, TokenView)),
]
"""Any view, by its `kind`; or a `TextView` or `TokenView` of one's own."""


class Views(RecipePart):
    """The two sides of a positive pair: `query` is made of a row's first sentence, `key` of its second.

    A row of one sentence has it on both sides.

    Attributes:
        query_columns: the columns, counted from 1, of which the query's sentence is one, drawn for each row each
            time it is seen: paraphrases or back-translations that were made before. None for the first.
        key_columns: the same of the key. None for the second, or where there is one only, the first.
    """

    query: View = Unchanged()
    key: View = Unchanged()
    query_columns: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(None, min_length=1)
    key_columns: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(None, min_length=1)

    def with_paths(self, change: Callable[[str], str]) -> Self:
        """Return them with each name changed that may be one of the person's files or folders."""
        sides = {"query": self.query, "key": self.key}
        changed = {side: view.with_paths(change) for side, view in sides.items() if isinstance(view, TextView)}
        return self.model_copy(update=changed)


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


def _with_further(
    words: Sequence[str], rate: float, rng: np.random.Generator, further: Callable[[str], Further]
) -> list[str | Further]:
    """Return words with a further one behind each of some, as many as the paper doubles."""
    marks = doubled(len(words), _most_paper(rate, len(words)), rng)
    followed: list[str | Further] = []
    for word, mark in zip(words, marks, strict=True):
        followed += [word, further(word)] if mark else [word]
    return followed


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


def _without_punctuation(word: str) -> tuple[str, str, str]:
    """Return what stands before the first letter or digit of a word, up to the last one, and behind it.

    >>> _without_punctuation('"well-known,"'), _without_punctuation("--")
    (('"', 'well-known', ',"'), ('--', '', ''))
    """
    places = [place for place, character in enumerate(word) if character.isalnum()]
    if not places:
        return word, "", ""
    return word[: places[0]], word[places[0] : places[-1] + 1], word[places[-1] + 1 :]


def _cased_as(word: str, synonym: str) -> str:
    if len(word) > 1 and word.isupper():
        return synonym.upper()
    return synonym[:1].upper() + synonym[1:] if word[:1].isupper() else synonym


@cache
def _stop_words() -> tuple[str, ...]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return tuple(sorted(ENGLISH_STOP_WORDS))
