"""Is each number the published one: the check of every run that a published row is known for."""

from stsbench.base.errors import UserError
from stsbench.checking.published import AUTO, TOLERANCE, check_published, known_checkpoint, rows_to_check
from stsbench.render.section import Filled, Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs


def verdicts(runs: Runs, against: str = AUTO, tolerance: float = TOLERANCE) -> Filled:
    """Return a table of differences and verdicts for each run, and why others could not be checked.

    Raises:
        UserError: if `against` is no row.
    """
    tables, unknown, missing, sentences = [], [], [], []
    for number, (label, record) in enumerate(runs.items(), 1):
        if against == AUTO and known_checkpoint(record) is None:
            unknown.append(label)
            continue
        try:
            found = check_published(record, rows_to_check(record, against), tolerance)
        except UserError as error:
            if against != AUTO:
                raise
            missing.append(f"check of {label}: {error}")
            continue
        sentences.append(str(found))
        caption, notes = f"{label} against {' and '.join(found.against)}", found.notes
        tables.append(Table(found.table(), caption, name=f"check-{number}", verdicts="verdict", notes=notes))
    if unknown:
        missing.append(f"check: no published row is known for {', '.join(unknown)}; --against names one")
    text = f"A score passes if it is within {tolerance:g} points of the printed value, or prints as that does."
    section = Section("checks", "Verdicts", (text,) if tables else (), tuple(tables), points=tuple(sentences))
    return Filled(section, tuple(missing))
