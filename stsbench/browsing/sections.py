"""Sections of the board: comparable runs, and their cached summaries."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, cache_dir, fingerprint, sha256_of
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.data.tables import FOLDED, SENTENCES
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.compare import every_two
from stsbench.judging.published import Comparable, published_beside
from stsbench.judging.rank import MOST, ranking_of
from stsbench.records.kinds import ITEMS, KINDS
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score, redact
from stsbench.records.record import RunRecord
from stsbench.records.signature import PROTOCOL_FIELDS, Signature
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import Intervals
from stsbench.statistics import DEPENDENCE

COMPARED = MOST
"""The number of runs of a section that are compared pair by pair."""

Limited = tuple[float | None, float | None, float | None]
"""A score x 100 and the limits of its interval; None if missing."""


class BoardCache:
    """Plain data by key, one JSON file each with a checksum; `problem` says why a value could not be stored."""

    def __init__(self) -> None:
        self.folder, self.problem = cache_dir() / "board", ""

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Returns the value of a key; makes and stores it if it is absent."""
        path = self.folder / f"{key}.json"
        try:
            digest, text = path.read_text(encoding="utf-8").split("\n", 1)
            if digest == _digest(text):
                return json.loads(text)
        except (OSError, ValueError):
            pass  # absent or damaged
        value = make()
        text = json.dumps(value)
        try:
            with atomic_path(path) as file:
                file.write_text(f"{_digest(text)}\n{text}", encoding="utf-8")
        except UserError as error:
            self.problem = f"{redact(str(self.folder))} cannot be written, so the next board starts anew: {error}"
        return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class TaskSummary:
    """A score from -1 to 1 on a task or on average, with its interval, all recomputed from the items.

    `items` is a hash of the task's items and their gold scores, in any order; empty for an average.
    """

    value: float | None
    low: float | None
    high: float | None
    size: int
    items: str = ""


@dataclass(frozen=True)
class RunSummary:
    """The scores of a record, recomputed from its items.

    Without items there are no scores, and `note` has the reason. `key` identifies record, items and intervals.
    """

    tasks: tuple[TaskSummary, ...] = ()
    averages: tuple[TaskSummary, ...] = ()
    note: str = ""
    key: str = ""

    @property
    def is_defined(self) -> bool:
        """Whether there are items and all scores are defined."""
        return bool(self.tasks) and all(task.value is not None for task in self.tasks)


def summarise(record: RunRecord, intervals: Intervals, cache: BoardCache) -> RunSummary:
    """Returns the scores of a record, from the cache or from its items.

    Raises:
        UserError: if the scores of the record differ from those of its items, or the items cannot be read.
    """
    path = (record.folder or Path()) / ITEMS
    if record.is_imported or not path.is_file():
        return RunSummary(note=" ".join(require_recomputed(record, intervals=False)))
    settings = {"stsbench": __version__, **vars(intervals)}
    key = fingerprint({**settings, "record": record.to_dict(), "items": sha256_of(path)})
    tasks, averages = cache.get(key, lambda: _computed(record, intervals))
    return RunSummary(
        tuple(TaskSummary(**of) for of in tasks), tuple(TaskSummary(**of) for of in averages), key=key
    )


def _computed(record: RunRecord, intervals: Intervals) -> list[list[dict[str, Any]]]:
    held = record.with_items(record.items, record.folder)  # read once
    require_recomputed(held, intervals=False)
    summaries: list[list[dict[str, Any]]] = [[], []]
    for task in aligned_scores({record.model.name: held}, may_be_undefined=True, whole=True)[0]:
        summaries[task.is_average].append(asdict(_summary(task, intervals)))
    return summaries


def _summary(task: AlignedScores, intervals: Intervals) -> TaskSummary:
    limits, value = task.limits(0, intervals.interval or DEPENDENCE, intervals.level), float(task.scores[0])
    low, high = (limits.low, limits.high) if limits.exists else (None, None)
    items = "" if task.is_average else items_digest(task.items[0])
    return TaskSummary(None if np.isnan(value) else value, low, high, task.size, items)


def items_digest(table: pd.DataFrame) -> str:
    """Returns a hash of a task's items, their sentences and gold scores or labels, in any order."""
    names = ["subset", "item_id", *(name for name in ("gold", "label") if name in table), *SENTENCES, *FOLDED]
    return hashlib.sha256(np.sort(pd.util.hash_pandas_object(table[names], index=False)).tobytes()).hexdigest()


@dataclass(frozen=True)
class BoardColumn:
    """A task or an average; runs are ranked by headlines: averages, and tasks of a kind without one."""

    kind: str
    name: str
    is_average: bool
    is_headline: bool


@dataclass(frozen=True)
class BoardRun:
    """A run on a board: its label, its scores, and the other columns by the names of `board.FACTS`."""

    name: str
    record: RunRecord = field(repr=False)
    summary: RunSummary = field(repr=False)
    facts: Mapping[str, Any] = field(repr=False)
    intervals: Intervals = field(default=Intervals(), repr=False)

    @cached_property
    def ordered(self) -> tuple[Score, ...]:
        """Its scores, kind by kind."""
        return tuple(score for kind in KINDS for score in self.record.scores_of(kind))

    @cached_property
    def scores(self) -> tuple[Limited, ...]:
        """The recorded scores with the intervals of the items, one per column of the section.

        Without items, the recorded intervals are used if they were computed like those of the board.
        """
        is_alike = Intervals.of(self.record.protocol) == self.intervals
        recorded = [(is_alike and score.interval) or (None, None) for score in self.ordered]
        limits = iter([(task.low, task.high) for task in self.summary.tasks] or recorded)
        of_averages = iter([(average.low, average.high) for average in self.summary.averages])
        scores: list[Limited] = []
        for kind in KINDS:
            scores += [_percent(score.value, next(limits)) for score in self.record.scores_of(kind)]
            if (average := self.record.average(kind)) is not None:
                scores.append(_percent(average.value, next(of_averages, average.interval if is_alike else None)))
        return tuple(scores)


def _percent(value: float | None, limits: tuple[float | None, float | None] | None) -> Limited:
    score, low, high = (None if number is None else 100 * number for number in (value, *(limits or (None, None))))
    return score, low, high


@dataclass(frozen=True)
class BoardSection:
    """Comparable runs.

    Attributes:
        name: the tasks and the protocol.
        why: why it is not part of the first section; empty for the first.
        columns: the tasks and averages.
        runs: the runs, highest by the first headline first.
        letters: by headline, the groups of each compared run by its position; runs that share a letter do not
            differ significantly, corrected for all pairs as in `rank`.
        ties: by headline, the positions of the runs that are tied with the best, which is included.
        compared: positions of the compared runs, lowest first.
        sentences: for every two of `compared`, the sentence of `compare`.
        published: comparable rows of papers.
    """

    name: str
    why: str
    columns: tuple[BoardColumn, ...]
    runs: tuple[BoardRun, ...]
    letters: Mapping[str, Mapping[int, Sequence[str]]] = field(default_factory=dict)
    ties: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    compared: tuple[int, ...] = ()
    sentences: tuple[str, ...] = ()
    published: tuple[Comparable, ...] = ()

    def sentence(self, one: int, other: int) -> str:
        """Returns the sentence of `compare` for two positions, the lower run as A; empty if not compared."""
        if one == other or not {one, other} <= set(self.compared):
            return ""
        low, high = sorted((self.compared.index(one), self.compared.index(other)))
        return self.sentences[list(combinations(range(len(self.compared)), 2)).index((low, high))]

    def as_dict(self) -> dict[str, Any]:
        """Returns the data of the page's script."""
        runs = [{"name": run.name, "scores": run.scores, **run.facts} for run in self.runs]
        published = [
            {
                "name": row.system.name if row.system else row.name,
                "row": row.name,
                "source": row.paper.title,
                "scores": [values.get((column.kind, column.name)) for column in self.columns],
            }
            for row, values in self.published
        ]
        parts = {
            "name": self.name,
            "why": self.why,
            "columns": [asdict(column) for column in self.columns],
            "runs": runs,
            "letters": {name: list(letters.items()) for name, letters in self.letters.items()},
            "ties": self.ties,
            "compared": self.compared,
            "sentences": self.sentences,
            "published": published,
        }
        return {name: _rounded(part) for name, part in parts.items()}


def _rounded(data: Any) -> Any:
    """Rounds all numbers in plain data, so that the page stays small."""
    if isinstance(data, float):
        return round(data, 4)
    if isinstance(data, Mapping):
        return {name: _rounded(part) for name, part in data.items()}
    return [_rounded(part) for part in data] if isinstance(data, list | tuple) else data


def sections_of(
    runs: Sequence[BoardRun], cache: BoardCache, intervals: Intervals, progress: Progress = silent
) -> tuple[BoardSection, ...]:
    """Returns the sections of runs: those with items first, the largest first."""
    groups: dict[tuple[Any, ...], list[BoardRun]] = {}
    for run in runs:
        groups.setdefault(_identity(run), []).append(run)
    ordered = sorted(groups.values(), key=lambda group: (not group[0].summary.tasks, -len(group)))
    sections = []
    for number, group in enumerate(ordered):
        progress("comparing", number, len(ordered))
        sections.append(_section(group, ordered[0][0], cache, intervals))
    progress("comparing", len(ordered), len(ordered))
    return tuple(sections)


def _identity(run: BoardRun) -> tuple[Any, ...]:
    """Returns what comparable runs have in common: tasks, protocol, items."""
    items = [task.items for task in run.summary.tasks] or [""] * len(run.ordered)
    return tuple(
        (score.key, Signature.parse(score.signature).protocol, of_task)
        for score, of_task in zip(run.ordered, items, strict=True)
    )


def _section(group: Sequence[BoardRun], main: BoardRun, cache: BoardCache, intervals: Intervals) -> BoardSection:
    first, columns = group[0], _columns(group[0])
    headline = next(place for place, column in enumerate(columns) if column.is_headline)
    # The highest first, undefined scores last.
    runs = tuple(
        sorted(group, key=lambda run: -np.inf if (s := run.scores[headline][0]) is None else s, reverse=True)
    )
    why = "" if first is main else _difference(first, main)
    section = BoardSection(_name(first), why, columns, runs, published=tuple(published_beside(first.record)))
    compared = [place for place, run in enumerate(runs) if run.summary.is_defined][:COMPARED][::-1]
    if len(compared) > 1:
        return _with_comparisons(section, compared, cache, intervals)
    return section


def _columns(run: BoardRun) -> tuple[BoardColumn, ...]:
    columns, names = [], iter(task_labels(run.ordered))
    for kind in KINDS.values():
        average = run.record.average(kind.name)
        tasks = [next(names) for _ in run.record.scores_of(kind.name)]
        columns += [BoardColumn(kind.name, name, False, average is None) for name in tasks]
        if average is not None:
            columns.append(BoardColumn(kind.name, kind.average, True, True))
    return tuple(columns)


def _name(run: BoardRun) -> str:
    signatures = [Signature.parse(score.signature) for score in run.ordered]
    common = []
    for name in ("split", "metric", "aggregation", "similarity", "text"):
        values = {getattr(signature, name) for signature in signatures}
        if len(values) == 1 and (value := values.pop()):
            common.append(f"{name} {value}")
    return ": ".join(filter(None, [listed(task_labels(run.ordered)), ", ".join(common)]))


def _difference(run: BoardRun, main: BoardRun) -> str:
    """Returns why a run is not comparable with another."""
    if not run.summary.tasks and main.summary.tasks:
        return "scores only: imported, or without their items"
    here, there = ({score.key[:2]: score for score in of.ordered} for of in (run, main))
    parts = []
    for word, ours, theirs in (("without", there, here), ("with", here, there)):
        if names := [score.task + score.about.suffix for key, score in ours.items() if key not in theirs]:
            parts.append(f"{word} {listed(names)}")
    differing: dict[tuple[str, str, str], list[str]] = {}
    for key in [key for key in here if key in there]:
        own, other = (Signature.parse(scores[key].signature) for scores in (here, there))
        for name in PROTOCOL_FIELDS:
            if getattr(own, name) != getattr(other, name):
                values = (name, getattr(own, name), getattr(other, name))
                differing.setdefault(values, []).append(here[key].task)
    parts += [
        f"{name} is {value} here and {other} in the first table ({listed(tasks)})"
        for (name, value, other), tasks in differing.items()
    ]
    return "; ".join(parts) or "the items or their gold scores differ from the first table"


def _with_comparisons(
    section: BoardSection, compared: Sequence[int], cache: BoardCache, intervals: Intervals
) -> BoardSection:
    runs, names = (
        [section.runs[place] for place in compared],
        [column.name for column in section.columns if column.is_headline],
    )
    key = fingerprint("comparisons", [(run.summary.key, run.name) for run in runs], vars(intervals))
    result = cache.get(key, lambda: _comparisons(runs, names, intervals))
    return replace(
        section,
        compared=tuple(compared),
        letters={name: dict(zip(compared, map(tuple, result["letters"][name]), strict=True)) for name in names},
        ties={name: tuple(compared[place] for place in result["ties"][name]) for name in names},
        sentences=tuple(result["sentences"]),
    )


def _comparisons(runs: Sequence[BoardRun], headlines: Sequence[str], intervals: Intervals) -> dict[str, Any]:
    records = {run.facts["run"]: run.record for run in runs}
    tasks, letters, ties = aligned_scores(records, may_be_undefined=True)[0], {}, {}
    for task in (task for task in tasks if task.task in headlines):
        ranking = ranking_of(task, intervals.interval or DEPENDENCE, level=intervals.level)
        best = int(np.argsort(-task.scores, kind="stable")[0])
        letters[task.task] = list(ranking.letters)
        ties[task.task] = np.flatnonzero(ranking.p[best] >= 1 - intervals.level).tolist()
    sentences = every_two(tasks, [run.name for run in runs], intervals)
    return {"letters": letters, "ties": ties, "sentences": list(sentences)}
