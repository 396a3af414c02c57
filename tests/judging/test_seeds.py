"""Methods over seeds, plans, and the best of n runs."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from changed_records import with_values

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.runs import group_seeds
from stsbench.judging.seeds import SeedsComparison, compare_seeds
from stsbench.judging.verdicts import records
from stsbench.published.catalogue import seeds
from stsbench.statistics.estimate import holm
from stsbench.statistics.intervals import detectable
from stsbench.statistics.seeds import expected_best

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]
Runs = dict[str, sb.RunRecord]
Two = tuple[sb.RunRecord, sb.RunRecord]

SIMCSE = "unsup-simcse-bert-base"


def trained(record: sb.RunRecord, name: str, score: float | None, **changes: Any) -> sb.RunRecord:
    """Returns the record of another checkpoint with this score on every task."""
    weights = hashlib.sha256(name.encode()).hexdigest()
    return with_values(record, score, weights_sha256=weights, **changes)


def runs_of(record: sb.RunRecord, scores: list[float], method: str) -> Runs:
    return {f"{method}{number}": trained(record, f"{method}{number}", x) for number, x in enumerate(scores)}


def with_noise(measure: Measure, noise: float, first: int, count: int) -> Runs:
    """Returns seeds that differ from pair to pair."""
    runs = {}
    for number in range(first, first + count):
        run = measure(noise=noise, seed=number, intervals=sb.Intervals(None))
        weights = hashlib.sha256(f"{noise} {number}".encode()).hexdigest()
        model = run.model.model_copy(update={"weights_sha256": weights})
        runs[f"{noise}-{number}"] = run.model_copy(update={"model": model})
    return runs


def compared(a: Runs, b: Runs) -> SeedsComparison:
    groups, _ = group_seeds({**a, **b}, dict.fromkeys(a, "a") | dict.fromkeys(b, "b"))
    return compare_seeds(groups)


def averages(runs: Runs) -> list[float]:
    return [100 * (run.averages[0].value or 0) for run in runs.values()]


def test_the_statistics_of_five_runs(measure: Measure) -> None:
    rng, record = np.random.default_rng(0), measure()
    one, two = rng.normal(0.75, 0.004, 6).tolist(), rng.normal(0.77, 0.004, 5).tolist()
    result = compared(runs_of(record, one, "a"), runs_of(record, two, "b"))
    rows = records(result.rows)
    row = rows[0]
    assert result.rows["task"].tolist() == ["x", "y", "Avg."]
    assert (row.a.runs, row.b.runs) == (6, 5)
    assert (row.a.mean, row.a.sd) == pytest.approx((100 * np.mean(one), 100 * np.std(one, ddof=1)))
    assert (row.b.lowest, row.b.highest) == pytest.approx((100 * min(two), 100 * max(two)))
    test = scipy.stats.ttest_ind(two, one, equal_var=False)
    limits = test.confidence_interval()
    assert (row.p, row.low, row.high) == pytest.approx((test.pvalue, 100 * limits.low, 100 * limits.high))
    assert [row.p_holm for row in rows[:2]] == pytest.approx(holm([row.p] * 2).tolist())
    assert math.isnan(rows[-1].p_holm)
    assert "b is better on all tasks" in result.sentence


def test_fewer_runs_have_a_spread_and_no_test(measure: Measure, toy_data: Data) -> None:
    record = measure()
    result = compared(runs_of(record, [0.7, 0.8], "a"), runs_of(record, [0.71, 0.72, 0.74, 0.77, 0.7], "b"))
    for row in records(result.rows):
        assert row.b.sd > 0
        assert np.isnan([row.difference, row.low, row.high, row.p, row.permutation_p]).all()
    assert "a test needs 5 runs of each" in result.sentence
    alone = compared(runs_of(record, [0.75, 0.76, 0.77], "a"), {})
    assert alone.sentence == "a: 76.00 ± 1.00 over 3 runs on STS average."
    assert alone.frame["b_runs"][0] == 0
    single = compared({"a0": record}, {})
    assert math.isnan(single.frame["a_low"][0])
    assert single.notes[0].startswith("no weights are known for a0")
    more = trained(measure([toy_data("x"), toy_data("z")]), "a0", 0.5)
    result = compared({"a0": more}, {"b0": trained(measure([toy_data("x")]), "b0", 0.6)})
    assert result.rows["task"].tolist() == ["x"]
    assert "not all records hold z: left out." in result.notes


def test_the_interval_of_a_mean_is_over_seeds_and_pairs(measure: Measure) -> None:
    runs = with_noise(measure, 0.7, 0, 5)
    scores, row = np.array(averages(runs)), records(compared(runs, {}).rows)[-1]
    seeds_alone = scipy.stats.t.ppf(0.975, 4) * scores.std(ddof=1) / math.sqrt(5)
    assert row.a.high - row.a.mean == pytest.approx(row.a.mean - row.a.low)
    assert row.a.high - row.a.mean > seeds_alone
    assert 0.3 < row.a.pair_share <= 1
    assert 0 <= row.a.seed_share <= 1
    assert row.a.iqm == pytest.approx(np.sort(scores)[1:4] @ [0.75, 1, 0.75] / 2.5)
    alone = compared({name: run.with_items(None) for name, run in runs.items()}, {})
    assert "intervals are over seeds only" in alone.notes[0]
    row = records(alone.rows)[-1]
    assert (row.a.high - row.a.mean, math.isnan(row.a.pair_share)) == (pytest.approx(seeds_alone), True)


def test_the_difference_of_methods_is_over_seeds_and_pairs(measure: Measure) -> None:
    one, two = with_noise(measure, 3.0, 0, 5), with_noise(measure, 0.3, 10, 6)
    result = compared(one, two)
    row, test = records(result.rows)[-1], scipy.stats.ttest_ind(averages(two), averages(one), equal_var=False)
    limits = test.confidence_interval()
    assert (row.seeds_low, row.seeds_high, row.seeds_p) == pytest.approx((limits.low, limits.high, test.pvalue))
    assert row.high - row.low > row.seeds_high - row.seeds_low
    assert row.p > row.seeds_p
    assert row.seed_share + row.pair_share < 1
    assert 0 <= row.improvement_low <= row.improvement <= row.improvement_high <= 1
    assert {"P(B > A)", "IQM A"} <= set(result.table()[1].frame)


def test_runs_that_are_not_seeds_of_one_recipe(measure: Measure, toy_data: Data) -> None:
    record = measure()
    runs = runs_of(record, [0.7, 0.8], "a")
    same = trained(record, "a", 0.5)
    other = trained(measure(protocol=sb.protocol(metric="pearson")), "b", 0.7)

    def with_length(name: str, length: int) -> sb.RunRecord:
        model = runs[name].model
        used = model.model_copy(update={"use": replace(model.use, max_length=length)})
        return runs[name].model_copy(update={"model": used})

    lengths = {"a0": with_length("a0", 16), "a1": with_length("a1", 8)}
    for a, b, fragment in (
        ({"a0": same, "a1": same}, {}, "a0 and a1 have the same weights"),
        (lengths, {}, "max_length is 16 in the first and 8"),
        (runs, {"b0": other}, "metric is spearman in one and pearson"),
        (runs, {"b0": trained(measure([toy_data("z")]), "b", 0.7)}, "no task in common"),
        (runs, {"b0": trained(record, "b", None)}, "b0 has no score on x"),
    ):
        with pytest.raises(sb.UserError, match=fragment):
            compared(a, b)
    # Two methods may differ, or share weights.
    assert len(compared({"a0": lengths["a0"]}, {"b0": lengths["a1"]}).rows)
    assert compared({"a0": same}, {"b0": same}).frame["a_mean"][0] == 50


def test_recipes_of_seeds_differ_in_the_seed_alone(measure: Measure, tmp_path: Path) -> None:
    def trained_by(run: sb.RunRecord, name: str, temperature: float) -> sb.RunRecord:
        (tmp_path / name).mkdir(exist_ok=True)
        recipe = f"seed: {name[1:]}\nobjective:\n  temperature: {temperature}\n"
        (tmp_path / name / "recipe.yaml").write_text(recipe, encoding="utf-8")
        return run.model_copy(update={"model": run.model.model_copy(update={"name": str(tmp_path / name)})})

    runs = runs_of(measure(), [0.7, 0.8], "a")
    runs["b2"] = trained(runs["a0"], "b2", 0.6)
    recipes = {"a0": trained_by(runs["a0"], "a0", 0.05), "a1": trained_by(runs["a1"], "a1", 0.05)}
    assert compared(recipes, {}).frame["a_runs"][0] == 2
    recipes["b2"] = trained_by(runs["b2"], "b2", 0.1)
    with pytest.raises(sb.UserError, match=r"objective\.temperature is 0\.05 in the first and 0\.1 in the second"):
        compared(recipes, {})
    groups, (note,) = group_seeds({f"x-seed{name[1:]}-avg": run for name, run in recipes.items()})
    assert {name: list(group) for name, group in groups.items()} == {"x-avg": ["x-seed0-avg", "x-seed1-avg"]}
    assert "x-seed0-avg and x-seed2-avg are not seeds of one recipe" in note
    assert group_seeds(recipes) == group_seeds({"x-seed0": recipes["a0"]}) == ({}, ())


@pytest.fixture
def two(measure: Measure) -> Two:
    return measure(), measure(noise=0.5, seed=1)


def test_a_plan_follows_from_the_standard_errors(two: Two) -> None:
    planned, compared = sb.plan(*two), sb.compare(*two)
    differences = compared.rows.set_index(["task", "subset"])
    assert planned.rows["task"].tolist() == ["x", "y", "Avg."]
    for row in records(planned.rows):
        assert row.error == pytest.approx(differences["se_dyadic"][row.task, ""])
        assert row.smallest == pytest.approx(detectable(row.error)) == pytest.approx(2.8016 * row.error, rel=1e-3)
        assert row.pairs == pytest.approx(row.size * (row.smallest / (row.a - row.b)) ** 2)
    for row in records(sb.plan(*two, difference=1.0).rows):
        assert row.pairs == pytest.approx(row.size * row.smallest**2)


def test_the_planned_number_of_pairs_is_enough(measure: Measure, toy_data: Data) -> None:
    few, many = (
        [measure([toy_data("x", pairs=n)], noise=noise, seed=7) for noise in (0.0, 0.5)] for n in (200, 3200)
    )
    smallest = sb.plan(*many).rows["smallest"].iloc[-1]
    assert sb.plan(*few, difference=smallest).rows["pairs"].iloc[-1] == pytest.approx(3200, rel=0.4)


def test_the_planned_number_of_seeds(two: Two) -> None:
    planned = sb.plan(*two, difference=1.0, spread=0.8)
    assert planned.rows["seed_sd"].isna().tolist() == [True, True, False]
    assert planned.rows[["seeds_here", "seeds_anywhere"]].values.tolist() == [[0, 0], [0, 0], [12, 0]]
    assert "no number is enough" in planned.sentence
    large = records(sb.plan(*two, difference=30.0, spread=20.0).rows)[-1]
    assert large.seeds_anywhere >= large.seeds_here > 1
    known = records(sb.plan(*two, difference=1.0, spread=SIMCSE).rows)[-1]
    assert known.seed_sd == pytest.approx(seeds(SIMCSE)["Avg."].std())
    for options, fragment in (
        ({"spread": -1.0}, "a standard deviation of -1 points"),
        ({"spread": "simcse"}, "no seeds of 'simcse' are known"),
    ):
        with pytest.raises(sb.UserError, match=fragment):
            sb.plan(*two, **options)  # type: ignore[arg-type]


@pytest.fixture
def four(measure: Measure) -> list[sb.RunRecord]:
    record = measure()
    return [trained(record, str(score), score / 100) for score in (74.0, 76.0, 75.0, 75.4)]


def test_the_best_of_known_seeds() -> None:
    best = sb.best_of(SIMCSE)
    assert (best.number, best.typical) == (76.25, (7, 8))
    assert best.frame["expected"].round(2)[[6, 7]].tolist() == [76.23, 76.28]
    assert best.frame["below"][0] == pytest.approx(0.9)
    assert sb.best_of(SIMCSE, task="STS12").number == pytest.approx(68.40)
    assert best.table()[0].frame["best of"].tolist() == [*range(1, 11), 50]
    logged = sb.best_of("esimcse-bert-base", task="STS-B:dev")
    assert (logged.what, len(logged.scores)) == ("checkpoints", 125)


def test_the_best_of_your_own_runs(four: list[sb.RunRecord]) -> None:
    for number, typical in ((75.2, (1, 2)), (SIMCSE, None), (70.0, (0, 1)), (None, None), (76.0, (3, 4))):
        best = sb.best_of(four, number)
        assert best.frame["expected"].tolist() == pytest.approx(expected_best([74.0, 75.0, 75.4, 76.0]).tolist())
        assert best.typical == typical
        assert (f"{best.number:.2f}" if best.number else "expected best of 4") in best.sentence
    assert sb.best_of(four, 75.0, task="x").task == "x"
    for runs, options, fragment in (
        (four[:1], {}, "at least 2 runs"),
        (SIMCSE, {"task": "STS99"}, f"no seeds of {SIMCSE} are known on 'STS99'"),
        (four, {"task": "z"}, "no score in common on 'z'"),
        (four, {"number": math.nan}, "a score of nan"),
        (four, {"number": SIMCSE, "task": "y"}, "has no value on y"),
    ):
        with pytest.raises(sb.UserError, match=fragment):
            sb.best_of(runs, **options)  # type: ignore[arg-type]
