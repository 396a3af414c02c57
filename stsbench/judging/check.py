"""`check`: does a run match published numbers, or an earlier run?"""

from dataclasses import replace
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.judging.baseline import MARGIN, check_baseline
from stsbench.judging.published import AUTO, TOLERANCE, check_published, rows_to_check
from stsbench.judging.verdicts import Check
from stsbench.records.imports import read_results
from stsbench.records.record import RunRecord
from stsbench.scoring.recompute import require_recomputed
from stsbench.statistics import DEPENDENCE, Dependence


def check(
    run: RunRecord | str | Path,
    against: str | None = None,
    *,
    tolerance: float | None = None,
    baseline: RunRecord | str | Path | None = None,
    margin: float | None = None,
    interval: Dependence = DEPENDENCE,
) -> Check:
    """Checks a run against a published row, or against an earlier run.

    Args:
        run: a run's folder or `run.json`, a file of results of SentEval or MTEB, or a record.
        against: the published row: a system, the Hub name of a checkpoint, `table/row`, or `auto` (the default)
            for the row of the run's own checkpoint.
        tolerance: allowed difference from the published value in points (of 100), 0.05 by default. A score that
            rounds to the published value always passes.
        baseline: a run to check against instead of a published row, such as that of the model's predecessor.
        margin: tests that the loss against the baseline is below this many points, 0.3 by default.
        interval: with a baseline: which pairs are treated as dependent.

    Returns:
        The check. `.verdict` is `pass`, `fail` or `not comparable`; with a baseline `within margin`, `worse` or
        `undecided`. `.frame` has a row per score, `.sentence` is the answer, `.notes` lists what is unusual.

    Raises:
        UserError: if a run or row is not found, a record contradicts its items, or options exclude each other.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> check(run, baseline=run).verdict
    'within margin'
    """
    if baseline is None:
        if margin is not None:
            raise UserError("--margin needs --baseline: name the run to compare with.")
        record = read_results(run)
        rows = rows_to_check(record, against or AUTO)
        notes = require_recomputed(record)
        result = check_published(record, rows, TOLERANCE if tolerance is None else tolerance)
        return replace(result, notes=(*result.notes, *notes))
    if against is not None or tolerance is not None:
        option = "--against" if against is not None else "--tolerance"
        raise UserError(f"{option} and --baseline exclude each other: check against a row, or against a run.")
    record, earlier = read_results(run), read_results(baseline)
    notes = require_recomputed(record, earlier)
    default = [f"{MARGIN} points is the default margin: choose yours with --margin."] if margin is None else []
    result = check_baseline(record, earlier, MARGIN if margin is None else margin, interval=interval)
    return replace(result, notes=(*default, *notes))
