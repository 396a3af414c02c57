"""Logistic regressions reach scikit-learn's optimum, all at once, and report it if they do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from stsbench.statistics.logistic import TOLERANCE, fit_logistic

C_VALUES = [0.25, 2.0, 8.0]


def problem(seed, n=120, d=7, classes=2, scale=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * scale
    y = (x @ rng.normal(size=(d, classes)) / scale + rng.gumbel(size=(n, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    train = rng.random((n, 4)) > 0.3
    train[:classes] = True
    return x, y, train


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([2, 3, 5]), st.sampled_from([0.05, 1.0, 6.0]))
def test_every_fit_is_scikit_learns_optimum_and_predicts_the_same(seed, classes, scale):
    x, y, train = problem(seed, classes=classes, scale=scale)
    fits = fit_logistic(x, y, C_VALUES, train)
    assert fits.converged.all()
    for fold in (0, 3):
        predicted = fits.predict(fold, x)
        for place, c in enumerate(C_VALUES):
            theirs = LogisticRegression(C=c, tol=1e-10, max_iter=20_000).fit(x[train[:, fold]], y[train[:, fold]])
            assert fits.weights[fold, place] == pytest.approx(theirs.coef_, abs=2e-4)
            assert fits.intercepts[fold, place] == pytest.approx(theirs.intercept_, abs=1e-3)
            assert (predicted[:, place] == theirs.predict(x)).mean() > 0.99


@pytest.mark.parametrize("classes", [2, 6, 20])
def test_a_solution_has_no_slope_and_its_bits_are_reproducible(classes):
    x, y, train = problem(1, n=900, d=30, classes=classes)
    fits, again = fit_logistic(x, y, C_VALUES, train), fit_logistic(x, y, C_VALUES, train)
    assert np.array_equal(fits.weights, again.weights)
    assert np.array_equal(fits.intercepts, again.intercepts)
    rows, w, b, c = train[:, 1], fits.weights[1, 2], fits.intercepts[1, 2], C_VALUES[2]
    scores = x[rows] @ w.T + b
    if classes == 2:
        residuals = 1 / (1 + np.exp(-scores)) - y[rows, None]
    else:
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        residuals = shares / shares.sum(axis=1, keepdims=True) - np.eye(classes)[y[rows]]
        # Rounding in single precision shifts the mean over the classes, which only the penalty sees.
        assert np.abs(w.mean(axis=0)).max() < 1e-12
    gradient = np.column_stack([c * residuals.T @ x[rows] + w, c * residuals.sum(axis=0)])
    assert np.linalg.norm(gradient) <= 2 * TOLERANCE


def test_each_training_set_may_have_its_own_regulariser():
    x, y, train = problem(2)
    own = fit_logistic(x, y, [[0.25], [8.0], [2.0], [0.25]], train)
    grid = fit_logistic(x, y, C_VALUES, train)
    for fold, place in enumerate([0, 2, 1, 0]):
        assert own.weights[fold, 0] == pytest.approx(grid.weights[fold, place], abs=1e-6)


def test_a_fit_that_stops_early_is_reported():
    x, y, train = problem(5, scale=50.0)
    fits = fit_logistic(x, y, [1e6], train, max_iterations=2)
    assert not fits.converged.any()
    assert (fits.gradient_norms > TOLERANCE).all()


@pytest.mark.parametrize("constant", [0.0, 1e3, 1e8])
def test_features_with_a_large_common_offset_and_separable_classes_converge(constant):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 10)) + constant, rng.integers(3, size=300)
    assert fit_logistic(x, y, [1.0, 8.0]).converged.all()
    x = np.repeat([[0.0, 1.0], [100.0, 1.0]], 20, axis=0)
    assert fit_logistic(x, np.repeat([0, 1], 20), [1.0, 32.0]).converged.all()
