"""The papers' tables in their layout and order, with what was measured here."""

from collections.abc import Iterable, Iterator

from stsbench.foundation.errors import UserError
from stsbench.published import Paper, papers, tables
from stsbench.reports.filled_table import as_table, fill, missing
from stsbench.reports.page import Filled, ReportTable, Section
from stsbench.reports.scores import Runs
from stsbench.verify.check import TOLERANCE
from stsbench.verify.check_measured import measured_scores


def paper_named(name: str) -> Paper:
    """Return the paper that a person means: its name, or how it begins; of several editions the last.

    Raises:
        UserError: if there is no such paper.

    >>> paper_named("esimcse").name
    'esimcse-coling2022'
    """
    plain = name.strip().casefold()
    known = papers()
    found = [known[plain]] if plain in known else [known[key] for key in known if key.startswith(f"{plain}-")]
    if not found:
        raise UserError(f"there is no paper {name!r}: choose one of {', '.join(known)}, or how it begins.")
    return found[-1]


def filled_papers(runs: Runs, tolerance: float = TOLERANCE) -> Iterator[Filled]:
    """Yield for each paper those of its tables that the runs can fill, without the columns that none has.

    What no run has, of the tables in which one could stand, is told as missing.
    """
    measured = {label: measured_scores(record) for label, record in runs.items()}
    for paper in papers().values():
        own = [table for table in tables().values() if table.paper == paper.name]
        found = [filling for table in own if (filling := fill(table, runs, measured, tolerance)).takes_runs]
        shown = [as_table(filling, every_column=False) for filling in found if filling.is_filled]
        absent = tuple(sentence for filling in found for sentence in missing(filling))
        yield Filled(_section(paper, shown) if shown else Section("", ""), absent)


def whole_paper(paper: Paper, runs: Runs, tolerance: float = TOLERANCE) -> Filled:
    """Return all tables of a paper in its order, with all of their columns, whether a run fills them or not."""
    measured = {label: measured_scores(record) for label, record in runs.items()}
    shown, absent = [], []
    for table in tables().values():
        if table.paper != paper.name:
            continue
        filling = fill(table, runs, measured, tolerance)
        if table.missing:
            absent.append(f"{filling.title}: {table.missing}")
        else:
            shown.append(as_table(filling, every_column=True))
            absent += missing(filling)
    return Filled(_section(paper, shown), tuple(absent))


def _section(paper: Paper, found: Iterable[ReportTable]) -> Section:
    year = f", {paper.year}" if paper.year and str(paper.year) not in paper.venue else ""
    source = f"{paper.authors}: {paper.title}. {paper.venue}{year}. {paper.address}".rstrip()
    title = f"{paper.title.partition(':')[0]} ({paper.venue})"
    return Section(f"paper-{paper.name}", title, (source, paper.note) if paper.note else (source,), tuple(found))
