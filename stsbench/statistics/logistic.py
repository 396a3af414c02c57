"""Logistic regression, solved to convergence for many fits on the same features.

Cross-validating a regulariser with ten outer folds, ten inner folds and six values takes 600 fits of the same
rows. Here they are one minimisation in 600 columns: an iteration takes two products of the feature matrix with the
weights of all fits, and a mask on the residuals selects the training rows of each fit. scikit-learn fits one
problem at a time and is many times slower (`benchmarks/transfer_speed.py`).

The objective is scikit-learn's. For two classes it is

    0.5 ||w||^2 + C sum_i log(1 + exp(-y_i (w.x_i + b))),    y_i = -1 or 1,

and for more classes the multinomial loss with one (w, b) per class. The intercept b is not penalised.

Tensors of weights have the shape (k, p, d + 1): k rows of weights per problem (1 for two classes), p problems (one
training set with one C), and the intercept in the last column.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 1e-6
"""Largest Euclidean norm of the gradient at a solution.

The penalty makes the objective strongly convex with constant 1, so the weights are at most this far from the
optimum (up to the share of the intercept).
"""

_MAX_ITERATIONS = 500
_START_TOLERANCE = 1e-3
"""The fits on all rows, from which the others start, are solved to this share of the gradient's norm at zero."""

_MEMORY = 8
"""Steps that L-BFGS remembers."""

_BLOCK_BYTES = 24 * 2**20
"""Size of a block of residuals: large enough for a fast product, small enough for the cache."""


@dataclass(frozen=True)
class LogisticFits:
    """Solutions for f training sets and c regularisers, with k rows of weights each (1 for two classes).

    Attributes:
        weights: (f, c, k, d), float64.
        intercepts: (f, c, k).
        gradient_norms: (f, c) Euclidean norms of the gradient at the solutions.
    """

    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    gradient_norms: NDArray[np.float64]

    @property
    def converged(self) -> NDArray[np.bool_]:
        """(f, c) mask of the fits whose gradient norm is within the tolerance."""
        return np.asarray(self.gradient_norms <= TOLERANCE)

    def predict(self, number: int, features: ArrayLike) -> NDArray[np.int64]:
        """Returns the classes that the fits of one training set predict for (m, d) features, shape (m, c)."""
        rows = np.asarray(features, dtype=np.float64)
        scores = (
            rows @ weights.T + b for weights, b in zip(self.weights[number], self.intercepts[number], strict=True)
        )
        classes = [of_fit[:, 0] > 0 if of_fit.shape[1] == 1 else of_fit.argmax(axis=1) for of_fit in scores]
        return np.stack(classes, axis=1).astype(np.int64)


def fit_logistic(
    features: ArrayLike,
    labels: ArrayLike,
    regularisers: ArrayLike,
    train: ArrayLike | None = None,
    *,
    classes: int | None = None,
    max_iterations: int = _MAX_ITERATIONS,
    device: str = "cpu",
) -> LogisticFits:
    """Fits an L2-regularised logistic regression for every training set and regulariser.

    The result is deterministic: the problem is strictly convex, and the search starts at zero. Memory: the
    features in float64, and about 20 numbers per weight.

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
    >>> fits.predict(0, [[0.2], [2.9]])[:, 0].tolist(), bool(fits.converged.all())
    ([0, 1], True)
    """
    import torch

    x, y = np.asarray(features), np.asarray(labels)
    masks = np.ones((len(x), 1), dtype=bool) if train is None else np.asarray(train, dtype=bool)
    count = int(y.max()) + 1 if classes is None else classes
    _check(x, y, masks, count)
    used = masks.any(axis=1)
    data, means = _data_of(x[used], y[used], masks[used], count, device)
    f, penalties = masks.shape[1], np.asarray(regularisers, dtype=np.float64)
    c = torch.as_tensor(np.broadcast_to(penalties, (f, penalties.shape[-1])).copy(), device=device)
    sets = torch.arange(f, device=device).repeat_interleave(c.shape[1])
    weights, norms = _solve(data, sets, c.ravel(), max_iterations)
    # The intercept absorbs the means of the features.
    weights[..., -1] -= weights[..., :-1] @ means
    solutions = weights.cpu().numpy().reshape(len(weights), *c.shape, -1).transpose(1, 2, 0, 3)
    return LogisticFits(
        solutions[..., :-1].copy(), solutions[..., -1].copy(), norms.reshape(c.shape).cpu().numpy()
    )


def _check(x: NDArray[np.generic], y: NDArray[np.generic], masks: NDArray[np.bool_], classes: int) -> None:
    if not np.isfinite(x.sum(dtype=np.float64)):
        raise ValueError("a feature is not a finite number")
    for label in range(classes):
        present = masks[y == label].any(axis=0)
        if not present.all():
            raise ValueError(f"training set {int(np.argmin(present))} has no row of class {label}")


@dataclass(frozen=True)
class _Data:
    """The data of all fits.

    Attributes:
        x: (n, d + 1) centred features and a column of ones.
        targets: (k, 1, n): the class (0 or 1) for two classes, else one-hot.
        masks: (f, n) masks of the rows of each training set.
    """

    x: "Tensor"
    targets: "Tensor"
    masks: "Tensor"

    def gradient(self, w: "Tensor", sets: "Tensor", c: "Tensor") -> "Tensor":
        """Returns the (k, p, d + 1) gradients of p problems at w, given their (p,) training sets and C."""
        import torch

        k, p, d = w.shape
        lines, masks = w.reshape(k * p, d), self.masks.index_select(0, sets)
        total = torch.zeros_like(lines)
        step = max(256, _BLOCK_BYTES // (8 * k * p))
        for start in range(0, len(self.x), step):
            x = self.x[start : start + step]
            residuals = _probabilities((lines @ x.T).view(k, p, len(x)))
            residuals -= self.targets[:, :, start : start + step]
            residuals *= masks[:, start : start + step]
            total.addmm_(residuals.view(k * p, len(x)), x)
        gradient = total.view(k, p, d) * c[:, None]
        gradient[..., :-1] += w[..., :-1]
        return gradient

    def inverse_hessians(self, shares: "Tensor", c: "Tensor") -> "Tensor":
        """Returns the inverses of the diagonal blocks, one per class, of the Hessian on all rows.

        The off-diagonal blocks are left out: with them, the folds of TREC take as many iterations.

        Args:
            shares: (k, n) probabilities of the classes; (1, n) if they are the same for all classes.
            c: the weight of the loss.

        Returns:
            (k, d + 1, d + 1), or (1, d + 1, d + 1) for the same shares.
        """
        import torch

        curvatures = c * shares * (1 - shares)
        inverses = []
        for curvature in curvatures:
            hessian = (self.x.T * curvature) @ self.x
            hessian.diagonal()[:-1] += 1.0
            # The intercept has no penalty; this keeps the matrix positive definite if no row depends on it.
            hessian.diagonal()[-1] += 1e-10
            inverses.append(torch.cholesky_inverse(torch.linalg.cholesky(hessian)))
        return torch.stack(inverses)


def _data_of(
    x: NDArray[np.generic], y: NDArray[np.generic], masks: NDArray[np.bool_], classes: int, device: str
) -> tuple[_Data, "Tensor"]:
    """Copies the features to the device, centred (a large offset costs precision); also returns their means."""
    import torch

    rows = torch.ones((x.shape[0], x.shape[1] + 1), dtype=torch.float64, device=device)
    rows[:, :-1] = torch.as_tensor(np.ascontiguousarray(x), device=device)
    means = rows[:, :-1].mean(dim=0)
    rows[:, :-1] -= means
    labels = torch.as_tensor(y.astype(np.int64), device=device)
    targets = labels[None] if classes == 2 else torch.nn.functional.one_hot(labels, classes).T
    of_sets = torch.as_tensor(np.ascontiguousarray(masks.T), device=device)
    return _Data(rows, targets.double().contiguous()[:, None], of_sets), means


def _probabilities(logits: "Tensor") -> "Tensor":
    # Classes come first because a softmax over the last axis takes seven times as long.
    return logits.sigmoid_() if len(logits) == 1 else logits.softmax(dim=0)


def _solve(data: _Data, sets: "Tensor", c: "Tensor", max_iterations: int) -> tuple["Tensor", "Tensor"]:
    """Returns the (k, p, d + 1) weights of p problems and their (p,) gradient norms.

    A fit on all rows for each C gives the starting points and, by its curvature, the preconditioners.
    """
    import torch

    values, kinds = torch.unique(c, return_inverse=True)
    pooled = _Data(data.x, data.targets, torch.ones_like(data.masks[:1]))
    zeros = data.x.new_zeros((len(data.targets), len(values), data.x.shape[1]))
    places = torch.arange(len(values), device=c.device)

    def pooled_gradient(w: "Tensor", active: "Tensor") -> "Tensor":
        return pooled.gradient(w, torch.zeros_like(active), values[active])

    at_zero = _probabilities(data.x.new_zeros((len(zeros), len(data.x))))[:1]
    near, _ = _minimise(
        pooled_gradient,
        _preconditioner([data.inverse_hessians(at_zero, value) for value in values], places),
        zeros,
        _START_TOLERANCE * float(_norms(pooled_gradient(zeros, places)).min()),
        max_iterations,
    )
    share = data.masks.double().mean()
    inverses = [
        data.inverse_hessians(_probabilities(near[:, place] @ data.x.T), share * value)
        for place, value in enumerate(values)
    ]
    return _minimise(
        lambda w, active: data.gradient(w, sets[active], c[active]),
        _preconditioner(inverses, kinds),
        near[:, kinds],
        TOLERANCE,
        max_iterations,
    )


_OfProblems = Callable[["Tensor", "Tensor"], "Tensor"]
"""Maps a (k, a, d + 1) tensor of some problems, and their numbers (a,), to a tensor of the same shape."""


def _preconditioner(inverses: "list[Tensor]", kinds: "Tensor") -> _OfProblems:
    """Returns the product of each problem's gradient with the inverse Hessian of its C, a number of `inverses`."""

    def multiplied(g: "Tensor", active: "Tensor") -> "Tensor":
        step = g.clone()
        for kind, inverse in enumerate(inverses):
            columns = kinds[active] == kind
            step[:, columns] = g[:, columns] @ inverse
        # Shifting all classes does not change the probabilities.
        return step if len(step) == 1 else step - step.mean(dim=0)

    return multiplied


def _minimise(
    gradient_of: _OfProblems, precondition: _OfProblems, w: "Tensor", tolerance: float, max_iterations: int
) -> tuple["Tensor", "Tensor"]:
    """Minimises p convex functions in one batch by L-BFGS; returns the weights and the norms of the gradients.

    A step overshoots if the slope along it changes sign and is more than half as steep as before. It is then
    shortened to the zero of the secant of the two slopes, while other problems continue. Converged problems leave
    the batch.
    """
    import torch

    final, norms = w.clone(), w.new_empty(w.shape[1])
    active = torch.arange(w.shape[1], device=w.device)
    g = gradient_of(w, active)
    memory: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=_MEMORY)
    direction, length = -precondition(g, active), torch.ones_like(norms)
    for _ in range(max_iterations):
        size = _norms(g)
        final[:, active], norms[active] = w, size
        rest = size > tolerance
        if not rest.any():
            break
        if not rest.all():
            active, length = active[rest], length[rest]
            w, g, direction = w[:, rest], g[:, rest], direction[:, rest]
            memory = deque(((s[:, rest], y[:, rest], rho[rest]) for s, y, rho in memory), maxlen=_MEMORY)
        step = direction * length[:, None]
        change = gradient_of(w + step, active) - g
        before, after = -_dot(g, direction), _dot(g + change, direction)
        accepted = after <= before / 2
        step, change = step * accepted[:, None], change * accepted[:, None]
        product = _dot(step, change)
        # Without a step the reciprocal is 0, and the memory has no effect.
        memory.append((step, change, (product > 0) / product.where(product > 0, 1.0)))
        w, g = w + step, g + change
        direction = torch.where(accepted[:, None], -_two_loop(memory, g, active, precondition), direction)
        length = torch.where(accepted, 1.0, length * before / (before + after))
    return final, norms


def _two_loop(
    memory: "deque[tuple[Tensor, Tensor, Tensor]]", g: "Tensor", active: "Tensor", precondition: _OfProblems
) -> "Tensor":
    """Multiplies g by the L-BFGS inverse Hessian (Nocedal and Wright 2006, algorithm 7.4)."""
    q, alphas = g.clone(), []
    for s, y, rho in reversed(memory):
        alpha = rho * _dot(s, q)
        q -= alpha[:, None] * y
        alphas.append(alpha)
    r = precondition(q, active)
    for (s, y, rho), alpha in zip(memory, reversed(alphas), strict=True):
        r += (alpha - rho * _dot(y, r))[:, None] * s
    return r


def _norms(g: "Tensor") -> "Tensor":
    return _dot(g, g).sqrt()


def _dot(a: "Tensor", b: "Tensor") -> "Tensor":
    return (a * b).sum(dim=(0, 2))
