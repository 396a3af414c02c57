"""The papers' tables with measured values next to the published ones."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.judging.published import (
    TOLERANCE,
    Fit,
    MeasuredScore,
    check_published,
    checkpoint_of_run,
    fitting,
    measured_scores,
)
from stsbench.judging.verdicts import CellCheck
from stsbench.published.catalogue import PublishedRow, papers, rows_of, systems, tables
from stsbench.published.schema import Paper, PublishedCell, PublishedTable, Setting
from stsbench.records.record import RunRecord
from stsbench.render.page import Filled, Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs, interval_text
from stsbench.reports.summary import fit_interval

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
    known = checkpoint_of_run(record)
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
