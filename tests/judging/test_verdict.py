"""The sentence says what the numbers do."""

import math

import pytest

from stsbench.judging.comparison import Difference, verdict


def row(task: str, difference: float, p: float, p_holm: float = math.nan) -> Difference:
    low, high = difference - 0.3, difference + 0.3
    return Difference(
        "sts", task, "", 100, 70.0, 70.0 + difference, difference, low, high, p, 0.0, 0.0, 0.0, p_holm=p_holm
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [
                row("STS14", 0.2, 0.3, 0.3),
                row("STS15", 0.9, 0.002, 0.006),
                row("SICK-R", 0.8, 0.004, 0.008),
                row("Avg.", 0.42, 0.01),
            ],
            "B is better on STS15 and SICK-R; the average difference of 0.42 [0.12, 0.72] is real at 5 %.",
        ),
        (
            [
                row("x", -1.0, 0.001, 0.003),
                row("y", 1, 0.001, 0.003),
                row("z", 1, 0.02, 0.02),
                row("Avg.", 0.2, 0.2),
            ],
            "B is better on y and z; A is better on x; the average difference of 0.20 [-0.10, 0.50] may be chance "
            "at 5 %.",
        ),
        (
            [row("x", 0.1, 0.04, 0.08), row("y", 0.1, 0.2, 0.2), row("Avg.", 0.1, 0.3)],
            "No task shows a difference; the average difference of 0.10 [-0.20, 0.40] may be chance at 5 %.",
        ),
        (
            [row("x", 1.0, 0.01, 0.02), row("y", 1.0, 0.01, 0.02), row("Avg.", 1.0, 0.01)],
            "B is better on all tasks; the average difference of 1.00 [0.70, 1.30] is real at 5 %.",
        ),
        (
            [row("x", math.nan, math.nan), row("y", 1.0, 0.01, 0.01), row("Avg.", math.nan, math.nan)],
            "B is better on y; x could not be tested; the average difference is undefined.",
        ),
        ([row("x", -1.0, 0.01, 0.01)], "A is better on x: the difference of -1.00 [-1.30, -0.70] is real at 5 %."),
        (
            [row("x", 0.1, 0.5, 0.5)],
            "Neither is shown to be better on x: the difference of 0.10 [-0.20, 0.40] may be chance at 5 %.",
        ),
        ([row("x", math.nan, math.nan)], "Neither is shown to be better on x: the difference is undefined."),
    ],
)
def test_it_is(rows: list[Difference], sentence: str) -> None:
    assert verdict(rows, 0.95) == sentence


def test_the_level_is_told() -> None:
    assert verdict([row("x", 1.0, 0.02, 0.02)], 0.99).endswith("may be chance at 1 %.")
