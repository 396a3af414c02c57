"""How settings are ranked, merged, left out, and when they explain nothing."""

from collections.abc import Mapping

import numpy as np
import pytest

from stsbench.diagnosis.axes import (
    AGGREGATION,
    METRIC,
    NORMALIZE,
    POOLING,
    SIMILARITY,
    Axis,
    Change,
    Way,
    average_axis,
    read_claim,
)
from stsbench.diagnosis.search import Grid, Search

AXES = (
    POOLING.over(("avg", "cls"), "avg"),
    METRIC,
    SIMILARITY.over(("cosine", "euclidean"), "cosine"),
    NORMALIZE,
    average_axis(("STS16",)),
)
TEMPLATE, RULES = Axis("template"), Axis("rules")


def grid_of(values: list) -> Grid:
    """Return a grid of poolings by metrics by (the cosine, the Euclidean distance of scaled vectors)."""
    return Grid(AXES, {"STS16": array(values)})


def array(values: list) -> np.ndarray:
    compared = np.array(values, dtype=float).reshape(-1, 2, 2)
    scores = np.full((len(compared), 2, 2, 2, 1), np.nan)
    scores[:, :, 0, 0, 0], scores[:, :, 1, 1, 0] = compared[..., 0], compared[..., 1]
    return scores


def search(claim: str | Mapping[str, float], *, tolerance: float | None = None, **scores: list) -> Search:
    arrays = {task: array(values) for task, values in scores.items()}
    return Search(Grid(AXES, arrays), read_claim(claim, tolerance).about(tuple(scores)))


#                  avg: spearman  pearson | cls: spearman  pearson, each by the two similarities
SCORES = [[80.00, 81.00], [82.00, 83.00], [70.00, 71.00], [72.00, 73.00]]


@pytest.mark.parametrize(
    ("scores", "claim", "expected"),
    [
        (SCORES, "70.00", [{"pooling": "cls"}]),
        # A similarity with a scaling counts as two choices.
        (SCORES, "71.00", [{"pooling": "cls", "similarity": "euclidean", "normalize": "True"}]),
        # Fewer changes go before a smaller distance.
        ([[80, 80], [82.03, 80], [70, 71], [82, 73]], "82.00", [{"metric": "pearson"}]),
        # A setting is left out if a part of its changes would do.
        ([[80, 80], [80, 80], [70, 70], [70.01, 72]], "70.00", [{"pooling": "cls"}]),
        ([[80, 80], [80, 80], [70, 70], [70.01, 72]], "80.00", [{}]),
        # Settings that print the same are one cause, named by the more usual mistake; others are two.
        ([[80, 80], [70.001, 80], [70.004, 71], [72, 73]], "70.00", [{"pooling": "cls"}]),
        ([[80, 80], [70.02, 80], [70, 71], [72, 73]], "70.00", [{"pooling": "cls"}, {"metric": "pearson"}]),
    ],
    ids=range(7),
)
def test_explanations_are_minimal_and_the_simplest_comes_first(
    scores: list, claim: str, expected: list[dict[str, str]]
) -> None:
    found = search(claim, tolerance=0.05, STS16=scores)
    best = found.explanations
    assert [candidate.choices for candidate in best][: len(expected)] == expected
    assert best[0].count == len(expected[0])
    assert found.default.fits == (expected == [{}])
    if expected == [{"pooling": "cls"}] and scores[1][0] == 70.001:
        assert [candidate.choices for candidate in found.explanations[0].alike] == [{"metric": "pearson"}]


def test_several_numbers_must_fit_together() -> None:
    other = [[50, 50], [51, 50], [60, 50], [61, 50]]
    found = search("STS16=82.00,STS12=51.00", STS16=SCORES, STS12=other)
    assert found.explanations[0].choices == {"metric": "pearson"}
    nothing = search("STS16=82.00,STS12=60.00", STS16=SCORES, STS12=other)
    assert not nothing.explanations


def test_where_nothing_fits_the_nearest_is_named_and_how_far_off() -> None:
    found = search("84.00", STS16=SCORES)
    assert not found.explanations
    assert (found.nearest_single.choices, found.nearest_single.distance) == ({"metric": "pearson"}, 2.0)
    assert (found.nearest.count, found.nearest.distance) == (3, 1.0)


def test_the_chance_is_the_share_of_numbers_nearby_that_as_few_changes_give() -> None:
    found = search("80.50", tolerance=0.1, STS16=SCORES)
    # Within two points: the default 80 and, with one change, 82; of the latter's interval half is inside.
    assert found.chance(0) == pytest.approx(0.2 / 4)
    assert found.chance(1) == pytest.approx((0.2 + 0.2) / 4)
    assert search("80.00", tolerance=0.1, STS16=SCORES).chance(1) == pytest.approx((0.2 + 0.1) / 4)
    # Two settings within two points on both tasks, each with a box of 0.02 by 0.02 in one of 4 by 4.
    other = [[50, 50], [51, 50], [60, 50], [61, 50]]
    together = search("STS16=82.00,STS12=51.00", STS16=SCORES, STS12=other)
    assert together.chance(1) == pytest.approx(2 * (0.02 / 4) ** 2)
    overlapping = [[80.00, 80.00], [80.05, 90.00], [60.00, 71.00], [72.00, 73.00]]
    assert search("80.00", tolerance=0.1, STS16=overlapping).chance(1) == pytest.approx(0.25 / 4)


def test_many_changes_that_would_give_any_number_explain_none() -> None:
    poolings, aggregations = (axis.over(range(30), 0) for axis in (POOLING, AGGREGATION))
    rng = np.random.default_rng(0)
    scores = rng.uniform(70, 72, (30, 30, 1))
    scores[0, :], scores[:, 0] = 50, 50
    grid = Grid((poolings, aggregations, average_axis(("STS16",))), {"STS16": scores})
    found = Search(grid, read_claim("71.00").about(("STS16",)))
    assert not found.explanations
    assert found.coincidences[0].count == 2
    assert found.chance(2) > 0.5


def test_what_has_no_score_is_no_setting() -> None:
    nan = float("nan")
    found = search("82.00", STS16=[[80.00, nan], [nan, nan], [70.00, nan], [nan, 82.00]])
    assert found.settings == 3
    assert found.explanations[0].count == 4
    # A choice that does not affect a task is not varied.
    scores = np.array([80.0, 70.0]).reshape(2, 1, 1, 1, 1)
    assert Search(Grid(AXES, {"STS16": scores}), read_claim("80.00").about(("STS16",))).settings == 2


def test_averages_are_taken_over_the_tasks_that_their_names_say() -> None:
    tasks = ("STS12", "STS16", "STS-B", "SICK-R")
    means = average_axis(tasks)
    taken = {str(mean): mean.tasks for mean in means.values}
    assert taken["of all tasks"] == taken["of rounded scores"] == tasks
    assert taken["without SICK-R"] == ("STS12", "STS16", "STS-B")
    assert taken["without STS-B and SICK-R"] == ("STS12", "STS16")
    assert taken["STS-B alone"] == ("STS-B",)
    scores = {task: np.full((1,), 70 + n / 3) for n, task in enumerate(tasks)}
    grid = Grid((means,), scores)
    found = dict(zip(taken, grid.of("Avg."), strict=True))
    assert found["of all tasks"] == pytest.approx(70.5)
    assert found["of rounded scores"] == pytest.approx((70 + 70.33 + 70.67 + 71) / 4)


def test_a_way_is_left_out_if_part_of_its_changes_would_do() -> None:
    a, b, c = Change(TEMPLATE, "a"), Change(RULES, "b"), Change(TEMPLATE, "c")
    ways = {(a,): [[60.00, 1], [2, 3]], (a, b): [[60.001, 1], [2, 3]], (c, b): [[4, 60.02], [2, 3]]}
    grid = grid_of(SCORES).beyond({Way(way): {"STS16": array(scores)} for way, scores in ways.items()})
    found = Search(grid, read_claim("60.00", 0.05).about(("STS16",)))
    assert [cause.choices for cause in found.explanations] == [
        {"template": "a"},
        {"template": "c", "rules": "b", "similarity": "euclidean", "normalize": "True"},
    ]
    assert [cause.count for cause in found.explanations] == [1, 4]
    assert found.settings == 1 + 3 * 4
    assert grid.frame.loc[grid.frame["variation"] == "template a", "changes"].tolist() == [1, 3, 2, 4]
    assert (found.default.scores, found.nearest_single.changes[0].axis) == ((80.0,), TEMPLATE)
