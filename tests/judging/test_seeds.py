"""Methods over seeds: the spread always, a claim only from five runs on."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from changed_records import with_values

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.seeds import SeedsComparison, compare_seeds
from stsbench.records.parts import ModelPart
from stsbench.statistics.significance import holm

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]
Runs = dict[str, sb.RunRecord]


def trained(record: sb.RunRecord, name: str, score: float) -> sb.RunRecord:
    """Return a record as of a checkpoint of its own, with this score on every task."""
    weights = hashlib.sha256(name.encode()).hexdigest()
    return with_values(record, score, weights_sha256=weights)


@pytest.fixture(scope="module")
def scores() -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(0)
    return rng.normal(0.75, 0.004, 6).tolist(), rng.normal(0.77, 0.004, 5).tolist()


def runs_of(record: sb.RunRecord, scores: list[float], method: str) -> Runs:
    return {f"{method}{number}": trained(record, f"{method}{number}", x) for number, x in enumerate(scores)}


def compared(a: Runs, b: Runs) -> SeedsComparison:
    return compare_seeds(a, b, ("a", "b"), level=0.95)


def test_from_five_runs_on_the_means_are_tested(measure: Measure, scores: tuple[list[float], list[float]]) -> None:
    record, (one, two) = measure(), scores
    result = compared(runs_of(record, one, "a"), runs_of(record, two, "b"))
    row = result.rows[0]
    assert [row.task for row in result.rows] == ["x", "y", "Avg."]
    assert (row.a_runs, row.b_runs) == (6, 5)
    assert (row.a_mean, row.a_sd) == pytest.approx((100 * np.mean(one), 100 * np.std(one, ddof=1)))
    assert (row.b_lowest, row.b_highest) == pytest.approx((100 * min(two), 100 * max(two)))
    test = scipy.stats.ttest_ind(two, one, equal_var=False)
    assert row.p == pytest.approx(test.pvalue)
    assert (row.low, row.high) == pytest.approx(
        tuple(100 * limit for limit in (test.confidence_interval().low, test.confidence_interval().high))
    )
    assert [row.p_holm for row in result.rows[:2]] == pytest.approx(holm([row.p] * 2).tolist())
    assert math.isnan(result.rows[-1].p_holm)
    assert ". b is better on all tasks; the average difference of " in result.sentence


def test_with_fewer_there_is_the_spread_and_no_claim(
    measure: Measure, scores: tuple[list[float], list[float]]
) -> None:
    record, (one, two) = measure(), scores
    result = compared(runs_of(record, one, "a"), runs_of(record, two[:4], "b"))
    for row in result.rows:
        assert row.b_sd > 0
        assert all(math.isnan(getattr(row, name)) for name in ("difference", "low", "high", "p", "permutation_p"))
    assert result.sentence.endswith("on STS average; no claim: that takes 5 runs of each.")


def test_one_method_alone_has_its_spread(measure: Measure) -> None:
    result = compared(runs_of(measure(), [0.75, 0.76, 0.77], "a"), {})
    assert result.sentence == "a: 76.00 ± 1.00 over 3 runs on STS average."
    assert result.rows[0].b_runs == 0


def test_the_average_of_a_run_is_of_the_tasks_that_all_hold(measure: Measure, toy_data: Data) -> None:
    more = trained(measure([toy_data("x"), toy_data("z")]), "a0", 0.5)
    less = trained(measure([toy_data("x")]), "b0", 0.6)
    result = compared({"a0": more}, {"b0": less})
    assert [row.task for row in result.rows] == ["x"]
    assert "not all records hold z: left out." in result.notes
    assert result.sentence == ("a: 50.00 (one run), b: 60.00 (one run) on x; no claim: that takes 5 runs of each.")


def test_the_same_weights_twice_are_one_seed(measure: Measure) -> None:
    run = trained(measure(), "a", 0.5)
    with pytest.raises(sb.UserError, match="a0 and a1 are runs of the same weights"):
        compared({"a0": run, "a1": run}, {})
    assert compared({"a0": run}, {"b0": run}).rows[0].a_mean == 50


def test_weights_that_are_not_known_are_told(measure: Measure) -> None:
    assert compared({"a0": measure()}, {}).notes == ("whether a0 are of different weights cannot be known.",)


def test_runs_that_do_not_compare_or_have_no_score_are_refused(measure: Measure, toy_data: Data) -> None:
    runs = runs_of(measure(), [0.7], "a")
    other = trained(measure(protocol=sb.protocol(metric="pearson")), "b", 0.7)
    with pytest.raises(sb.UserError, match="a0 and b0 do not compare on x: metric is spearman in one and pearson"):
        compared(runs, {"b0": other})
    with pytest.raises(sb.UserError, match="no task that all runs were measured on"):
        compared(runs, {"b0": trained(measure([toy_data("z")]), "b", 0.7)})
    undefined = with_values(trained(measure(), "b", 0.7), None)
    with pytest.raises(sb.UserError, match="b0 has no score on x"):
        compared(runs, {"b0": undefined})


def seeds(measure: Measure, noise: float, first: int, count: int) -> Runs:
    """Return runs whose vectors have noise of their own: seeds that differ from pair to pair."""
    made = {}
    for number in range(first, first + count):
        run = measure(noise=noise, seed=number, intervals=sb.Intervals(None))
        weights = hashlib.sha256(f"{noise} {number}".encode()).hexdigest()
        made[f"{noise}-{number}"] = run.model_copy(
            update={"model": run.model.model_copy(update={"weights_sha256": weights})}
        )
    return made


def test_the_interval_of_a_mean_is_of_other_seeds_and_other_pairs(measure: Measure) -> None:
    runs = seeds(measure, 0.7, 0, 5)
    row = compared(runs, {}).rows[-1]
    scores = np.array([100 * (run.averages[0].value or 0) for run in runs.values()])
    seeds_alone = scipy.stats.t.ppf(0.975, 4) * scores.std(ddof=1) / math.sqrt(5)
    assert row.a_high - row.a_mean == pytest.approx(row.a_mean - row.a_low)
    assert row.a_high - row.a_mean > seeds_alone
    assert 0 <= row.a_seed_share <= 1
    assert 0 <= row.a_pair_share <= 1
    assert row.a_pair_share > 0.3
    assert row.a_iqm == pytest.approx(np.sort(scores)[1:4] @ [0.75, 1, 0.75] / 2.5)


def test_the_difference_of_methods_has_both_and_beside_it_seeds_alone(measure: Measure) -> None:
    one, two = seeds(measure, 3.0, 0, 5), seeds(measure, 0.3, 10, 6)
    result = compared(one, two)
    row = result.rows[-1]
    test = scipy.stats.ttest_ind(
        *([100 * (run.averages[0].value or 0) for run in runs.values()] for runs in (two, one)),
        equal_var=False,
    )
    limits = test.confidence_interval()
    assert (row.seeds_low, row.seeds_high, row.seeds_p) == pytest.approx((limits.low, limits.high, test.pvalue))
    assert row.high - row.low > row.seeds_high - row.seeds_low
    assert row.p > row.seeds_p
    assert row.seed_share + row.pair_share < 1
    assert 0 <= row.improvement_low <= row.improvement <= row.improvement_high <= 1
    shown = str(result)
    assert "P(B > A)" in shown
    assert "seeds alone p" in shown


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "one run says what this checkpoint scores, and nothing of how far a seed carries"),
        (
            2,
            "two runs hardly know how far seeds carry: from an sd of 1.00 the true one may be anything from",
        ),
        (3, "three runs know roughly how far seeds carry"),
    ],
)
def test_what_few_runs_allow_to_say_is_said(count: int, said: str, measure: Measure) -> None:
    scores = {1: [0.75], 2: [0.75 - 0.005 * 2**0.5, 0.75 + 0.005 * 2**0.5], 3: [0.74, 0.75, 0.76]}[count]
    result = compared(runs_of(measure(), scores, "a"), {})
    assert any(said in line for line in result.remarks)
    assert math.isnan(result.rows[0].a_low) == (count == 1)
    assert math.isnan(result.rows[0].a_iqm)


def test_without_tables_the_interval_is_of_seeds_alone_and_says_so(measure: Measure) -> None:
    runs = runs_of(measure(), [0.74, 0.75, 0.77], "a")
    lost = {name: run.with_items(None) for name, run in runs.items()}
    result = compared(lost, {})
    assert "what other pairs would change is not known" in result.notes[0]
    row = result.rows[-1]
    reach = scipy.stats.t.ppf(0.975, 2) * np.std([74, 75, 77], ddof=1) / math.sqrt(3)
    assert row.a_high - row.a_mean == pytest.approx(reach)
    assert math.isnan(row.a_pair_share)


def with_length(model: ModelPart, length: int) -> ModelPart:
    return model.model_copy(update={"use": replace(model.use, max_length=length)})


def test_seeds_of_different_recipes_are_refused(measure: Measure, tmp_path: Path) -> None:
    runs = runs_of(measure(), [0.7, 0.8], "a")
    other = runs["a1"].model_copy(update={"model": with_length(runs["a1"].model, 8)})
    shorter = runs["a0"].model_copy(update={"model": with_length(runs["a0"].model, 16)})
    with pytest.raises(sb.UserError, match="a0 and a1 are not seeds of one recipe: max_length is 16 in one and 8"):
        compared({"a0": shorter, "a1": other}, {})
    # Two methods may differ in it.
    assert compared({"a0": shorter}, {"b0": other}).rows

    def trained_by(name: str, text: str) -> sb.RunRecord:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "recipe.yaml").write_text(text, encoding="utf-8")
        run = runs[name]
        return run.model_copy(update={"model": run.model.model_copy(update={"name": str(folder)})})

    recipe = "seed: {seed}\nobjective:\n  temperature: {temperature}\n"
    made = {
        "a0": trained_by("a0", recipe.format(seed=1, temperature=0.05)),
        "a1": trained_by("a1", recipe.format(seed=2, temperature=0.1)),
    }
    with pytest.raises(sb.UserError, match=r"objective\.temperature is 0\.05 in one and 0\.1 in the other"):
        compared(made, {})
    (tmp_path / "a1" / "recipe.yaml").write_text(recipe.format(seed=2, temperature=0.05), encoding="utf-8")
    assert compared(made, {}).rows[0].a_runs == 2
