"""Is each number the published one: the check of every run that a published row is known for."""

from stsbench.foundation.errors import UserError
from stsbench.reports.page import ReportTable, Section
from stsbench.reports.papers import Filled
from stsbench.reports.scores import Runs
from stsbench.verify.check import TOLERANCE, check_published
from stsbench.verify.check_rows import AUTO, rows_to_check


def verdicts(runs: Runs, against: str = AUTO, tolerance: float = TOLERANCE) -> Filled:
    """Return a table of differences and verdicts for each run, and why others could not be checked."""
    tables, missing, summary = [], [], []
    for number, (label, record) in enumerate(runs.items(), 1):
        try:
            found = check_published(record, rows_to_check(record, against), tolerance)
        except UserError as error:
            missing.append(f"check of {label}: {error}")
            continue
        summary.append(str(found))
        tables.append(
            ReportTable(
                f"check-{number}",
                f"{label} against {' and '.join(found.against)}",
                found.table(),
                verdicts="verdict",
                notes=found.notes,
            )
        )
    text = f"A score passes if it is within {tolerance:g} points of the printed value, or prints as that does."
    section = Section("checks", "Verdicts", (text,) if tables else (), tuple(tables), points=tuple(summary))
    return Filled(section, tuple(missing))
