"""Logistic regressions reach scikit-learn's optimum, all at once, and say so when they do not."""

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


def converged(x, y, c):
    return LogisticRegression(C=c, tol=1e-10, max_iter=20_000).fit(x, y)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), classes=st.sampled_from([2, 3, 5]), scale=st.sampled_from([0.05, 1.0, 6.0]))
def test_every_fit_is_scikit_learns_optimum(seed, classes, scale):
    x, y, train = problem(seed, classes=classes, scale=scale)
    fits = fit_logistic(x, y, C_VALUES, train)
    assert fits.converged.all()
    for fold in (0, 3):
        for place, c in enumerate(C_VALUES):
            theirs = converged(x[train[:, fold]], y[train[:, fold]], c)
            assert fits.weights[fold, place] == pytest.approx(theirs.coef_, abs=2e-4)
            assert fits.intercepts[fold, place] == pytest.approx(theirs.intercept_, abs=1e-3)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_solution_has_no_slope(classes):
    x, y, train = problem(1, classes=classes)
    fits = fit_logistic(x, y, C_VALUES, train)
    rows = train[:, 1]
    w, b, c = fits.weights[1, 2], fits.intercepts[1, 2], C_VALUES[2]
    scores = x[rows] @ w.T + b
    if classes == 2:
        residuals = 1 / (1 + np.exp(-scores)) - y[rows, None]
    else:
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        residuals = shares / shares.sum(axis=1, keepdims=True) - np.eye(classes)[y[rows]]
    assert np.abs(c * residuals.T @ x[rows] + w).max() < 1e-6
    assert np.abs(c * residuals.sum(axis=0)).max() < 1e-6


def test_each_training_set_may_have_its_own_regulariser():
    x, y, train = problem(2)
    own = fit_logistic(x, y, [[0.25], [8.0], [2.0], [0.25]], train)
    grid = fit_logistic(x, y, C_VALUES, train)
    for fold, place in enumerate([0, 2, 1, 0]):
        assert own.weights[fold, 0] == pytest.approx(grid.weights[fold, place], abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_are_the_largest_scores(classes):
    x, y, train = problem(3, classes=classes)
    fits = fit_logistic(x, y, C_VALUES, train)
    predicted = fits.predict(x)
    assert predicted.shape == (120, 4, 3)
    theirs = converged(x[train[:, 2]], y[train[:, 2]], C_VALUES[1])
    assert predicted[:, 2, 1].tolist() == theirs.predict(x).tolist()


def test_the_same_data_gives_the_same_bits():
    x, y, train = problem(4, classes=3)
    one, two = (fit_logistic(x, y, C_VALUES, train) for _ in range(2))
    assert (one.weights == two.weights).all()
    assert (one.intercepts == two.intercepts).all()


def test_a_fit_that_stops_early_is_reported():
    x, y, train = problem(5, scale=50.0)
    fits = fit_logistic(x, y, [1e6], train, max_iterations=2)
    assert not fits.converged.any()
    assert (fits.gradient_norms > fits.tolerance).all()


def test_separable_classes_and_constant_features_converge():
    x = np.repeat([[0.0, 1.0], [100.0, 1.0]], 20, axis=0)
    fits = fit_logistic(x, np.repeat([0, 1], 20), [1.0, 32.0])
    assert fits.converged.all()
    assert fits.predict(x)[:, 0].tolist() == [[0, 0]] * 20 + [[1, 1]] * 20


def test_many_classes_share_a_preconditioner_and_still_converge():
    x, y, train = problem(6, n=400, classes=20)
    fits = fit_logistic(x, y, [1.0], train)
    assert fits.converged.all()
    theirs = converged(x[train[:, 0]], y[train[:, 0]], 1.0)
    assert fits.weights[0, 0] == pytest.approx(theirs.coef_, abs=2e-4)


def test_wrong_input_is_named():
    x, y, _ = problem(7)
    with pytest.raises(ValueError, match="positive values of C"):
        fit_logistic(x, y, [0.0])
    with pytest.raises(ValueError, match="labels from 0 to 1"):
        fit_logistic(x, y + 1, [1.0], classes=2)
    with pytest.raises(ValueError, match="not a finite number"):
        fit_logistic(np.where(x > 2, np.nan, x), y, [1.0])
    with pytest.raises(ValueError, match="training set 0 has no row of class 1"):
        fit_logistic(x, y, [1.0], (y == 0)[:, None])
    with pytest.raises(ValueError, match="expected"):
        fit_logistic(x, y[:-1], [1.0])


def test_single_precision_on_the_way_leaves_no_trace_in_a_solution_of_many_classes() -> None:
    """Rounding gives the classes' weights a mean that no probability shows but the penalty does."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(900, 30)), rng.integers(6, size=900)
    x[np.arange(900), y] += 4.0

    fits = fit_logistic(x, y, [32.0])

    weights, intercepts = fits.weights[0, 0], fits.intercepts[0, 0]
    scores = x @ weights.T + intercepts
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    residuals = shares / shares.sum(axis=1, keepdims=True) - np.eye(6)[y]
    gradient = np.column_stack([32.0 * residuals.T @ x + weights, 32.0 * residuals.sum(axis=0)])
    assert np.linalg.norm(gradient) <= 2 * TOLERANCE
    assert np.abs(weights.mean(axis=0)).max() < 1e-12


@pytest.mark.parametrize("constant", [0.0, 1e3, 1e8])
def test_features_with_a_large_constant_are_fitted_though_single_precision_cannot_tell_them_apart(
    constant: float,
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 10)) + constant, rng.integers(3, size=300)

    assert fit_logistic(x, y, [1.0, 8.0]).converged.all()
