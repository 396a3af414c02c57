"""How two models differ on the same items: the difference with its interval, p-values and effect size."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stsbench.base.words import listed
from stsbench.judging.aligned import AlignedScores
from stsbench.judging.comparison import TESTS, Difference, corrected
from stsbench.records.kinds import KINDS
from stsbench.records.labels import INTERVAL_OF
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import as_variances
from stsbench.statistics.dependence import variance
from stsbench.statistics.intervals import plain_interval, two_sided_p

_CONTRAST = np.array([-1.0, 1.0])

_APART = 1.2
"""How much larger the standard error by components is, for a reader to be told."""

FEWEST = 4
"""Items from which on a difference has an interval."""

_UNDEFINED = (math.nan, math.nan)


def differences(tasks: Sequence[AlignedScores], intervals: Intervals) -> tuple[Difference, ...]:
    """Return how two models differ on each task, followed by its subsets, and on average.

    Args:
        tasks: of two models, A first; as `aligned_scores` gives them.
        intervals: how intervals are computed.
    """
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
    """Yield what a reader should know of pairs that share sentences: what is assumed, and where it matters.

    Args:
        rows: tasks, subsets and averages.
        intervals: what was asked for.
    """
    if intervals.interval == "independent":
        yield "pairs are taken for independent, although some share sentences (--interval dyadic)"
        return
    yield f"intervals and p are of {INTERVAL_OF}"
    names = [TESTS[test].whose for test in dict.fromkeys(row.test for row in rows if row.test)]
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


@dataclass(frozen=True)
class _Certainty:
    """How certain a difference is, from 0 to 1; NaN where something is undefined."""

    limits: tuple[float, float] = _UNDEFINED
    p: float = math.nan
    effect_limits: tuple[float, float] = _UNDEFINED
    details: Mapping[str, float] | None = None


def _difference(task: AlignedScores, intervals: Intervals, *, subset: str = "") -> Difference:
    """Return the row of a score: difference, interval, p-value, effect size."""
    effect, certainty = task.statistic.effect, _certainty(task, intervals)
    test = task.statistic.independent_test(task.scores, *task.items) if task.items else None
    # A perfect correlation is infinitely far from the others on Fisher's scale, and undefined from another such.
    with np.errstate(divide="ignore", invalid="ignore"):
        size = float(np.diff(effect.of(task.scores))[0]) if effect else math.nan
    a, b = (100 * task.scores).tolist()
    return Difference(
        kind=task.kind,
        task=task.task,
        subset=subset,
        size=task.size,
        a=a,
        b=b,
        difference=b - a,
        low=100 * certainty.limits[0],
        high=100 * certainty.limits[1],
        p=certainty.p,
        effect_size=effect.name if effect else "",
        effect=size,
        effect_low=certainty.effect_limits[0],
        effect_high=certainty.effect_limits[1],
        test=test.name if test else "",
        test_p=test.p if test else math.nan,
        interval=intervals.interval,
        details={**(certainty.details or {}), **(test.details if test else {})},
    )


def _certainty(task: AlignedScores, intervals: Intervals) -> _Certainty:
    """Return how certain a difference is by what each item contributes to it."""
    if intervals.interval is None or task.size < FEWEST or np.isnan(task.scores).any():
        return _Certainty()
    (a, b), effect = task.scores.tolist(), task.statistic.effect
    terms, difference = _CONTRAST @ task.terms, b - a
    if difference == 0 and not terms.any():
        # The two order the pairs alike, or err on the same items: on any others they may, too.
        return _Certainty((0.0, 0.0), 1.0, (0.0, 0.0) if effect else _UNDEFINED)
    variances = as_variances(terms, task.sharing)
    spread = variances[intervals.interval]
    limits, effect_limits = plain_interval(difference, spread, intervals.level), _UNDEFINED
    if effect:
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes, (low, high) = effect.slope(task.scores), effect.of(task.scores)
        if np.isfinite(slopes).all():
            of_effect = variance(
                slopes[1] * task.terms[1] - slopes[0] * task.terms[0], task.sharing, intervals.interval
            )
            effect_limits = plain_interval(high - low, of_effect, intervals.level)[:2]
    errors = {f"se_{method}": 100 * of.standard_error for method, of in variances.items()}
    return _Certainty(limits[:2], two_sided_p(difference, spread), effect_limits, {"df": spread.df, **errors})
