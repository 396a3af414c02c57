"""One table of a paper, with what was measured here beside what it prints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.judging.matching import AVERAGES, Fit, MeasuredScore, fitting, measured_scores
from stsbench.judging.published import TOLERANCE, check_published, known_checkpoint
from stsbench.judging.verdicts import CellCheck, differences_text
from stsbench.published.catalogue import PublishedRow, papers, rows_of, systems, tables
from stsbench.published.schema import Paper, PublishedCell, PublishedTable, Setting
from stsbench.records.record import RunRecord
from stsbench.render.section import Filled, Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs, interval_text

PUBLISHED, HERE = "published", "here"
"""Where a row's values come from."""


@dataclass(frozen=True)
class Filling:
    """A published table and what runs have for it.

    Attributes:
        settings: what each column is of, where the table and the column's head say it.
        fits: by run and column, what was measured; empty where only the rows say what the columns are of.
        expected: the row that a run should reproduce, if one stands in the table.
        checks: by run and column, how it compares with that row.
    """

    table: PublishedTable
    rows: tuple[PublishedRow, ...]
    settings: Mapping[str, Setting]
    runs: Runs
    fits: Mapping[str, Mapping[str, Fit]]
    expected: Mapping[str, PublishedRow]
    checks: Mapping[str, Mapping[str, CellCheck]]

    @property
    def title(self) -> str:
        """The table's number and title."""
        return f"Table {self.table.number}: {self.table.title}" if self.table.number else self.table.title

    @property
    def filled(self) -> list[str]:
        """The columns that a run has a value for."""
        return [name for name in self.settings if any(name in _values(self, label) for label in self.runs)]

    @property
    def takes_runs(self) -> bool:
        """Whether a run has its place in it: it compares systems by their scores, or holds the run's own row."""
        return any(map(self.takes, self.runs)) and any(self.fits.values())

    @property
    def is_filled(self) -> bool:
        """Whether a run that has its place in it has a value for it."""
        return any(_values(self, label) for label in self.runs)

    def takes(self, label: str) -> bool:
        """Whether a run has its place in it.

        A table of one system's variants (dropout rates, say) is none that any other model could stand in.
        """
        compared = {row.row.system for row in self.rows if row.row.system and not row.row.variant}
        return len(compared) > 1 or label in self.expected


def fill(
    table: PublishedTable, runs: Runs, measured: Mapping[str, Sequence[MeasuredScore]], tolerance: float
) -> Filling:
    """Return what runs, whose scores were `measured`, have for a table."""
    rows = tuple(rows_of(table))
    settings = {column.name: column.setting.over(table.setting) for column in table.columns}
    by_column = all(not row.row.setting.model_dump(exclude_defaults=True) for row in rows)
    scored = [name for name, setting in settings.items() if by_column and _is_score(setting)]
    expected = {label: row for label, record in runs.items() if (row := _row_of(record, rows)) is not None}
    return Filling(
        table,
        rows,
        settings,
        runs,
        {label: {name: fitting(settings[name], scores) for name in scored} for label, scores in measured.items()},
        expected,
        {
            label: {cell.name: cell for cell in check_published(runs[label], [row], tolerance).cells}
            for label, row in expected.items()
        },
    )


def as_table(filling: Filling, *, every_column: bool) -> Table:
    """Return the table: under each published row the runs that should reproduce it, the others at the end.

    Columns that no run has a value for are left out, unless `every_column` is to be shown.
    """
    columns = list(filling.settings) if every_column else filling.filled
    records: list[dict[str, Any]] = []
    hints: dict[tuple[int, str], str] = {}
    ours: set[int] = set()

    def add(model: str, source: str, values: Mapping[str, float | None], told_of: Mapping[str, str]) -> None:
        if source == HERE:
            ours.add(len(records))
        hints.update(((len(records), name), hint) for name, hint in told_of.items() if name in columns)
        records.append({"model": model, "source": source, **values})

    def add_own(label: str) -> None:
        if values := _values(filling, label):
            add(label, HERE, values, {name: _hint(filling, label, name) for name in values})

    for row in filling.rows:
        cells = {cell.column: cell for cell in row.cells if cell.column in columns}
        add(_row_title(row), PUBLISHED, {name: _printed(cell) for name, cell in cells.items()}, {})
        for label, expected in filling.expected.items():
            if expected.name == row.name:
                add_own(label)
    for label in filling.runs:
        if label not in filling.expected:
            add_own(label)
    frame = pd.DataFrame(records, columns=["model", "source", *columns])
    notes = (*filling.table.notes, *_notes(filling))
    return Table(frame, filling.title, name=filling.table.name, hints=hints, own=frozenset(ours), notes=notes)


def missing(filling: Filling) -> list[str]:
    """Return in a sentence which columns of a table that runs fill have no value, if there are any."""
    filled = filling.filled
    absent = [
        column.name
        for column in filling.table.columns
        if column.name not in filled and filling.settings[column.name].task != "delta"
    ]
    return [f"{filling.title} ({_venue(filling.table)}): {', '.join(absent)}"] if absent and filled else []


def untouched(fillings: Sequence[Filling]) -> list[str]:
    """Return in a sentence which tables of a paper no run has any value for, if there are any."""
    empty = [filling for filling in fillings if not filling.filled]
    if not empty:
        return []
    names = listed(
        [f"table {filling.table.number}" if filling.table.number else filling.title for filling in empty]
    )
    return [f"{_venue(empty[0].table)}, {names}: none of the values is a score of these runs"]


def _venue(table: PublishedTable) -> str:
    return papers()[table.paper].venue


def _is_score(setting: Setting) -> bool:
    return setting.task not in {"", "delta"} and setting.unit != "pairs" and not setting.group


def _row_of(record: RunRecord, rows: Sequence[PublishedRow]) -> PublishedRow | None:
    known = known_checkpoint(record)
    return next((row for row in rows if known is not None and row.name in known.expected), None)


def _values(filling: Filling, label: str) -> dict[str, float | None]:
    fits = filling.fits[label].items() if filling.takes(label) else ()
    return {name: fit.value for name, fit in fits if fit.value is not None and not fit.differences}


def _hint(filling: Filling, label: str, name: str) -> str:
    record, check = filling.runs[label], filling.checks.get(label, {}).get(name)
    limits = fit_interval(record, filling.settings[name].task, filling.fits[label][name])
    parts = [interval_text(100 * limits[0], 100 * limits[1], record.protocol.level)] if limits else []
    if check is not None and check.difference is not None:
        parts.append(f"published {check.expected:.2f}, difference {check.difference:+.2f}: {check.verdict}")
    elif check is not None:
        parts.append(f"{check.verdict}: {check.reason}")
    return "; ".join(parts) or "measured here"


def _notes(filling: Filling) -> Iterator[str]:
    for label, fits in filling.fits.items():
        reasons: dict[str, list[str]] = {}
        for name, fit in fits.items():
            if fit.differences and not fit.missing:
                reasons.setdefault(differences_text(fit.differences), []).append(name)
        for reason, names in reasons.items():
            yield f"{label}: {', '.join(names)} not comparable: {reason}"


def _row_title(row: PublishedRow) -> str:
    title = systems()[row.row.system].title if row.row.system in systems() else row.row.label or row.row.name
    told_apart = row.row.variant or row.row.setting.group
    return f"{title} ({told_apart})" if told_apart else title


def _printed(cell: PublishedCell) -> float | None:
    return cell.value if cell.setting.unit == "pairs" else cell.score


def fit_interval(record: RunRecord, task: str, fit: Fit) -> tuple[float, float] | None:
    """Return the interval, from 0 to 1, of what a record has for a published value of a task or an average."""
    if task in AVERAGES:
        return next((mean.interval for mean in record.averages if set(mean.tasks) == set(AVERAGES[task])), None)
    (measured,) = fit.scores
    number = measured.of.number(measured.statistic)
    return None if number is None else number.interval


def paper_named(name: str) -> Paper:
    """Return the paper that a person means: its name, or how it begins; of several editions the last.

    >>> paper_named("esimcse").name
    'esimcse-coling2022'
    """
    plain = name.strip().casefold()
    known = papers()
    editions = [known[plain]] if plain in known else [known[key] for key in known if key.startswith(f"{plain}-")]
    if not editions:
        raise UserError(f"there is no paper {name!r}: choose one of {', '.join(known)}, or how it begins.")
    return editions[-1]


def filled_papers(runs: Runs, tolerance: float = TOLERANCE) -> Iterator[Filled]:
    """Yield for each paper those of its tables that the runs can fill, without the columns that none has.

    A table in which a run could stand, but of which none has a value, counts as missing. Papers are folded but for
    the one that fits the runs, which comes first: in whose tables most of them should reproduce a row, and of such
    papers, or where there is none, that with most values to compare with; of equals the newest.
    """
    filled = {}
    for paper in papers().values():
        filled[paper] = [filling for filling in _fillings(paper, runs, tolerance) if filling.takes_runs]
    fitting_best = max(filled, key=lambda paper: (_fit_of(filled[paper]), paper.year or 0), default=None)
    for paper, fillings in sorted(filled.items(), key=lambda item: item[0] is not fitting_best):
        shown = [as_table(filling, every_column=False) for filling in fillings if filling.is_filled]
        absent = [sentence for filling in fillings for sentence in missing(filling)] + untouched(fillings)
        section = _section(paper, shown) if shown else Section("", "")
        fold: Literal["open", "closed"] = "open" if paper is fitting_best else "closed"
        yield Filled(replace(section, fold=fold), tuple(absent))


def _fit_of(fillings: Sequence[Filling]) -> tuple[int, int]:
    """Return how many runs have a row of their own in some tables, and how many values of theirs runs have."""
    own = {label for filling in fillings for label in filling.expected}
    return len(own), sum(len(filling.filled) * len(filling.rows) for filling in fillings if filling.is_filled)


def whole_paper(paper: Paper, runs: Runs, tolerance: float = TOLERANCE) -> Filled:
    """Return all tables of a paper in its order, with all of their columns, whether a run fills them or not."""
    shown, absent, printed = [], [], []
    for filling in _fillings(paper, runs, tolerance):
        if not filling.table.rows:
            absent.append(f"{filling.title}: {' '.join(filling.table.notes)}")
        else:
            shown.append(as_table(filling, every_column=True))
            absent += missing(filling)
            printed.append(filling)
    return Filled(_section(paper, shown), (*absent, *untouched(printed)))


def _fillings(paper: Paper, runs: Runs, tolerance: float) -> list[Filling]:
    measured = {label: measured_scores(record) for label, record in runs.items()}
    return [fill(table, runs, measured, tolerance) for table in tables().values() if table.paper == paper.name]


def _section(paper: Paper, filled: Iterable[Table]) -> Section:
    year = f", {paper.year}" if paper.year and str(paper.year) not in paper.venue else ""
    source = f"{paper.authors}: {paper.title}. {paper.venue}{year}. {paper.address}".rstrip()
    title = f"{paper.title.partition(':')[0]} ({paper.venue})"
    return Section(f"paper-{paper.name}", title, (source, paper.note) if paper.note else (source,), tuple(filled))
