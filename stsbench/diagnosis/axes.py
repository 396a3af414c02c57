"""The choices that move a score or vectors: each is an axis with its values, its cost and its words.

The searches, the verdict, the table and the JSON treat all axes alike. This module has those that need no new
vectors; `VARIATIONS` (`variations.py`) and `SERVED` (`inputs.py`) list the others. It also has the claims.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.data.catalogue import data_set
from stsbench.encoders.use import option_of
from stsbench.published.catalogue import PublishedRow, row
from stsbench.published.schema import PublishedCell
from stsbench.records.kinds import AVERAGE
from stsbench.scoring.settings import AGGREGATIONS
from stsbench.scoring.tasks import STS_TASKS
from stsbench.statistics.neighbours import SIMILARITIES


def _each_value(axis: "Axis", _encoder: Any) -> "list[Change]":
    return [axis.change(value, **{axis.name: value}) for value in axis.values]


@dataclass(frozen=True)
class Axis:
    """A choice that moves a score or vectors. Axes are equal if their names are.

    Attributes:
        name: in tables and JSON.
        values: the values to try; in the grid, the first is your setting.
        cost: the place in the order of trying, the cheapest and most plausible first; 0 in the grid.
        applies: whether it can matter to an encoder whose score is so many points off.
        tries: for an encoder, the changes to try; by default each value for the field of this name.
        moves: the vectors that move: `all`, those of `some` sentences, or all of them by rounding (`bits`).
        task: the task whose splits are the values; empty for other choices.
        renames: by value, a text in `--tasks` and its replacement.
        option: the option of `stsbench run` that sets the value; empty if there is none.
        label: a value in tables and sentences.
        labels: exceptions to `label`, by value.
        options: exceptions to `option`, by value.
        meanings: by value, a sentence on its meaning and users.
    """

    name: str
    values: tuple[Any, ...] = field(default=(), compare=False)
    cost: int = field(default=0, compare=False)
    applies: Callable[[Any, float], bool] = field(default=lambda _encoder, _gap: True, compare=False)
    tries: "Callable[[Axis, Any], Iterable[Change]]" = field(default=_each_value, compare=False)
    moves: Literal["all", "some", "bits"] = field(default="all", compare=False)
    task: str = field(default="", compare=False)
    renames: Mapping[Any, tuple[str, str]] = field(default_factory=dict, compare=False)
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
        """Returns the label of a value."""
        usual = self.label.format(name=self.name.replace("_", " "), value=value)
        return self.labels.get(value, usual)

    def change(self, value: Any, **fields: Any) -> "Change":
        """Returns the change to a value, which sets these fields."""
        return Change(self, value, fields)

    def changes_at(self, place: int) -> "Way":
        """Returns how the value at a place differs from the first, which is yours."""
        value = self.values[place]
        return value if isinstance(value, Way) else Way([Change(self, value)] if place else [])


@dataclass(frozen=True)
class Change:
    """A value that differs from your setting, and the fields of `Use` or `Feed` that it sets."""

    axis: Axis
    value: Any
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def label(self) -> str:
        """The value in tables and sentences."""
        return self.axis.label_of(self.value)

    @property
    def option(self) -> str:
        """The option of `stsbench run` that chooses it; empty if there is none."""
        usual = f"{self.axis.option} {shlex.quote(str(self.value))}" if self.axis.option else ""
        return self.axis.options.get(self.value, usual)

    @property
    def meaning(self) -> str:
        """The meaning of the value and its users, as a sentence; empty if its label is clear."""
        return self.axis.meanings.get(self.value, "")


class Way(tuple[Change, ...]):
    """The changes of a setting; none for yours."""

    __slots__ = ()

    def __str__(self) -> str:
        return ", ".join(change.label for change in self)

    def plus(self, *changes: Change) -> "Way":
        """Returns the way with further changes."""
        return Way((*self, *changes))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that the changes set."""
        return {name: value for change in self for name, value in change.fields.items()}


def single_ways(axes: Iterable[Axis], encoder: Any, gap: float = 0.0) -> list[Way]:
    """Returns each change of the axes that apply to an encoder, the cheapest axis first.

    `gap` is the difference between the claim and your setting's score, in points.
    """
    applying = sorted((axis for axis in axes if axis.applies(encoder, gap)), key=lambda axis: axis.cost)
    return [Way([change]) for axis in applying for change in axis.tries(axis, encoder)]


@dataclass(frozen=True)
class Mean:
    """A definition of the average that papers use.

    Attributes:
        name: in tables and JSON.
        tasks: the averaged tasks.
        rounded: whether their scores are rounded to two decimals first, as public scripts do.
    """

    name: str
    tasks: tuple[str, ...]
    rounded: bool = False

    def __str__(self) -> str:
        return self.name

    def of(self, scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Returns the mean of the tasks' scores, which broadcast."""
        parts = (np.round(scores[task], 2) if self.rounded else scores[task] for task in self.tasks)
        return np.asarray(sum(parts) / len(self.tasks))


def of_use(name: str, **attributes: Any) -> Axis:
    """Returns the axis of a field of `Use`."""
    return Axis(**{"name": name, "option": option_of(name)} | attributes)


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
    option="--aggregation",
    meanings={
        "all": "`all` is one correlation over all pairs, as SimCSE, ESimCSE and MoCoSE report.",
        "wmean": "`wmean` is the mean over subsets weighted by pairs, SentEval's headline.",
    },
)

METRIC = Axis("metric", ("spearman", "pearson"), option="--metric")

TEXT = Axis(
    "text",
    option="--text",
    renames={"raw": ("@senteval-v2", "@raw-v2")},
    meanings={
        "raw": "`raw` is the text as first released. The papers score SentEval's tokenised, lower-cased text."
    },
)

MAX_LENGTH = of_use("max_length", labels={None: "no maximum length"})

SIMILARITY = Axis("similarity", SIMILARITIES, option="--similarity")

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


def split_axis(task: str, values: Iterable[str]) -> Axis:
    """Returns the splits of a task, yours first."""
    return Axis(f"{task} split", tuple(values), task=task, meanings=_SPLITS.get(task, {}))


def average_axis(tasks: Sequence[str]) -> Axis:
    """Returns the definitions of the average that papers use, the mean of all tasks first.

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
    return Axis("average", tuple(means), labels={mean: mean.name for mean in means if len(mean.tasks) == 1})


NOISE = 0.005
"""Points by which another device, library or thread count may move a score."""

_NUMBER = re.compile(r"(?:(?P<task>.*\S)\s*=\s*)?(?P<number>[+-]?\d+(?:\.(?P<decimals>\d+))?)\s*%?")
_AVERAGES = {"avg", "average", "mean"}
_ROW = "row:"


@dataclass(frozen=True)
class Value:
    """A claimed number.

    Attributes:
        task: a task, or `Avg.`; empty for a bare number until `Claim.about` names its task.
        score: from 0 to 100.
        decimals: number of printed digits after the point.
        tolerance: the largest difference of a score that matches.
    """

    task: str
    score: float
    decimals: int
    tolerance: float

    def __str__(self) -> str:
        return f"{self.score:.{self.decimals}f}"


@dataclass(frozen=True)
class Claim:
    """The numbers to explain.

    Attributes:
        values: at least one, of different tasks.
        row: the published row that they are from, or None.
        notes: how the claim was read, if that is not obvious.
    """

    values: tuple[Value, ...]
    row: PublishedRow | None = None
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the values."""
        return tuple(value.task for value in self.values)

    def about(self, tasks: Sequence[str]) -> "Claim":
        """Returns the claim with a bare number taken as the score of these tasks, or their average."""
        task = tasks[0] if len(tasks) == 1 else AVERAGE
        return replace(self, values=tuple(replace(value, task=value.task or task) for value in self.values))


def read_claim(claim: str | float, tolerance: float | None = None) -> Claim:
    """Reads a claim.

    Args:
        claim: a number (`76.25` or `0.7625`), numbers by task (`STS16=81.21,SICK-R=77.58`), or `row:NAME` with a
            name that `stsbench.published.row` accepts. A float has at least two decimals.
        tolerance: the largest difference of a score that matches; by default half a unit of the number's last
            digit, plus `NOISE`.

    Raises:
        UserError: if the claim cannot be read.

    >>> [(value.task, str(value)) for value in read_claim("sts16=0.8121, avg=0.789").values]
    [('STS16', '81.21'), ('Avg.', '78.9')]
    """
    if tolerance is not None and not 0 < tolerance < 100:
        raise UserError(f"a tolerance of {tolerance:g}: give a positive number of points, such as 0.05.")
    # 76.20 as a float has lost its zero, and tables print at least two digits.
    text = claim.strip() if isinstance(claim, str) else max(str(claim), f"{claim:.2f}", key=len)
    if text.casefold().startswith(_ROW):
        return _read_row(row(text[len(_ROW) :].strip()), tolerance)
    numbers = [_number(part.strip()) for part in text.split(",") if part.strip()]
    tasks = [task for task, *_ in numbers]
    if len(set(tasks)) < len(tasks) or (len(tasks) > 1 and "" in tasks) or not tasks:
        example = "a number for each task (STS16=81.21,SICK-R=77.58)"
        raise UserError(f"cannot read the claim {text!r}: give one number, {example}, or row:NAME.")
    # If all numbers are at most 1, they are on the scale from 0 to 1.
    is_small = all(abs(score) <= 1 and decimals > 1 for _, score, decimals in numbers) and "%" not in text
    if is_small:
        numbers = [(task, round(100 * score, 10), decimals - 2) for task, score, decimals in numbers]
    values = [
        Value(task, score, min(decimals, 4), 0.5 * 10.0**-decimals + NOISE if tolerance is None else tolerance)
        for task, score, decimals in numbers
    ]
    return Claim(tuple(values), notes=("The claim was read on the scale from 0 to 1.",) if is_small else ())


def _task(name: str) -> str:
    if name.casefold().rstrip(".") in _AVERAGES:
        return AVERAGE
    if ":" in name or "@" in name:
        raise UserError(f"{name!r}: name only the task, because diagnose tries splits and texts.")
    entry = data_set(name)
    if entry.kind != "sts":
        raise UserError(f"{entry.task} has labels, not similarity scores: diagnose is for the STS tasks.")
    return entry.task


def _number(text: str) -> tuple[str, float, int]:
    """Returns the task of a number ("" for a bare one), the number, and its digits after the point."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise UserError(
            f"cannot read {text!r} in the claim: write a number (76.25), TASK=NUMBER (STS16=81.21), or row:NAME."
        )
    if abs(float(number["number"])) > 100:
        raise UserError(f"{text} in the claim: a correlation is between -100 and 100.")
    task = _task(number["task"]) if number["task"] else ""
    return task, float(number["number"]), len(number["decimals"] or "")


def _read_row(published: PublishedRow, tolerance: float | None) -> Claim:
    """Returns the STS scores of a row; of several values of a task the one on the test split."""
    cells: dict[str, PublishedCell] = {}
    for cell in sorted(filter(_is_sts, published.cells), key=lambda cell: cell.setting.split != "test"):
        task = cell.setting.task
        cells.setdefault(task if task in STS_TASKS else AVERAGE, cell)
    if cells.keys() >= {AVERAGE, *STS_TASKS}:
        del cells[AVERAGE]  # it follows from the seven
    if not cells:
        raise UserError(
            f"{published.name} prints no Spearman's or Pearson's correlation of an STS task: choose another row."
        )
    empty = [cell.column for cell in published.cells if cell.value is None]
    values = [
        Value(
            task,
            cells[task].score or 0.0,
            # Correlations printed in full precision are compared to two digits.
            min(2, cells[task].decimals - (2 if cells[task].setting.unit == "1" else 0)),
            tolerance if tolerance is not None else cells[task].rounding + NOISE,
        )
        for task in (*STS_TASKS, AVERAGE)
        if task in cells
    ]
    notes = (f"{published.name} has no value for {', '.join(empty)}.",) if empty else ()
    return Claim(tuple(values), published, notes)


def _is_sts(cell: PublishedCell) -> bool:
    setting = cell.setting
    is_correlation = setting.metric in {"spearman", "pearson"} and setting.unit in {"x100", "1"}
    is_of_task = setting.task in {*STS_TASKS, "Avg. STS"} and not setting.group
    return cell.score is not None and is_correlation and is_of_task
