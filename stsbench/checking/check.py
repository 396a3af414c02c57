"""`check`: is a run's number right, or no worse than its predecessor's?"""

import os
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, told_as_unwritable
from stsbench.checking.baseline import MAX_DROP, check_baseline
from stsbench.checking.outcome import Check, Verdict
from stsbench.checking.published import AUTO, TOLERANCE, check_published, rows_to_check
from stsbench.records.imports.read import read_results
from stsbench.records.record import RunRecord
from stsbench.render.ci import Case, Level, Status, annotation, to_junit
from stsbench.render.formats import escape, to_markdown

__all__ = ["AUTO", "MAX_DROP", "TOLERANCE", "Check", "annotations", "append_step_summary", "check", "write_junit"]

_STATUS: dict[Verdict, Status] = {
    "pass": "passed",
    "fail": "failed",
    "not comparable": "error",
    "not measured": "skipped",
    "no value": "skipped",
}


def check(
    run: RunRecord | str | Path,
    against: str | None = None,
    *,
    tolerance: float | None = None,
    baseline: RunRecord | str | Path | None = None,
    max_drop: float | None = None,
) -> Check:
    """Check a run against a published row, or against the run of a predecessor.

    Args:
        run: a record, its folder or `run.json`, or a file of results of SentEval or MTEB.
        against: `table/row`, a system, the Hub name of a checkpoint; `auto` (the default) finds the row from the
            run's checkpoint.
        tolerance: how many points (of 100) a score may be off; 0.05 by default. One that prints as the published
            value does always passes.
        baseline: another run to check against instead, read as `run` is.
        max_drop: how many points a score may be lower than the baseline's; 0.3 by default.

    Returns:
        The check. `.verdict` is `pass`, `fail` or `not comparable`, `.table()` has a row per score, `str` tells
        it in a sentence, `.notes` what matched only because somebody leaves it open.

    Raises:
        UserError: if a run or a row cannot be found, or the options do not fit together.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> check(run, baseline=run).verdict
    'pass'
    """
    if baseline is not None:
        if against is not None or tolerance is not None:
            given = "--against" if against is not None else "--tolerance"
            raise UserError(f"{given} and --baseline cannot go together: check against a row, or against a run.")
        drop = MAX_DROP if max_drop is None else max_drop
        return check_baseline(read_results(run), read_results(baseline), drop)
    if max_drop is not None:
        raise UserError("--max-drop goes with --baseline: name the run that may not be missed by more.")
    record = read_results(run)
    allowed = TOLERANCE if tolerance is None else tolerance
    return check_published(record, rows_to_check(record, against or AUTO), allowed)


def write_junit(found: Check, path: str | Path) -> None:
    """Write the verdicts as JUnit XML, one test case for each score.

    Raises:
        UserError: if the file cannot be written.
    """
    suite = f"stsbench check {found.run}"
    name = {cell: f"{cell.origin} {cell.name}".strip() for cell in found.cells}
    cases = [Case(name[cell], _STATUS[cell.verdict], str(cell)) for cell in found.cells]
    with atomic_path(Path(path).expanduser()) as file:
        file.write_text(to_junit(suite, cases), encoding="utf-8")


def annotations(found: Check) -> list[str]:
    """Return what GitHub Actions shows on the page of a workflow's run: each score that fails, and the verdict."""
    lines = [annotation("error", f"{cell.name}: {cell.verdict}", str(cell)) for cell in found.of("fail")]
    level: Level = "notice" if found.verdict == "pass" else "error"
    return [*lines, annotation(level, "stsbench check", str(found))]


def append_step_summary(found: Check) -> None:
    """Add the check to the summary page of a GitHub workflow's step, if there is one (`GITHUB_STEP_SUMMARY`)."""
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        notes = "".join(f"- {escape(note)}\n" for note in found.notes)
        with told_as_unwritable(Path(page)), Path(page).open("a", encoding="utf-8") as file:
            file.write(f"### stsbench check\n\n{escape(str(found))}\n\n{to_markdown(found.table())}\n\n{notes}\n")
