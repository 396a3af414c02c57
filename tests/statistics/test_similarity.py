import numpy as np
import pytest
import scipy.spatial.distance
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stsbench.statistics import similarity
from stsbench.statistics.similarity import SIMILARITIES, pair_similarities, zero_rows

matrices = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: arrays(
        dtype,
        st.tuples(st.integers(1, 8), st.integers(1, 6)),
        elements=st.floats(-100, 100, width=32, allow_subnormal=False),
    )
)


@given(vectors=matrices, data=st.data())
def test_values_agree_with_scipy_in_double_precision(vectors, data):
    rows = st.lists(st.integers(0, len(vectors) - 1), min_size=5, max_size=5)
    left, right = data.draw(rows), data.draw(rows)
    values = pair_similarities(vectors, left, right, list(SIMILARITIES))
    for pair, (u, v) in enumerate(zip(vectors[left].astype(float), vectors[right].astype(float), strict=True)):
        assert values["dot"][pair] == pytest.approx(u @ v, rel=1e-12, abs=1e-9)
        assert values["euclidean"][pair] == pytest.approx(-scipy.spatial.distance.euclidean(u, v))
        assert values["manhattan"][pair] == pytest.approx(-scipy.spatial.distance.cityblock(u, v))
        if u.any() and v.any():
            assert values["cosine"][pair] == pytest.approx(1 - scipy.spatial.distance.cosine(u, v), abs=1e-12)


@given(vectors=matrices)
def test_a_row_with_itself_has_cosine_exactly_one_unless_it_is_zero(vectors):
    rows = np.arange(len(vectors))
    values = pair_similarities(vectors, rows, rows, ["cosine", "euclidean"])
    assert values["cosine"].tolist() == np.where(zero_rows(vectors), 0.0, 1.0).tolist()
    assert not np.signbit(values["euclidean"]).any()


@given(vectors=matrices)
def test_cosine_stays_within_one_and_ignores_length(vectors):
    first, second = np.zeros(len(vectors), dtype=int), np.arange(len(vectors))
    cosines = pair_similarities(vectors, first, second)["cosine"]
    assert (np.abs(cosines) <= 1).all()
    assert pair_similarities(vectors * 4, first, second)["cosine"].tolist() == cosines.tolist()


def test_pairs_with_a_zero_row_have_cosine_exactly_zero():
    vectors = np.array([[1.0, 2.0], [0.0, 0.0]], dtype=np.float32)
    assert pair_similarities(vectors, [0, 1, 1], [1, 0, 1])["cosine"].tolist() == [0.0, 0.0, 0.0]


def test_a_nan_is_not_hidden():
    vectors = np.array([[1.0, np.nan], [1.0, 0.0]])
    assert np.isnan(pair_similarities(vectors, [0, 0, 1], [0, 1, 1])["cosine"]).tolist() == [
        True,
        True,
        False,
    ]


def test_block_size_does_not_change_a_value(monkeypatch):
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(40, 16)).astype(np.float32)
    left, right = rng.integers(40, size=(2, 100))
    whole = pair_similarities(vectors, left, right, list(SIMILARITIES))
    monkeypatch.setattr(similarity, "_BLOCK_BYTES", 7 * 8 * 16)
    blocked = pair_similarities(vectors, left, right, list(SIMILARITIES))
    assert {kind: values.tolist() for kind, values in blocked.items()} == {
        kind: values.tolist() for kind, values in whole.items()
    }


def test_sides_of_different_length_are_refused():
    with pytest.raises(ValueError, match="row numbers"):
        pair_similarities(np.eye(3), [0, 1], [0])


@given(
    vectors=arrays(
        np.float32, st.tuples(st.integers(0, 6), st.integers(0, 4)), elements=st.sampled_from([0, -0.0, 1, np.nan])
    )
)
def test_zero_rows_are_those_without_any_other_number(vectors):
    assert zero_rows(vectors).tolist() == [not row.any() for row in vectors]
