"""An assertion for test suites: a run reproduces published scores."""

from pathlib import Path

from stsbench.judging.check import check
from stsbench.judging.published import AUTO, TOLERANCE
from stsbench.judging.verdicts import Check
from stsbench.records.record import RunRecord

__all__ = ["assert_matches_published"]


def assert_matches_published(
    run: RunRecord | str | Path, against: str = AUTO, tolerance: float = TOLERANCE
) -> Check:
    """Asserts that a run reproduces a published row.

    In a test: `assert_matches_published("runs/mine", against="unsup-simcse-bert-base")`.

    Args:
        run: a record, its folder, its `run.json`, or a results file of SentEval or MTEB.
        against: the row, as `table/row`, a system's name, a checkpoint's name on the Hub, or `auto`.
        tolerance: the largest allowed difference of a score, in points of 100.

    Returns:
        The check with all its verdicts.

    Raises:
        AssertionError: if a score differs by more, or cannot be compared; the message has the table of verdicts.
        UserError: if the run or the row cannot be found.
    """
    # Makes pytest show the caller's line instead of this one.
    __tracebackhide__ = True
    result = check(run, against, tolerance=tolerance)
    if not result.passed:
        raise AssertionError("\n".join([result.sentence, str(result.table()), *result.notes]))
    return result
