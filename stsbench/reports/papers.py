"""The papers' tables in their layout, with what was measured here beside what they print."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stsbench.foundation.errors import UserError
from stsbench.published import Cell, Paper, PublishedRow, Table, papers, systems, tables
from stsbench.published.catalogue import rows_of
from stsbench.records import RunRecord
from stsbench.reports.page import ReportTable, Section
from stsbench.reports.scores import Runs, interval_text
from stsbench.verify.check import AVERAGES, TOLERANCE, Fit, check_published, fitting
from stsbench.verify.check_fields import told
from stsbench.verify.check_measured import DEVACC, Measured, measured_scores
from stsbench.verify.check_rows import known_checkpoint

PUBLISHED, HERE = "published", "here"
"""Where a row's values come from."""


@dataclass(frozen=True)
class Filled:
    """A section for a paper, and what of its tables was not measured, in sentences."""

    section: Section
    missing: tuple[str, ...]


def paper_named(name: str) -> Paper:
    """Return the paper that a person means: its name, or how it begins; of several editions the last.

    Raises:
        UserError: if there is no such paper.

    >>> paper_named("esimcse").name
    'esimcse-coling2022'
    """
    found = [paper for key, paper in papers().items() if key == name] or [
        paper for key, paper in papers().items() if name and key.startswith(f"{name.casefold()}-")
    ]
    if not found:
        raise UserError(f"there is no paper {name!r}: choose one of {', '.join(papers())}, or how it begins.")
    return found[-1]


def filled_papers(runs: Runs, tolerance: float = TOLERANCE) -> Iterator[Filled]:
    """Yield for each paper those of its tables that the runs can fill, where systems are compared."""
    measured = {label: measured_scores(record) for label, record in runs.items()}
    for paper in papers().values():
        found, missing = [], []
        for table in tables().values():
            if table.paper != paper.name:
                continue
            filler = _Filler(table, runs, measured, tolerance)
            if filler.is_of_interest:
                found.append(filler.table(every_column=False))
                missing += filler.missing()
        if found:
            yield Filled(_section(paper, found), tuple(missing))


def whole_paper(paper: Paper, runs: Runs, tolerance: float = TOLERANCE) -> Filled:
    """Return all tables of a paper in its order, with all of their columns, whether a run fills them or not."""
    measured = {label: measured_scores(record) for label, record in runs.items()}
    found, missing = [], []
    for table in tables().values():
        if table.paper != paper.name:
            continue
        if table.missing:
            missing.append(f"{_title(table)}: {table.missing}")
            continue
        filler = _Filler(table, runs, measured, tolerance)
        found.append(filler.table(every_column=True))
        missing += filler.missing()
    return Filled(_section(paper, found), tuple(missing))


def _section(paper: Paper, found: Iterable[ReportTable]) -> Section:
    year = f", {paper.year}" if paper.year and str(paper.year) not in paper.venue else ""
    source = f"{paper.authors}: {paper.title}. {paper.venue}{year}. {paper.address}".rstrip()
    text = (source, paper.note) if paper.note else (source,)
    return Section(f"paper-{paper.name}", f"{_short(paper)}", text, tuple(found))


def _short(paper: Paper) -> str:
    return f"{paper.title.partition(':')[0]} ({paper.venue})"


def _title(table: Table) -> str:
    return f"Table {table.number}: {table.title}" if table.number else table.title


class _Filler:
    """One table and what the runs have for it."""

    def __init__(
        self, table: Table, runs: Runs, measured: Mapping[str, Sequence[Measured]], tolerance: float
    ) -> None:
        self.entry, self.runs, self.tolerance = table, runs, tolerance
        self.rows = list(rows_of(table))
        # What a column is of, where the table and its head say so: some tables say it of each row.
        self.settings = {column.name: column.setting.over(table.setting) for column in table.columns}
        scored = [
            name
            for name, setting in self.settings.items()
            if setting.task not in {"", "delta"} and setting.unit != "pairs" and not setting.group
        ]
        plain = all(not row.row.setting.model_dump(exclude_defaults=True) for row in self.rows)
        self.fits: dict[str, dict[str, Fit]] = {
            label: {name: fitting(self.settings[name], scores) for name in scored if plain}
            for label, scores in measured.items()
        }
        self.own = {label: self._row_of(record) for label, record in runs.items()}

    @property
    def is_of_interest(self) -> bool:
        """Whether a run has a value for it, and it compares systems or holds the run's own row."""
        own = {row.row.system for row in self.rows if row.row.system and not row.row.variant}
        return any(
            (len(own) > 1 or self.own[label] is not None) and any(map(_is_filled, fits.values()))
            for label, fits in self.fits.items()
        )

    def table(self, *, every_column: bool) -> ReportTable:
        """Return the table: under each published row the runs that should reproduce it, the others at the end."""
        import pandas as pd

        columns = [
            name
            for name in self.settings
            if every_column or any(name in fits and _is_filled(fits[name]) for fits in self.fits.values())
        ]
        records: list[dict[str, Any]] = []
        hints: dict[tuple[int, str], str] = {}
        own: set[int] = set()

        def add(label: str) -> None:
            fits = {name: fit for name, fit in self.fits[label].items() if name in columns and _is_filled(fit)}
            if fits:
                own.add(len(records))
                hints.update(((len(records), name), self._hint(label, name, fit)) for name, fit in fits.items())
                records.append({"model": label, "source": HERE} | {name: fit.value for name, fit in fits.items()})

        for row in self.rows:
            values = {cell.column: cell for cell in row.cells if cell.column in columns}
            hints.update(
                ((len(records), name), f"{cell.status}: {cell.how}")
                for name, cell in values.items()
                if cell.status != "printed"
            )
            records.append(
                {"model": _row_title(row), "source": PUBLISHED}
                | {name: _value(cell) for name, cell in values.items()}
            )
            for label, expected in self.own.items():
                if expected is not None and expected.name == row.name:
                    add(label)
        for label, expected in self.own.items():
            if expected is None:
                add(label)
        frame = pd.DataFrame(records, columns=["model", "source", *columns])
        return ReportTable(
            self.entry.name, _title(self.entry), frame, hints=hints, own=frozenset(own), notes=tuple(self._notes())
        )

    def missing(self) -> list[str]:
        """Return which columns no run has a value for."""
        absent = [
            name
            for name in next(iter(self.fits.values()), {})
            if not any(_is_filled(fits[name]) for fits in self.fits.values())
        ]
        if absent:
            return [f"{papers()[self.entry.paper].venue}, {_title(self.entry)}: {', '.join(absent)}"]
        settings = {} if any(self.fits.values()) else self.settings
        return [f"{papers()[self.entry.paper].venue}, {_title(self.entry)}: no run record holds such a value"] * (
            bool(settings)
        )

    def _row_of(self, record: RunRecord) -> PublishedRow | None:
        known = known_checkpoint(record)
        return next((row for row in self.rows if known is not None and row.name in known.expected), None)

    def _hint(self, label: str, name: str, fit: Fit) -> str:
        record, expected = self.runs[label], self.own[label]
        limits = _interval(record, self.settings[name].task, fit)
        told_of = [interval_text(100 * limits[0], 100 * limits[1], record.protocol.level)] if limits else []
        if expected is not None:
            checked = next(
                (
                    cell
                    for cell in check_published(record, [expected], self.tolerance).cells
                    if cell.name == name and cell.difference is not None
                ),
                None,
            )
            if checked is not None and checked.difference is not None:
                told_of.append(
                    f"published {checked.expected:.2f}, difference {checked.difference:+.2f}: {checked.verdict}"
                )
        return "; ".join(told_of) or "measured here"

    def _notes(self) -> Iterator[str]:
        yield from self.entry.notes
        for label, fits in self.fits.items():
            reasons: dict[str, list[str]] = {}
            for name, fit in fits.items():
                if fit.differences and not fit.missing:
                    reasons.setdefault(told(fit.differences), []).append(name)
            for reason, names in reasons.items():
                yield f"{label}: {', '.join(names)} not comparable: {reason}"


def _is_filled(fit: Fit) -> bool:
    return fit.value is not None and not fit.differences


def _row_title(row: PublishedRow) -> str:
    title = systems()[row.row.system].title if row.row.system in systems() else row.row.label or row.row.name
    return f"{title} ({row.row.variant})" if row.row.variant else title


def _value(cell: Cell) -> float | None:
    return cell.value if cell.setting.unit == "pairs" else cell.score


def _interval(record: RunRecord, task: str, fit: Fit) -> tuple[float, float] | None:
    if task in AVERAGES:
        means = (mean for mean in (record.average, record.transfer_average) if mean is not None)
        return next((mean.interval for mean in means if set(mean.tasks) == set(AVERAGES[task])), None)
    (score,) = fit.scores
    for part in record.tasks:
        if part.signature == str(score.signature):
            return part.interval
    for other in record.transfer:
        if other.signature == str(score.signature):
            return other.devacc_interval if score.quantity == DEVACC else other.acc_interval
    return None
