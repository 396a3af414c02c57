"""Joint minimisation of many logistic regressions on the same features: objective, curvature, batched L-BFGS.

`benchmarks/transfer_speed.py` compares it with scikit-learn, which fits one problem at a time and is slower.

Tensors of weights have the shape (k, p, d + 1): k rows of weights per problem (1 for two classes), p problems (one
training set with one regulariser), and the intercept in the last column. Classes come first because a softmax over
the last axis takes seven times as long.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

_ROWS_A_WEIGHT = 20
"""Rows per weight from which a curvature is estimated; more rows hardly improve a preconditioner."""

_BLOCK_BYTES = 24 * 2**20
"""Size of a block of residuals: large enough for a fast product, small enough for the cache."""


@dataclass(frozen=True)
class LogisticObjective:
    """The data of all fits, without rows that are in no training set.

    Features are centred, because a large common offset would cost precision; the intercept absorbs their means.

    Attributes:
        x: (n, d + 1) centred features and a column of ones.
        means: (d,) means of the features.
        targets: (k, 1, n) in float64: the class (0 or 1) for two classes, else one-hot.
        masks: (f, n) masks of the rows of each training set.
    """

    x: "torch.Tensor"
    means: "torch.Tensor"
    targets: "torch.Tensor"
    masks: "torch.Tensor"

    @classmethod
    def of(
        cls,
        features: NDArray[np.generic],
        labels: NDArray[np.generic],
        masks: NDArray[np.bool_],
        classes: int,
        *,
        device: str,
    ) -> "LogisticObjective":
        """Copies the rows that are in any training set to the device, in float64."""
        import torch

        used = masks.any(axis=1)
        if not used.all():
            features, labels, masks = features[used], labels[used], masks[used]
        x = torch.ones((features.shape[0], features.shape[1] + 1), dtype=torch.float64, device=device)
        x[:, :-1] = torch.as_tensor(np.ascontiguousarray(features), device=device)
        means = x[:, :-1].mean(dim=0)
        x[:, :-1] -= means
        y = torch.as_tensor(labels.astype(np.int64), device=device)
        targets = y[None] if classes == 2 else torch.nn.functional.one_hot(y, classes).T
        rows_of_sets = torch.as_tensor(np.ascontiguousarray(masks.T), device=device)
        return cls(x, means, targets.double().contiguous()[:, None], rows_of_sets)

    @property
    def outputs(self) -> int:
        """k, the number of rows of weights of a problem."""
        return int(self.targets.shape[0])

    def pooled(self) -> "LogisticObjective":
        """Returns the objective with one training set of all rows."""
        import torch

        every = torch.ones((1, len(self.x)), dtype=torch.bool, device=self.x.device)
        return LogisticObjective(self.x, self.means, self.targets, every)

    def single(self) -> "LogisticObjective":
        """Returns the objective in single precision, where products take half the time."""
        return LogisticObjective(self.x.float(), self.means, self.targets.float(), self.masks)

    def gradient(self, w: "torch.Tensor", sets: "torch.Tensor", c: "torch.Tensor") -> "torch.Tensor":
        """Returns the (k, p, d + 1) gradients of the problems.

        Args:
            w: (k, p, d + 1) weights.
            sets: (p,) training set of each problem, a row of `masks`.
            c: (p,) C of each problem.
        """
        import torch

        k, p, d = w.shape
        lines, masks = w.reshape(k * p, d), self.masks.index_select(0, sets)
        total = torch.zeros_like(lines)
        for rows in self.blocks(k * p):
            x = self.x[rows]
            residuals = _probabilities((lines @ x.T).view(k, p, len(x)))
            residuals -= self.targets[:, :, rows]
            residuals *= masks[:, rows]
            total.addmm_(residuals.view(k * p, len(x)), x)
        gradient = total.view(k, p, d) * c[:, None].to(w.dtype)
        gradient[..., :-1] += w[..., :-1]
        return gradient

    def sample(self, width: int) -> "Iterator[tuple[torch.Tensor, int]]":
        """Yields blocks of every s-th row, and s, for blocks in which `width` numbers are computed per row."""
        stride = max(1, len(self.x) // (_ROWS_A_WEIGHT * self.x.shape[1]))
        for rows in self.blocks(width):
            yield self.x[rows][-rows.start % stride :: stride], stride

    def blocks(self, width: int) -> "Iterator[slice]":
        """Yields slices of rows that bound the memory for `width` numbers per row."""
        step = max(256, _BLOCK_BYTES // (8 * width))
        for start in range(0, len(self.x), step):
            yield slice(start, min(start + step, len(self.x)))


def _probabilities(logits: "torch.Tensor") -> "torch.Tensor":
    """Returns the (k, p, n) probabilities, overwriting the logits where possible."""
    return logits.sigmoid_() if len(logits) == 1 else logits.softmax(dim=0)


_MOST_CLASSES = 16
"""With more classes they share the inverse of their mean Hessian, to save factorisations."""


def inverse_bounds(objective: LogisticObjective, c_values: Sequence[float]) -> "list[torch.Tensor]":
    """Returns for each C the (1, d + 1, d + 1) inverse of an upper bound of all Hessians, shared by the classes.

    The second derivatives of the loss are at most a quarter of the features' inner products for two classes, and a
    half for more (Boehning 1992).
    """
    import torch

    d, k = objective.x.shape[1], objective.outputs
    total = torch.zeros((1, d, d), dtype=objective.x.dtype, device=objective.x.device)
    for x, stands_for in objective.sample(d):
        total[0].addmm_(x.T, x, alpha=stands_for)
    return [_inverse(total * (c / (4 if k == 1 else 2))) for c in c_values]


def inverse_hessian(objective: LogisticObjective, w: "torch.Tensor", c: float) -> "torch.Tensor":
    """Returns the inverses of the diagonal blocks (one per class) of the Hessian of one problem on all rows.

    The off-diagonal blocks are left out: with them, the folds of TREC take as many iterations.

    Args:
        objective: the data.
        w: (k, 1, d + 1) weights at which to evaluate the Hessian.
        c: the weight of the loss.

    Returns:
        (k, d + 1, d + 1), or (1, d + 1, d + 1) if the classes share one inverse.
    """
    import torch

    k, _, d = w.shape
    total = torch.zeros((k if k <= _MOST_CLASSES else 1, d, d), dtype=w.dtype, device=w.device)
    for x, stands_for in objective.sample(d):
        share = _probabilities((w[:, 0] @ x.T)[:, None])[:, 0]
        weights = stands_for * share * (1 - share)
        if len(total) < k:
            weights = weights.mean(dim=0, keepdim=True)
        for output, weight in enumerate(weights):
            total[output].addmm_((x * weight[:, None]).T, x)
    return _inverse(c * total)


def _inverse(curvatures: "torch.Tensor") -> "torch.Tensor":
    import torch

    diagonals = curvatures.diagonal(dim1=1, dim2=2)
    diagonals[:, :-1] += 1.0
    # The intercept has no penalty; this keeps the matrix positive definite if no row depends on it.
    diagonals[:, -1] += 1e-10
    return torch.cholesky_inverse(torch.linalg.cholesky(curvatures))


OfProblems = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Maps a (k, a, d + 1) tensor of some problems, and their numbers (a,), to a tensor of the same shape."""

_MEMORY = 8
_START = 1e-3
_START_ITERATIONS = 60
_SINGLE = 1e-6
"""Single precision reduces a gradient to this share of its norm at zero, a few times its rounding error."""

_OVERSHOOT = 0.5


class Solved(NamedTuple):
    """Weights (k, p, d + 1) and gradient norms (p,)."""

    weights: "torch.Tensor"
    gradient_norms: "torch.Tensor"


def descend(
    objective: LogisticObjective, penalties: NDArray[np.float64], *, tolerance: float, max_iterations: int
) -> Solved:
    """Minimises the objective for every training set and each of its C values, (f, c).

    Single precision gets close to the minima at half the cost per step; double precision finishes. Each stops when
    every gradient's Euclidean norm is within the tolerance, or after `max_iterations` gradients. Problem i of the
    solutions is set i // c with its C value i % c.
    """
    import torch

    x = objective.x
    distinct, which = np.unique(penalties.ravel(), return_inverse=True)
    c_values = torch.as_tensor(distinct, device=x.device)
    value_of = torch.as_tensor(which.ravel(), device=x.device)
    sets = torch.arange(penalties.shape[0], device=x.device).repeat_interleave(penalties.shape[1])
    single = objective.single()
    starts, at_zero = _starts(objective, single, c_values)
    near_all = _finite(starts.double())

    sizes = objective.masks.sum(dim=1).double()
    share = float(sizes.mean() / len(objective.x))
    # Evaluate the curvature at the solution of the next smaller C: held-out rows are less certain in their fold
    # than in the fit on all rows, and the smaller C has about the average curvature of the folds.
    inverses = [
        inverse_hessian(objective, near_all[:, [max(0, i - 1)]], share * c)
        for i, c in enumerate(c_values.tolist())
    ]

    def solved(part: LogisticObjective, w: "torch.Tensor", until: "float | torch.Tensor") -> Solved:
        return _minimise(
            lambda w, active: part.gradient(w, sets[active], c_values[value_of[active]]),
            lambda g, active: _step(inverses, value_of[active], g),
            w,
            tolerance=until,
            max_iterations=max_iterations,
        )

    near = solved(
        single, near_all.float().index_select(1, value_of), (_SINGLE * at_zero).clamp(min=tolerance)[value_of]
    )
    return solved(objective, _centred(_finite(near.weights.double())), tolerance)


def _starts(objective: LogisticObjective, single: LogisticObjective, c_values: "torch.Tensor") -> Solved:
    """Returns approximate minimisers (k, values, d + 1) on all rows for each C, and gradient norms at zero."""
    import torch

    pooled, values = single.pooled(), len(c_values)
    # In single precision a curvature may be singular, for example if one feature is far larger than the others.
    inverses = inverse_bounds(objective.pooled(), c_values.tolist())
    zeros = pooled.x.new_zeros((pooled.outputs, values, pooled.x.shape[1]))
    first = torch.zeros(values, dtype=torch.int64, device=zeros.device)
    norms = pooled.gradient(zeros, first, c_values).square().sum(dim=(0, 2)).sqrt()
    near = _minimise(
        lambda w, active: pooled.gradient(w, torch.zeros_like(active), c_values[active]),
        lambda g, active: _step(inverses, active, g),
        zeros,
        tolerance=_START * float(norms.min()),
        max_iterations=_START_ITERATIONS,
    )
    return Solved(near.weights, norms)


def _step(inverses: "list[torch.Tensor]", value_of: "torch.Tensor", g: "torch.Tensor") -> "torch.Tensor":
    """Multiplies each problem's gradient (k, p, d + 1) by the inverse Hessian of its C."""
    import torch

    step = torch.empty_like(g)
    for value in torch.unique(value_of).tolist():
        columns = torch.nonzero(value_of == value)[:, 0]
        inverse = inverses[value]
        step[:, columns] = (g.index_select(1, columns).double() @ inverse).to(g.dtype)
    return _centred(step)


def _finite(w: "torch.Tensor") -> "torch.Tensor":
    """Replaces weights that overflowed in single precision by zero, a safe start."""
    return w.nan_to_num(0.0, 0.0, 0.0)


def _centred(w: "torch.Tensor") -> "torch.Tensor":
    """Subtracts the mean over the classes, which does not change any probability."""
    return w - w.mean(dim=0, keepdim=True) if len(w) > 1 else w


def _minimise(
    gradient_of: OfProblems,
    precondition: OfProblems,
    w: "torch.Tensor",
    *,
    tolerance: "float | torch.Tensor",
    max_iterations: int,
) -> Solved:
    """Minimises p convex functions in one batch, by L-BFGS.

    A step overshoots if the slope along it changes sign and is more than half as steep as before; then it is
    shortened to the zero of the secant of the two slopes, while other problems proceed. Converged problems leave
    the batch.

    Args:
        gradient_of: maps weights of some problems and their numbers to gradients.
        precondition: multiplies gradients of some problems by approximate inverse Hessians.
        w: (k, p, d + 1) starting points.
        tolerance: Euclidean norm of the gradient to reach, one for all or (p,).
        max_iterations: largest number of gradient evaluations.
    """
    import torch

    final, norms = w.clone(), torch.empty(w.shape[1], dtype=w.dtype, device=w.device)
    limits = torch.as_tensor(tolerance, dtype=w.dtype, device=w.device).expand(w.shape[1])
    active = torch.arange(w.shape[1], device=w.device)
    g = gradient_of(w, active)
    iterations = 1
    memory: deque[_Pair] = deque(maxlen=_MEMORY)
    direction, length = -precondition(g, active), torch.ones_like(norms)
    while True:
        size = _dot(g, g).sqrt()
        done = size <= limits[active]
        final[:, active], norms[active] = w, size
        if bool(done.all()) or iterations >= max_iterations:
            return Solved(final, norms)
        if bool(done.any()):
            keep = torch.nonzero(~done)[:, 0]
            active, length = active[keep], length[keep]
            w, g, direction = w[:, keep], g[:, keep], direction[:, keep]
            memory = deque((pair.of(keep) for pair in memory), maxlen=_MEMORY)
        step = direction * length[:, None]
        reached = gradient_of(w + step, active)
        iterations += 1
        before, after = -_dot(g, direction), _dot(reached, direction)
        accepted = after <= _OVERSHOOT * before
        moved = accepted[:, None].to(w.dtype)
        step, change = step * moved, (reached - g) * moved
        memory.append(_Pair.of_step(step, change))
        w, g = w + step, g + change
        direction = torch.where(accepted[:, None], -_two_loop(memory, g, active, precondition), direction)
        length = torch.where(accepted, 1.0, length * before / (before + after))


@dataclass(frozen=True)
class _Pair:
    """A step s, the change y of the gradient along it, and `rho`, 1 / (s.y) or 0 if there was no step."""

    s: "torch.Tensor"
    y: "torch.Tensor"
    rho: "torch.Tensor"

    @classmethod
    def of_step(cls, s: "torch.Tensor", y: "torch.Tensor") -> "_Pair":
        product = _dot(s, y)
        return cls(s, y, (product > 0) / product.where(product > 0, 1.0))

    def of(self, keep: "torch.Tensor") -> "_Pair":
        return _Pair(self.s[:, keep], self.y[:, keep], self.rho[keep])


def _two_loop(
    memory: "deque[_Pair]", g: "torch.Tensor", active: "torch.Tensor", precondition: OfProblems
) -> "torch.Tensor":
    """Multiplies g by the L-BFGS inverse Hessian (Nocedal and Wright 2006, algorithm 7.4)."""
    q, alphas = g.clone(), []
    for pair in reversed(memory):
        alpha = pair.rho * _dot(pair.s, q)
        q -= alpha[:, None] * pair.y
        alphas.append(alpha)
    r = precondition(q, active)
    for pair, alpha in zip(memory, reversed(alphas), strict=True):
        r += (alpha - pair.rho * _dot(pair.y, r))[:, None] * pair.s
    return r


def _dot(a: "torch.Tensor", b: "torch.Tensor") -> "torch.Tensor":
    return (a * b).sum(dim=(0, 2))
