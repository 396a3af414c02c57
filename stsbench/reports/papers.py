"""The papers' tables with measured values next to the published ones, and a run's standing among them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.judging.published import (
    AVERAGES,
    TOLERANCE,
    Fit,
    MeasuredScore,
    check_published,
    fitting,
    known_checkpoint,
    measured_scores,
    rows_to_check,
)
from stsbench.judging.verdicts import CellCheck
from stsbench.published import catalogue
from stsbench.published.catalogue import PublishedRow, papers, rows_of, systems, tables
from stsbench.published.schema import Paper, PublishedCell, PublishedTable, Setting
from stsbench.records.kinds import STS
from stsbench.records.record import RunRecord
from stsbench.render.page import Filled, Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs, interval_text

PUBLISHED, HERE = "published", "here"
"""The sources of a row's values."""


@dataclass(frozen=True)
class Filling:
    """A published table and the values that runs have for it.

    Attributes:
        table: the published table.
        rows: its rows.
        fits: the values by run and column, without incomparable ones; empty for runs that have no place in it.
        notes: which values are not comparable, and why.
        expected: by run, the row that it should reproduce.
        hints: interval and verdict by run and column.
    """

    table: PublishedTable
    rows: tuple[PublishedRow, ...]
    fits: Mapping[str, Mapping[str, Fit]]
    notes: tuple[str, ...]
    expected: Mapping[str, PublishedRow]
    hints: Mapping[tuple[str, str], str]

    @property
    def title(self) -> str:
        """The table's number and title."""
        return f"Table {self.table.number}: {self.table.title}" if self.table.number else self.table.title

    @property
    def filled(self) -> list[str]:
        """The columns that a run has a value for."""
        return [
            column.name for column in self.table.columns if any(column.name in of for of in self.fits.values())
        ]


def fill(
    table: PublishedTable, runs: Runs, measured: Mapping[str, Sequence[MeasuredScore]], tolerance: float
) -> Filling:
    """Returns the values of runs, whose scores were `measured`, for a table.

    A run is added to a table that compares systems, or that has the row it should reproduce, but not to a table of
    another system's variants.
    """
    rows = tuple(rows_of(table))
    settings = {column.name: column.setting.over(table.setting) for column in table.columns}
    by_column = all(not row.row.setting.model_dump(exclude_defaults=True) for row in rows)
    scored = [name for name, setting in settings.items() if by_column and _is_score(setting)]
    systems_compared = {row.row.system for row in rows if row.row.system and not row.row.variant}
    fits: dict[str, dict[str, Fit]] = {}
    notes: list[str] = []
    expected: dict[str, PublishedRow] = {}
    hints: dict[tuple[str, str], str] = {}
    for label, record in runs.items():
        row = _row_of(record, rows)
        of_run = {name: fitting(settings[name], measured[label]) for name in scored}
        notes += _incomparable(label, of_run)
        if row is None and len(systems_compared) < 2:
            continue
        checks = {}
        if row is not None:
            expected[label] = row
            checks = {cell.name: cell for cell in check_published(record, [row], tolerance).cells}
        fits[label] = {name: fit for name, fit in of_run.items() if fit.value is not None and not fit.differences}
        for name, fit in fits[label].items():
            hints[label, name] = _hint(record, settings[name].task, fit, checks.get(name))
    return Filling(table, rows, fits, tuple(notes), expected, hints)


def as_table(filling: Filling, *, every_column: bool) -> Table:
    """Returns the table: each run below the published row that it should reproduce, the others at the end.

    Columns without a value of a run are left out unless `every_column` is set.
    """
    names = [column.name for column in filling.table.columns]
    columns = names if every_column else filling.filled
    records: list[dict[str, Any]] = []
    hints: dict[tuple[int, str], str] = {}
    ours: set[int] = set()

    def add_run(label: str) -> None:
        values = {name: fit.value for name, fit in filling.fits.get(label, {}).items()}
        if values:
            ours.add(len(records))
            hints.update(((len(records), name), filling.hints[label, name]) for name in values)
            records.append({"model": label, "source": HERE, **values})

    for row in filling.rows:
        values = {cell.column: _printed(cell) for cell in row.cells if cell.column in columns}
        records.append({"model": _row_title(row), "source": PUBLISHED, **values})
        for label, expected in filling.expected.items():
            if expected.name == row.name:
                add_run(label)
    for label in filling.fits:
        if label not in filling.expected:
            add_run(label)
    frame = pd.DataFrame(records, columns=["model", "source", *columns])
    absent = [name for name in names if name not in columns]
    left_out = (f"columns without a measured score: {', '.join(absent)}",) if absent else ()
    notes = (*filling.table.notes, *filling.notes, *left_out)
    return Table(frame, filling.title, name=filling.table.name, hints=hints, own=frozenset(ours), notes=notes)


def _is_score(setting: Setting) -> bool:
    return setting.task not in {"", "delta"} and setting.unit != "pairs" and not setting.group


def _row_of(record: RunRecord, rows: Sequence[PublishedRow]) -> PublishedRow | None:
    known = known_checkpoint(record)
    return next((row for row in rows if known is not None and row.name in known.expected), None)


def _hint(record: RunRecord, task: str, fit: Fit, check: CellCheck | None) -> str:
    limits = fit_interval(record, task, fit)
    parts = [interval_text(100 * limits[0], 100 * limits[1], record.protocol.level)] if limits else []
    if check is not None and check.difference is not None:
        parts.append(f"published {check.expected:.2f}, difference {check.difference:+.2f}: {check.verdict}")
    elif check is not None:
        parts.append(f"{check.verdict}: {check.reason}")
    return "; ".join(parts) or "measured here"


def _incomparable(label: str, fits: Mapping[str, Fit]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, fit in fits.items():
        if fit.differences and not fit.missing:
            reasons.setdefault(", ".join(map(str, fit.differences)), []).append(name)
    for reason, names in reasons.items():
        yield f"{label}: {', '.join(names)} not comparable: {reason}"


def _row_title(row: PublishedRow) -> str:
    title = systems()[row.row.system].title if row.row.system in systems() else row.row.label or row.row.name
    variant = row.row.variant or row.row.setting.group
    return f"{title} ({variant})" if variant else title


def _printed(cell: PublishedCell) -> float | None:
    return cell.value if cell.setting.unit == "pairs" else cell.score


def paper_named(name: str) -> Paper:
    """Returns a paper by its name or the beginning of it; of several editions, the last.

    >>> paper_named("esimcse").name
    'esimcse-coling2022'
    """
    plain = name.strip().casefold()
    known = papers()
    editions = [known[plain]] if plain in known else [known[key] for key in known if key.startswith(f"{plain}-")]
    if not editions:
        raise UserError(
            f"there is no paper {name!r}: choose one of {', '.join(known)}, or the beginning of a name."
        )
    return editions[-1]


def filled_papers(runs: Runs, tolerance: float = TOLERANCE) -> list[Section]:
    """Returns a section for each paper with a table for which runs have values, without empty columns.

    All are folded except the best match: the paper with rows for most runs, then with most comparable values, then
    the newest.
    """
    filled = {paper: [of for of in _fillings(paper, runs, tolerance) if of.filled] for paper in papers().values()}
    filled = {paper: fillings for paper, fillings in filled.items() if fillings}
    best = max(filled, key=lambda paper: (_fit_of(filled[paper]), paper.year or 0), default=None)
    return [
        replace(
            _section(paper, [as_table(filling, every_column=False) for filling in filled[paper]]),
            fold="open" if paper is best else "closed",
        )
        for paper in sorted(filled, key=lambda paper: paper is not best)
    ]


def _fit_of(fillings: Sequence[Filling]) -> tuple[int, int]:
    """Returns the number of runs with a row of their own, and the number of comparable values."""
    own = {label for filling in fillings for label in filling.expected}
    return len(own), sum(len(filling.filled) * len(filling.rows) for filling in fillings)


def whole_paper(paper: Paper, runs: Runs, tolerance: float = TOLERANCE) -> Filled:
    """Returns all tables of a paper in its order with all columns, and why tables are missing."""
    fillings = _fillings(paper, runs, tolerance)
    shown = [as_table(filling, every_column=True) for filling in fillings if filling.rows]
    absent = tuple(f"{filling.title}: {' '.join(filling.table.notes)}" for filling in fillings if not filling.rows)
    return Filled(_section(paper, shown), absent)


def _fillings(paper: Paper, runs: Runs, tolerance: float) -> list[Filling]:
    measured = {label: measured_scores(record) for label, record in runs.items()}
    return [fill(table, runs, measured, tolerance) for table in tables().values() if table.paper == paper.name]


def _section(paper: Paper, filled: Iterable[Table]) -> Section:
    year = f", {paper.year}" if paper.year and str(paper.year) not in paper.venue else ""
    source = f"{paper.authors}: {paper.title}. {paper.venue}{year}. {paper.address}".rstrip()
    title = f"{re.split(':|, revision', paper.title)[0]} ({paper.venue})"
    return Section(f"paper-{paper.name}", title, (source, paper.note) if paper.note else (source,), tuple(filled))


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
    """Returns a run's standing among published models, each average before its tasks; empty if none is comparable.

    A system counts once, with the row that represents it; later editions of a system and the run's own system are
    left out. A system must be comparable on every task that has more than half as many comparable systems as the
    most common task. If a run has several scores of a task (of two splits, for example), the one with most
    comparable systems is used.
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
    """Returns the comparable published scores, one row per system, and task, value and fit of each column.

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
    alone = "explain" if records[0].scores_of(STS) else "report"
    next_command = alone if len(records) == 1 else "compare" if len(records) == 2 else "rank"
    for record in records:
        name = f"{record.model.name}: " if len(records) > 1 else ""
        for place in (place for place in standing(record) if place.task in AVERAGES or len(record.scores) == 1):
            yield f"{name}{place.task} {place.value:.2f} is above {place.words} comparable published models."
        known = known_checkpoint(record)
        check = check_published(record, rows_to_check(record)) if known and known.expected else None
        if check is not None and any(cell.is_compared or cell.differences for cell in check.cells):
            yield check.sentence
            is_off = check.of("fail") or not any(cell.is_compared for cell in check.cells)
            next_command = "diagnose" if is_off and len(records) == 1 else next_command
    yield f"Next: stsbench {next_command} {shlex.join(str(record.folder) for record in records)}"
