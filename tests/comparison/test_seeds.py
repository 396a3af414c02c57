"""Methods over seeds: the spread always, a claim only from five runs on."""

import hashlib
import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

import stsbench as sb
from stsbench.comparison.seeds import compare_seeds
from stsbench.comparison.seeds_result import SeedsComparison
from stsbench.data.tables import StsData
from stsbench.statistics.significance import holm

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]
Runs = dict[str, sb.RunRecord]


def trained(record: sb.RunRecord, name: str, score: float) -> sb.RunRecord:
    """Return a record as of a checkpoint of its own, with this score on every task."""
    weights = hashlib.sha256(name.encode()).hexdigest()
    return record.model_copy(
        update={
            "model": record.model.model_copy(update={"weights_sha256": weights}),
            "tasks": tuple(task.model_copy(update={"score": score}) for task in record.tasks),
        }
    )


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
    undefined = trained(measure(), "b", 0.7)
    undefined = undefined.model_copy(
        update={"tasks": tuple(task.model_copy(update={"score": None}) for task in undefined.tasks)}
    )
    with pytest.raises(sb.UserError, match="b0 has no score on x"):
        compared(runs, {"b0": undefined})
