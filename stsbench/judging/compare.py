"""`compare`: is the difference between two models, or two methods over seeds, real?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from os.path import commonprefix
from pathlib import Path
from typing import Any

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.judging.aligned import FEWEST, AlignedScores, aligned_scores
from stsbench.judging.comparison import TESTS, Comparison, Difference, corrected
from stsbench.judging.overlap import overlaps_of
from stsbench.judging.runs import Run, named_runs, records_of
from stsbench.judging.seeds import SeedsComparison, compare_seeds
from stsbench.records.kinds import KINDS
from stsbench.records.labels import labels
from stsbench.records.record import RunRecord
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import INTERVALS, Intervals
from stsbench.statistics import DEPENDENCE
from stsbench.statistics.dependence import Variance, difference_variances, variance
from stsbench.statistics.intervals import plain_interval, two_sided_p
from stsbench.statistics.seeds import RESAMPLES, SEED

_TOPICS_MATTER = 1.2
"""Ratio of the standard error by components to the dyadic one that is worth a note."""


def compare(
    a: Run | Sequence[Run],
    b: Run | Sequence[Run] = (),
    *,
    corpora: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    intervals: Intervals | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    progress: Progress = silent,
) -> Comparison | SeedsComparison:
    """Tests whether two models differ, or two methods over several seeds.

    Two runs are compared on each task and on average, by what every pair contributes to the difference. p-values
    are corrected over the tasks (Holm). Williams' and Steiger's tests, which treat pairs as independent, are shown
    for comparison. Two lists of runs are compared as samples of other seeds and other pairs; tests need five runs
    of each.

    Args:
        a: a run, or a list of runs of one method with different seeds.
        b: the other run, or the other method's runs. Without it, the spread of `a` is described.
        corpora: training corpora to search for the test sentences: a file with one text per line, or a .csv file
            with a text in each cell; either may be compressed (.gz).
        data_dirs: folders with the benchmark data, searched before `STSBENCH_DATA` and the cache.
        intervals: how intervals and p-values are computed; by default dyadic, 95 %. The records' own choice is
            not used.
        resamples: bootstrap draws of whole runs, for interquartile means and the probability of improvement.
        seed: seed of these draws.
        progress: called with the stage and how much of it is done.

    Returns:
        The comparison, with the verdict as `.sentence`, and `.table()`, `.plot()` and `.frame`.

    Raises:
        UserError: if the runs are not comparable, a record contradicts its items, or a file cannot be read.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> compare(run, run).sentence
    'No significant difference on sample: 0.00 [0.00, 0.00], p = 1.000.'
    """
    of_a, of_b = records_of([a] if isinstance(a, Run) else a), records_of([b] if isinstance(b, Run) else b)
    intervals = intervals or Intervals()
    if intervals.interval is None:
        raise UserError("a comparison needs intervals: choose how to compute them, such as dyadic.")
    # The runs' own intervals are not shown, so they need not be recomputed.
    notes = require_recomputed(*of_a, *of_b, intervals=False)
    result: Comparison | SeedsComparison
    if isinstance(a, Run) and isinstance(b, Run):
        result = _compare_models([*of_a, *of_b], intervals, progress)
    else:
        result = _compare_methods(of_a, of_b, intervals, resamples, seed)
    overlaps, more = overlaps_of([*of_a, *of_b], corpora, data_dirs, progress) if corpora else ((), ())
    return replace(result, overlaps=overlaps, notes=(*result.notes, *notes, *more))


def _compare_methods(
    a: Sequence[RunRecord], b: Sequence[RunRecord], intervals: Intervals, resamples: int, seed: int
) -> SeedsComparison:
    if not a:
        raise UserError("there is no run to compare: name at least one.")
    names = [
        str(record.folder) if record.folder else label
        for record, label in zip([*a, *b], labels([*a, *b]), strict=True)
    ]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UserError(f"{repeated} is named twice: give each run once.")
    first = dict(zip(names[: len(a)], a, strict=True))
    second = dict(zip(names[len(a) :], b, strict=True))
    return compare_seeds(
        first,
        second,
        _method_names(first, second),
        level=intervals.level,
        interval=intervals.interval or DEPENDENCE,
        resamples=resamples,
        seed=seed,
    )


def _method_names(a: Iterable[str], b: Iterable[str]) -> tuple[str, str]:
    """Returns what the runs' names have in common (simcse-seed1, simcse-seed2), or the first run's name."""
    runs = [list(a), list(b)]
    # Character by character: `os.path.commonpath` compares whole folders.
    shared = [commonprefix(names).rstrip("-_./0123456789") if len(names) > 1 else "" for names in runs]  # noqa: RUF071
    if shared[0] == shared[1]:
        shared = ["", ""]
    first, second = (name or next(iter(names), "") for name, names in zip(shared, runs, strict=True))
    return first, second


def _compare_models(records: Sequence[RunRecord], intervals: Intervals, progress: Progress) -> Comparison:
    runs = named_runs(records)
    aligned, notes = aligned_scores(runs, may_be_undefined=True, progress=progress)
    rows, (first, second) = differences(aligned, intervals), runs
    return Comparison(first, second, rows, intervals.level, notes=(*notes, *dependence_notes(rows, intervals)))


def differences(tasks: Sequence[AlignedScores], intervals: Intervals) -> tuple[Difference, ...]:
    """Returns how two models, A first, differ on each task, followed by its subsets, and on average."""
    rows: list[Difference] = []
    for kind in KINDS:
        of_kind = []
        for task in tasks:
            if task.kind == kind:
                of_kind.append(_difference(task, intervals))
                of_kind += [_difference(part, intervals, subset=subset) for subset, part in task.subsets()]
        rows += corrected(of_kind)
    return tuple(rows)


def dependence_notes(rows: Sequence[Difference], intervals: Intervals) -> Iterator[str]:
    """Yields notes on which pairs are treated as dependent, and where another choice would matter."""
    if intervals.interval == "independent":
        yield "intervals treat all pairs as independent, although some share sentences (--interval dyadic)."
        return
    yield "pairs that share a sentence are treated as dependent (docs: error bars)."
    tests = [TESTS[test] for test in dict.fromkeys(row.test for row in rows if row.test)]
    if tests:
        names = " and ".join(f"{test}' test" if test.endswith("s") else f"{test}'s test" for test in tests)
        yield f"{names} ignores shared sentences; the intervals and p account for them."
    apart = [
        f"{row.task} {row.details['se_components']:.2f} instead of {row.details['se_dyadic']:.2f}"
        for row in rows
        if not row.subset
        and row.details.get("se_components", 0.0) > _TOPICS_MATTER * row.details.get("se_dyadic", 0.0)
    ]
    if apart:
        yield f"standard errors are larger if topics are dependent (--interval components): {'; '.join(apart)}."


def _difference(task: AlignedScores, intervals: Intervals, *, subset: str = "") -> Difference:
    effect, fields = task.statistic.effect, _certainty(task, intervals)
    details = fields.pop("details", {})
    if task.items and (test := task.statistic.independent_test(task.scores, *task.items)):
        fields |= {"test": test.name, "test_p": test.p}
        details = {**details, **test.details}
    if effect:
        # Fisher's transform of a perfect correlation is infinite, and the difference of two of them undefined.
        with np.errstate(divide="ignore", invalid="ignore"):
            fields |= {"effect_size": effect.name, "effect": float(np.diff(effect.of(task.scores))[0])}
    a, b = (100 * task.scores).tolist()
    about = {"interval": intervals.interval, "details": details}
    return Difference(task.kind, task.task, subset, task.size, a, b, b - a, **fields, **about)


def _certainty(task: AlignedScores, intervals: Intervals) -> dict[str, Any]:
    """Returns intervals, p-value and standard errors as fields of `Difference`; empty if undefined."""
    if intervals.interval is None or task.size < FEWEST or np.isnan(task.scores).any():
        return {}
    (a, b), effect = task.scores.tolist(), task.statistic.effect
    terms, difference = task.terms[1] - task.terms[0], b - a
    variances = {method: variance(terms, task.sharing, method) for method in INTERVALS}
    spread = variances[intervals.interval]
    fields = _limits(difference, spread, intervals.level)
    if difference == 0 and not spread.value:
        return {**fields, **({"effect_low": 0.0, "effect_high": 0.0} if effect else {})}
    errors = {f"se_{method}": 100 * of_method.standard_error for method, of_method in variances.items()}
    details: Mapping[str, float] = {"df": spread.df, **errors}
    if effect:
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes, (low, high) = effect.slope(task.scores), effect.of(task.scores)
        if np.isfinite(slopes).all():
            effect_terms = slopes[1] * task.terms[1] - slopes[0] * task.terms[0]
            of_effect = variance(effect_terms, task.sharing, intervals.interval)
            ends = plain_interval(high - low, of_effect, intervals.level)
            fields |= {"effect_low": ends.low, "effect_high": ends.high}
    return {**fields, "details": details}


def _limits(difference: float, spread: Variance, level: float) -> dict[str, float]:
    if difference == 0 and not spread.value:
        # Both order the pairs in the same way, or err on the same items.
        return {"low": 0.0, "high": 0.0, "p": 1.0}
    limits = plain_interval(difference, spread, level)
    return {"low": 100 * limits.low, "high": 100 * limits.high, "p": two_sided_p(difference, spread)}


def every_two(
    tasks: Sequence[AlignedScores], names: Sequence[str], intervals: Intervals
) -> Iterator[tuple[int, int, Comparison]]:
    """Yields the comparison of every two of m models, without subsets, effect sizes and other tests.

    The variances of all pairs of models are computed together, so that a hundred models take seconds.

    Args:
        tasks: m models on each task; after the tasks of a kind their average. All scores are defined.
        names: names of the models, (m,).
        intervals: how intervals and p-values are computed.

    Yields:
        The positions of A and B, A first, and the comparison.
    """
    if intervals.interval is None:
        raise ValueError("a comparison needs intervals")
    spreads = [difference_variances(task.terms, task.sharing, intervals.interval) for task in tasks]
    scores = [(100 * task.scores).tolist() for task in tasks]
    for one, other in combinations(range(len(names)), 2):
        rows: dict[str, list[Difference]] = {}
        for task, of_task, values in zip(tasks, spreads, scores, strict=True):
            a, b = values[one], values[other]
            difference, spread = float(task.scores[other] - task.scores[one]), of_task[one][other - one - 1]
            limits = _limits(difference, spread, intervals.level) if task.size >= FEWEST else {}
            row = Difference(task.kind, task.task, "", task.size, a, b, b - a, **limits)  # type: ignore[arg-type]
            rows.setdefault(task.kind, []).append(row)
        judged = tuple(row for of_kind in rows.values() for row in corrected(of_kind))
        yield one, other, Comparison(names[one], names[other], judged, intervals.level)
