"""Statistics that carry their terms: the arithmetic of the delta method against leaving pairs out."""

import math

import numpy as np
import pytest

from stsbench.statistics.influence import Linear, mean_terms, ratio_terms


def sums(rng: np.random.Generator, size: int = 400) -> tuple[dict[str, Linear], dict[str, np.ndarray]]:
    rows = {"x": rng.normal(5, 1, size), "y": rng.normal(3, 1, size), "n": np.ones(size)}
    rows |= {"xx": rows["x"] ** 2, "xy": rows["x"] * rows["y"]}
    return {name: Linear(float(row.sum()), {"task": row}) for name, row in rows.items()}, rows


def test_a_mean_and_a_ratio_have_the_terms_of_their_formulas() -> None:
    of, rows = sums(np.random.default_rng(0))
    assert (of["x"] / of["n"]).terms["task"] == pytest.approx(mean_terms(rows["x"]))
    assert (of["x"] / of["y"]).terms["task"] == pytest.approx(ratio_terms(rows["x"], rows["y"]))


def test_a_slope_has_the_terms_of_leaving_each_pair_out() -> None:
    of, rows = sums(np.random.default_rng(1))
    slope = (of["xy"] - of["x"] * of["y"] / of["n"]) / (of["xx"] - of["x"] * of["x"] / of["n"])
    size = len(rows["x"])
    assert slope.value == pytest.approx(np.polyfit(rows["x"], rows["y"], 1)[0])
    kept = [np.delete(np.arange(size), place) for place in range(size)]
    without = np.array([np.polyfit(rows["x"][keep], rows["y"][keep], 1)[0] for keep in kept])
    jackknife = (slope.value - without) * (size - 1) / size
    assert np.corrcoef(slope.terms["task"], jackknife)[0, 1] > 0.999
    assert abs(slope.terms["task"].sum()) < 1e-9


def test_blocks_stand_side_by_side_and_numbers_scale_them() -> None:
    one, other = Linear(1.0, {"a": np.array([1.0, -1.0])}), Linear(3.0, {"b": np.array([2.0, 0.0, -2.0])})
    mean = (one + other) / 2
    assert (mean.value, {block: terms.tolist() for block, terms in mean.terms.items()}) == (
        2.0,
        {"a": [0.5, -0.5], "b": [1.0, 0.0, -1.0]},
    )
    gap = 10 * (other - one)
    assert (gap.value, gap.terms["a"].tolist()) == (20.0, [-10.0, 10.0])


def test_a_quotient_by_nothing_is_undefined() -> None:
    assert math.isnan((Linear(1.0, {}) / Linear(0.0, {})).value)
    assert math.isnan((Linear.undefined() + Linear(1.0, {})).value)
