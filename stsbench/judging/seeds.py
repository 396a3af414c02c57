"""Two methods, each trained with several seeds: how far apart are they, and how far does a seed carry?

One checkpoint says little about a method: 50 seeds of unsupervised SimCSE range over 3.5 points. The comparison of
two checkpoints knows nothing of that; here the runs are the sample. But other pairs would give other scores, too:
the interval of a method's mean is of both, other seeds and other pairs (see `statistics.seeds`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.judging.aligned import AlignedScores, aligned_scores, common_values, left_out, shown_interval
from stsbench.judging.recipes import demand_distinct_weights, demand_one_recipe
from stsbench.judging.seeds_result import ENOUGH, SeedsComparison, SeedsDifference
from stsbench.records.kinds import KINDS
from stsbench.records.record import RunRecord
from stsbench.statistics.dependence import DEPENDENCE, Dependence
from stsbench.statistics.seeds import (
    RESAMPLES,
    SEED,
    MeanVariance,
    Runs,
    generator,
    improvement,
    interaction_of,
    interquartile_mean,
    mean_variance,
    percentile_interval,
    resampled_runs,
)
from stsbench.statistics.significance import compare_means, holm, spread

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Method:
    """The settings of a comparison: which pairs depend on each other, level, and the draws of whole runs."""

    dependence: Dependence
    level: float
    draws: Sequence[NDArray[np.intp]]


def compare_seeds(
    a: Mapping[str, RunRecord],
    b: Mapping[str, RunRecord],
    names: tuple[str, str],
    *,
    level: float,
    interval: Dependence = DEPENDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> SeedsComparison:
    """Compare the runs of one method over seeds with those of another, or tell the spread of one.

    Args:
        a: the runs of the one, by a name for messages.
        b: the runs of the other; empty for none.
        names: what to call the two.
        level: of the intervals.
        interval: how pairs that share sentences are seen.
        resamples: of whole runs, for the interquartile mean and the probability of improvement.
        seed: of these.

    Raises:
        UserError: if protocols differ, no task is in all runs, a score is undefined, or two runs of a method are
            of the same weights or of different recipes.
    """
    runs = {**a, **b}
    for method in (a, b):
        demand_distinct_weights(method)
        demand_one_recipe(method)
    scores, alone = common_values(runs)
    if not scores:
        raise UserError("there is no task that all runs were measured on: measure them on the same tasks.")
    for (_, task), values in scores.items():
        if np.isnan(values).any():
            name = list(runs)[int(np.argmax(np.isnan(values)))]
            raise UserError(f"{name} has no score on {task} (its similarities are constant): leave it out.")
    aligned, notes = _aligned(runs)
    drawn = resampled_runs([len(a), *([len(b)] if b else [])], resamples, generator(seed, "runs"))
    chosen = _Method(interval, level, drawn)
    rows: list[SeedsDifference] = []
    for kind in KINDS:
        of_kind = [
            _row((kind, task), values[: len(a)], values[len(a) :], aligned.get(task), chosen)
            for (held, task), values in scores.items()
            if held == kind
        ]
        adjusted = holm([row.p for row in of_kind if row.is_task]).tolist()
        # The average comes after the tasks, and is not corrected.
        rows += [replace(row, p_holm=p) for row, p in zip(of_kind, adjusted, strict=False)]
        rows += of_kind[len(adjusted) :]
    unknown = [name for name, record in runs.items() if record.model.weights_sha256 is None]
    if unknown:
        notes.append(f"whether {', '.join(unknown)} are of different weights cannot be known.")
    return SeedsComparison(*names, rows=tuple(rows), level=level, notes=(*left_out(alone), *notes))


def _aligned(runs: Mapping[str, RunRecord]) -> tuple[dict[str, AlignedScores], list[str]]:
    """Return what each pair contributes to the runs' scores, by task; nothing where that is not known, and why."""
    why = ""
    for name, record in runs.items():
        if record.is_imported:
            why = f"{name} was imported, with scores alone"
    if not why:
        try:
            for record in runs.values():
                record.item_table()
        except UserError as error:
            why = str(error).rstrip(".")
    if why:
        return {}, [f"what other pairs would change is not known ({why}): intervals are over seeds alone."]
    tasks, notes = aligned_scores(runs)
    return {task.task: task for task in tasks}, [note for note in notes if not note.startswith("not all records")]


def _row(
    named: tuple[str, str], a: Floats, b: Floats, aligned: AlignedScores | None, chosen: _Method
) -> SeedsDifference:
    size, mean, sd, lowest, highest = spread(a)
    row = SeedsDifference(*named, size, mean, sd, lowest, highest, **_of_method("a", a, aligned, 0, chosen))
    if not len(b):
        return row
    size, mean, sd, lowest, highest = spread(b)
    other = _of_method("b", b, aligned, len(a), chosen)
    row = replace(row, b_runs=size, b_mean=mean, b_sd=sd, b_lowest=lowest, b_highest=highest, **other)
    if min(len(a), len(b)) < ENOUGH:
        return row
    test = compare_means(a, b, level=chosen.level)
    likely = improvement(a, b)
    drawn = improvement(a[chosen.draws[0]], b[chosen.draws[1]])
    low, high = percentile_interval(drawn, chosen.level)
    row = replace(
        row,
        difference=test.difference,
        low=test.low,
        high=test.high,
        p=test.welch_p,
        seeds_low=test.low,
        seeds_high=test.high,
        seeds_p=test.welch_p,
        permutation_p=test.permutation_p,
        improvement=float(likely),
        improvement_low=low,
        improvement_high=high,
    )
    if aligned is None:
        return row
    found = _variance([a, b], aligned, chosen.dependence)
    limits, p = shown_interval(test.difference, found.value, found.df, chosen.level)
    return replace(
        row,
        low=limits[0],
        high=limits[1],
        p=p,
        seed_share=found.share(found.seeds),
        pair_share=found.share(found.pairs),
    )


def _of_method(
    side: str, scores: Floats, aligned: AlignedScores | None, start: int, chosen: _Method
) -> dict[str, Any]:
    """Return the fields of one method: the interval of its mean, the shares, the interquartile mean."""
    if len(scores) < 2:
        return {}
    fields: dict[str, float] = {}
    if aligned is None:
        variance, df = float(scores.var(ddof=1)) / len(scores), float(len(scores) - 1)
    else:
        found = _variance([scores], aligned, chosen.dependence, start)
        variance, df = found.value, found.df
        fields = {"seed_share": found.share(found.seeds), "pair_share": found.share(found.pairs)}
    (fields["low"], fields["high"]), _ = shown_interval(float(scores.mean()), variance, df, chosen.level)
    if len(scores) >= ENOUGH:
        drawn = interquartile_mean(scores[chosen.draws[1 if start else 0]])
        fields["iqm"] = float(interquartile_mean(scores))
        fields["iqm_low"], fields["iqm_high"] = percentile_interval(drawn, chosen.level)
    return {f"{side}_{name}": value for name, value in fields.items()}


def _variance(
    methods: Sequence[Floats], aligned: AlignedScores, dependence: Dependence, start: int = 0
) -> MeanVariance:
    """Return the variance of a method's mean or of the difference of two, in points squared.

    Args:
        methods: the scores x 100 of one method's runs, or of two.
        aligned: what each pair contributes to all runs' scores.
        dependence: which pairs depend on each other.
        start: the place of the first of these runs among all.
    """
    weights = np.zeros(len(aligned.scores))
    matrix = 1e4 * aligned.covariance(dependence)
    parts = []
    for sign, scores in zip((-1, 1) if len(methods) > 1 else (1,), methods, strict=True):
        places = slice(start, start + len(scores))
        weights[places] = sign / len(scores)
        parts.append(Runs(scores, interaction_of(matrix[places, places])))
        start += len(scores)
    over_pairs = aligned.variance_of(weights, dependence)
    scaled = replace(over_pairs, value=1e4 * over_pairs.value, independent=1e4 * over_pairs.independent)
    return mean_variance(parts, scaled)
