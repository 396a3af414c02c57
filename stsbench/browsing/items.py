"""What is told of each item: what people say, what each model says, and what that does to the score."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.judging.aligned import AlignedScores
from stsbench.records.kinds import KINDS
from stsbench.statistics import LEVEL
from stsbench.statistics.correlations import average_ranks, members_of
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.intervals import t_quantile

Floats = NDArray[np.float64]

MODELS = ("a", "b")
"""What stands at the end of a column's name for the first and for the second run."""


@dataclass(frozen=True)
class Total:
    """The scores on a task, or on average.

    Attributes:
        name: what it is called.
        scores: of each model, x 100.
    """

    name: str
    scores: tuple[float, ...]

    @classmethod
    def of(cls, task: AlignedScores) -> "Total":
        """Return those of one or two aligned models."""
        return cls(task.task, tuple((100 * task.scores).tolist()))

    def as_dict(self) -> dict[str, Any]:
        """Return it as the page's script reads it."""
        return {"name": self.name, "scores": [_rounded(score, 6) for score in self.scores]}


@dataclass(frozen=True, eq=False)
class TaskItems:
    """The n items of a task, as one or two models were scored on them.

    Attributes:
        total: its scores.
        average: what the mean over the tasks of its kind is called.
        unit: the plural noun for its items.
        statistic: what the score is.
        table: a row an item. `rank_gold`, `rank_a`: per cent of the items that are lower, ties half, among those
            that are ranked together (the task's, or a subset's where the score is a mean over subsets).
            `residual_a`: `rank_a` less `rank_gold`: how far too high the model puts the pair. `influence_a`: the
            item's influence x 100 (`Statistic.influences`): the score is about so much higher for its being there.
            `gain`: what it adds to the difference of the two scores x 100: the difference of its influences, and
            its even share of the whole (of its subset's where the score is a mean over subsets), so that they add
            up to the difference. `shares`: how many other items have one of its sentences. `longer`: words by
            which its longer sentence is longer.
        is_stratified: whether the interval of a sum takes the subsets, as they are, for given (`task_terms`).
    """

    total: Total
    average: str
    unit: str
    statistic: str
    table: pd.DataFrame
    is_stratified: bool

    @property
    def is_ranked(self) -> bool:
        """Whether gold scores are held against a similarity."""
        return "rank_gold" in self.table.columns


def items_of(task: AlignedScores, statistic: str) -> TaskItems:
    """Return the items of a task whose aligned tables are whole.

    Args:
        task: one or two models on it.
        statistic: what the score is called.
    """
    first, kind = task.items[0], KINDS[task.kind]
    told = ["item_id", "subset", *(name for name in ("gold", "label", "fold") if name in kind.columns)]
    columns: dict[str, Any] = {name: first[name] for name in told}
    columns |= {name: first[name] for name in (*SENTENCES, *FOLDED)}
    columns["shares"] = shares(task.sharing)
    if "words_a" in first.columns:
        columns["longer"] = np.abs(first["words_a"].astype(np.int64) - first["words_b"])
    influences = [task.statistic.influences(table) for table in task.items]
    for end, table, influence in zip(MODELS, task.items, influences, strict=False):
        said = [name for name in ("prediction", "correct", "score") if name in kind.columns]
        columns |= {f"{name}_{end}": table[name] for name in said}
        columns[f"influence_{end}"] = 100 * influence
    if kind.by_similarity:
        columns |= _ranked(task)
    if len(task.scores) == len(MODELS):
        columns["gain"] = 100 * (influences[1] - influences[0] + _even_shares(task))
    whole, stratified = Total.of(task), task.statistic.is_stratified
    return TaskItems(whole, kind.average, kind.unit, statistic, pd.DataFrame(columns), stratified)


def _even_shares(task: AlignedScores) -> Floats:
    """Return what each item adds to the difference of two models where all of them add the same."""
    if task.statistic.over_subsets == "all":
        return np.full(task.size, float(np.diff(task.scores)[0]) / task.size)
    members = members_of(pd.factorize(task.items[0]["subset"])[0], task.size)
    shares = np.empty(task.size)
    for of_subset in members:
        a, b = (task.statistic.of_subset.value(table.iloc[of_subset]) for table in task.items)
        weight = 1 / len(members) if task.statistic.over_subsets == "mean" else len(of_subset) / task.size
        shares[of_subset] = weight * (b - a) / len(of_subset)
    return shares


def _ranked(task: AlignedScores) -> dict[str, Floats]:
    """Return the similarity of each model, the ranks of gold and of it, and how far these are apart."""
    similarity = task.statistic.columns[0]
    groups = [np.arange(task.size)]
    if task.statistic.over_subsets != "all":
        groups = members_of(pd.factorize(task.items[0]["subset"])[0], task.size)
    columns = {"rank_gold": percentiles(task.items[0]["gold"].to_numpy(), groups)}
    for end, table in zip(MODELS, task.items, strict=False):
        columns[f"similarity_{end}"] = table[similarity].to_numpy()
        columns[f"rank_{end}"] = percentiles(table[similarity].to_numpy(), groups)
        columns[f"residual_{end}"] = columns[f"rank_{end}"] - columns["rank_gold"]
    return columns


def percentiles(values: Floats, groups: Sequence[NDArray[np.intp]]) -> Floats:
    """Return the per cent of a group that is lower than each of its (n,) values, ties half.

    >>> percentiles(np.array([1.0, 3.0, 3.0, 5.0]), [np.arange(4)]).tolist()
    [12.5, 50.0, 50.0, 87.5]
    """
    ranks = np.empty(len(values))
    for members in groups:
        ranks[members] = 100 * (average_ranks(values[members]) - 0.5) / len(members)
    return ranks


def shares(sharing: Sharing) -> NDArray[np.intp]:
    """Return how many other pairs have at least one of each pair's sentences.

    >>> shares(Sharing.of(["a", "a", "b", "c"], ["b", "b", "d", "c"])).tolist()
    [2, 2, 2, 0]
    """
    apart = sharing.first != sharing.second
    stands_in = np.bincount(sharing.first, minlength=sharing.sentences)
    stands_in += np.bincount(sharing.second[apart], minlength=sharing.sentences)
    others = stands_in[sharing.first] - 1
    others[apart] += stands_in[sharing.second[apart]] - 1
    # Who shares both was counted twice.
    different, codes = sharing.same_two
    if len(different):
        others[different] -= np.bincount(codes)[codes] - 1
    return others


def overlap_of(first: str, second: str) -> float:
    """Return the words that two sentences have both, over those that either has (Jaccard), whatever their case.

    >>> round(overlap_of("A dog runs .", "a cat runs ."), 2)
    0.6
    """
    ones, others = set(first.casefold().split()), set(second.casefold().split())
    return len(ones & others) / len(ones | others) if ones or others else 1.0


def payload(
    tasks: Sequence[TaskItems], averages: Sequence[Total], models: Sequence[str], texts: Mapping[int, str] | None
) -> dict[str, Any]:
    """Return all of it as the page's script reads it: columns over the items of all tasks, one after the other.

    Texts and sentences are told once each, and an item names them by their places.

    Args:
        tasks: with the items of the same models.
        averages: over the tasks of a kind.
        models: what they are called.
        texts: each sentence by its number (`data.shared.sentence_ids`), where items have some; None for a page
            without text.
    """
    numbers = [np.concatenate([task.table[name] for task in tasks]) for name in SENTENCES]
    nodes, codes = np.unique(np.concatenate(numbers), return_inverse=True)
    folded = np.zeros(len(nodes), dtype=np.uint64)
    folded[codes] = np.concatenate([task.table[name] for name in FOLDED for task in tasks])
    size = len(numbers[0])
    names = list(dict.fromkeys(name for task in tasks for name in task.table.columns))
    columns: dict[str, Any] = {}
    dictionaries: dict[str, list[str]] = {}
    for name in names:
        if name in (*SENTENCES, *FOLDED):
            continue
        values = [value for task in tasks for value in _values(task.table, name)]
        if any(isinstance(value, str) for value in values) and name != "item_id":
            places, words = pd.factorize(
                np.array(["" if value is None else value for value in values], dtype=object)
            )
            dictionaries[name], columns[name] = words.tolist(), places.tolist()
        else:
            columns[name] = values
    columns |= {"first": codes[:size].tolist(), "second": codes[size:].tolist()}
    sentences = None if texts is None else [texts.get(number, "") for number in nodes.tolist()]
    if sentences is not None:
        columns["overlap"] = [
            round(overlap_of(sentences[one], sentences[other]), 3)
            for one, other in zip(columns["first"], columns["second"], strict=True)
        ]
    return {
        "models": list(models),
        "averages": [average.as_dict() for average in averages],
        "tasks": [
            {
                **task.total.as_dict(),
                "average": task.average,
                "unit": task.unit,
                "statistic": task.statistic,
                "size": len(task.table),
                "ranked": task.is_ranked,
                "stratified": task.is_stratified,
            }
            for task in tasks
        ],
        "quantiles": _quantiles() if len(models) == len(MODELS) else [],
        "names": dictionaries,
        "columns": columns,
        "sentences": sentences,
        "folded": np.unique(folded, return_inverse=True)[1].tolist(),
    }


_STEPS = 256


def _quantiles() -> list[float]:
    """Return Student's t of the intervals by 1 over its degrees of freedom: at 0, 1/256, ..., 1."""
    degrees = [_STEPS / step if step else math.inf for step in range(_STEPS + 1)]
    return [round(t_quantile((1 + LEVEL) / 2, df), 6) for df in degrees]


_DECIMALS = {"similarity": 5, "rank": 2, "residual": 2, "influence": 7, "gain": 7, "gold": 4, "score": 6}
"""How many of a column are told; more are noise, and make the page large."""


def _values(table: pd.DataFrame, name: str) -> list[Any]:
    if name not in table.columns:
        return [None] * len(table)
    values = table[name]
    if values.dtype.kind == "f":
        decimals = _DECIMALS.get(name.partition("_")[0], 6)
        return [_rounded(value, decimals) for value in values.tolist()]
    return list(values.tolist())


def _rounded(value: float, decimals: int) -> float | None:
    if math.isnan(value):  # JSON has none
        return None
    short = round(value, decimals)
    return int(short) if short == int(short) else short
