"""Keeping dimensions and whitening, against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stsbench.base.errors import UserError
from stsbench.encoders.fitted import normalize, truncate, whiten


@pytest.fixture
def vectors():
    mixing = np.random.default_rng(1).normal(size=(8, 8))
    return (np.random.default_rng(2).normal(size=(60, 8)) @ mixing + 3).astype(np.float32)


def test_vectors_of_any_size_get_unit_length_and_zero_stays_zero(vectors):
    vectors[5], vectors[6] = 0, vectors[6] * np.float32(1e-30)
    unit = normalize(vectors)
    norms = np.linalg.norm(unit, axis=1)
    np.testing.assert_allclose(np.delete(norms, 5), 1, atol=1e-6)
    assert not unit[5].any()
    assert unit.dtype == np.float32


@pytest.mark.parametrize("dimensions", [None, 3])
def test_whitening_is_the_formula_of_its_paper(dimensions, vectors):
    reference = vectors[:40].astype(np.float64)
    mean = reference.sum(0) / 40
    centred = reference - mean
    values, directions = np.linalg.eigh(centred.T @ centred / 39)
    order = np.argsort(-values)[: dimensions or 8]
    expected = (vectors - mean) @ directions[:, order] @ np.diag(values[order] ** -0.5)
    ours = whiten(vectors, vectors[:40], dimensions)
    signs = np.sign((ours * expected).sum(0))
    np.testing.assert_allclose(ours, expected * signs, rtol=1e-6, atol=1e-8)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), rows=st.integers(12, 50), dimensions=st.integers(1, 6))
def test_whitened_reference_vectors_have_unit_covariance_and_no_mean(seed, rows, dimensions):
    random = np.random.default_rng(seed)
    vectors = (random.normal(size=(rows, 6)) * random.uniform(0.1, 9, 6) + 5).astype(np.float32)
    whitened = whiten(vectors, vectors, dimensions)
    np.testing.assert_allclose(whitened.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(np.atleast_2d(np.cov(whitened, rowvar=False)), np.eye(dimensions), atol=1e-5)


def test_all_dimensions_are_those_in_which_the_sentences_vary(vectors):
    assert np.array_equal(whiten(vectors, vectors[:5]), whiten(vectors, vectors[:5], 4))
    assert whiten(vectors, vectors).shape == (60, 8)


@pytest.mark.parametrize(
    ("process", "message"),
    [
        *(
            (lambda vectors, d=d: truncate(vectors, d), rf"--dimensions {d}: the model's vectors have 8")
            for d in (0, -1, 9)
        ),
        (lambda vectors: whiten(vectors, vectors[:5], 5), r"vary in 4 of 8; keep fewer \(--whiten 4\)"),
        (lambda vectors: whiten(vectors, vectors[:5], 5, task="STS16"), "5 sentences of STS16 vary in 4 of 8"),
        (lambda vectors: whiten(vectors, vectors[:1], 1), "needs at least 2 sentences"),
        (lambda vectors: whiten(vectors, vectors[[0, 0, 0]], 1), "whitening needs different vectors"),
    ],
)
def test_a_mistake_in_the_dimensions_is_reported(process, message, vectors):
    with pytest.raises(UserError, match=message):
        process(vectors)
