"""Logistic regression, solved to convergence for many fits on the same features.

Cross-validating a regulariser with ten outer folds, ten inner folds and six values takes 600 fits of the same
rows. Here they are one minimisation in 600 columns: an iteration takes two products of the feature matrix with the
weights of all fits, and a mask on the residuals selects the training rows of each fit. The minimisation itself is
in `logistic_descent`.

The objective is scikit-learn's. For two classes it is

    0.5 ||w||^2 + C sum_i log(1 + exp(-y_i (w.x_i + b))),    y_i = -1 or 1,

and for more classes the multinomial loss with one (w, b) per class. The intercept b is not penalised.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.statistics.logistic_descent import LogisticObjective, descend

if TYPE_CHECKING:
    import torch

TOLERANCE = 1e-6
"""Largest Euclidean norm of the gradient at a solution.

The penalty makes the objective strongly convex with constant 1, so the weights are at most this far from the
optimum (up to the share of the intercept).
"""

MAX_ITERATIONS = 500

_BLOCK_BYTES = 24 * 2**20


@dataclass(frozen=True)
class LogisticFits:
    """Solutions for f training sets and c regularisers, with k rows of weights each (1 for two classes).

    Attributes:
        weights: (f, c, k, d), float64.
        intercepts: (f, c, k).
        gradient_norms: (f, c) Euclidean norms of the gradient at the solutions.
        tolerance: the largest norm of a converged fit.
    """

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    gradient_norms: NDArray[np.float64]
    tolerance: float = TOLERANCE

    @property
    def converged(self) -> NDArray[np.bool_]:
        """(f, c) mask of the fits whose gradient norm is within the tolerance."""
        within: NDArray[np.bool_] = self.gradient_norms <= self.tolerance
        return within

    def of_set(self, number: int) -> "LogisticFits":
        """Returns the fits of one training set."""
        chosen = slice(number, number + 1)
        return LogisticFits(self.weights[chosen], self.intercepts[chosen], self.gradient_norms[chosen])

    def predict(self, features: ArrayLike) -> NDArray[np.int64]:
        """Returns the classes that every fit predicts for the rows of an (m, d) matrix, shape (m, f, c)."""
        rows = np.asarray(features)
        f, c, k, d = self.weights.shape
        predicted = np.empty((len(rows), f, c), dtype=np.int64)
        columns = self.weights.reshape(-1, d).T
        step = max(1, _BLOCK_BYTES // (8 * columns.shape[1]))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            scores = (rows[block].astype(np.float64) @ columns).reshape(-1, f, c, k) + self.intercepts
            predicted[block] = scores[..., 0] > 0 if k == 1 else scores.argmax(axis=-1)
        return predicted


def fit_logistic(
    features: ArrayLike,
    labels: ArrayLike,
    regularisers: ArrayLike,
    train: ArrayLike | None = None,
    *,
    classes: int | None = None,
    max_iterations: int = MAX_ITERATIONS,
    device: str = "cpu",
) -> LogisticFits:
    """Fits an L2-regularised logistic regression for every training set and regulariser.

    The result is deterministic: the problem is strictly convex, and the search starts at zero. Memory: the
    features in float64 and in float32, and about 20 numbers per weight.

    Args:
        features: (n, d) rows.
        labels: (n,) integers 0..classes-1.
        regularisers: (c,) values of scikit-learn's C for all training sets, or (f, c) for each set.
        train: (n, f) masks of the rows of each training set; None for one set of all rows.
        classes: number of classes; by default one more than the largest label.
        max_iterations: gradient evaluations after which fits are returned unconverged.
        device: the torch device to compute on, such as `cpu` or `cuda`.

    Raises:
        ValueError: if a feature is not finite, or a training set lacks a class.

    >>> fits = fit_logistic([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], [1.0, 10.0])
    >>> fits.predict([[0.2], [2.9]])[:, 0, 0].tolist(), bool(fits.converged.all())
    ([0, 1], True)
    """
    x, y = np.asarray(features), np.asarray(labels)
    masks = np.ones((len(x), 1), dtype=bool) if train is None else np.asarray(train, dtype=bool)
    count = int(y.max()) + 1 if classes is None else classes
    values = np.asarray(regularisers, dtype=np.float64)
    penalties = np.broadcast_to(values, (masks.shape[1], values.shape[-1]))
    _check(x, y, masks, count)
    objective = LogisticObjective.of(x, y, masks, count, device=device)
    solved = descend(objective, penalties, tolerance=TOLERANCE, max_iterations=max_iterations)
    f, c = penalties.shape
    solved.weights[..., -1] -= solved.weights[..., :-1] @ objective.means
    weights = _to_numpy(solved.weights).reshape(objective.outputs, f, c, -1).transpose(1, 2, 0, 3)
    return LogisticFits(
        weights=np.ascontiguousarray(weights[..., :-1]),
        intercepts=np.ascontiguousarray(weights[..., -1]),
        gradient_norms=_to_numpy(solved.gradient_norms).reshape(f, c),
    )


def _check(x: NDArray[np.generic], y: NDArray[np.generic], masks: NDArray[np.bool_], classes: int) -> None:
    if not np.isfinite(x.sum(dtype=np.float64)):
        raise ValueError("a feature is not a finite number")
    for label in range(classes):
        present = masks[y == label].any(axis=0)
        if not present.all():
            raise ValueError(f"training set {int(np.argmin(present))} has no row of class {label}")


def _to_numpy(tensor: "torch.Tensor") -> NDArray[np.float64]:
    values: NDArray[np.float64] = tensor.cpu().numpy()
    return values
