"""The ratings of a data set give a ceiling, in the record and beside the score."""

import math

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.tables import FileRead, Pair, StsData, combined_sha256, pair_table
from stsbench.reports.people import people
from stsbench.scoring.kinds.sts import rater_part, with_spread
from stsbench.scoring.recompute import require_recomputed
from stsbench.statistics.correlations import ceiling, reliability

RATINGS = [(4, 4, 3, 4, 4), (0, 0, 1, 0, 0), (2, 3, 2, 3, 2), (1, 1, 1, 1, 1), (3, 3, 4, 4, 4), (2, 2, 1, 0, 3)]


def rated(ratings=RATINGS, task="BIOSSES"):
    pairs = [
        Pair(task, "test", str(n), float(np.mean(given)), "an owl " * n, "a bus", ratings=given)
        for n, given in enumerate(ratings, start=1)
    ]
    files = (FileRead("scores.tsv", "0" * 64, None),)
    return StsData(
        task, "test", "raw", pair_table(pairs), (0.0, 4.0), "unverified", combined_sha256(files), files, ()
    )


def encode(sentences):
    return np.array([[len(text), 1.0 + text.count("w"), 2.0] for text in sentences])


def one_way_icc(ratings):
    # Shrout and Fleiss (1979), case 1, of the mean of k ratings: (BMS - WMS) / BMS from the analysis of variance.
    table = np.array(ratings, dtype=float)
    n, k = table.shape
    between = k * ((table.mean(axis=1) - table.mean()) ** 2).sum() / (n - 1)
    within = ((table - table.mean(axis=1, keepdims=True)) ** 2).sum() / (n * (k - 1))
    return (between - within) / between


def test_reliability_is_the_one_way_intraclass_correlation_of_the_mean():
    part = rater_part(with_spread(rated().pairs))
    assert part.reliability == pytest.approx(one_way_icc(RATINGS), abs=1e-12)
    assert (part.pairs, part.ratings, part.ceiling) == (6, 5.0, pytest.approx(math.sqrt(part.reliability)))


def test_the_ceiling_is_the_correlation_of_what_raters_agree_on_with_their_mean():
    # A truth that is known, and the mean of three noisy ratings of it: the ceiling is their correlation.
    draws = np.random.default_rng(1)
    truth = draws.normal(2.5, 1.0, 20_000)
    ratings = truth[:, np.newaxis] + draws.normal(0, 0.8, (20_000, 3))
    gold = ratings.mean(axis=1)
    highest = ceiling(reliability(gold, np.full(len(gold), 3.0), ratings.var(axis=1, ddof=1)))
    assert highest == pytest.approx(np.corrcoef(truth, gold)[0, 1], abs=0.005)


@pytest.mark.parametrize(
    ("ratings", "pairs", "reliable"),
    [
        ([*RATINGS, (3,)], 6, one_way_icc(RATINGS)),  # a single rating has no variance
        ([(1, 3), (3, 1)], 2, None),  # equal gold scores
    ],
)
def test_reliability_needs_several_ratings_and_different_gold_scores(ratings, pairs, reliable):
    part = rater_part(with_spread(rated(ratings).pairs))
    assert part.pairs == pairs
    assert part.reliability == (None if reliable is None else pytest.approx(reliable))
    assert (part.ceiling is None) == (reliable is None)


def test_raters_who_disagree_or_rate_alone_leave_no_ceiling():
    part = rater_part(with_spread(rated([(0, 4), (4, 0), (1, 2)]).pairs))
    assert part.reliability < 0
    assert part.ceiling is None
    assert rater_part(with_spread(rated([(3,), (2,)]).pairs)) is None


def test_the_ceiling_is_in_the_record_and_the_items_keep_the_spread(tmp_path):
    run = sb.evaluate(encode, [rated(), "sample"], out=tmp_path / "run")
    first, other = run.scores
    assert first.raters.ceiling == pytest.approx(math.sqrt(one_way_icc(RATINGS)))
    assert (first.data.status, other.raters) == ("unverified", None)
    again = sb.load_run(tmp_path / "run")
    assert again.scores[0].raters == first.raters
    table = again.items
    assert table.loc[table["task"] == "BIOSSES", "raters"].to_list() == [5.0] * 6
    assert table.loc[table["task"] == "sample", "raters"].isna().all()
    assert "ratings" not in table.columns
    require_recomputed(again)


def test_the_report_shows_the_ceiling_and_peoples_scores_for_the_tasks_that_have_them():
    run = sb.evaluate(encode, [rated(), rated(task="STS12"), rated(task="STS16"), "sample"])
    (table,) = people({"mine": run}).tables
    rows = table.frame.set_index("task")
    assert list(rows.index) == ["BIOSSES", "STS12", "STS16"]
    assert rows.loc["BIOSSES", "ceiling"] == pytest.approx(100 * math.sqrt(one_way_icc(RATINGS)))
    pearsons = {score.task: 100 * score.number("pearson", "all").value for score in run.scores}
    assert rows["mine"].to_dict() == pytest.approx({task: pearsons[task] for task in rows.index})
    assert rows.loc["STS12", "people's pairs"] == 50
    (other_languages,) = people({"mine": sb.evaluate(encode, rated(task="STS22"))}).tables
    assert "people" not in other_languages.frame
    assert people({"mine": sb.evaluate(encode, "sample")}) is None
