"""The grid: every choice that moves a score, as an axis of typed values, and each task's score at every crossing.

A choice is declared here, once, with all that is written of it: its name in tables and JSON, its words, what its
values mean, its option of `stsbench run`. Search, verdict, table, figure and JSON take a choice as it comes.

To add one, declare it below. `scores.py` then gives it an axis (`_axes`) and its dimension: what changes the
vectors in `encoding.py`, what is made of their similarities in `Scorer`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stsbench.base.words import listed
from stsbench.records.kinds import AVERAGE
from stsbench.scoring.tasks import SAMPLE
from stsbench.statistics.similarity import Similarity

if TYPE_CHECKING:
    import pandas as pd

Scores = NDArray[np.float64]
Place = tuple[int, ...]
"""A crossing: for each axis, which of its values."""


@dataclass(frozen=True)
class Choice:
    """A choice that moves a score, and what is written of it.

    Attributes:
        name: in tables and JSON.
        option: of `stsbench run`, which a value follows; empty where it is not as simple.
        phrase: a value as the subject of a sentence.
        label: a value as an entry of a table.
        instead: the beginning of a clause that ends in what the person's own setting gives.
        names: of values whose phrase is another.
        meanings: a sentence on what a value means and who takes it, where its name does not say all.
    """

    name: str
    option: str = ""
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


POOLING = Choice(
    "pooling",
    "--pooling",
    instead="with `{value}`, your setting, the model gives",
    meanings={
        "cls": "`cls` is the first token through the dense+tanh head: supervised SimCSE is scored so.",
        "cls_before_pooler": "`cls_before_pooler` is the first token without the head: unsupervised SimCSE and "
        "ESimCSE are scored so.",
        "avg": "`avg` is the mean of the last layer.",
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

MAX_LENGTH = Choice(
    "max_length", "--max-length", phrase="a maximum length of {value} sub-words", label="length {value}"
)


@dataclass(frozen=True)
class Comparing:
    """A way of comparing two vectors.

    Attributes:
        similarity: a similarity, or `supervised` for the regressor that SentEval trains on a task.
        normalize: whether vectors are scaled to unit length first, as in `Postprocessing`: None as the model says.
    """

    similarity: Similarity | Literal["supervised"]
    normalize: bool | None = None

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

    def of(self, scores: Mapping[str, Scores]) -> Scores:
        """Return the mean of the tasks' scores, which broadcast."""
        parts = [scores[task] for task in self.tasks]
        total = np.zeros((1,) * parts[0].ndim)
        # Summed one after the other: the arrays have different shapes.
        for part in parts:
            total = total + (np.round(part, 2) if self.rounded else part)
        return total / len(parts)


_SAMPLE = Mean(SAMPLE, (SAMPLE,))
AVERAGE_OF = Choice(
    "average",
    phrase="{value.phrase}",
    label="{value.label}",
    instead="{phrase} is",
    names={_SAMPLE: "the bundled sample"},
    meanings={_SAMPLE: "The sample comes with stsbench and is measured where no data is found."},
)


@dataclass(frozen=True)
class Change:
    """One choice that differs from the person's own setting."""

    choice: Choice
    value: Any
    default: Any


@dataclass(frozen=True)
class Bundle:
    """A value of an axis that changes several choices at once, each of which counts.

    Attributes:
        changes: what it changes; nothing in the person's own setting.
    """

    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Axis:
    """The values of a choice that are tried.

    Attributes:
        choice: what is chosen.
        values: what may be chosen.
        default: the place of the person's own setting among them.
    """

    choice: Choice
    values: tuple[Any, ...]
    default: int = 0

    @classmethod
    def of(cls, choice: Choice, values: Iterable[Any], default: Any) -> "Axis":
        """Return an axis whose default is one of its values."""
        values = tuple(values)
        return cls(choice, values, values.index(default))

    @property
    def name(self) -> str:
        """The choice's name."""
        return self.choice.name

    @property
    def changes(self) -> tuple[int, ...]:
        """How many changes each value takes from the default, where the similarity and the scaling are two."""
        return tuple(map(self._changes_of, self.values))

    def _changes_of(self, value: Any) -> int:
        default = self.values[self.default]
        if isinstance(value, Bundle):
            return len(value.changes)
        if isinstance(value, Comparing):
            return int(value.similarity != default.similarity) + int(value.normalize != default.normalize)
        return int(value != default)

    def changed_to(self, place: int) -> tuple[Change, ...]:
        """Return what the value at a place changes."""
        value, default = self.values[place], self.values[self.default]
        return value.changes if isinstance(value, Bundle) else (Change(self.choice, value, default),)


def axis_of_means(tasks: Sequence[str], *, with_sample: bool) -> Axis:
    """Return what people take an average of some tasks to be, the plain mean of all first.

    Besides: the mean of the scores rounded to two decimals, as public scripts take it; without SICK-R, as in
    ESimCSE's six tasks, or without STS-B; the five years alone; one task taken for all; the bundled sample.
    """
    means = [Mean("of all tasks", tuple(tasks))]
    if len(tasks) > 1:
        means.append(Mean("of rounded scores", tuple(tasks), rounded=True))
        for left_out in (("SICK-R",), ("STS-B",), ("STS-B", "SICK-R")):
            kept = tuple(task for task in tasks if task not in left_out)
            if len(kept) > 1 and len(kept) + len(left_out) == len(tasks):
                means.append(Mean(f"without {listed(left_out)}", kept))
        means += [Mean(f"{task} alone", (task,)) for task in tasks]
    if with_sample:
        means.append(_SAMPLE)
    return Axis(AVERAGE_OF, tuple(means))


@dataclass(frozen=True)
class Grid:
    """Every score that the choices give.

    Attributes:
        axes: the choices; the last is what an average is taken over.
        scores: for each task an array with one dimension per axis, x 100: of length 1 where the choice makes no
            difference to the task, NaN where there is no such score.
    """

    axes: tuple[Axis, ...]
    scores: Mapping[str, Scores]

    @property
    def default(self) -> Place:
        """The place of the person's own setting."""
        return tuple(axis.default for axis in self.axes)

    def default_of(self, choice: Choice) -> Any:
        """Return the person's own setting of a choice."""
        return next(axis.values[axis.default] for axis in self.axes if axis.choice == choice)

    def of(self, task: str) -> Scores:
        """Return the scores of a task, or of the average along its axis."""
        return self._averages if task == AVERAGE else self.scores[task]

    def value(self, task: str, place: Place) -> float:
        """Return the score of a task, or the average, at one crossing."""
        scores = self.of(task)
        return float(scores[inside(scores.shape, place)])

    @cached_property
    def _averages(self) -> Scores:
        together = [mean.of(self.scores) for mean in self.axes[-1].values]
        shape = np.broadcast_shapes(*(scores.shape for scores in together))
        return np.concatenate([np.broadcast_to(scores, shape) for scores in together], axis=-1)

    @cached_property
    def frame(self) -> "pd.DataFrame":
        """The grid as a table, one row per score of a task.

        Columns: task, split (empty where a task has but one), the other choices, score (x 100), changes (how many
        choices differ from the default). A choice that makes no difference to a task has the default's value.
        """
        import pandas as pd

        return pd.concat([self._frame_of(task) for task in self.scores], ignore_index=True)

    def _frame_of(self, task: str) -> "pd.DataFrame":
        import pandas as pd

        scores = self.scores[task]
        places = np.argwhere(~np.isnan(scores))
        columns: dict[str, Any] = {"task": np.full(len(places), task, dtype=object), "split": ""}
        changes = np.zeros(len(places), dtype=np.int64)
        others = {AVERAGE_OF, *map(split_of, self.scores)}
        for axis, size, place in zip(self.axes, scores.shape, places.T, strict=True):
            # Where there is nothing to choose, the place is that of the default.
            chosen = place if size > 1 else np.full(len(places), axis.default)
            changes += np.array(axis.changes)[chosen]
            if axis.choice == split_of(task) or axis.choice not in others:
                name = "split" if axis.choice == split_of(task) else axis.name
                columns[name] = np.array([*map(str, axis.values)], dtype=object)[chosen]
        return pd.DataFrame({**columns, "score": scores[tuple(places.T)], "changes": changes})


def inside(shape: Place, place: Place) -> Place:
    """Return a place in an array of this shape: the first wherever there is nothing to choose.

    >>> inside((1, 3), (2, 2))
    (0, 2)
    """
    return tuple(chosen if size > 1 else 0 for chosen, size in zip(place, shape, strict=True))
