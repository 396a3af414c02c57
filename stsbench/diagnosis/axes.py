"""The choices that move a score: each is an axis with its values, its option of `stsbench run`, and its words.

The grid, the search, the verdict, the table, the heat map and the JSON treat all axes alike. Here are those whose
scores follow from the vectors at hand; `variations.py` lists those that need other vectors.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.words import listed
from stsbench.encoders.use import option_of
from stsbench.scoring.settings import AGGREGATIONS
from stsbench.statistics.neighbours import SIMILARITIES


@dataclass(frozen=True)
class Axis:
    """A choice that moves a score. Axes are equal if their names are.

    Attributes:
        name: in tables and JSON.
        values: the values that are tried; the first is your setting.
        option: the option of `stsbench run` that takes a value; empty if there is none.
        label: a value in tables and sentences.
        labels: of values that have another label.
        options: of values that have another option.
        meanings: by value, a sentence on what it means and who uses it.
    """

    name: str
    values: tuple[Any, ...] = field(default=(), compare=False)
    option: str = field(default="", compare=False)
    label: str = field(default="{name} {value}", compare=False)
    labels: Mapping[Any, str] = field(default_factory=dict, compare=False)
    options: Mapping[Any, str] = field(default_factory=dict, compare=False)
    meanings: Mapping[Any, str] = field(default_factory=dict, compare=False)

    def over(self, values: Iterable[Any], default: Any, meanings: Mapping[Any, str] | None = None) -> "Axis":
        """Returns the axis with these values, yours first, and further meanings of them.

        >>> METRIC.over(["spearman", "pearson"], "pearson").values
        ('pearson', 'spearman')
        """
        others = (value for value in values if value != default)
        return replace(self, values=(default, *others), meanings={**self.meanings, **(meanings or {})})

    def label_of(self, value: Any) -> str:
        """Returns the label of a value.

        >>> METRIC.label_of("pearson")
        'metric pearson'
        """
        usual = self.label.format(name=self.name.replace("_", " "), value=value)
        return self.labels.get(value, usual)


@dataclass(frozen=True)
class Change:
    """A value that differs from your setting."""

    axis: Axis
    value: Any

    @property
    def label(self) -> str:
        """The value in tables and sentences."""
        return self.axis.label_of(self.value)

    @property
    def default(self) -> str:
        """Your setting in sentences."""
        return f"your setting ({self.axis.label_of(self.axis.values[0])})" if self.axis.values else "your setting"

    @property
    def option(self) -> str:
        """The option of `stsbench run` that chooses it; empty if there is none."""
        usual = f"{self.axis.option} {shlex.quote(str(self.value))}" if self.axis.option else ""
        return self.axis.options.get(self.value, usual)

    @property
    def meaning(self) -> str:
        """What the value means and who uses it, as a sentence; empty if its label says all."""
        return self.axis.meanings.get(self.value, "")


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
        """Returns its name."""
        return self.name

    def of(self, scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Returns the mean of the tasks' scores, which broadcast."""
        total: NDArray[np.float64] = np.zeros(())
        # Summed one after the other, because the arrays have different shapes.
        for task in self.tasks:
            total = total + (np.round(scores[task], 2) if self.rounded else scores[task])
        return total / len(self.tasks)


def of_use(name: str, **words: Any) -> Axis:
    """Returns the axis of a field of `Use`."""
    return Axis(name, option=option_of(name), **words)


POOLING = of_use(
    "pooling",
    meanings={
        "cls": "`cls` is the first token through the dense+tanh head: supervised SimCSE is scored this way.",
        "cls_before_pooler": "`cls_before_pooler` is the first token without the head: unsupervised SimCSE and "
        "ESimCSE are scored this way.",
        "avg_first_last": "`avg_first_last` is the mean of the first Transformer layer and the last. The papers' "
        "first-last numbers use the embedding layer: `avg_static_last`.",
        "avg_static_last": "`avg_static_last` is the mean of the embedding layer and the last: the papers' "
        "first-last numbers.",
    },
)

AGGREGATION = Axis(
    "aggregation",
    AGGREGATIONS,
    "--aggregation",
    meanings={
        "all": "`all` is one correlation over all pairs, as SimCSE, ESimCSE and MoCoSE report.",
        "wmean": "`wmean` is the mean over subsets weighted by pairs, SentEval's headline.",
    },
)

METRIC = Axis("metric", ("spearman", "pearson"), "--metric")

TEXT = Axis(
    "text",
    option="--text",
    meanings={
        "raw": "`raw` is the text as first released. The papers score SentEval's tokenised, lower-cased text."
    },
)

MAX_LENGTH = of_use("max_length", labels={None: "no maximum length"})

SIMILARITY = Axis("similarity", SIMILARITIES, "--similarity")

NORMALIZE = Axis(
    "normalize",
    (False, True),
    labels={True: "vectors scaled to unit length", False: "vectors not scaled to unit length"},
    options={True: "--normalize", False: "--no-normalize"},
)

SECOND_TEST = "test@senteval-v2"
"""The test split of STS-B as in MTEB's second version, with fewer pairs."""

_SPLITS = {
    "STS-B": {
        "all": "SimCSE's scripts print `all` for STS-B: train, dev and test together.",
        "dev": "Checkpoints are chosen by the dev score. The papers' tables have the test split.",
        SECOND_TEST: "MTEB's second STSBenchmark leaves out pairs that occur twice or in another split.",
    },
    "SICK-R": {
        "all": "MTEB scores all of SICK-R (train, dev and test), the papers its test split only.",
        "dev": "The papers score the test split.",
    },
}

AVERAGE_OF = "average"


def split_axis(task: str, values: Iterable[str], default: str) -> Axis:
    """Returns the splits of a task.

    >>> split_axis("SICK-R", ["test", "all"], "test").label_of("all")
    'SICK-R split all'
    """
    return Axis(f"{task} split").over(values, default, _SPLITS.get(task))


def average_axis(tasks: Sequence[str]) -> Axis:
    """Returns what people take an average of tasks to be, the mean of all first.

    The others: the mean of scores rounded to two decimals, as in public scripts; without SICK-R, as in ESimCSE's
    six tasks, or without STS-B; the five years; a single task.
    """
    means = [Mean("of all tasks", tuple(tasks))]
    if len(tasks) > 1:
        means.append(Mean("of rounded scores", tuple(tasks), rounded=True))
        for left_out in (("SICK-R",), ("STS-B",), ("STS-B", "SICK-R")):
            kept = tuple(task for task in tasks if task not in left_out)
            if len(kept) > 1 and len(kept) + len(left_out) == len(tasks):
                means.append(Mean(f"without {listed(left_out)}", kept))
        means += [Mean(f"{task} alone", (task,)) for task in tasks]
    return Axis(AVERAGE_OF, tuple(means), labels={mean: mean.name for mean in means if len(mean.tasks) == 1})
