"""Assertions for test suites: a run reproduces published scores, or is no worse than an earlier run."""

from pathlib import Path

from stsbench.judging.check import MARGIN, check
from stsbench.judging.published import AUTO, TOLERANCE
from stsbench.judging.verdicts import Check
from stsbench.records.record import RunRecord

__all__ = ["assert_matches_published", "assert_no_worse"]


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
    return _require_passed(check(run, against, tolerance=tolerance))


def assert_no_worse(
    run: RunRecord | str | Path, baseline: RunRecord | str | Path, margin: float = MARGIN
) -> Check:
    """Asserts that a run loses less than a margin against an earlier run, on every task and on average.

    In a test: `assert_no_worse("runs/new", "runs/old", margin=0.5)`.

    Args:
        run: a record, its folder or its `run.json`.
        baseline: the earlier run, on the same items by the same protocol.
        margin: in points of 100.

    Returns:
        The check with all its verdicts.

    Raises:
        AssertionError: if a loss is larger, or there are too few items to decide; the message has the table.
        UserError: if a run cannot be found, or the two are not comparable.
    """
    __tracebackhide__ = True
    return _require_passed(check(run, baseline=baseline, margin=margin))


def _require_passed(result: Check) -> Check:
    __tracebackhide__ = True
    if not result.passed:
        raise AssertionError("\n".join([result.sentence, str(result.table()), *result.notes]))
    return result
