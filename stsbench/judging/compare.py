"""`compare`: is the difference of two models, or of two methods over seeds, real?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from os.path import commonprefix
from pathlib import Path
from typing import Any

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
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

INTERVAL_OF = (
    "new pairs from the same subsets, with new sentences and the same pattern of sharing; the subsets are fixed"
)
"""What intervals and p-values are about."""

_APART = 1.2
"""How much larger the standard error by components is, for a reader to be told."""


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
    """Tell whether two models differ, or two methods over several seeds.

    Two runs are compared pair by pair: each task and the average, by what every pair contributes to the difference
    and which pairs share sentences; Holm's correction over the tasks; beside it Williams' and Steiger's tests of
    each task, which take pairs for independent. Two lists of runs are compared as samples of other seeds and other
    pairs: means with intervals, spread, and from five runs of each on tests.

    Args:
        a: a run, or a list of runs of one method with different seeds.
        b: the other run, or the other method's runs; without it, the spread of `a` alone is told.
        corpora: a training corpus in which to look for the test sentences: a file with one text per line, or a
            .csv file with a text in each cell; either may be compressed (.gz).
        data_dirs: folders to look for the test sentences in, before `STSBENCH_DATA` and the cache.
        intervals: how intervals and p-values are computed, whatever the records' own are; by default dyadic, 95 %.
        resamples: how often whole runs are drawn where methods are compared: for the interquartile mean and the
            probability of improvement.
        seed: the seed of these draws.
        progress: told how far it is.

    Returns:
        `.sentence` says it, `.table()` shows it, `.plot()` draws it, `.frame` holds all of the numbers.

    Raises:
        UserError: if the runs do not compare, naming the field; a record does not say what its tables give; or
            something cannot be read.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> compare(run, run).sentence
    'Neither is shown to be better on sample: the difference of 0.00 [0.00, 0.00] may be chance at 5 %.'
    """
    runs = records_of([a] if isinstance(a, Run) else a), records_of([b] if isinstance(b, Run) else b)
    intervals = intervals or Intervals()
    if intervals.interval is None:
        raise UserError("no intervals were asked for, and a comparison rests on one: name how to compute it.")
    # A comparison shows no interval of a run's own: those need not be computed again.
    notes = require_recomputed(*runs[0], *runs[1], intervals=False)
    result: Comparison | SeedsComparison
    if isinstance(a, Run) and isinstance(b, Run):
        result = _compare_models([*runs[0], *runs[1]], intervals, progress)
    else:
        result = _compare_methods(*runs, intervals, resamples, seed)
    result = replace(result, notes=(*result.notes, *notes))
    if not corpora:
        return result
    overlaps, notes = overlaps_of([*runs[0], *runs[1]], corpora, data_dirs, progress)
    return replace(result, overlaps=overlaps, notes=(*result.notes, *notes))


def _compare_methods(
    a: Sequence[RunRecord], b: Sequence[RunRecord], intervals: Intervals, resamples: int, seed: int
) -> SeedsComparison:
    if not a:
        raise UserError("there is no run to compare: name at least one.")
    names = _run_names([*a, *b])
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


def _run_names(records: Sequence[RunRecord]) -> list[str]:
    """Return a name for each record: its folder, or what its model is called where it has none."""
    names = [
        str(record.folder) if record.folder else label
        for record, label in zip(records, labels(records), strict=True)
    ]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UserError(f"{repeated} is named twice: give each run once.")
    return names


def _method_names(a: Iterable[str], b: Iterable[str]) -> tuple[str, str]:
    """Return a name for each method: what the names of its runs have in common, or else the first of them."""
    runs = [list(a), list(b)]
    # Character by character, as folders are named simcse-seed1, simcse-seed2.
    alike = [commonprefix(names).rstrip("-_./0123456789") if len(names) > 1 else "" for names in runs]  # noqa: RUF071
    if alike[0] == alike[1]:
        alike = ["", ""]
    first, second = (name or next(iter(names), "") for name, names in zip(alike, runs, strict=True))
    return first, second


def _compare_models(records: Sequence[RunRecord], intervals: Intervals, progress: Progress) -> Comparison:
    runs = named_runs(records)
    aligned, notes = aligned_scores(runs, may_be_undefined=True, progress=progress)
    rows, (first, second) = differences(aligned, intervals), runs
    return Comparison(first, second, rows, intervals.level, notes=(*notes, *dependence_notes(rows, intervals)))


def differences(tasks: Sequence[AlignedScores], intervals: Intervals) -> tuple[Difference, ...]:
    """Return how two models, A first, differ on each task, followed by its subsets, and on average."""
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
    """Yield what a reader should know of pairs that share sentences: what is assumed, and where it matters."""
    if intervals.interval == "independent":
        yield "pairs are taken for independent, although some share sentences (--interval dyadic)"
        return
    yield f"intervals and p are of {INTERVAL_OF}"
    tests = [TESTS[test] for test in dict.fromkeys(row.test for row in rows if row.test)]
    names = [f"{test}'" if test.endswith("s") else f"{test}'s" for test in tests]
    if names:
        take = "tests take" if len(names) > 1 else "test takes"
        yield f"{listed(names)} {take} pairs or items for independent; intervals and p do not"
    apart = [
        f"{row.task} {row.details['se_dyadic']:.2f} and {row.details['se_components']:.2f}"
        for row in rows
        if not row.subset and row.details.get("se_components", 0.0) > _APART * row.details.get("se_dyadic", 0.0)
    ]
    if apart:
        yield (
            "pairs of one topic may depend on each other without sharing a sentence: standard errors with pairs "
            "that share one, and with chains of such as clusters (--interval components), are apart on "
            f"{'; '.join(apart)}"
        )


def _difference(task: AlignedScores, intervals: Intervals, *, subset: str = "") -> Difference:
    """Return the row of a score: difference, interval, p-value, effect size."""
    effect, fields = task.statistic.effect, _certainty(task, intervals)
    details = fields.pop("details", {})
    if task.items and (test := task.statistic.independent_test(task.scores, *task.items)):
        fields |= {"test": test.name, "test_p": test.p}
        details = {**details, **test.details}
    if effect:
        # On Fisher's scale a perfect correlation is infinitely far from the others, and undefined from another.
        with np.errstate(divide="ignore", invalid="ignore"):
            fields |= {"effect_size": effect.name, "effect": float(np.diff(effect.of(task.scores))[0])}
    a, b = (100 * task.scores).tolist()
    about = {"interval": intervals.interval, "details": details}
    return Difference(task.kind, task.task, subset, task.size, a, b, b - a, **fields, **about)


def _certainty(task: AlignedScores, intervals: Intervals) -> dict[str, Any]:
    """Return how certain a difference is by what each item contributes to it, as fields of its row."""
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
    """Return the interval of a difference in points and its p-value, as fields of its row."""
    if difference == 0 and not spread.value:
        # The two order the pairs alike, or err on the same items: on any others they may, too.
        return {"low": 0.0, "high": 0.0, "p": 1.0}
    limits = plain_interval(difference, spread, level)
    return {"low": 100 * limits.low, "high": 100 * limits.high, "p": two_sided_p(difference, spread)}


def every_two(
    tasks: Sequence[AlignedScores], names: Sequence[str], intervals: Intervals
) -> Iterator[tuple[int, int, Comparison]]:
    """Yield for every two of m models what `compare` says of them, without subsets, effects and other tests.

    Their variances are computed all at once, so that a hundred models take seconds and not minutes.

    Args:
        tasks: m models on each task; after the tasks of a kind their average. Every score is defined.
        names: what the models are called, (m,).
        intervals: how intervals and p-values are computed.

    Yields:
        The places of A and of B, the first of which is the lower, and the comparison.
    """
    if intervals.interval is None:
        raise ValueError("a comparison rests on intervals")
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
