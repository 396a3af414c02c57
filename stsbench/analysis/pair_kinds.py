"""`pair_kinds`: which kinds of pairs does a model get wrong, and which way?

Two numbers of each kind. The *shift*: how much higher the model ranks these pairs than others of like gold score.
The *cost*: how many times their share of the rank error they hold. See `docs/definitions/pair-kinds.md`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisResult, CommandWithIntervals, headline, similarity_notes
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import DataDirs, Tasks
from stsbench.records.kinds import ALL_TASKS
from stsbench.render.charts import forest
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.analysis.pair_features import PairKind
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import ScoredTask, Wanted
    from stsbench.statistics.dependence import Sharing
    from stsbench.statistics.influence import Linear

    Floats = NDArray[np.float64]

SHIFT, COST = "shift", "cost"
"""The measures: points of rank above other pairs of like gold score, and the share of the error over that of the
pairs."""

NONE_EXPECTED = {SHIFT: 0.0, COST: 1.0}
"""What a measure is where a kind is like the other pairs."""

FEWEST = 30
"""Pairs that a kind has at least, and leaves outside at least: of fewer the interval says little."""

_STRATA = 10
"""Pairs are of like gold score in the same task and the same tenth of its scale."""

_TOO_FEW = f"no kind of pairs has {FEWEST} pairs and leaves {FEWEST} outside, or no rank is wrong"

_COLUMNS = (
    *("model", "task", "feature", "kind", "measure", "pairs", "share"),
    *("value", "low", "high", "p", "weight", "similarity"),
)


class PairKinds(AnalysisResult):
    """The errors of models by kind of pair.

    Attributes:
        missing: by task why its sentences could not be looked at.
        without: models with too few pairs for any kind.
    """

    name = "pair-kinds"
    title = "Kinds of pairs"
    question = "which pairs does it get wrong, and which way?"
    look_for = "a shift whose interval leaves out 0, a cost whose interval leaves out 1"

    def __init__(
        self, frame: pd.DataFrame, missing: Mapping[str, str] | None = None, without: Sequence[str] = ()
    ) -> None:
        super().__init__(frame)
        self.missing = dict(missing or {})
        self.without = tuple(without)

    @property
    def over(self) -> pd.DataFrame:
        """The rows that stand for a model, of all tasks together or of the one."""
        return headline(self.frame)

    def table(self) -> Tables:
        """Return the shift and the cost of each kind, with their intervals."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.over.to_dict("records"):
            about = {"kind": row["kind"], "model": row["model"], "pairs": row["pairs"], "%": 100 * row["share"]}
            of_kind = rows.setdefault(
                (row["kind"], row["model"]), about | dict.fromkeys((SHIFT, f"[{SHIFT}]", COST))
            )
            of_kind |= {
                row["measure"]: row["value"],
                f"[{row['measure']}]": interval(row["low"], row["high"]),
            }
        called = {
            SHIFT: "ranked too high by",
            f"[{SHIFT}]": "its interval",
            COST: "times its share",
            f"[{COST}]": "interval of that",
        }
        frame = pd.DataFrame(list(rows.values())).rename(columns=called)
        notes = [f"without words: {reason}" for reason in dict.fromkeys(self.missing.values())]
        notes += [f"{model}: {_TOO_FEW}." for model in self.without]
        notes += similarity_notes(self.frame)
        caption = "Points of rank above pairs of like gold score; share of the rank error over share of the pairs"
        return Tables([Table(frame, caption, notes=tuple(notes))])

    def numbers(self) -> dict[str, float]:
        """Return both measures of each kind."""
        return {f"{row['measure']}, {row['kind']}": float(row["value"]) for row in self.over.to_dict("records")}

    def plot(self) -> "Figure":
        """Draw what each kind costs with its interval, by model."""
        rows = self.over
        rows = rows[rows["measure"] == COST]
        drawn = rows[["value", "low", "high"]].assign(
            label=rows["kind"], series=rows["model"], filled=True, summary=False
        )
        label = "times its share"
        return forest(drawn, label, reference=NONE_EXPECTED[COST])


def pair_kinds(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    tasks: Sequence[str] = (),
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> PairKinds:
    """Say by kind of pair how wrong runs or models rank pairs, and which way.

    Kinds are told apart by gold score (fifths of the task's scale), the spread of the ratings where they are
    published one by one, length, shared words, a negation in one sentence alone, and numbers that differ; the last
    three need the tasks' data, and are left out where that is not here. A kind has at least 30 pairs, and leaves
    30 outside.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: the tasks to look at, with commas; by default all that a run has, for models the seven STS tasks, or
            the sample.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Returns:
        One row per model, task (and `all tasks`), kind and measure, with `pairs` and their `share`, `value`,
        `low`, `high`, the p-value `p` of there being no difference, and `weight`: the share of all rank error that
        the value stands for; `similarity` is the run's own. Measures: `shift`, how much higher the similarity's
        rank is, in per cent of the task's pairs, than that of other pairs in the same tenth of its gold scores
        (none for kinds by gold score); `cost`, the sum of squared rank errors over what it would be if the kind's
        pairs were like its tasks'.

    Raises:
        UserError: if a run's pair table is missing, or lacks a task; or if there are too few pairs.

    >>> kinds = pair_kinds(lambda sentences: [[len(s), s.count("e")] for s in sentences], tasks=["sample"])
    >>> sorted(set(kinds.frame["measure"])), set(kinds.frame["task"])
    (['cost', 'shift'], {'sample'})
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import tasks_by_model

    models = tasks_by_model(analysable(runs), tasks, data_dirs=data_dirs, progress=progress)
    read = _Sentences(data_dirs)
    rows = {
        model: list(_rows([_ranked(task, read) for task in scored], intervals or Intervals()))
        for model, scored in models.items()
    }
    if not any(rows.values()):
        raise UserError(f"{_TOO_FEW}: look at tasks with more pairs.")
    about = {
        model: {"model": model, "similarity": scored[0].statistic.similarity} for model, scored in models.items()
    }
    frame = pd.DataFrame(
        [about[model] | row for model, of_model in rows.items() for row in of_model], columns=list(_COLUMNS)
    )
    return PairKinds(frame, read.missing, [model for model, of_model in rows.items() if not of_model])


class _Sentences:
    """Reads the sentences of each task once, whatever the number of models."""

    def __init__(self, data_dirs: Sequence[str | Path]) -> None:
        self._data_dirs = data_dirs
        self._kinds: dict[tuple[Any, ...], list[PairKind]] = {}
        self.missing: dict[str, str] = {}

    def kinds(self, task: "ScoredTask") -> "list[PairKind]":
        """Return all kinds of a task's pairs."""
        from stsbench.analysis.pair_features import kinds_by_numbers, kinds_by_words, sentences_here
        from stsbench.data.shared import SENTENCES

        key = (task.data, *(task.pairs[side].to_numpy().tobytes() for side in SENTENCES))
        if key not in self._kinds:
            low, high = task.gold_range
            kinds = kinds_by_numbers(task.pairs, task.gold_range) if low < high else []
            sentences, reason = sentences_here(task.pairs, self._data_dirs)
            if reason:
                self.missing[task.task] = reason
            else:
                kinds += kinds_by_words(task.pairs, sentences)
            self._kinds[key] = kinds
        return self._kinds[key]


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """The n pairs of a task by the ranks of their gold scores and similarities.

    Attributes:
        name: the task's label.
        gold, similarity: (n,) values.
        strata: (n,) codes; pairs of one are of like gold score.
        kinds: of these pairs.
        sharing: which pairs share a sentence: by letters and digits.
    """

    name: str
    gold: "Floats"
    similarity: "Floats"
    strata: "NDArray[np.intp]"
    kinds: "Sequence[PairKind]"
    sharing: "Sharing"

    def __len__(self) -> int:
        return len(self.gold)

    @cached_property
    def ranks(self) -> "tuple[Floats, Floats]":
        """The per cent of the pairs that are lower, ties half: by similarity, and by gold score."""
        from stsbench.statistics.correlations import average_ranks

        similarity, gold = (100 * (average_ranks(side) - 0.5) / len(self) for side in (self.similarity, self.gold))
        return similarity, gold

    @cached_property
    def codes(self) -> "tuple[NDArray[np.intp], NDArray[np.intp]]":
        """The places of the similarities and of the gold scores in their order, ties sharing theirs."""
        similarity, gold = (np.unique(side, return_inverse=True)[1] for side in (self.similarity, self.gold))
        return similarity, gold

    @cached_property
    def losses(self) -> "Floats":
        """The squared difference of the two ranks."""
        similarity, gold = self.ranks
        return (similarity - gold) ** 2

    def through_ranks(self, side: int, weights: "Floats") -> "Floats":
        """Return what each pair contributes to a weighted sum of ranks by being one of those ranked.

        With r_i = 100 / n * (pairs below i, ties half), one more pair j moves sum_i w_i r_i by
        (100 * (the weights above j, ties half) - sum_i w_i r_i) / n.

        Args:
            side: 0 for the ranks of similarities, 1 for those of gold scores.
            weights: (n,) of the ranks.
        """
        codes = self.codes[side]
        sums = np.bincount(codes, weights=weights)
        above = np.cumsum(sums[::-1])[::-1] - sums / 2
        contributed: Floats = (100 * above[codes] - weights @ self.ranks[side]) / len(self)
        return contributed

    def sums_of_loss(self, inside: "Floats") -> "Linear":
        """Return the sum of the losses of the pairs inside."""
        from stsbench.statistics.influence import Linear

        similarity, gold = self.ranks
        weights = 2 * inside * (similarity - gold)
        terms = inside * self.losses + self.through_ranks(0, weights) - self.through_ranks(1, weights)
        return Linear(float(inside @ self.losses), {self.name: terms})

    def centred(self, values: "Floats") -> "Floats":
        """Return values less their mean in each stratum."""
        sizes = np.bincount(self.strata)
        means = np.bincount(self.strata, weights=values) / np.maximum(sizes, 1)
        return values - means[self.strata]


def _ranked(task: "ScoredTask", read: _Sentences) -> RankedPairs:
    from stsbench.scoring.statistic import sharing_of

    low, high = task.gold_range
    gold = np.asarray(task.pairs["gold"], dtype=float)
    scaled = (gold - low) / (high - low) if high > low else np.zeros(len(gold))
    strata = np.clip((_STRATA * scaled).astype(np.intp), 0, _STRATA - 1)
    return RankedPairs(
        task.task, gold, task.similarity, strata, read.kinds(task), sharing_of(task.pairs, folded=True)
    )


def _rows(tasks: Sequence[RankedPairs], intervals: "Intervals") -> Iterator[dict[str, Any]]:
    """Yield the rows of one model: of each task, and of all together where there are several."""
    from stsbench.statistics.dependence import Sharing

    for name, pooled in [(task.name, [task]) for task in tasks] + [(ALL_TASKS, list(tasks))][: len(tasks) > 1]:
        pairs, sharing = sum(map(len, pooled)), Sharing.join([task.sharing for task in pooled])
        for feature, kind in dict.fromkeys((kind.feature, kind.name) for task in pooled for kind in task.kinds):
            inside = [_inside(task, kind) for task in pooled]
            count = int(sum(map(sum, inside)))
            if not FEWEST <= count <= pairs - FEWEST:
                continue
            about = {"task": name, "feature": feature, "kind": kind, "pairs": count, "share": count / pairs}
            for measure, (estimate, weight) in _measured(pooled, inside, feature).items():
                terms = np.concatenate([estimate.terms[task.name] for task in pooled])
                limits = _limits(measure, estimate.value, terms, sharing, intervals)
                yield about | {"measure": measure, "weight": weight} | limits


def _inside(task: RankedPairs, name: str) -> "Floats":
    inside = next((kind.inside for kind in task.kinds if kind.name == name), None)
    return np.zeros(len(task)) if inside is None else inside.astype(np.float64)


def _measured(
    tasks: Sequence[RankedPairs], inside: "Sequence[Floats]", feature: str
) -> "dict[str, tuple[Linear, float]]":
    """Return the measures of a kind, and the share of the rank error that each stands for."""
    from stsbench.analysis.pair_features import GOLD

    whole = sum(task.losses.sum() for task in tasks)
    if not whole:
        return {}
    value, expected = cost(tasks, inside)
    measured = {COST: (value, abs(value.value - 1) * expected / whole)}
    if feature != GOLD and (shifted := shift(tasks, inside)) is not None:
        value, spread = shifted
        measured = {SHIFT: (value, value.value**2 * spread / whole)} | measured
    return measured


def shift(tasks: Sequence[RankedPairs], inside: "Sequence[Floats]") -> "tuple[Linear, float] | None":
    """Return how much higher the pairs inside are ranked than others of like gold score, and their spread.

    It is the least-squares coefficient of `inside` for the similarity's rank, with an intercept for each stratum
    (Frisch and Waugh 1933): sum(k r) / sum(k^2), k being `inside` less its mean in the stratum, whose sum of
    squares is the spread. The terms are White's (1980), larger by the degrees of freedom that the intercepts take
    (HC1: MacKinnon and White 1985), and what a pair does to the ranks of others.

    Returns:
        None where every stratum is all inside or all outside.
    """
    from stsbench.statistics.influence import Linear

    centred = [task.centred(of_task) for task, of_task in zip(tasks, inside, strict=True)]
    spread = float(sum(k @ k for k in centred))
    if spread < 1e-9:
        return None
    value = float(sum(k @ task.ranks[0] for task, k in zip(tasks, centred, strict=True))) / spread
    pairs, strata = sum(map(len, tasks)), sum(len(set(task.strata.tolist())) for task in tasks)
    scale = (pairs / max(pairs - strata - 1, 1)) ** 0.5
    terms = {
        task.name: scale
        * (k * (task.centred(task.ranks[0]) - value * k) / spread + task.through_ranks(0, k / spread))
        for task, k in zip(tasks, centred, strict=True)
    }
    return Linear(value, terms), spread


def cost(tasks: Sequence[RankedPairs], inside: "Sequence[Floats]") -> "tuple[Linear, float]":
    """Return the rank error of the pairs inside over what it would be if they were like their tasks' pairs.

    The latter, too: of each task its mean error times the number of its pairs inside.
    """
    from stsbench.statistics.influence import Linear

    found, expected = [], []
    for task, of_task in zip(tasks, inside, strict=True):
        every = np.ones(len(task))
        number, count = (Linear(float(of.sum()), {task.name: of}) for of in (of_task, every))
        found.append(task.sums_of_loss(of_task))
        expected.append(number * (task.sums_of_loss(every) / count))
    below = reduce(add, expected)
    return reduce(add, found) / below, below.value


def _limits(
    measure: str, value: float, terms: "Floats", sharing: "Sharing", intervals: "Intervals"
) -> dict[str, float]:
    from stsbench.statistics.dependence import variance
    from stsbench.statistics.intervals import plain_interval, two_sided_p

    if intervals.interval is None:
        return {"value": value, "low": float("nan"), "high": float("nan"), "p": float("nan")}
    spread = variance(terms, sharing, intervals.interval)
    low, high, _ = plain_interval(value, spread, intervals.level)
    return {"value": value, "low": low, "high": high, "p": two_sided_p(value - NONE_EXPECTED[measure], spread)}


@dataclass(frozen=True)
class PairKindsCommand(CommandWithIntervals):
    """Find the kinds of pairs that a model ranks wrongly, and in which direction.

    Kinds by gold score, length, shared words, negation and numbers; for each its share of the rank error and its
    mean rank error. The sentences come from the tasks' data.

    Examples:
    * `stsbench pair-kinds runs/minilm-avg-sts`
    * `stsbench pair-kinds runs/a runs/b --tasks STS12,SICK-R --figure kinds.pdf`
    """

    verb = staticmethod(pair_kinds)
    result = PairKinds
    of_pairs = True

    tasks: Tasks = None
    data_dirs: DataDirs = None
