"""The choices that move a score, each declared once, with all that is written of it.

Its name in tables and JSON, its words, what its values mean, its option of `stsbench run`: search, verdict, table,
figure and JSON take a choice as it comes. One of how the encoder is used is a field of `Use` that says which
values are tried: only those of which more is to be said than of any field stand here. To add one of the grid,
declare it here; `scores.py` then gives it an axis (`_axes`) and its dimension in `Scorer`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stsbench.diagnosis.misread import LEFT, LEFT_AS_RIGHT, RIGHT_AS_LEFT, WITH_PADDING
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.use import ABOUT, BIDIRECTIONAL, CAUSAL, PRECISIONS, names, option_of
from stsbench.scoring.tasks import SAMPLE
from stsbench.statistics.similarity import Similarity


@dataclass(frozen=True)
class Choice:
    """A choice that moves a score, and what is written of it.

    Attributes:
        name: in tables and JSON.
        option: of `stsbench run`, which a value follows; empty where it is not as simple.
        by_hand: what a person has to do where no option does it, as a clause.
        phrase: a value as the subject of a sentence.
        label: a value as an entry of a table.
        instead: the beginning of a clause that ends in what the person's own setting gives.
        names: of values whose phrase is another.
        meanings: a sentence on what a value means and who takes it, where its name does not say all.
    """

    name: str
    option: str = ""
    by_hand: str = ""
    phrase: str = "{choice} `{value}`"
    label: str = "{choice} {value}"
    instead: str = "{phrase} gives"
    names: Mapping[Any, str] = field(default_factory=dict, compare=False)
    meanings: Mapping[Any, str] = field(default_factory=dict, compare=False)

    def phrase_of(self, value: Any) -> str:
        """Return a value as the subject of a sentence."""
        return self.names.get(value) or self.phrase.format(choice=self.name, value=value)

    def label_of(self, value: Any) -> str:
        """Return a value as an entry of a table."""
        return self.label.format(choice=self.name, value=value)

    def instead_of(self, default: Any) -> str:
        """Return the beginning of a clause that ends in what the person's own setting gives."""
        return self.instead.format(value=default, phrase=self.phrase_of(default))


def _of_use(field: str, **words: Any) -> Choice:
    """Return the choice of a field of `Use`, with the words that every field has where it has none of its own."""
    usual = {"option": option_of(field), "instead": "with {phrase}, your setting, the model gives"}
    return Choice(field, **usual | words)


POOLING = _of_use(
    "pooling",
    instead="with `{value}`, your setting, the model gives",
    meanings={
        "cls": "`cls` is the first token through the dense+tanh head: supervised SimCSE is scored so.",
        "cls_before_pooler": "`cls_before_pooler` is the first token without the head: unsupervised SimCSE and "
        "ESimCSE are scored so.",
        "avg": "`avg` is the mean over all tokens, of a network over those of its last layer.",
        "avg_top2": "`avg_top2` is the mean of the last two layers.",
        "avg_first_last": "`avg_first_last` is the mean of the first Transformer layer and the last; the papers' "
        "first-last numbers were taken with the embedding layer, `avg_static_last`.",
        "avg_static_last": "`avg_static_last` is the mean of the embedding layer and the last: the papers' "
        "first-last numbers.",
    },
)


class _Aggregation(Choice):
    def instead_of(self, default: str) -> str:
        papers = ", the papers' aggregation," if default == "all" else ""
        return f"under `{default}`{papers} the same vectors give"


AGGREGATION = _Aggregation(
    "aggregation",
    "--aggregation",
    meanings={
        "all": "`all` is one correlation over all pairs, as SimCSE, ESimCSE and MoCoSE report.",
        "mean": "`mean` is the plain mean over subsets.",
        "wmean": "`wmean` is the mean over subsets weighted by pairs, SentEval's headline.",
    },
)

METRICS: tuple[Literal["spearman", "pearson"], ...] = ("spearman", "pearson")
METRIC = Choice(
    "metric",
    "--metric",
    instead="by {phrase} the same vectors give",
    names={"spearman": "Spearman's correlation", "pearson": "Pearson's correlation"},
)

TEXT = Choice(
    "text",
    "--text",
    label="{value} text",
    names={"senteval": "SentEval's text", "raw": "the raw text"},
    meanings={"raw": "The raw text is as first released; the papers score SentEval's, tokenised and lower-cased."},
)

MAX_LENGTH = _of_use(
    "max_length",
    phrase="a maximum length of {value} sub-words",
    label="length {value}",
    instead="{phrase} gives",
)


@dataclass(frozen=True)
class Comparing:
    """A way of comparing two vectors.

    Attributes:
        similarity: a similarity, or `supervised` for the regressor that SentEval trains on a task.
        normalize: whether vectors are scaled to unit length first, as in `Use`: None as the model says.
    """

    similarity: Similarity | Literal["supervised"]
    normalize: bool | None = None

    def changes_to(self, comparing: "Comparing") -> int:
        """Return how many changes lead to another way: the similarity and the scaling are two."""
        return int(self.similarity != comparing.similarity) + int(self.normalize != comparing.normalize)

    @property
    def scaling(self) -> str:
        """How the vectors are scaled, where it is not as the model says."""
        return {None: "", True: ", scaled", False: ", not scaled"}[self.normalize]

    def __str__(self) -> str:
        """Return what tables of scores call it."""
        return self.similarity + (f"{self.scaling} to unit length" if self.scaling else "")


_SIMILARITIES: dict[Similarity, str] = {
    "cosine": "cosine",
    "dot": "the dot product",
    "euclidean": "the Euclidean distance",
    "manhattan": "the Manhattan distance",
}
REGRESSOR = Comparing("supervised")
REGRESSED = frozenset({"STS-B", "SICK-R"})
"""The tasks that SentEval trains a regressor on; it compares the others by cosine."""

COMPARISON = Choice(
    "comparison",
    label="similarity {value.similarity}{value.scaling}",
    instead="by {phrase} the same vectors give",
    names={
        **{Comparing(similarity): name for similarity, name in _SIMILARITIES.items()},
        **{
            Comparing(similarity, normalize): f"{name} of vectors {scaled} to unit length"
            for similarity, name in _SIMILARITIES.items()
            for normalize, scaled in ((True, "scaled"), (False, "not scaled"))
        },
        REGRESSOR: "the regressor that SentEval trains on it",
    },
    meanings={REGRESSOR: "It was trained with one seed; another moves it by some tenths of a point."},
)

SECOND_TEST = "test@senteval-v2"
"""The test split of STS-B as MTEB's second version has it, by the rule that gives its counts: fewer pairs."""

_SPLITS = {
    "STS-B": {
        "all": "The `all` entry for STS-B in the SimCSE scripts' output is this, not the test split.",
        "dev": "Checkpoints are chosen by this number; the papers' tables have the test split.",
        SECOND_TEST: "MTEB's second STSBenchmark leaves out pairs that stand twice, or in another split too.",
    },
    "SICK-R": {
        "all": "MTEB scores SICK-R so, the papers its test split alone.",
        "dev": "The papers score its test split.",
    },
}


def split_of(task: str) -> Choice:
    """Return the choice of a task's split.

    >>> split_of("SICK-R").phrase_of("all"), split_of("SICK-R").label_of("all")
    ('the whole of SICK-R (train, dev and test)', 'SICK-R all')
    """
    return Choice(
        f"{task} split",
        phrase=f"{task}'s {{value}} split",
        label=f"{task} {{value}}",
        names={
            "all": f"the whole of {task} (train, dev and test)",
            SECOND_TEST: f"{task}'s test split without repeated pairs",
        },
        meanings=_SPLITS.get(task, {}),
    )


@dataclass(frozen=True)
class Mean:
    """What people take an average to be.

    Attributes:
        name: in tables and JSON.
        tasks: the tasks that it is taken over.
        rounded: whether their scores are rounded to two decimals first, as public scripts do.
    """

    name: str
    tasks: tuple[str, ...]
    rounded: bool = False

    def __str__(self) -> str:
        """Return its name."""
        return self.name

    @property
    def label(self) -> str:
        """What a table of settings calls it: the score of one task is no mean."""
        return f"mean {self.name}" if len(self.tasks) > 1 else self.name

    @property
    def phrase(self) -> str:
        """What a sentence calls it."""
        return f"the {self.label}" if len(self.tasks) > 1 else self.name

    def of(self, scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the mean of the tasks' scores, which broadcast."""
        parts = [scores[task] for task in self.tasks]
        total = np.zeros((1,) * parts[0].ndim)
        # Summed one after the other: the arrays have different shapes.
        for part in parts:
            total = total + (np.round(part, 2) if self.rounded else part)
        return total / len(parts)


SAMPLE_ALONE = Mean(SAMPLE, (SAMPLE,))
AVERAGE_OF = Choice(
    "average",
    phrase="{value.phrase}",
    label="{value.label}",
    instead="{phrase} is",
    names={SAMPLE_ALONE: "the bundled sample"},
    meanings={SAMPLE_ALONE: "The sample comes with stsbench and is measured where no data is found."},
)

TEMPLATE = _of_use("template", names={NO_TEMPLATE: "no template"})
PRECISION = _of_use("precision", instead="in {phrase}, your setting, the model gives")
ATTENTION = _of_use(
    "attention",
    phrase="the attention kernel `{value}`",
    names={AUTO: "the attention kernel that Transformers chooses"},
    meanings={
        "eager": "`eager` is Transformers' own code, by which it computed attention before it chose `sdpa`.",
        "sdpa": "`sdpa` is torch's attention, which Transformers chooses today where a network allows it.",
        "flash_attention_2": "`flash_attention_2` computes in blocks, in half precision, on CUDA alone.",
    },
)
MASK = _of_use(
    "attention_mask",
    phrase="a {value} attention mask",
    label="{value} mask",
    names={AUTO: "the checkpoint's own attention mask"},
    meanings={
        CAUSAL: "A causal mask is what a decoder has that was to be bidirectional, where a release of "
        "Transformers ignores the code or the setting that says so.",
        BIDIRECTIONAL: "A bidirectional mask is what LLM2Vec and others give a decoder that is to encode.",
    },
)

_WITHOUT = "with {value}, your setting, the model gives"
PROMPT = _of_use("prompt", instead=_WITHOUT, names={"": "no prompt"})
PROMPT_NAME = _of_use("prompt_name", phrase="its prompt `{value}`", label="prompt {value}", instead=_WITHOUT)
PROMPTS = _of_use(
    "prompts", phrase="its prompts `{value}`, one a side,", label="prompts {value}", instead=_WITHOUT
)
BEFORE = (PROMPT, PROMPT_NAME, PROMPTS, TEMPLATE)
"""Choices of what stands before a sentence: one of them at a time."""

_OF_USE = (POOLING, MAX_LENGTH, TEMPLATE, PRECISION, PROMPT, ATTENTION, MASK)
_WORDED = {choice.name: choice for choice in _OF_USE}

FLOAT64 = "float64"
SIMILARITY_IN = Choice(
    "similarity_in",
    "--precision",
    by_hand="the vectors are rounded to that precision and compared in it",
    phrase="{value} up to the similarity",
    label="{value} up to the similarity",
    instead="with {phrase}, your setting, the model gives",
    names={FLOAT64: "the similarity in float64", "fp32": "fp32 and the similarity in float64"},
    meanings=dict.fromkeys(
        PRECISIONS,
        "sentence-transformers before version 6 leaves vectors in the network's precision and compares them in "
        "it (sentence-transformers 3892, 3894).",
    ),
)
PADDING_SIDE = Choice(
    "padding_side",
    by_hand="the sentences are padded and read so, in the same batches",
    phrase="padding {value}",
    label="padding {value}",
    instead="with {phrase}, as the mask says, the model gives",
    names={
        "": "padding left alone",
        LEFT: "padding on the left",
        LEFT_AS_RIGHT: "padding on the left, read as if on the right,",
        RIGHT_AS_LEFT: "padding on the right, read as if on the left,",
        WITH_PADDING: "reading the padding, too,",
    },
    meanings={
        LEFT: "Padded on the left, a sentence's positions begin behind its padding, and the first column is no "
        "[CLS] (sentence-transformers 3208). The batches are sentence-transformers': 32, by length.",
        LEFT_AS_RIGHT: "The column at the number of tokens is not the last token there. The batches are "
        "sentence-transformers': 32, by length.",
        RIGHT_AS_LEFT: "The last column is padding there for all but the longest sentence. The batches are "
        "SentEval's: 128 pairs, by length.",
        WITH_PADDING: "`outputs.mean(1)` takes the padding for tokens, as `angle_emb` did up to 0.1 (AnglE 68). "
        "The batches are SentEval's: 128 pairs, by length.",
    },
)


def choices_of_use() -> list[Choice]:
    """Return the choice of each field of `Use` that changes what is encoded and says which values are tried."""
    tried = [name for name in names("encoding") if ABOUT[name].tried is not None]
    return [_WORDED.get(name) or _of_use(name) for name in tried]


def tried_values(choice: Choice) -> Sequence[Any]:
    """Return what a field of `Use` says is to be tried."""
    tried = ABOUT[choice.name].tried
    return () if tried is None else tried()


class Rules(tuple[str, ...]):
    """Rules for the sentence, in their order.

    >>> str(Rules(["full_stop", "strip"])), str(Rules())
    ('full_stop+strip', 'none')
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Return them as one word."""
        return "+".join(self) or NO_TEMPLATE


SENTENCE_RULES = Choice(
    "rules",
    by_hand="the rules for the sentence are applied",
    phrase="the rule `{value}` for the sentence",
    instead="with {phrase}, your setting, the model gives",
    names={Rules(): "no rule for the sentence"},
    meanings={
        Rules(
            ["full_stop"]
        ): "`full_stop` adds a full stop unless the sentence ends in . ? \" or ' (PromptBERT's rule).",
        Rules(
            ["spaced_full_stop"]
        ): "`spaced_full_stop` adds ` .` unless the sentence ends in punctuation (SNCSE's rule).",
    },
)
LAYER = Choice(
    "layer",
    phrase="layer {value}",
    instead="with {phrase}, your setting, the model gives",
    names={-1: "the last layer"},
    meanings={-2: "Layer -2 is the one before the last: some language models are read there."},
)
RAGGED = "ragged sub-sets"
PADDING = Choice(
    "padding",
    by_hand="the sentences are padded",
    phrase="sentences padded with spaces",
    label="padded sentences",
    instead="{phrase} give",
    names={"": "sentences as they are"},
    meanings={
        RAGGED: "The copy of SentEval in AnglE's repository pads the sentences of a sub-set of STS12 to STS16 "
        "with empty words, so a rule for full stops sees a space, and a byte-level tokeniser reads spaces."
    },
)


@dataclass(frozen=True)
class Change:
    """One choice that differs from the person's own setting; the note is on what it is for this checkpoint."""

    choice: Choice
    value: Any
    default: Any
    note: str = field(default="", compare=False)

    @property
    def meaning(self) -> str:
        """What more is to be said of the value, of this checkpoint first, else of any."""
        return self.note or self.choice.meanings.get(self.value, "")
