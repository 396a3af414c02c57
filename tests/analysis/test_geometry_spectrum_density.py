"""The analyses of vectors and of densities: what goes into them, what is left out, and what is drawn."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.linalg

from stsbench.analysis.density import Density
from stsbench.analysis.geometry import Geometry
from stsbench.analysis.inputs import PairVectors
from stsbench.analysis.spectrum import Spectrum
from stsbench.scoring.statistic import Correlation
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.geometry import alignment, uniformity, unit_rows


def pairs_of(seed: int = 0) -> PairVectors:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 30, size=(2, 40))
    rows = np.concatenate([left, right])
    return PairVectors(rng.normal(size=(30, 6)), rows, rng.integers(0, 11, size=40) / 2, rows)


def geometry_of(models: dict[str, PairVectors], scores: Any = None, **options: Any) -> Geometry:
    analysis = Geometry(**options)
    analysis.scores = scores or {}
    return analysis.compute(models)


def test_positive_pairs_are_above_the_threshold_and_every_sentence_counts_as_often_as_it_occurs() -> None:
    pairs = pairs_of()
    (row,) = geometry_of({"a": pairs}, {"a": 78.9}).frame.to_dict("records")
    close = pairs.gold > 4
    left, right = np.split(pairs.rows, 2)
    assert row["alignment"] == alignment(pairs.vectors[left[close]], pairs.vectors[right[close]])
    assert row["uniformity"] == uniformity(pairs.vectors[pairs.rows])
    assert (row["positive_pairs"], row["sentences"], row["sts"]) == (close.sum(), 80, 78.9)
    (fewer,) = geometry_of({"a": pairs}, positive=4.5).frame.to_dict("records")
    assert fewer["positive_pairs"] == (pairs.gold > 4.5).sum() < row["positive_pairs"]


def test_zero_vectors_are_left_out_and_counted() -> None:
    pairs = pairs_of()
    pairs.vectors[pairs.rows[0]] = 0
    zero = int((pairs.rows == pairs.rows[0]).sum())
    (row,) = geometry_of({"a": pairs}).frame.to_dict("records")
    assert row["zero_sentences"] == zero
    assert row["sentences"] == 80 - zero
    assert np.isfinite(row["uniformity"])
    assert "zero vectors" in geometry_of({"a": pairs}).table()[0].frame
    assert "zero vectors" not in geometry_of({"a": pairs_of()}).table()[0].frame


def test_the_spectrum_is_that_of_normalised_vectors_as_they_are_and_centred() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 7)) + 0.4
    rows = np.arange(52)
    given = PairVectors(np.vstack([vectors, np.zeros((2, 7))]), rows, np.zeros(0), rows)
    result = Spectrum().compute({"a": given})
    frame = result.frame
    assert set(frame["sentences"]) == {50}
    units = unit_rows(vectors)
    for centred in (False, True):
        own = frame[(frame["centred"] == centred) & (frame["measure"] == "singular value")]
        expected = scipy.linalg.svdvals(units - units.mean(axis=0) if centred else units)
        assert own["value"].to_numpy() == pytest.approx(expected / expected[0], abs=1e-12)
        assert own["k"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert frame.loc[frame["measure"] == "isoscore", "centred"].tolist() == [True]
    assert result.table()[0].frame["centred"].tolist() == ["no", "yes"]


def test_a_bucket_holds_its_lower_end_and_the_last_one_both() -> None:
    gold = np.repeat([0.0, 0.9, 1.0, 2.5, 3.0, 4.0, 5.0], 20)
    noise = np.random.default_rng(0).normal(0, 0.1, size=140)
    table = pd.DataFrame({"gold": gold, "cosine": np.clip(gold / 5 + noise, -1, 1)})
    task = ScoredTask("made", Correlation("spearman", "all", "cosine"), table, (0, 5))
    frame = Density().compute({"a": [task]}).frame
    sizes = frame.drop_duplicates("bucket").set_index("bucket")["pairs"].to_dict()
    assert sizes == {"[0, 1)": 40, "[1, 2)": 20, "[2, 3)": 20, "[3, 4)": 20, "[4, 5]": 40}
    own = table["cosine"][gold >= 4]
    row = frame[frame["bucket"] == "[4, 5]"].iloc[0]
    assert (row["mean"], row["median"], row["q05"]) == pytest.approx(
        (own.mean(), own.median(), own.quantile(0.05))
    )
