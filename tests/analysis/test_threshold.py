"""Thresholds against plain NumPy: cutoffs, rates on other pairs, probabilities, and cutoffs of another model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_runs import write_pairs, write_words
from scipy.stats import beta, norm
from sklearn.isotonic import IsotonicRegression

import stsbench as sb
from stsbench.analysis.cutoffs import (
    FALSE,
    PRECISION,
    RECALL,
    LabelledPairs,
    carried_cutoff,
    cutoff_of,
    match_probability,
)
from stsbench.analysis.inputs import Estimates
from stsbench.analysis.threshold import Threshold
from stsbench.base.errors import UserError
from stsbench.scoring.settings import Intervals
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.seeds import generator

ALONE = Sharing.of(*np.arange(2000).reshape(2, -1))


def made(size: int = 400, seed: int = 0, digits: int = 9, copies: int = 1) -> LabelledPairs:
    """Return independent pairs, each `copies` times."""
    rng = np.random.default_rng(seed)
    matches = rng.random(size) < 0.4
    similarity = (rng.normal(size=size) + 2 * matches).round(digits)
    of_copies = (np.repeat(column, copies) for column in (similarity, matches))
    first, second = np.repeat(np.arange(2 * size).reshape(2, -1), copies, axis=1)
    return LabelledPairs("made", *of_copies, Sharing.of(first, second))


def plain(values: Any, share: float) -> float:
    """Return the place from the top that a share exceeds at most, between the two ranks around 90 %."""
    falling = np.sort(values)[::-1]
    ranks = np.arange(1, len(falling) + 1)
    confidence = beta.cdf(share, ranks, len(falling) + 1 - ranks)
    last = np.flatnonzero(confidence >= 0.9)[-1]
    part = (confidence[last] - 0.9) / (confidence[last] - confidence[last + 1])
    return float(falling[last] + part * (falling[last + 1] - falling[last]))


@pytest.mark.parametrize("seed", range(3))
def test_cutoffs_for_false_matches_and_recall_are_order_statistics(seed: int) -> None:
    pairs = made(seed=seed)
    others, matches = pairs.similarity[~pairs.matches], pairs.similarity[pairs.matches]
    assert cutoff_of(pairs, FALSE, 0.05, "dyadic") == pytest.approx(plain(others, 0.05), rel=1e-9)
    assert cutoff_of(pairs, RECALL, 0.9, "dyadic") == pytest.approx(-plain(-matches, 0.1), rel=1e-9)


def test_the_cutoff_for_precision_is_the_lowest_whose_bound_is_within_the_target() -> None:
    pairs = made()
    cutoff = cutoff_of(pairs, PRECISION, 0.9, "dyadic")
    bounds = {}
    for place in np.sort(pairs.similarity):
        above = pairs.matches[pairs.similarity >= place]
        false, true = (~above).sum(), above.sum()
        bounds[place] = beta.cdf(0.1, false + 0.5, true + 0.5)
    lowest = min(place for place, bound in bounds.items() if bound >= 0.9)
    below = max(place for place in bounds if place < lowest)
    assert below < cutoff <= lowest


@pytest.mark.parametrize("target", [FALSE, RECALL, PRECISION])
def test_ties_are_not_split_and_copies_add_no_certainty(target: str) -> None:
    rate = 0.05 if target == FALSE else 0.9
    tied = made(digits=1)
    false = tied.similarity[~tied.matches] >= cutoff_of(tied, FALSE, 0.05, "dyadic")
    assert 0 < false.mean() <= 0.05
    once, thrice = made(300), made(300, copies=3)
    assert abs(cutoff_of(thrice, target, rate, "dyadic") - cutoff_of(once, target, rate, "dyadic")) < 0.1
    independent = cutoff_of(thrice, target, rate, "independent")
    assert (cutoff_of(thrice, target, rate, "dyadic") - independent) * (-1 if target == RECALL else 1) > 0


@pytest.mark.parametrize(("apart", "share"), [(0, 0.88), (0.5, 0.8)])
def test_a_weak_model_rarely_gets_a_cutoff_that_breaks_its_precision(apart: float, share: float) -> None:
    broken = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        matches = rng.random(1000) < share
        pairs = LabelledPairs("weak", rng.normal(size=1000) + apart * matches, matches, ALONE)
        cutoff = cutoff_of(pairs, PRECISION, 0.9, "dyadic")
        broken += share * norm.sf(cutoff - apart) < 9 * (1 - share) * norm.sf(cutoff)
    assert broken <= 30


def test_rates_do_not_depend_on_the_order_of_pairs_and_linked_pairs_have_none() -> None:
    pairs = made(1000)
    order = np.argsort(np.where(pairs.matches, 5, 1) * np.arange(1000), kind="stable")
    for given in (pairs, pairs.take(order)):
        rates = Threshold(min_recall=0.9).compute({"a": [given]}).frame.set_index("measure")["value"]
        assert rates["recall"] == pytest.approx(0.92, abs=0.03)
    hub = Sharing.of(np.zeros(1000), np.arange(1, 1001))
    linked = Threshold().compute({"a": [replace(pairs, sharing=hub)]})
    measures = linked.frame.set_index("measure")
    assert not np.isnan(measures.loc["cutoff", "value"])
    assert measures.loc[["recall", "precision"], "value"].isna().all()
    assert measures.loc["probability", ["low", "high"]].isna().all().all()


def test_a_rate_of_one_is_as_uncertain_as_its_own_pairs_are_few() -> None:
    ranks = np.arange(1000)
    rows = (
        Threshold(min_recall=0.5).compute({"a": [LabelledPairs("few", ranks / 1000, ranks >= 980, ALONE)]}).frame
    )
    precision = rows[rows["measure"] == "precision"].iloc[0]
    assert precision["value"] == precision["high"] == 1
    assert precision["low"] < 0.9


def test_the_probability_has_about_25_places_on_another_scale_and_a_band_at_both_ends() -> None:
    pairs = made()
    scaled = replace(pairs, similarity=1e4 * pairs.similarity, kind="dot")
    curve = pd.DataFrame(match_probability(scaled, 0.95))
    assert 25 <= len(curve) <= 28
    assert curve["low"].iloc[-1] < 1
    assert curve["high"].iloc[0] > 0


def test_without_enough_pairs_or_both_kinds_there_is_no_cutoff() -> None:
    pairs = made(40)
    assert np.isnan(cutoff_of(pairs, FALSE, 0.01, "dyadic"))
    assert np.isnan(cutoff_of(pairs, PRECISION, 0.999, "dyadic"))
    assert np.isnan(cutoff_of(pairs.take(pairs.matches), FALSE, 0.05, "dyadic"))
    frame = Threshold(max_false_match=0.01).compute({"a": [pairs]})
    assert frame.frame.set_index("measure").loc["recall", ["value", "low"]].isna().all()
    assert "made (a)" in frame.notes[-1]


@pytest.mark.parametrize(("target", "kept"), [(FALSE, 0.05), (RECALL, 0.9), (PRECISION, 0.9)])
def test_the_guarantee_holds_in_nine_of_ten_draws(target: str, kept: float) -> None:
    held = []
    for seed in range(400):
        cutoff = cutoff_of(made(300, seed), target, kept, "dyadic")
        false, recall = norm.sf(cutoff), norm.sf(cutoff - 2)
        meets = {FALSE: false <= 0.05, RECALL: recall >= 0.9, PRECISION: 0.4 * recall >= 9 * 0.6 * false}
        held.append(np.isnan(cutoff) or meets[target])
    assert np.mean(held) == pytest.approx(0.9, abs=0.045)


def test_rates_are_of_pairs_that_did_not_choose_the_cutoff() -> None:
    pairs = made()
    frame = Threshold().compute({"a": [pairs]}).frame
    matched = np.zeros(400, dtype=bool)
    folds = generator(0, "folds").permutation(400) % 5
    for fold in range(5):
        inside = folds == fold
        others = pairs.similarity[~inside & ~pairs.matches]
        matched[inside] = pairs.similarity[inside] >= plain(others, 0.05)
    rates = frame[frame["group"] == "fitted"].set_index("measure")["value"]
    false, recall = matched[~pairs.matches].mean(), matched[pairs.matches].mean()
    expected = [false, pairs.matches[matched].mean(), recall, matched.mean(), (1 + recall - false) / 2]
    names = ["false matches", "precision", "recall", "matched", "balanced accuracy"]
    assert rates[names].tolist() == pytest.approx(expected)
    curve = frame[frame["measure"] == "probability"]
    regression = IsotonicRegression(out_of_bounds="clip").fit(pairs.similarity, pairs.matches)
    assert curve["value"].tolist() == pytest.approx(regression.predict(curve["group"].astype(float)).tolist())
    assert ((curve["low"] <= curve["value"]) & (curve["value"] <= curve["high"])).all()
    assert curve[["low", "high"]].stack().between(0, 1).all()


def test_a_carried_cutoff_makes_as_many_false_matches_and_the_old_one_does_not(tmp_path: Path) -> None:
    data = tmp_path / "pairs.tsv"
    write_pairs(data, pairs=300)
    for seed, name in enumerate("ab"):
        write_words(tmp_path / f"{name}.txt", seed)
        sb.evaluate(str(tmp_path / f"{name}.txt"), data=data, out=tmp_path / name)
    old, new = (sb.load_run(tmp_path / name).items for name in "ab")
    other = (old["gold"] < 0.8).to_numpy()
    before = int((old["cosine"][other] >= 0.7).sum())
    for given in ({}, {"data": [data]}):
        frame = sb.threshold(tmp_path / "b", carry=0.7, origin=tmp_path / "a", **given).frame
        found = frame.set_index(["group", "measure"])["value"]
        assert found["carried", "cutoff"] == np.sort(new["cosine"][other])[::-1][before - 1]
        assert found["carried", "false matches"] == pytest.approx(before / other.sum())
        assert found["kept", "false matches"] == pytest.approx((new["cosine"][other] >= 0.7).mean())
        limits = frame[(frame["group"] == "carried") & (frame["measure"] == "cutoff")].iloc[0]
        assert limits["low"] < limits["value"] < limits["high"]


def test_a_carried_cutoff_among_ties_is_the_nearest_and_other_pairs_are_refused() -> None:
    pairs = made()
    estimates = Estimates(Intervals())
    estimates.block(pairs.name, pairs.sharing)
    others, falling = ~pairs.matches, np.sort(pairs.similarity[~pairs.matches])[::-1]
    none = carried_cutoff(pairs, pairs, falling[0] + 1, estimates)
    assert none["value"] > falling[0]
    assert np.isnan(none["low"])
    tied = replace(pairs, similarity=pairs.similarity.round(0))
    for count in (3, 20, 60):
        cutoff = carried_cutoff(tied, pairs, falling[count - 1], estimates)["value"]
        made_by = {place: (tied.similarity[others] >= place).sum() for place in {*tied.similarity, 9.0}}
        nearest = min(abs(number - count) for number in made_by.values())
        assert abs((tied.similarity[others] >= cutoff).sum() - count) == nearest
    for other in (
        replace(pairs, kind="dot"),
        replace(pairs, sharing=made(copies=2).take(np.arange(800) < 400).sharing),
    ):
        with pytest.raises(UserError, match="--from has other pairs of made"):
            carried_cutoff(pairs, other, 0.7, estimates)


def test_labelled_pairs_are_compared_by_the_model_of_a_run() -> None:
    encode = lambda texts: [[len(text), text.count("e"), 1.0] for text in texts]  # noqa: E731
    frame = sb.threshold(encode, tasks=["sample-paraphrases", "sample"]).frame
    counts = frame.drop_duplicates("task").set_index("task")["pairs"]
    assert set(counts.index) == {"sample-paraphrases", "sample", "all tasks"}
    assert counts["all tasks"] == counts["sample"] + counts["sample-paraphrases"]


def test_pair_classification_has_a_cutoff(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv", pairs=200)
    labelled = replace(pairs, pairs=pairs.pairs.assign(gold=(pairs.pairs["gold"] >= 0.8) * 1.0), gold_range=(0, 1))
    encode = lambda texts: [[len(text), text.count("e"), 1.0] for text in texts]  # noqa: E731
    frames = [
        sb.threshold(sb.evaluate(encode, [data], protocol=sb.protocol(metric=metric))).frame
        for data, metric in ((labelled, "ap"), (pairs, "spearman"))
    ]
    pd.testing.assert_frame_equal(*frames)
