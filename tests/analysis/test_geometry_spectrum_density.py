"""The analyses of vectors and of densities: what goes into them, what is left out, and what is drawn."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from scipy.integrate import trapezoid
from scipy.stats import ortho_group

import stsbench as sb
from stsbench.analysis.density import Density
from stsbench.analysis.geometry import Geometry
from stsbench.analysis.inputs import PairVectors
from stsbench.analysis.spectrum import Spectrum
from stsbench.data.benchmarks import load_sample
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


def spectrum_of(vectors: dict[str, Any]) -> Spectrum:
    """Returns the spectrum of one sentence per row of the vectors."""
    rows = {name: np.arange(len(matrix)) for name, matrix in vectors.items()}
    return Spectrum().compute(
        {name: PairVectors(matrix, rows[name], np.zeros(0), rows[name]) for name, matrix in vectors.items()}
    )


def density_of(
    tables: dict[str, pd.DataFrame], gold_range: tuple[float, float] = (0, 5), **options: Any
) -> Density:
    statistic = Correlation("spearman", "all", "cosine")
    scored = {name: [ScoredTask("made", statistic, table, gold_range)] for name, table in tables.items()}
    return Density(**options).compute(scored)


def test_positive_pairs_are_above_the_threshold_and_every_sentence_counts_as_often_as_it_occurs() -> None:
    pairs = pairs_of()
    (row,) = geometry_of({"a": pairs}, {"a": 78.9}).frame.to_dict("records")
    close = pairs.gold > 4
    assert row["alignment"] == alignment(pairs.vectors[pairs.left[close]], pairs.vectors[pairs.right[close]])
    assert row["uniformity"] == uniformity(pairs.vectors[np.concatenate([pairs.left, pairs.right])])
    assert (row["positive_pairs"], row["sentences"], row["sts"]) == (close.sum(), 80, 78.9)
    (once,) = geometry_of({"a": pairs}, distinct=True).frame.to_dict("records")
    used = np.unique(np.concatenate([pairs.left, pairs.right]))
    assert once["uniformity"] == uniformity(pairs.vectors[used])
    assert (once["sentences"], np.isnan(once["sts"])) == (len(used), True)
    (fewer,) = geometry_of({"a": pairs}, positive=4.5).frame.to_dict("records")
    assert fewer["positive_pairs"] == (pairs.gold > 4.5).sum() < row["positive_pairs"]


def test_zero_vectors_are_left_out_and_counted() -> None:
    pairs = pairs_of()
    pairs.vectors[pairs.left[0]] = 0
    zero = int(((pairs.left == pairs.left[0]).sum()) + (pairs.right == pairs.left[0]).sum())
    (row,) = geometry_of({"a": pairs}).frame.to_dict("records")
    assert row["zero_sentences"] == zero
    assert row["sentences"] == 80 - zero
    assert np.isfinite(row["uniformity"])
    assert "zero vectors" in geometry_of({"a": pairs}).table()[0].frame
    assert "zero vectors" not in geometry_of({"a": pairs_of()}).table()[0].frame


def test_without_positive_pairs_there_is_no_alignment() -> None:
    pairs = pairs_of()
    (row,) = geometry_of({"a": pairs}, positive=5.0).frame.to_dict("records")
    assert np.isnan(row["alignment"])
    assert row["positive_pairs"] == 0


def test_a_task_without_positive_pairs_says_so() -> None:
    with_pairs, without = (
        sb.geometry(lambda texts: [[len(text), 1.0] for text in texts], task="sample", positive=positive)
        for positive in (4.0, 9.0)
    )
    assert not with_pairs.notes
    assert np.isnan(without.frame["alignment"][0])
    assert "no pair has a gold score above 9; they are 0 to 5. Set --positive." in str(without)


def test_a_rotation_or_a_scale_changes_no_number_of_the_geometry_or_the_spectrum() -> None:
    pairs = pairs_of()
    turned = pairs.vectors @ ortho_group.rvs(6, random_state=0) * 17
    other = pairs._replace(vectors=turned)
    frame = geometry_of({"a": pairs, "b": other}).frame.drop(columns="model")
    assert frame.loc[0].to_numpy(float) == pytest.approx(frame.loc[1].to_numpy(float), nan_ok=True)
    frame = spectrum_of({"a": pairs.vectors, "b": turned}).frame
    one, two = (frame.loc[frame["model"] == name, "value"].to_numpy() for name in "ab")
    assert one == pytest.approx(two, abs=1e-9)


def test_the_plane_has_a_point_for_each_model_with_its_score() -> None:
    plane = geometry_of({"a": pairs_of(), "b": pairs_of(1)}, {"a": 78.874})
    drawn, frame = plane.plot(), plane.frame
    (axes,) = drawn.axes
    assert named(drawn) == ["a (78.87)", "b"]
    points = [points.get_offsets()[0] for points in axes.collections]
    assert np.array(points) == pytest.approx(frame[["uniformity", "alignment"]].to_numpy())


def test_the_path_joins_the_checkpoints_in_order() -> None:
    plane = geometry_of({"a": pairs_of(), **{f"step-{n}": pairs_of(n) for n in (1, 2, 3)}})
    (axes,) = plane.plot(path=3).axes
    (line,) = axes.lines
    assert np.array(line.get_xydata()) == pytest.approx(plane.frame[["uniformity", "alignment"]].to_numpy()[1:])
    assert len(axes.collections) == 3  # the other model, and the ends of the path


def test_the_spectrum_is_that_of_normalised_vectors_as_they_are_and_centred() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 7)) + 0.4
    result = spectrum_of({"a": np.vstack([vectors, np.zeros((2, 7))])})
    frame = result.frame
    assert set(frame["sentences"]) == {50}
    units = unit_rows(vectors)
    for centred in (False, True):
        own = frame[(frame["centred"] == centred) & (frame["measure"] == "singular value")]
        expected = scipy.linalg.svdvals(units - units.mean(axis=0) if centred else units)
        assert own["value"].to_numpy() == pytest.approx(expected / expected[0], abs=1e-12)
        assert own["k"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    (isoscore,) = frame.loc[frame["measure"] == "isoscore", "centred"]
    assert isoscore
    (table,) = result.table()
    assert table.frame["centred"].tolist() == ["no", "yes"]


def scored(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    gold = np.repeat([0.0, 0.9, 1.0, 2.5, 3.0, 4.0, 5.0], 20)
    return pd.DataFrame({"gold": gold, "cosine": np.clip(gold / 5 + rng.normal(0, 0.1, size=140), -1, 1)})


def test_a_bucket_holds_its_lower_end_and_the_last_one_both() -> None:
    frame = density_of({"a": scored()}).frame
    sizes = frame.drop_duplicates("bucket").set_index("bucket")["pairs"].to_dict()
    assert sizes == {"[0, 1)": 40, "[1, 2)": 20, "[2, 3)": 20, "[3, 4)": 20, "[4, 5]": 40}
    own = scored()[lambda table: table["gold"] >= 4]["cosine"]
    row = frame[frame["bucket"] == "[4, 5]"].iloc[0]
    assert (row["mean"], row["median"], row["q05"]) == pytest.approx(
        (own.mean(), own.median(), own.quantile(0.05))
    )
    for _, part in frame.groupby("bucket"):
        assert trapezoid(part["density"], part["cosine"]) == pytest.approx(1, abs=0.01)


def test_buckets_follow_the_scale_of_the_task() -> None:
    table = scored().assign(gold=lambda frame: 1 + frame["gold"] * 0.8)
    frame = density_of({"a": table}, (1.0, 5.0), buckets=2).frame
    assert frame.drop_duplicates("bucket")[["bucket", "pairs"]].to_numpy().tolist() == [
        ["[1, 3)", 60],
        ["[3, 5]", 80],
    ]


def test_an_empty_bucket_has_no_density_and_is_drawn_empty() -> None:
    table = scored()
    result = density_of({"a": table[table["gold"] > 1], "b": table})
    frame = result.frame
    empty = frame[(frame["model"] == "a") & (frame["bucket"] == "[0, 1)")]
    assert empty["pairs"].eq(0).all()
    assert empty["density"].isna().all()
    drawn = result.plot()
    assert [axes.get_ylabel() for axes in drawn.axes] == ["[4, 5]", "[3, 4)", "[2, 3)", "[1, 2)", "[0, 1)"]
    assert len(result.table()[0].frame) == 10


def test_buckets_of_one_cosine_are_drawn_without_a_word_of_matplotlib() -> None:
    table = scored().assign(cosine=1 - scored()["gold"] * 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        density_of({"a": table}).plot()


def test_a_run_on_pairs_of_its_own_has_densities_without_being_asked_which(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    pairs = load_sample().pairs[["sentence1", "sentence2", "gold"]].rename(columns={"gold": "score"})
    pairs.to_csv(file, sep="\t", index=False)
    record = sb.evaluate(lambda texts: [[len(text), text.count("e"), 1.0] for text in texts], data=file)
    assert set(sb.density(record).frame["task"]) == {"mine"}


def test_one_model_alone_is_drawn_beside_points_that_are_known_and_several_are_not() -> None:
    one = sb.geometry(lambda texts: [[len(text), text.count("e"), 1.0] for text in texts], task="sample")
    assert any("all-MiniLM-L6-v2 (for reference)" in name for name in named(one.plot()))
    two = sb.geometry(
        [lambda texts, k=k: [[len(text), text.count("e"), k] for text in texts] for k in (1.0, 9.0)], task="sample"
    )
    assert not [name for name in named(two.plot()) if "reference" in name]


def named(figure: Any) -> list[str]:
    """Returns the names in a figure."""
    texts = [*(text for axes in figure.axes for text in axes.texts)]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    return [" ".join(text.get_text().split()) for text in texts]
