"""What people score, and the ceiling of the ratings, beside the models' scores."""

import math
import re

import numpy as np
import pytest
from scipy.stats import norm

import stsbench as sb
from stsbench.published import catalogue
from stsbench.records.parts import RaterPart
from stsbench.records.record import RunRecord
from stsbench.reports.people import people


@pytest.fixture(scope="module")
def measured() -> RunRecord:
    """Return a record that says of itself that it is of all pairs of STS12, of which people scored a sample."""
    record = sb.evaluate(lambda texts: [[len(text), text.count("e"), 1.0] for text in texts], "sample")
    score = record.scores[0]
    signature = score.signature.replace("sample:test:", "STS12:test:")
    of_sts12 = score.model_copy(
        update={
            "task": "STS12",
            "signature": signature,
            "data": score.data.model_copy(update={"status": "verified"}),
            "raters": RaterPart(pairs=252, ratings=5.0, reliability=0.81, ceiling=0.9),
        }
    )
    return record.model_copy(update={"scores": (of_sts12,)})


def test_people_and_the_ceiling_are_drawn_beside_the_models(measured: RunRecord) -> None:
    section = people({"mine": measured})
    assert section is not None
    (figure,) = section.figures
    pearson = measured.scores[0].number("pearson", "all")
    assert pearson is not None
    assert pearson.value is not None
    printed = catalogue.row("hume-sts/two-raters-pearson").cell("STS12").score or math.nan
    assert f"STS12, mine: {100 * pearson.value:.2f}" in figure.alt
    assert f"STS12, people: {printed:.2f}" in figure.alt
    assert "STS12, ceiling: 90.00" in figure.alt
    # Of a Pearson correlation of 50 pairs Fisher's z has the variance 1 / 47.
    ends = np.tanh(np.arctanh(printed / 100) + norm.ppf([0.025, 0.975]) / math.sqrt(47))
    low, high = (f"{100 * end:.4g}" for end in ends)
    assert re.search(rf"people: {printed:.2f}[^<]*{low}[^<]*{high}", figure.svg)
    assert [table.name for table in section.tables] == ["ceilings", "scored-anew"]
    assert (
        figure.caption == "Pearson x 100 beside people on samples of the test sets and the ceiling of the raters"
    )


def test_a_ceiling_that_nobody_knows_is_not_in_the_figures_words(measured: RunRecord) -> None:
    (score,) = measured.scores
    section = people(
        {"mine": measured.model_copy(update={"scores": (score.model_copy(update={"raters": None}),)})}
    )
    assert section is not None
    assert section.figures[0].caption == "Pearson x 100 beside people on samples of the test sets"
    assert "ceiling" not in section.figures[0].alt


def test_of_own_pairs_and_of_parts_of_a_test_set_nobody_says_what_people_score(measured: RunRecord) -> None:
    (score,) = measured.scores
    own = score.model_copy(update={"data": score.data.model_copy(update={"status": "user"}), "raters": None})
    assert people({"mine": measured.model_copy(update={"scores": (own,)})}) is None
    dev = score.model_copy(
        update={"signature": score.signature.replace("STS12:test:", "STS12:dev:"), "raters": None}
    )
    assert people({"mine": measured.model_copy(update={"scores": (dev,)})}) is None
