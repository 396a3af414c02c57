"""What a comparison can show, and how many seeds a claim takes."""

import json
import math
from collections.abc import Callable

import pytest

import stsbench as sb
from stsbench.published.measured import seeds
from stsbench.statistics.intervals import detectable

Measure = Callable[..., sb.RunRecord]


@pytest.fixture
def runs(measure: Measure) -> tuple[sb.RunRecord, sb.RunRecord]:
    return measure(), measure(noise=0.5, seed=1)


def test_the_smallest_difference_is_so_many_standard_errors_of_the_comparison(
    runs: tuple[sb.RunRecord, sb.RunRecord],
) -> None:
    planned, compared = sb.plan(*runs), sb.compare(*runs)
    assert [row.task for row in planned.rows] == ["x", "y", "Avg."]
    for row in planned.rows:
        (difference,) = (other for other in compared.rows if (other.task, other.subset) == (row.task, ""))
        assert row.error == pytest.approx(difference.details["se_dyadic"])
        assert row.smallest == pytest.approx(detectable(row.error)) == pytest.approx(2.8016 * row.error, rel=1e-3)
    assert f"a difference of {planned.rows[-1].smallest:.2f} points on Avg. with 80 % power" in planned.sentence


def test_models_that_agree_show_smaller_differences(measure: Measure) -> None:
    near, far = (sb.plan(measure(), measure(noise=noise, seed=1)).rows[-1].smallest for noise in (0.1, 3.0))
    assert near < far / 3


def test_the_seeds_for_a_difference_come_from_a_spread_given_or_published(
    runs: tuple[sb.RunRecord, sb.RunRecord],
) -> None:
    given = sb.plan(*runs, difference=1.0, spread=0.8)
    assert [math.isnan(row.seed_sd) for row in given.rows] == [True, True, False]
    assert given.rows[-1].seeds_here == 12
    # A hundred invented pairs show no difference of one point between methods.
    assert given.rows[-1].seeds_anywhere == 0
    assert "no number of seeds shows it for other pairs" in given.sentence
    large = sb.plan(*runs, difference=30.0, spread=20.0).rows[-1]
    assert large.seeds_anywhere >= large.seeds_here > 1
    published = sb.plan(*runs, difference=1.0, spread="unsup-simcse-bert-base")
    assert published.rows[-1].seed_sd == pytest.approx(seeds("unsup-simcse-bert-base")["Avg."].std())
    assert "that of 50 seeds of unsup-simcse-bert-base" in str(published)


def test_it_is_a_table_and_plain_data(runs: tuple[sb.RunRecord, sb.RunRecord]) -> None:
    planned = sb.plan(*runs, difference=1.0, spread=0.8)
    (table,) = planned.table()
    assert list(table.frame.columns)[-3:] == ["seeds' sd", "seeds for 1", "on other pairs"]
    told = json.loads(planned.to("json"))
    assert told["rows"][0]["seed_sd"] is None
    assert told["sentence"] == planned.sentence
    assert len(planned.frame) == 3
    assert list(sb.plan(*runs).table()[0].frame.columns)[-2:] == ["smallest", "pairs for A - B"]


def test_a_spread_of_seeds_alone_plans_for_the_difference_of_the_two(
    runs: tuple[sb.RunRecord, sb.RunRecord],
) -> None:
    own = sb.plan(*runs, spread=0.9)
    (table,) = own.table()
    assert list(table.frame.columns)[-3:] == ["seeds' sd", "seeds for A - B", "on other pairs"]
    last = own.rows[-1]
    same = sb.plan(*runs, difference=abs(last.a - last.b), spread=0.9).rows[-1]
    assert (last.seeds_here, last.seeds_anywhere) == (same.seeds_here, same.seeds_anywhere)
    assert f"A difference of {abs(last.a - last.b):.2f} between methods" in own.sentence


def test_so_many_pairs_show_the_difference_that_is_planned_or_that_of_the_two(
    runs: tuple[sb.RunRecord, sb.RunRecord], measure: Measure, toy_data: Callable[..., object]
) -> None:
    planned = sb.plan(*runs, difference=1.0)
    for row in planned.rows:
        assert row.pairs == pytest.approx(row.size * row.smallest**2)
    assert "; one of 1 takes about" in planned.sentence
    own = sb.plan(*runs).rows[-1]
    assert own.pairs == pytest.approx(own.size * (own.smallest / (own.a - own.b)) ** 2)
    # So many pairs, drawn from the same models, do show about that difference.
    few, many = (
        [measure([toy_data("x", pairs=n)], noise=noise, seed=7) for noise in (0.0, 0.5)] for n in (200, 3200)
    )
    wanted = sb.plan(*many).rows[-1].smallest
    assert sb.plan(*few, difference=wanted).rows[-1].pairs == pytest.approx(3200, rel=0.4)


def test_what_makes_no_sense_is_refused(
    runs: tuple[sb.RunRecord, sb.RunRecord], measure: Measure, toy_data: Callable[..., object]
) -> None:
    with pytest.raises(sb.UserError, match="a difference of 0 points: give more than 0"):
        sb.plan(*runs, difference=0.0, spread=1.0)
    with pytest.raises(sb.UserError, match="a standard deviation of -1 points"):
        sb.plan(*runs, difference=1.0, spread=-1.0)
    with pytest.raises(sb.UserError, match="no seeds of 'simcse' are known"):
        sb.plan(*runs, difference=1.0, spread="simcse")
    with pytest.raises(sb.UserError, match="a power of 1"):
        sb.plan(*runs, power=1.0)
    with pytest.raises(sb.UserError, match="have no task in common"):
        sb.plan(runs[0], measure([toy_data("z")]))
