"""`check`: is a run's number right, or no worse than its predecessor's?"""

from dataclasses import replace
from pathlib import Path

from stsbench.base.errors import UserError
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
    max_drop: float | None = None,
    margin: float | None = None,
    interval: Dependence = DEPENDENCE,
) -> Check:
    """Check a run against a published row, or against the run of a predecessor.

    Args:
        run: a run's folder or `run.json`, or a file of results of SentEval or MTEB. In Python also a record.
        against: the published row to check against: a system, the Hub name of a checkpoint, `table/row`, or `auto`
            (the default) for the row of the run's own checkpoint.
        tolerance: how many points (of 100) a score may differ from the published value; 0.05 by default. A score
            that rounds to the published value always passes.
        baseline: the run to check against instead of a published row, read as `run` is: that of the model's
            predecessor, say.
        max_drop: how many points a score may be lower than the baseline's; 0.3 by default.
        margin: how many points the model may lose against the baseline, as far as these pairs can show: a
            statistical test in the place of `max_drop`.
        interval: with `margin`: which pairs depend on each other.

    Returns:
        The check. `.verdict` is `pass`, `fail` or `not comparable`; against a margin `no worse`, `worse` or
        `cannot tell`. `.frame` has a row per score, `.sentence` says it, `.notes` tells what matched only because
        somebody leaves it open.

    Raises:
        UserError: if a run or a row cannot be found, a record does not say what its tables give, or the options
            do not fit together.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> check(run, baseline=run).verdict
    'pass'
    """
    # Imported where they are needed: each brings a room of its own, and a gate is not to wait for the others.
    if baseline is not None:
        if against is not None or tolerance is not None:
            option = "--against" if against is not None else "--tolerance"
            raise UserError(f"{option} and --baseline cannot go together: check against a row, or against a run.")
        if margin is not None and max_drop is not None:
            raise UserError("--max-drop and --margin cannot go together: choose the one or the other.")
        from stsbench.judging.baseline import MAX_DROP, check_baseline, check_margin

        record, predecessor = read_results(run), read_results(baseline)
        notes = require_recomputed(record, predecessor)
        if margin is None:
            result = check_baseline(record, predecessor, MAX_DROP if max_drop is None else max_drop)
        else:
            result = check_margin(record, predecessor, margin, interval=interval)
        return replace(result, notes=(*result.notes, *notes))
    if max_drop is not None or margin is not None:
        option = "--max-drop" if margin is None else "--margin"
        raise UserError(f"{option} goes with --baseline: name the run that may not be missed by more.")
    from stsbench.judging.published import AUTO, TOLERANCE, check_published, rows_to_check

    record = read_results(run)
    rows = rows_to_check(record, against or AUTO)
    notes = require_recomputed(record)
    result = check_published(record, rows, TOLERANCE if tolerance is None else tolerance)
    return replace(result, notes=(*result.notes, *notes))
