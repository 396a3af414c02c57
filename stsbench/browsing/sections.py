"""What stands together on a board: runs of the same tasks by the same protocol on the same items.

Of the runs of a section as many as `rank` ranks, the highest by the first headline, are judged: which groups
cannot be told apart, and for every two what `compare` says. Of the others each has its own interval.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.manifest import fingerprint
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.browsing.kept import Kept, Shelf, aligned, keep
from stsbench.judging.aligned import AlignedScores
from stsbench.judging.compare import every_two
from stsbench.judging.comparison import Comparison
from stsbench.judging.matching import Comparable, published_beside
from stsbench.judging.rank import MOST, ranking_of
from stsbench.judging.runs import group_seeds, method_of, recipe_files, shared_name
from stsbench.judging.seeds import estimate_over_seeds
from stsbench.records.kinds import KINDS
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score
from stsbench.records.record import RunRecord
from stsbench.records.signature import PROTOCOL_FIELDS, Signature
from stsbench.scoring.settings import Intervals
from stsbench.statistics import Dependence

COMPARED = MOST
"""Runs of a section that are judged together, as many as `rank` takes: 4,950 pairs of them."""

_LAYOUT = "section 2"

Limited = tuple[float | None, float | None, float | None]
"""A score x 100 and the limits of its interval; None for what there is not."""


@dataclass(frozen=True)
class BoardColumn:
    """A task, or the average over those of a kind.

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        name: what it is called.
        is_average: whether it is an average.
        is_headline: whether the runs are told apart by it: an average, or a task of a kind that has none here.
    """

    kind: str
    name: str
    is_average: bool
    is_headline: bool


@dataclass(frozen=True)
class BoardRun:
    """A run on a board.

    Attributes:
        name: what its model is called.
        record: its record.
        kept: what its items give.
        facts: what is told of it beside its scores, by the names of `stsbench.browsing.board.FACTS`.
        intervals: how those of the board are computed.
    """

    name: str
    record: RunRecord = field(repr=False)
    kept: Kept = field(repr=False)
    facts: Mapping[str, Any] = field(repr=False)
    intervals: Intervals = field(default=Intervals(), repr=False)

    @cached_property
    def ordered(self) -> tuple[Score, ...]:
        """Its scores, kind by kind."""
        return tuple(score for kind in KINDS for score in self.record.scores_of(kind))

    @cached_property
    def scores(self) -> tuple[Limited, ...]:
        """The scores as the record has them, with intervals as the items give them, by the columns of its section.

        Of a run without items the intervals are the record's, if they were computed as the board's are.
        """
        is_alike = Intervals.of(self.record.protocol) == self.intervals
        recorded = [(is_alike and score.interval) or (None, None) for score in self.ordered]
        limits = iter([(task.low, task.high) for task in self.kept.tasks] or recorded)
        of_averages = iter([(average.low, average.high) for average in self.kept.averages])
        made: list[Limited] = []
        for kind in KINDS:
            made += [_percent(score.value, next(limits)) for score in self.record.scores_of(kind)]
            if (average := self.record.average(kind)) is not None:
                made.append(_percent(average.value, next(of_averages, average.interval if is_alike else None)))
        return tuple(made)


def _percent(value: float | None, limits: tuple[float | None, float | None] | None) -> Limited:
    score, low, high = (None if number is None else 100 * number for number in (value, *(limits or (None, None))))
    return score, low, high


@dataclass(frozen=True)
class Fold:
    """Runs of one recipe that differ in the seed, as one.

    Attributes:
        name: what their places have in common.
        places: of the runs in their section.
        scores: by column the mean x 100, the limits of its interval over other seeds and other items, and the
            sample standard deviation over the seeds.
    """

    name: str
    places: tuple[int, ...]
    scores: tuple[tuple[float | None, float | None, float | None, float | None], ...]


@dataclass(frozen=True)
class BoardSection:
    """Runs that compare with each other.

    Attributes:
        name: their tasks and protocol.
        why: why they stand apart from the first section; empty of the first.
        columns: their tasks and averages.
        runs: the highest by the first headline come first.
        letters: by headline, the groups of each judged run by its place: two that share a letter cannot be told
            apart, corrected for all pairs of judged runs as `rank` does.
        alike: by headline, the places of the runs that cannot be told apart from the highest, itself included.
        judged: the places of the runs that every two are compared of, the lowest first.
        patterns: what is said of two runs, without names and numbers.
        pairs: for every two of `judged`, the number of the pattern and what stands in it.
        folds: the methods of which there are several seeds.
        published: rows of papers whose values compare.
    """

    name: str
    why: str
    columns: tuple[BoardColumn, ...]
    runs: tuple[BoardRun, ...]
    letters: Mapping[str, Mapping[int, Sequence[str]]] = field(default_factory=dict)
    alike: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    judged: tuple[int, ...] = ()
    patterns: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()
    published: tuple[Comparable, ...] = ()

    def sentence(self, one: int, other: int) -> str:
        """Return what `compare` says of two runs, by their places; empty where one of them is not judged.

        The one that stands lower on the board is A.
        """
        if one == other or not {one, other} <= set(self.judged):
            return ""
        a, b = sorted((self.judged.index(one), self.judged.index(other)))
        number, *values = self.pairs[list(combinations(range(len(self.judged)), 2)).index((a, b))].split()
        said = iter(values)
        names = {_A: self.runs[self.judged[a]].name, _B: self.runs[self.judged[b]].name}
        return _HOLES.sub(lambda hole: names.get(hole[0]) or next(said), self.patterns[int(number)])

    def as_dict(self) -> dict[str, Any]:
        """Return it as the page's script reads it."""
        return {
            "name": self.name,
            "why": self.why,
            "columns": [vars(column) for column in self.columns],
            "runs": [
                {
                    "name": run.name,
                    "scores": [_rounded(score) for score in run.scores],
                    **_rounded_facts(run.facts),
                }
                for run in self.runs
            ],
            "letters": {name: list(letters.items()) for name, letters in self.letters.items()},
            "alike": {name: list(places) for name, places in self.alike.items()},
            "judged": list(self.judged),
            "patterns": list(self.patterns),
            "pairs": list(self.pairs),
            "folds": [vars(fold) | {"scores": [_rounded(score) for score in fold.scores]} for fold in self.folds],
            "published": [
                {
                    "name": row.system.name if row.system else row.name,
                    "row": row.name,
                    "source": row.paper.title,
                    "scores": [values.get((column.kind, column.name)) for column in self.columns],
                }
                for row, values in self.published
            ],
        }


def _rounded(numbers: Iterable[float | None]) -> list[float | None]:
    return [None if number is None else round(number, 4) for number in numbers]


def _rounded_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(fact, 4) if isinstance(fact, float) else fact for name, fact in facts.items()}


def sections_of(
    runs: Sequence[BoardRun], shelf: Shelf, interval: Dependence, level: float, progress: Progress = silent
) -> tuple[BoardSection, ...]:
    """Return runs in sections, the largest of those with items first.

    Args:
        runs: all of them.
        shelf: which holds what their items give.
        interval: which items depend on each other.
        level: of the intervals.
        progress: told how far it is.
    """
    groups: dict[tuple[Any, ...], list[BoardRun]] = {}
    for run in runs:
        groups.setdefault(_meaning(run), []).append(run)
    ordered = sorted(groups.values(), key=lambda group: (not group[0].kept.tasks, -len(group)))
    sections = []
    for number, group in enumerate(ordered):
        progress("comparing", number, len(ordered))
        sections.append(_section(group, ordered[0][0], shelf, Intervals(interval, level)))
    progress("comparing", len(ordered), len(ordered))
    return tuple(sections)


def _meaning(run: BoardRun) -> tuple[Any, ...]:
    """Return what two runs have to agree in to compare: tasks, protocol, items."""
    items = [task.items for task in run.kept.tasks] or [""] * len(run.ordered)
    return tuple(
        (score.key, Signature.parse(score.signature).protocol, of_task)
        for score, of_task in zip(run.ordered, items, strict=True)
    )


def _section(group: Sequence[BoardRun], main: BoardRun, shelf: Shelf, intervals: Intervals) -> BoardSection:
    first = group[0]
    columns = _columns(first)
    headline = next(place for place, column in enumerate(columns) if column.is_headline)
    score = [run.scores[headline][0] for run in group]
    order = sorted(range(len(group)), key=lambda place: -np.inf if score[place] is None else -(score[place] or 0))
    order.sort(key=lambda place: score[place] is None)
    runs = tuple(group[place] for place in order)
    section = BoardSection(
        _name(first),
        "" if first is main else _why(first, main),
        columns,
        runs,
        published=tuple(published_beside(first.record)),
    )
    judged = [place for place, run in enumerate(runs) if run.kept.is_defined][:COMPARED][::-1]
    if len(judged) > 1:
        section = _with_judgements(section, judged, shelf, intervals)
    return replace(section, folds=tuple(_folds(section, shelf, intervals)))


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
    """Return the tasks and the protocol of a run, in words."""
    signatures = [Signature.parse(score.signature) for score in run.ordered]
    same = []
    for name in ("split", "metric", "aggregation", "similarity", "text"):
        values = {getattr(signature, name) for signature in signatures}
        if len(values) == 1 and (value := values.pop()):
            same.append(f"{name} {value}")
    return f"{listed(task_labels(run.ordered))}: {', '.join(same)}" if same else listed(task_labels(run.ordered))


def _why(run: BoardRun, main: BoardRun) -> str:
    """Return why a run does not compare with another, in words."""
    if not run.kept.tasks and main.kept.tasks:
        return "only the scores are here, imported or without their items, and pairs are compared"
    here, there = ({score.key[:2]: score for score in one.ordered} for one in (run, main))
    parts = []
    for word, ours, theirs in (("without", there, here), ("with", here, there)):
        if names := [score.task + score.about.suffix for key, score in ours.items() if key not in theirs]:
            parts.append(f"{word} {listed(names)}")
    differing: dict[tuple[str, str, str], list[str]] = {}
    for key in [key for key in here if key in there]:
        one, other = (Signature.parse(scores[key].signature) for scores in (here, there))
        for name in PROTOCOL_FIELDS:
            if getattr(one, name) != getattr(other, name):
                told = (name, getattr(one, name), getattr(other, name))
                differing.setdefault(told, []).append(here[key].task)
    parts += [
        f"{name} is {ours} here and {theirs} in the first table ({listed(tasks)})"
        for (name, ours, theirs), tasks in differing.items()
    ]
    return "; ".join(parts) or "the items, or what people gave them, are others than in the first table"


# Names and numbers of a sentence: no name has control characters, as it is one line of text.
_A, _B, _NUMBER = "\x00", "\x01", "\x02"
_HOLES = re.compile(f"[{_A}{_B}{_NUMBER}]")
_PRINTED = re.compile(r"-?\d+\.\d\d\b")


def _with_judgements(
    section: BoardSection, judged: Sequence[int], shelf: Shelf, intervals: Intervals
) -> BoardSection:
    """Return a section with its groups and what `compare` says of every two, from the shelf where it is known."""
    names = [column.name for column in section.columns if column.is_headline]
    of = [section.runs[place].kept.key for place in judged]
    key = fingerprint({"layout": _LAYOUT, "runs": of, "headlines": names, **vars(intervals)})
    known = shelf.get(key)
    if known is None:
        tasks = _aligned([section.runs[place] for place in judged], shelf, intervals)
        known = _judgements(tasks, names, intervals), np.zeros(0)
        shelf.put(key, *known)
    said = known[0]
    return replace(
        section,
        judged=tuple(judged),
        letters={name: dict(zip(judged, said["letters"][name], strict=True)) for name in names},
        alike={name: tuple(judged[place] for place in said["alike"][name]) for name in names},
        patterns=tuple(said["patterns"]),
        pairs=tuple(said["pairs"]),
    )


def _aligned(runs: Sequence[BoardRun], shelf: Shelf, intervals: Intervals) -> tuple[AlignedScores, ...]:
    def found() -> tuple[AlignedScores, ...] | None:
        first = runs[0]
        return aligned([run.kept for run in runs], first.ordered, task_labels(first.ordered), shelf)

    tasks = found()
    if tasks is None:  # What was kept has been damaged since.
        for run in runs:
            keep(run.record, run.kept.key, shelf, intervals.interval or "dyadic", intervals.level, anew=True)
        tasks = found()
    if tasks is None:
        raise RuntimeError("what was just kept of the records is gone")
    return tasks


def _judgements(tasks: Sequence[AlignedScores], headlines: Sequence[str], intervals: Intervals) -> dict[str, Any]:
    letters, alike = {}, {}
    for task in (task for task in tasks if task.task in headlines):
        ranking = ranking_of(task, intervals.interval or "dyadic", level=intervals.level)
        first = int(np.argsort(-task.scores, kind="stable")[0])
        letters[task.task] = list(ranking.letters)
        alike[task.task] = np.flatnonzero(ranking.p[first] >= 1 - intervals.level).tolist()
    patterns: dict[str, int] = {}
    pairs = []
    for _, _, comparison in every_two(tasks, [""] * len(tasks[0].scores), intervals):
        sentence = _without_names(comparison)
        pattern = patterns.setdefault(_PRINTED.sub(_NUMBER, sentence), len(patterns))
        pairs.append(" ".join([str(pattern), *_PRINTED.findall(sentence)]))
    return {"letters": letters, "alike": alike, "patterns": list(patterns), "pairs": pairs}


def _without_names(comparison: Comparison) -> str:
    return replace(comparison, a=_A, b=_B).sentence


def _folds(section: BoardSection, shelf: Shelf, intervals: Intervals) -> Iterator[Fold]:
    """Yield the methods of which a section has several seeds: recipe and use agree, the weights do not."""
    records = {place: run.record for place, run in enumerate(section.runs)}
    for places in group_seeds(records, lambda record: _method(record, shelf)):
        runs = [section.runs[place] for place in places]
        tasks = _aligned(runs, shelf, intervals) if all(run.kept.is_defined for run in runs) else ()
        by_name = {task.task: task for task in tasks}
        name = shared_name([run.facts["run"] for run in runs])
        scores = []
        for column, of_runs in zip(section.columns, zip(*(run.scores for run in runs), strict=True), strict=True):
            scores.append(_over_seeds([score[0] for score in of_runs], by_name.get(column.name), intervals))
        yield Fold(name or runs[0].name, tuple(places), tuple(scores))


def _method(record: RunRecord, shelf: Shelf) -> str:
    """Return what the seeds of a recipe agree in, from the shelf where it is known: to read YAML takes long."""
    try:
        recipes = list(map(sha256_of, recipe_files(record)))
    except UserError:  # one that cannot be read says nothing of what differs
        return ""
    if not recipes:
        return ""
    key = fingerprint({"layout": _LAYOUT, "record": record.to_dict(), "recipes": recipes})
    known = shelf.get(key)
    if known is None:
        known = method_of(record), np.zeros(0)
        shelf.put(key, *known)
    return str(known[0])


def _over_seeds(
    scores: Sequence[float | None], task: AlignedScores | None, intervals: Intervals
) -> tuple[float | None, float | None, float | None, float | None]:
    """Return mean, limits and standard deviation of a method's scores; no limits where the items are not here."""
    values = np.array(scores, dtype=np.float64)
    if np.isnan(values).any():
        return None, None, None, None
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    if task is None:
        return mean, None, None, sd
    low, high, _ = estimate_over_seeds(mean, [values], task, intervals.interval or "dyadic")[0].interval(
        intervals.level
    )
    return (mean, None, None, sd) if np.isnan(low) else (mean, low, high, sd)
