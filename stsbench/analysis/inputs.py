"""The inputs of an analysis: its parameters, the vectors of a model, and estimates with their intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.base.words import suggestion
from stsbench.cli.options import DATA, LARGEST, LARGEST_SEED, DataDirs, OwnTexts
from stsbench.data.tables import SENTENCES
from stsbench.records.kinds import AVERAGE
from stsbench.records.record import RunRecord
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import sharing_of
from stsbench.scoring.subjects import ScoredTask, SentenceVectors, Subject, Wanted, named_subjects, vectors_of
from stsbench.statistics.correlations import spearman
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.estimate import Estimate
from stsbench.statistics.influence import Floats, Linear, task_terms
from stsbench.statistics.intervals import correlation_interval, share_interval
from stsbench.statistics.neighbours import directions, pair_similarities, zero_rows


@dataclass(frozen=True)
class Parameter:
    """A parameter of an analysis.

    Attributes:
        default: the default value.
        help: its meaning, for `--help` and the documentation of the verb.
        flags: the names of its option; by default its own name.
        kind: the type of a value on the command line, or of each in a list; by default that of the default value.
        limits: the smallest and the largest number allowed, for each number of a list.
        choices: the values allowed.
        example: for a list that is typed with commas, an example of one; other lists repeat the option.
        panel: the heading of its option in `--help`.
    """

    default: Any
    help: str
    flags: tuple[str, ...] = ()
    kind: Any = None
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    example: str = ""
    panel: str | None = None

    def check(self, name: str, value: Any) -> None:
        """Raises a UserError if a value is not allowed."""
        option = max(self.flags, key=len, default=f"--{name.replace('_', '-')}")
        several = isinstance(value, Iterable) and not isinstance(value, str)
        for item in value if several else [] if value is None else [value]:
            if self.choices and item not in self.choices:
                raise UserError(f"{option} {item!r}: {suggestion(item, self.choices)}")
            if self.limits and not self.limits[0] <= item <= self.limits[1]:
                raise UserError(f"{option} {item}: expected {self.limits[0]:,.10g} to {self.limits[1]:,.10g}.")


@dataclass(frozen=True)
class Answer:
    """A question and its answer: a column of some rows, aggregated by `take` (as in `agg`).

    `number` is its format, and `rows` the values of other columns in these rows.
    """

    question: str
    number: str = ".2f"
    unit: str = ""
    rows: Mapping[str, Any] = field(default_factory=dict)
    column: str = "value"
    take: Any = "mean"

    def of(self, frame: pd.DataFrame) -> "pd.Series[float]":
        """Returns the number of each model, from `headline`."""
        rows = frame[(frame[list(self.rows)] == pd.Series(self.rows)).all(axis=1)] if self.rows else frame
        numbers: pd.Series[float] = rows.groupby("model", sort=False)[self.column].agg(self.take)
        return numbers


COUNT = (1, LARGEST)
"""The limits of a count."""

parameter: Callable[..., Any] = Parameter
"""Declares a parameter of an analysis, with the type of its value."""


def _folders(alias: Any) -> Any:
    """Declares a repeatable path that other commands have, too."""
    _, option = get_args(alias)
    # In `Annotated`, the first argument of `typer.Option` is a flag.
    return Parameter((), option.help, (option.default,), Path, panel=option.rich_help_panel)


TASKS: Sequence[str] = parameter(
    (),
    "The tasks, with commas; by default all of a run, the seven STS tasks, or the sample.",
    flags=("--tasks", "-t"),
    kind=str,
    example="STS12,STS-B",
    panel=DATA,
)
TASK: str | None = parameter(
    None, "The task; by default `STS-B`, or the sample if its data is not here.", kind=str, panel=DATA
)
SPLIT: str | None = parameter(None, "The split; by default all of the task.", kind=str, panel=DATA)
TEXT_HELP = "The text: `senteval` (tokenised, lower-cased) or `raw`."
TEXT: str = parameter("senteval", TEXT_HELP, panel=DATA)
OWN_DATA: Sequence[str | Path] = _folders(OwnTexts)
DATA_DIRS: Sequence[str | Path] = _folders(DataDirs)
INTERVALS: Any = parameter(None, "How intervals are computed, an `Intervals`.")
SEED: int = parameter(0, "The random seed.", limits=(0, LARGEST_SEED))
CORPUS: str | Path = parameter("sample", "The corpus: a file with one sentence per line, or `sample`.")

OfTask = TypeVar("OfTask")

_SAME = 1e-9  # Directions that differ by no more are equal


def analysable(runs: Wanted | Sequence[Wanted] | None) -> dict[str, Subject]:
    """Returns records and models by their names in tables; a UserError if a record was imported."""
    subjects = named_subjects(runs)
    for name, subject in subjects.items():
        if isinstance(subject, RunRecord) and subject.is_imported:
            raise UserError(
                f"{name} was imported and has scores only, but analyses need pairs or vectors; measure the model "
                "with `stsbench run`."
            )
    return subjects


class PairVectors(NamedTuple):
    """The n pairs of a task with the vectors of their sentences.

    Attributes:
        vectors: (m, d), one row per distinct token sequence.
        rows: (2n,) the row of each sentence: first sides, then second sides.
        gold: (n,) gold scores.
        texts: (2n,) equal numbers for equal texts, in the order in which texts first occur.
    """

    vectors: NDArray[np.floating[Any]]
    rows: NDArray[np.integer[Any]]
    gold: NDArray[np.float64]
    texts: NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class ScoredVectors:
    """The n scored pairs of a task, and the vectors of their m distinct sentences.

    Attributes:
        pairs: their rows of the items table.
        left, right: (n,) the row in `vectors` of each pair's first and second sentence.
        ids: (m,) rising ids of the sentences (`data.tables.sentence_ids`).
        chains: (m,) the chain of shared sentences that each belongs to, over all tasks of the model.
    """

    task: str
    pairs: pd.DataFrame
    vectors: NDArray[np.floating[Any]]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    ids: NDArray[np.uint64]
    chains: NDArray[np.intp]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(m,) whether a sentence has a nonzero vector."""
        return ~zero_rows(self.vectors)

    @classmethod
    def of(
        cls, model: str, task: ScoredTask, embedded: SentenceVectors, chains: NDArray[np.intp]
    ) -> "ScoredVectors":
        """Joins a task, the vectors of its first and second sentences, and the chains of its pairs.

        Raises:
            UserError: if all vectors have the same direction.
        """
        ids = np.concatenate([task.pairs[side] for side in SENTENCES])
        distinct, first, places = np.unique(ids, return_index=True, return_inverse=True)
        left, right = np.split(places, 2)
        of_sentences = np.empty(len(distinct), dtype=np.intp)
        of_sentences[left] = of_sentences[right] = chains
        vectors = embedded.vectors[embedded.rows[first]]
        units = directions(vectors[~zero_rows(vectors)]).units
        if not len(units):
            raise UserError(f"{model} gives every sentence of {task.task} a zero vector.")
        if (np.maximum(units.max(axis=0) - units[0], units[0] - units.min(axis=0)) < _SAME).all():
            raise UserError(f"{model} gives all {len(units)} sentences of {task.task} the same direction.")
        return cls(task.task, task.pairs, vectors, left, right, distinct, of_sentences)


def triple_cosines(
    subject: Subject, triples: Sequence[tuple[str, str, str]], progress: Progress
) -> tuple[Floats, Floats]:
    """Returns the (n,) cosines of the first with the second, and with the third, text of each of n triples."""
    vectors, rows = vectors_of(subject, [text for triple in triples for text in triple], progress)
    first, *others = rows.reshape(-1, 3).T
    second, third = (pair_similarities(vectors, first, other)["cosine"] for other in others)
    return second, third


UNITS = ("words", "subwords", "characters")
"""Words between spaces as released, sub-words of the model's tokeniser without special tokens, or characters."""

LENGTH: str = parameter("words", "The unit of length: `words`, `subwords` or `characters`.", choices=UNITS)
BINS: Sequence[int] = parameter(
    (),
    "The lower ends of the bins, ascending from 0, with commas: `0,1,2,4,8`.",
    kind=int,
    example="0,1,2,4,8",
    limits=(-LARGEST, LARGEST),
)

Bins = dict[str, tuple[int, float]]
"""The first and the last length of each bin, by name."""


def bins_from(edges: Sequence[int]) -> Bins:
    """Returns bins with the given lower ends; the last bin has no upper end.

    >>> list(bins_from((0, 1, 4)).items())
    [('0', (0, 0)), ('1-3', (1, 3)), ('4+', (4, inf))]
    """
    if edges[0] != 0 or list(edges) != sorted(set(edges)):
        raise UserError(f"--bins {','.join(map(str, edges))}: give rising numbers from 0, such as 0,1,2,4,8.")
    bins: Bins = {}
    for start, end in zip(edges, [*(edge - 1 for edge in edges[1:]), float("inf")], strict=True):
        last = "+" if end == float("inf") else f"-{end:.0f}" if start < end else ""
        bins[f"{start}{last}"] = start, end
    return bins


def sides(pairs: pd.DataFrame, unit: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the lengths of the first and of the second sentence of each pair; a UserError if unknown."""
    a, b = (np.asarray(pairs[f"{unit}_{side}"], dtype=float) for side in "ab")
    if (a < 0).any() or (b < 0).any():
        raise UserError(
            f"the lengths in {unit} are unknown, as the model has no tokeniser: use --length words or --length "
            "characters."
        )
    return a, b


@dataclass(frozen=True)
class Estimates:
    """Intervals of estimates whose terms belong to blocks of items; a value of fewer than `fewest` has none.

    `sharing` states which items share a sentence, in one block as released, in several together as `folded`, by
    letters and digits.
    """

    intervals: Intervals
    fewest: int = 4
    folded: dict[str, Sharing] = field(default_factory=dict)
    sharing: dict[tuple[str, ...], Sharing] = field(default_factory=dict)

    def block(self, name: str, items: pd.DataFrame | Sharing) -> None:
        """Registers the rows of an items table, or a sharing of sentences, as a block; needed before `limits`."""
        self.sharing[name,] = items if isinstance(items, Sharing) else sharing_of(items)
        self.folded[name] = items if isinstance(items, Sharing) else sharing_of(items, folded=True)

    def limits(
        self,
        estimate: Linear,
        items: int | None = None,
        *,
        correlation: bool = False,
        share: bool = False,
        normal: bool = False,
        scale: float = 1,
    ) -> dict[str, float]:
        """Returns an estimate's `value`, `low` and `high` times `scale`, NaN for undefined ones.

        Items of one block are linked by sentences as released, those of several blocks by letters and digits; by
        default there are as many `items` as terms. A `correlation` is given x 100; a `share` has limits from 0 to
        1. An estimate of several blocks is an average, with a plain interval. A `normal` interval replaces
        Student's t, whose degrees of freedom are too few if few items differ from the rest.
        """
        value, level, is_single = estimate.value, self.intervals.level, len(estimate.terms) == 1
        items = sum(map(len, estimate.terms.values())) if items is None else items
        if isnan(value) or items < self.fewest or self.intervals.interval is None:
            return {"value": scale * value, "low": nan, "high": nan}
        if correlation and is_single:
            low, high, _ = correlation_interval(value / 100, self.spread(estimate, 100), items, level)
            return {"value": scale * value, "low": 100 * low, "high": 100 * high}
        low, high, spread = nan, nan, self.spread(estimate)
        spread = replace(spread, df=inf) if normal else spread
        if share and is_single:
            low, high, _ = share_interval(value, spread, items, level)
        elif spread.value > 0:
            low, high, _ = Estimate(value, spread).interval(level)
        return {"value": scale * value, "low": scale * low, "high": scale * high}

    def spread(self, estimate: Linear, scale: float = 1) -> Variance:
        """Returns the variance of an estimate divided by `scale`."""
        terms, blocks = np.concatenate(list(estimate.terms.values())), tuple(estimate.terms)
        if blocks not in self.sharing:
            self.sharing[blocks] = Sharing.join([self.folded[block] for block in blocks])
        return variance(terms / scale, self.sharing[blocks], self.intervals.interval or "dyadic")


def total(estimates: Sequence[Linear]) -> Linear:
    """Returns the sum of estimates with its terms."""
    first, *others = estimates
    return sum(others, first)


def mean(estimates: Sequence[Linear]) -> Linear:
    """Returns the mean of estimates with its terms."""
    return total(estimates) / len(estimates)


def averaged(tasks: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Returns the sum over tasks of counts, and the mean of estimates and other numbers, by their keys."""
    columns = {key: [of_task[key] for of_task in tasks] for key in tasks[0]}
    ways: dict[type, Callable[..., Any]] = {int: sum, Linear: mean, float: lambda of: float(np.mean(of))}
    return {key: ways[type(values[0])](values) for key, values in columns.items()}


def with_overall(tasks: Mapping[str, OfTask], join: Callable[..., Any], name: str = AVERAGE) -> dict[str, OfTask]:
    """Adds to several tasks the value of all of them, for which `join` gets a list.

    >>> with_overall({"a": {"pairs": 1, "score": 0.5}, "b": {"pairs": 3, "score": 1.5}}, averaged)["Avg."]
    {'pairs': 4, 'score': 1.0}
    >>> with_overall({"a": 1}, sum)
    {'a': 1}
    """
    return {**tasks, **({name: join(list(tasks.values()))} if len(tasks) > 1 else {})}


def spearman_of_task(block: str, pairs: pd.DataFrame, similarity: Floats) -> Linear:
    """Returns the correlation x 100 of a whole task as `stsbench run` computes it, with fixed subsets."""
    gold, codes = np.asarray(pairs["gold"], dtype=float), pd.factorize(pairs["subset"])[0]
    terms = task_terms(gold, similarity, codes)
    return Linear(100 * spearman(gold, similarity), {block: 100 * terms})
