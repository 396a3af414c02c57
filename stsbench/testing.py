"""Assertions for test suites: a run reproduces published scores, is not worse, or a server's vectors agree."""

from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.diagnosis.inputs import SENTENCES
from stsbench.diagnosis.like import diagnose_vectors
from stsbench.diagnosis.result import Likeness
from stsbench.judging.check import MARGIN, check
from stsbench.judging.published import AUTO, TOLERANCE
from stsbench.judging.verdicts import Check
from stsbench.records.record import RunRecord

__all__ = ["SENTENCES", "assert_matches_published", "assert_no_worse", "assert_same_vectors"]


def assert_matches_published(
    run: RunRecord | str | Path, against: str = AUTO, tolerance: float = TOLERANCE
) -> Check:
    """Asserts that a run reproduces a published row.

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
    __tracebackhide__ = True  # pytest shows the caller's line instead of this one
    return _require_passed(check(run, against, tolerance=tolerance))


def assert_no_worse(
    run: RunRecord | str | Path, baseline: RunRecord | str | Path, margin: float = MARGIN
) -> Check:
    """Asserts that a run loses less than a margin against an earlier run, on every task and on average.

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


def assert_same_vectors(
    vectors: Any, reference: Any, precision: str = "bf16", sentences: tuple[str, ...] = SENTENCES
) -> Likeness:
    """Asserts that a server, or saved vectors, agree with a checkpoint.

    Args:
        vectors: an encoder such as an endpoint, an array of shape (sentences, dimensions), or a .npy file.
        reference: the checkpoint, as `stsbench.load` accepts it.
        precision: the coarsest allowed: `fp32`, `fp16`, `bf16` or `int8`.
        sentences: of the vectors; by default fifty built-in ones.

    Returns:
        The agreement of every sentence and setting.

    Raises:
        AssertionError: if the vectors differ; the message names the setting that gives them.
        UserError: if they cannot be compared.
    """
    __tracebackhide__ = True
    precisions = ["fp32", "fp16", "bf16", "int8"]
    if precision not in precisions:
        raise UserError(f"precision {precision!r}: choose one of {', '.join(precisions)}.")
    result = diagnose_vectors(reference, vectors, sentences)
    if result.exit_code or precisions.index(result.precision) > precisions.index(precision):
        raise AssertionError("\n".join([result.sentence, str(result.table())]))
    return result
