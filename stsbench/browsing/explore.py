"""`explore`: a page with all pairs of one or two runs, to see which of them cost the most."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.files import require_writable
from stsbench.base.progress import Progress, silent
from stsbench.data.qrels import texts_in
from stsbench.data.tables import SENTENCES
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.runs import Run, choose_runs
from stsbench.records.kinds import KINDS
from stsbench.records.record import RunRecord
from stsbench.render.figures import shortened
from stsbench.render.formats import labels_beside
from stsbench.render.page import PageResult, render_page
from stsbench.render.table import Table, Tables
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.subjects import specs_of, texts_of
from stsbench.statistics.correlations import average_ranks, members_of

Floats = NDArray[np.float64]

MODELS = ("a", "b")
"""The suffixes of the columns of the first and the second run."""

_BEST, _TEXT = 10, 300
"""The number of documents shown for a query, and the characters shown of each."""

_DECIMALS = {"similarity": 5, "rank": 2, "residual": 2, "influence": 7, "gain": 7, "gold": 4, "score": 6}
"""The decimals of each column in the page."""


@dataclass(frozen=True)
class Total:
    """The scores of each model x 100 on a task or on average."""

    name: str
    scores: tuple[float, ...]

    @classmethod
    def of(cls, task: AlignedScores) -> "Total":
        """Returns the scores of aligned models."""
        return cls(task.task, tuple((100 * task.scores).tolist()))

    def as_dict(self) -> dict[str, Any]:
        """Returns the data of the page's script."""
        return {"name": self.name, "scores": [_rounded(score, 6) for score in self.scores]}


@dataclass(frozen=True, eq=False)
class TaskItems:
    """The n items of a task with the scores of one or two models.

    Attributes:
        total: the scores.
        average: name of the mean over the tasks of its kind.
        unit: the plural noun for its items.
        table: one row per item. `rank_gold`, `rank_a`: percentile rank in the task, or in its subset if the score
            is a mean over subsets. `residual_a`: `rank_a` minus `rank_gold`. `influence_a`: influence on the score
            x 100 (`Statistic.influences`). `gain`: contribution to the difference of the two scores x 100, the
            difference of the influences plus an even share of the difference, so that gains add up to it.
            `longer`: difference in words. `missed_a`: relevant documents that are not among the ten best of the
            model (of two models, those among the ten best of the other).
    """

    total: Total
    average: str
    unit: str
    table: pd.DataFrame

    @property
    def is_ranked(self) -> bool:
        """Whether gold scores are compared with a similarity."""
        return "rank_gold" in self.table.columns


def items_of(task: AlignedScores, documents: Mapping[str, str] = MappingProxyType({})) -> TaskItems:
    """Returns the items of a task with all columns, for one or two models; texts of documents by id."""
    first, kind = task.items[0], KINDS[task.kind]
    names = ["item_id", "subset", *(name for name in ("gold", "label", "fold") if name in kind.columns)]
    columns: dict[str, Any] = {name: first[name] for name in names}
    columns |= {name: first[name] for name in SENTENCES}
    if "words_a" in first.columns:
        columns["longer"] = np.abs(first["words_a"].astype(np.int64) - first["words_b"])
    influences = [task.statistic.influences(table) for table in task.items]
    for end, table, influence in zip(MODELS, task.items, influences, strict=False):
        outcomes = [name for name in ("prediction", "correct", "score") if name in kind.columns]
        columns |= {f"{name}_{end}": table[name] for name in outcomes}
        columns[f"influence_{end}"] = 100 * influence
    if kind.by_similarity:
        columns |= _ranked(task)
    if "retrieved" in kind.columns:
        columns |= _missed(task, documents)
    if len(task.scores) == len(MODELS):
        columns["gain"] = 100 * (influences[1] - influences[0] + _even_shares(task))
    return TaskItems(Total.of(task), kind.average, kind.unit, pd.DataFrame(columns))


def _even_shares(task: AlignedScores) -> Floats:
    """Returns the (n,) contributions to the difference of two models if all items contribute equally."""
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
    """Returns the similarities, the percentile ranks of gold scores and similarities, and their differences."""
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


def _missed(task: AlignedScores, documents: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the relevant documents of each query that a model misses."""
    best = [[list(json.loads(text))[:_BEST] for text in table["retrieved"]] for table in task.items]
    relevant = [
        [name for name, value in of.items() if value > 0] for of in map(json.loads, task.items[0]["judged"])
    ]
    columns = {}
    for end, of_model, of_other in zip(MODELS, best, best[::-1], strict=False):
        missed = [
            [name for name in names if name not in found and (len(best) == 1 or name in others)]
            for names, found, others in zip(relevant, of_model, of_other, strict=True)
        ]
        named = (
            [f"{name}: {documents[name]}" if name in documents else name for name in names] for names in missed
        )
        columns[f"missed_{end}"] = ["; ".join(shortened(name, _TEXT) for name in names) for names in named]
    return columns


def percentiles(values: Floats, groups: Sequence[NDArray[np.intp]]) -> Floats:
    """Returns the percentile rank of each of (n,) values in its group, with mean ranks for ties.

    >>> percentiles(np.array([1.0, 3.0, 3.0, 5.0]), [np.arange(4)]).tolist()
    [12.5, 50.0, 50.0, 87.5]
    """
    ranks = np.empty(len(values))
    for members in groups:
        ranks[members] = 100 * (average_ranks(values[members]) - 0.5) / len(members)
    return ranks


def overlap_of(first: str, second: str) -> float:
    """Returns the Jaccard overlap of the case-folded words of two sentences.

    >>> round(overlap_of("A dog runs .", "a cat runs ."), 2)
    0.6
    """
    ones, others = set(first.casefold().split()), set(second.casefold().split())
    return len(ones & others) / len(ones | others) if ones or others else 1.0


def payload(
    tasks: Sequence[TaskItems], averages: Sequence[Total], models: Sequence[str], texts: Mapping[int, str] | None
) -> dict[str, Any]:
    """Returns the data of the page's script: columns over the items of all tasks; texts by position.

    Args:
        tasks: the items of each task.
        averages: the averages over tasks.
        models: the models' labels.
        texts: each sentence by its number (`data.tables.sentence_ids`); None for a page without text.
    """
    numbers = [np.concatenate([task.table[name] for task in tasks]) for name in SENTENCES]
    nodes, codes = np.unique(np.concatenate(numbers), return_inverse=True)
    size = len(numbers[0])
    names = list(dict.fromkeys(name for task in tasks for name in task.table.columns))
    columns: dict[str, Any] = {}
    dictionaries: dict[str, list[str]] = {}
    for name in names:
        if name in SENTENCES:
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
                "size": len(task.table),
                "ranked": task.is_ranked,
            }
            for task in tasks
        ],
        "names": dictionaries,
        "columns": columns,
        "sentences": sentences,
    }


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


@dataclass(frozen=True)
class Explored(PageResult):
    """All items of one or two runs.

    `.html` is the self-contained page, `.save()` writes it, and a notebook shows it. `.frame` has a row per item,
    with task, sentences and the columns of `stsbench.browsing.explore.TaskItems`.

    Attributes:
        models: the labels of the runs, one or two.
        tasks: their items.
        averages: the averages over tasks.
        texts: each sentence by its number; None for a page without text.
        notes: remarks for readers.
    """

    models: tuple[str, ...]
    tasks: tuple[TaskItems, ...]
    averages: tuple[Total, ...] = ()
    texts: Mapping[int, str] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    @cached_property
    def html(self) -> str:
        """The page."""
        data = payload(self.tasks, self.averages, self.models, self.texts)
        return render_page(
            "stsbench.browsing",
            "explore.html.j2",
            ("page.css", "explore.css"),
            ("theme.js", "table.js", "chart.js", "explore.js"),
            title=self.title,
            version=__version__,
            data=data,
            notes=self.notes,
            models=self.models,
            has_text=self.texts is not None,
        )

    @property
    def title(self) -> str:
        """The title of the page."""
        units = {task.unit for task in self.tasks}
        return f"{' and '.join(self.models)}: {units.pop() if len(units) == 1 else 'items'}"

    @property
    def frame(self) -> pd.DataFrame:
        """One row per item, with its task and sentences."""
        frames = []
        for task in self.tasks:
            frame = task.table.copy()
            if self.texts is not None:
                for side in SENTENCES:
                    frame[side] = frame[side].map(self.texts)
            frame.insert(0, "task", task.total.name)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def table(self) -> Tables:
        """Returns the scores of the page."""
        called = labels_beside(self.models, ("task", "items"))
        rows = [
            {
                "task": total.name,
                "items": next((len(task.table) for task in self.tasks if task.total is total), None),
                **dict(zip(called.values(), total.scores, strict=True)),
            }
            for total in (*(task.total for task in self.tasks), *self.averages)
        ]
        return Tables([Table(pd.DataFrame(rows))])


def explore(
    runs: Run | Sequence[Run],
    out: str | Path | None = None,
    *,
    data: Sequence[str | Path] = (),
    without_text: bool = False,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Explored:
    """Show all pairs or queries of one run, or of two side by side, to see which of them cost the most.

    Args:
        runs: one or two run folders or `run.json` files. In Python also records.
        out: the page to write; in Python None writes none.
        data: files with the sentences of runs on your own pairs, or folders with documents and queries;
            repeatable. Records hold no sentences.
        without_text: leave the sentences out, so that you may publish the page.
        data_dirs: folders to search for the tasks' data, before `STSBENCH_DATA` and the cache.
        progress: receives the progress.

    Returns:
        `.html` is the page, `.save(path)` writes it, `.frame` has a row per pair.

    Raises:
        UserError: if there are more than two runs, they are not comparable, or their sentences are missing.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> bool(explore(run).frame["residual_a"].abs().max() > 50)
    True
    """
    if out is not None:
        require_writable(Path(out).expanduser(), "--out")
    named, _ = choose_runs([runs] if isinstance(runs, Run) else runs, 1, len(MODELS), may_repeat=True)
    records = list(named.values())
    notes = require_recomputed(*records, intervals=False)
    aligned, left_out = aligned_scores(named, may_be_undefined=True, whole=True, progress=progress)
    documents = {} if without_text else _documents_of(aligned, data)
    tasks = tuple(items_of(task, documents) for task in aligned if not task.is_average)
    averages = tuple(Total.of(task) for task in aligned if task.is_average)
    texts = None if without_text else _texts_of(aligned, records, data, data_dirs) or None
    explored = Explored(tuple(named), tasks, averages, texts, (*left_out, *notes))
    if out is not None:
        explored.save(out)
    return explored


def _texts_of(
    tasks: Sequence[AlignedScores],
    records: Sequence[RunRecord],
    data: Sequence[str | Path],
    data_dirs: Sequence[str | Path],
) -> dict[int, str]:
    """Returns each sentence of some tasks by its number."""
    tables = [table for task in tasks if KINDS[task.kind].has_text for table in task.items]
    wanted = {number for table in tables for side in SENTENCES for number in table[side].tolist()}
    return texts_of(specs_of(records), wanted, data, data_dirs, remedy="make a page --without-text")


def _documents_of(tasks: Sequence[AlignedScores], data: Sequence[str | Path]) -> dict[str, str]:
    """Returns the texts of the judged documents by id, from folders in BEIR's layout."""
    tables = [task.items[0] for task in tasks if not task.is_average and "judged" in task.items[0]]
    judged = {name for table in tables for text in table["judged"] for name in json.loads(text)}
    folders = [folder for path in data if judged and (folder := Path(path).expanduser()).is_dir()]
    return {name: text for folder in folders for name, text in texts_in(folder, "corpus") if name in judged}
