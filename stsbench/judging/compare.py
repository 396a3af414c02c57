"""`compare`: is the difference between two models, or two methods over seeds, real?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from os.path import commonprefix
from typing import Any

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.judging.aligned import FEWEST, AlignedScores, aligned_scores
from stsbench.judging.comparison import TESTS, Comparison, comparison_sentence, corrected
from stsbench.judging.runs import Run, choose_runs, group_seeds
from stsbench.judging.seeds import SeedsComparison, compare_seeds
from stsbench.judging.verdicts import records
from stsbench.records.record import RunRecord
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import INTERVALS, Intervals
from stsbench.statistics import DEPENDENCE
from stsbench.statistics.estimate import Estimate

_TOPICS_MATTER = 1.2
"""A note is printed if the standard error by components is more than this many times the dyadic one."""

_UNDEFINED = ("low", "high", "p", "effect", "effect_low", "effect_high", "test_p")
"""The numbers that only some rows have."""


def compare(
    a: Run | Sequence[Run],
    b: Run | Sequence[Run] = (),
    *,
    intervals: Intervals | None = None,
    progress: Progress = silent,
) -> Comparison | SeedsComparison:
    """Tests whether two models differ, or two methods over several seeds.

    Two runs are compared on each task and on average, from every pair's contribution to the difference. p-values
    are corrected over the tasks (Holm). Williams' and McNemar's tests, which treat items as independent, are shown
    for comparison. Two lists of runs are compared as samples of other seeds and other pairs; tests need five runs
    of each.

    Args:
        a: a run, or a list of runs of one method with different seeds.
        b: the other run, or the other method's runs. By default the spread of `a` is described.
        intervals: how intervals and p-values are computed; by default dyadic, 95 %. The records' own choice is
            not used.
        progress: called with the stage and how much of it is done.

    Returns:
        The comparison, with the verdict as `.sentence`, and `.table()`, `.plot()` and `.frame`.

    Raises:
        UserError: if the runs are not comparable, or a record contradicts its items.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> compare(run, run).sentence
    'No significant difference on sample: 0.00 [0.00, 0.00], p = 1.000.'
    """
    sides = [[side] if isinstance(side, Run) else list(side) for side in (a, b)]
    if not sides[0]:
        raise UserError("there is no run to compare: name at least one.")
    intervals = intervals or Intervals()
    if intervals.interval is None:
        raise UserError("a comparison needs intervals: choose how to compute them, such as dyadic.")
    are_models = isinstance(a, Run) and isinstance(b, Run)
    runs, _ = choose_runs([*sides[0], *sides[1]], may_repeat=are_models)
    # The runs' own intervals are not shown, so they need not be recomputed.
    notes = require_recomputed(*runs.values(), intervals=False)
    if not are_models:
        result = compare_seeds(group_seeds(runs, _methods(runs, len(sides[0])))[0], intervals)
        return replace(result, notes=(*result.notes, *notes))
    aligned, left_out = aligned_scores(runs, may_be_undefined=True, progress=progress)
    rows, (first, second) = differences(aligned, intervals), runs
    notes = (*left_out, *dependence_notes(rows, intervals), *notes)
    return Comparison(first, second, rows, intervals.level, notes=notes)


def _methods(runs: Mapping[str, RunRecord], size: int) -> dict[str, str]:
    """Returns the method of each run, of which the first `size` are of one: what its folders' names share."""
    names = [str(record.folder or label) for label, record in runs.items()]
    sides = [side for side in (names[:size], names[size:]) if side]
    # Character by character: `os.path.commonpath` compares whole folders.
    shared = [commonprefix(side).rstrip("-_./0123456789") if side[1:] else "" for side in sides]  # noqa: RUF071
    methods = [common or side[0] for common, side in zip(shared, sides, strict=True)]
    methods = methods if len(set(methods)) == len(sides) else [side[0] for side in sides]
    return {run: methods[place >= size] for place, run in enumerate(runs)}


def differences(tasks: Sequence[AlignedScores], intervals: Intervals) -> pd.DataFrame:
    """Returns the `rows` of a `Comparison` of two models, A first."""
    parts = [(subset, part) for task in tasks for subset, part in (("", task), *task.subsets())]
    rows = pd.DataFrame([_difference(part, intervals, subset) for subset, part in parts])
    return corrected(rows, intervals.level, tests=("p", "test_p"), by=("kind", rows["subset"] != ""))


def dependence_notes(rows: pd.DataFrame, intervals: Intervals) -> Iterator[str]:
    """Yields notes on which pairs are treated as dependent, and where another choice would matter."""
    if intervals.interval == "independent":
        yield "intervals treat all pairs as independent, although some share sentences (--interval dyadic)."
        return
    tests = " and ".join(f"{TESTS[test]} p" for test in rows["test"].unique() if test)
    but = f"; {tests} ignores shared sentences" if tests else ""
    yield f"pairs that share a sentence are treated as dependent (docs: error bars){but}."
    if "se_components" not in rows:
        return
    are_larger = (rows["subset"] == "") & (rows["se_components"] > _TOPICS_MATTER * rows["se_dyadic"])
    apart = [
        f"{row.task} {row.se_components:.2f} instead of {row.se_dyadic:.2f}" for row in records(rows[are_larger])
    ]
    if apart:
        yield f"standard errors are larger if topics are dependent (--interval components): {'; '.join(apart)}."


def _difference(task: AlignedScores, intervals: Intervals, subset: str) -> dict[str, Any]:
    effect, (a, b) = task.statistic.effect, (100 * task.scores).tolist()
    row: dict[str, Any] = {"kind": task.kind, "task": task.task, "subset": subset, "size": task.size}
    row |= {"a": a, "b": b, "difference": b - a, **dict.fromkeys(_UNDEFINED, math.nan)}
    row |= {"effect_size": effect.name if effect else "", "test": "", "interval": intervals.interval}
    test = task.statistic.independent_test(task.scores, *task.items) if task.items else None
    if test:
        row |= {"test": test.name, "test_p": test.p}
    if effect:
        # Fisher's transform of a perfect correlation is infinite, and the difference of two of them undefined.
        with np.errstate(divide="ignore", invalid="ignore"):
            row["effect"] = float(np.diff(effect.of(task.scores))[0])
    if task.size >= FEWEST and not np.isnan(task.scores).any():
        by_method = {method: task.estimate((-1, 1), method) for method in INTERVALS}
        estimate = by_method[intervals.interval or DEPENDENCE]
        row |= _limits(estimate, intervals.level)
        if estimate.value == 0 and not estimate.variance.value:
            row |= {"effect_low": 0.0, "effect_high": 0.0} if effect else {}
        else:
            row["df"] = estimate.variance.df
            row |= {f"se_{method}": 100 * of.variance.standard_error for method, of in by_method.items()}
            row |= _effect_limits(task, intervals) if effect else {}
    return row | dict(test.details if test else {})


def _limits(estimate: Estimate, level: float) -> dict[str, Any]:
    low, high, _ = estimate.interval(level)
    return {"low": 100 * low, "high": 100 * high, "p": estimate.p}


def _effect_limits(task: AlignedScores, intervals: Intervals) -> dict[str, Any]:
    """Returns the interval of the effect size by the delta method; empty where it is infinite."""
    effect = task.statistic.effect
    assert effect is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes, (a, b) = effect.slope(task.scores), effect.of(task.scores)
    if not np.isfinite(slopes).all():
        return {}
    terms = slopes[1] * task.terms[1] - slopes[0] * task.terms[0]
    estimate = Estimate.of(float(b - a), terms, task.sharing, intervals.interval or DEPENDENCE)
    low, high, _ = estimate.interval(intervals.level)
    return {"effect_low": low, "effect_high": high}


def every_two(tasks: Sequence[AlignedScores], names: Sequence[str], intervals: Intervals) -> Iterator[str]:
    """Yields the sentence on every two of m models with defined scores, in the order (0, 1), (0, 2), ..."""
    estimates = [(task, task.differences(intervals.interval or DEPENDENCE)) for task in tasks]
    rows: list[dict[str, Any]] = []
    for a, b in combinations(range(len(names)), 2):
        for task, of_task in estimates:
            first, second = 100 * float(task.scores[a]), 100 * float(task.scores[b])
            row = {"pair": (a, b), "kind": task.kind, "task": task.task, "difference": second - first}
            limits = _limits(of_task[a, b], intervals.level) if task.size >= FEWEST else {}
            rows.append(row | dict.fromkeys(("low", "high", "p"), math.nan) | limits)
    every = records(corrected(pd.DataFrame(rows), intervals.level, by=("pair", "kind")))
    for (a, b), of_pair in groupby(every, key=lambda row: row.pair):
        yield comparison_sentence(list(of_pair), intervals.level, (names[a], names[b]))
