"""For test suites: a model's published numbers as an assertion, `assert_matches_published`."""

from pathlib import Path

from stsbench.judging.check import check
from stsbench.judging.published import AUTO, TOLERANCE
from stsbench.judging.verdicts import Check
from stsbench.records.record import RunRecord

__all__ = ["assert_matches_published"]


def assert_matches_published(
    run: RunRecord | str | Path, against: str = AUTO, tolerance: float = TOLERANCE
) -> Check:
    """Assert that a run reproduces a published row.

    In a test: `assert_matches_published("runs/mine", against="unsup-simcse-bert-base")`.

    Args:
        run: a record, its folder or `run.json`, or a file of results of SentEval or MTEB.
        against: `table/row`, a system, the Hub name of a checkpoint, or `auto`.
        tolerance: how many points (of 100) a score may be off.

    Returns:
        The check, for a closer look.

    Raises:
        AssertionError: if a score is off, or does not compare; with the table of what was found.
        UserError: if the run or the row cannot be found.
    """
    # pytest then shows the caller's line, and not this one.
    __tracebackhide__ = True
    result = check(run, against, tolerance=tolerance)
    if not result.passed:
        raise AssertionError("\n".join([result.sentence, str(result.table()), *result.notes]))
    return result
