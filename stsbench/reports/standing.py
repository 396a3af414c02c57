"""Where a run stands: among published models, and beside the published row of its checkpoint."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from stsbench.judging.published import (
    AVERAGES,
    Fit,
    check_published,
    fitting,
    known_checkpoint,
    measured_scores,
    rows_to_check,
)
from stsbench.published import catalogue
from stsbench.records.record import RunRecord


@dataclass(frozen=True)
class Standing:
    """A run's score on a task, or on average, among published models. Scores are x 100.

    Attributes:
        task: the papers' name of it; an average is one of `AVERAGES`.
        value: the run's score.
        limits: its interval; None without one.
        scores: the comparable scores of published models, by system.
    """

    task: str
    value: float
    limits: tuple[float, float] | None
    scores: Mapping[str, float]

    @property
    def below(self) -> int:
        """The number of published models with a lower score."""
        return sum(score < self.value for score in self.scores.values())

    @property
    def words(self) -> str:
        """The number of published models with a lower score, in words."""
        return f"{self.below} of {len(self.scores)}"


def standing(record: RunRecord) -> list[Standing]:
    """Returns where a run stands among published models, each average before its tasks; empty if none compares.

    A system counts once, with the row that represents it; later editions of a system and the run's own system are
    left out. A system must be comparable on every task that compares with more than half as many systems as the
    commonest task. If a run has several scores of a task (of two splits, for example), the one that most systems
    compare with is used.
    """
    places = []
    for average, tasks in AVERAGES.items():
        published, fits = _comparable(record, (average, *tasks))
        counts = published.notna().sum().sort_values(ascending=False, kind="stable")
        common = counts.index[2 * counts > counts.max()] if len(counts) else counts.index
        columns = {fits[column][0]: column for column in reversed(common)}
        whole = published[list(columns.values())].dropna()
        for task in (average, *tasks):
            if task in columns and len(whole):
                value, fit = fits[columns[task]][1:]
                limits = fit_interval(record, task, fit)
                shown = None if limits is None else (100 * limits[0], 100 * limits[1])
                places.append(Standing(task, value, shown, whole[columns[task]].to_dict()))
    return places


def _comparable(record: RunRecord, tasks: Sequence[str]) -> tuple[pd.DataFrame, dict[str, tuple[str, float, Fit]]]:
    """Returns the published scores that compare, one row per system, and task, value and fit of each column.

    A column is one number of the record, so two scores of a task have two columns.
    """
    measured, known = measured_scores(record), known_checkpoint(record)
    # Many rows have the same settings.
    fit_of = cache(lambda setting: fitting(setting, measured))
    fits: dict[str, tuple[str, float, Fit]] = {}
    candidates = []
    for row in catalogue.rows().values():
        system = row.system
        if system is None or row.row.variant or system.edition_of or (known and known.system == system.name):
            continue
        values = {}
        for cell in row.cells:
            if cell.setting.task not in tasks or cell.score is None or cell.setting.unit == "pairs":
                continue
            fit = fit_of(cell.setting)
            if fit.value is not None and not fit.differences:
                column = " ".join([cell.setting.task, *(f"{of.of.key} {of.statistic}" for of in fit.scores)])
                fits[column] = cell.setting.task, fit.value, fit
                values[column] = cell.score
        if values:
            candidates.append((system.row == row.name, len(values), system.name, values))
    # The row that represents a system comes first, then the row with most values.
    candidates.sort(key=lambda candidate: candidate[:2], reverse=True)
    scores: dict[str, dict[str, float]] = {}
    for *_, name, values in candidates:
        scores.setdefault(name, values)
    return pd.DataFrame.from_dict(scores, orient="index"), fits


def fit_interval(record: RunRecord, task: str, fit: Fit) -> tuple[float, float] | None:
    """Returns the interval (0 to 1) of a record's score for a task or average, or None."""
    if task in AVERAGES:
        return next((mean.interval for mean in record.averages if set(mean.tasks) == set(AVERAGES[task])), None)
    (measured,) = fit.scores
    number = measured.of.number(measured.statistic)
    return None if number is None else number.interval


def answer(records: Sequence[RunRecord]) -> Iterator[str]:
    """Yields the standing of each run, its comparison with its published row, and last the next command."""
    next_command = "explain" if len(records) == 1 else "compare" if len(records) == 2 else "rank"
    for record in records:
        name = f"{record.model.name}: " if len(records) > 1 else ""
        for place in (place for place in standing(record) if place.task in AVERAGES or len(record.scores) == 1):
            yield f"{name}{place.task} {place.value:.2f} is above {place.words} published models that compare."
        known = known_checkpoint(record)
        check = check_published(record, rows_to_check(record)) if known and known.expected else None
        if check is not None and any(cell.is_compared for cell in check.cells):
            yield check.sentence
            next_command = "diagnose" if check.verdict == "fail" and len(records) == 1 else next_command
    yield f"Next: stsbench {next_command} {shlex.join(str(record.folder) for record in records)}"
