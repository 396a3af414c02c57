"""Logistic regressions on one feature matrix, minimised together: objective, curvature, L-BFGS in many columns.

It is ours because it is measured faster: `benchmarks/transfer_speed.py` holds it against scikit-learn, which
fits one at a time and gives the same minimisers.

Tensors of weights have the shape (d + 1, p, k): the last row is the intercept, p counts problems (a training
set with a regulariser), k the rows of weights of a problem (1 for two classes).
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

_BLOCK_BYTES = 24 * 2**20
"""Size of the residuals that are held at once: enough rows for a fast product, few enough for the cache."""


@dataclass(frozen=True)
class LogisticObjective:
    """The data of the fits.

    Attributes:
        x: (n, d + 1) features with a column of ones.
        targets: (n, 1, k) in float64: the class (0 or 1) for two classes, else one-hot.
        masks: (n, f) booleans: the rows of each training set.
    """

    x: "torch.Tensor"
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
        """Put the data on the device, in float64."""
        import torch

        x = torch.ones((features.shape[0], features.shape[1] + 1), dtype=torch.float64, device=device)
        x[:, :-1] = torch.as_tensor(np.ascontiguousarray(features), device=device)
        y = torch.as_tensor(labels.astype(np.int64), device=device)
        targets = y.double()[:, None] if classes == 2 else torch.nn.functional.one_hot(y, classes).double()
        return cls(x, targets[:, None, :], torch.as_tensor(masks, device=device))

    @property
    def outputs(self) -> int:
        """The number k of rows of weights of a problem."""
        return int(self.targets.shape[2])

    def pooled(self) -> "LogisticObjective":
        """Return the objective with a single training set: every row that is in any."""
        return LogisticObjective(self.x, self.targets, self.masks.any(dim=1, keepdim=True))

    def gradient(self, w: "torch.Tensor", sets: "torch.Tensor", c: "torch.Tensor") -> "torch.Tensor":
        """Return the (d + 1, p, k) gradient of every problem.

        Args:
            w: (d + 1, p, k) weights.
            sets: (p,) each problem's training set, a column of `masks`.
            c: (p,) each problem's C.
        """
        import torch

        d, p, k = w.shape
        columns = w.reshape(d, p * k)
        total = torch.zeros((p * k, d), dtype=w.dtype, device=w.device)
        for rows in self.blocks(p * k):
            x = self.x[rows]
            residuals = _probabilities((x @ columns).view(len(x), p, k))
            residuals -= self.targets[rows]
            residuals *= self.masks[rows].index_select(1, sets)[:, :, None]
            # The other way round is slower where problems are few.
            total.addmm_(residuals.view(len(x), p * k).T, x)
        gradient = total.T.reshape(d, p, k) * c[:, None]
        gradient[:-1] += w[:-1]
        return gradient

    def probabilities(self, rows: slice, w: "torch.Tensor") -> "torch.Tensor":
        """Return the (m, k) probabilities of some rows by the weights (d + 1, 1, k) of one problem."""
        return _probabilities((self.x[rows] @ w[:, 0])[:, None, :])[:, 0]

    def blocks(self, width: int) -> "Iterator[slice]":
        """Yield slices of rows such that `width` numbers for each row are not too many."""
        step = max(256, _BLOCK_BYTES // (8 * width))
        for start in range(0, len(self.x), step):
            yield slice(start, min(start + step, len(self.x)))


def _probabilities(logits: "torch.Tensor") -> "torch.Tensor":
    """Return the (n, p, k) probabilities, in the logits' place where possible."""
    return logits.sigmoid_() if logits.shape[2] == 1 else logits.softmax(dim=2)


_MOST_CLASSES = 16
"""Above, the classes share the inverse of their mean Hessian: there would be too many to factorise."""


def inverse_bounds(objective: LogisticObjective, c_values: Sequence[float]) -> "list[torch.Tensor]":
    """Return for each C the (1, d + 1, d + 1) inverse of a Hessian above all, for every class alike.

    The second derivatives of the loss never exceed a quarter of the features' inner products for two classes,
    and a half for more (Boehning 1992).
    """
    import torch

    d, k = objective.x.shape[1], objective.outputs
    total = torch.zeros((1, d, d), dtype=torch.float64, device=objective.x.device)
    member = objective.masks.any(dim=1).double()
    for rows in objective.blocks(d):
        total[0].addmm_((objective.x[rows] * member[rows, None]).T, objective.x[rows])
    return [_inverse(total * (c / (4 if k == 1 else 2))) for c in c_values]


def inverse_hessian(objective: LogisticObjective, w: "torch.Tensor", c: float) -> "torch.Tensor":
    """Return the inverses of the Hessians of one problem on all masked rows.

    Args:
        objective: the data.
        w: (d + 1, 1, k) where.
        c: the weight of the loss.

    Returns:
        (k, d + 1, d + 1), or (1, d + 1, d + 1) meant for each class alike.
    """
    import torch

    d, _, k = w.shape
    total = torch.zeros((k if k <= _MOST_CLASSES else 1, d, d), dtype=torch.float64, device=w.device)
    member = objective.masks.any(dim=1).double()
    for rows in objective.blocks(d):
        x, share = objective.x[rows], objective.probabilities(rows, w)
        weights = share * (1 - share) * member[rows, None]
        if len(total) < k:
            weights = weights.mean(dim=1, keepdim=True)
        for output, weight in enumerate(weights.T):
            total[output].addmm_((x * weight[:, None]).T, x)
    return _inverse(c * total)


def apply_inverse(inverse: "torch.Tensor", g: "torch.Tensor") -> "torch.Tensor":
    """Multiply gradients (d + 1, p, k) with one of these inverses."""
    step = inverse @ g.permute(2, 0, 1)
    return step.permute(1, 2, 0)


def _inverse(curvatures: "torch.Tensor") -> "torch.Tensor":
    import torch

    diagonals = curvatures.diagonal(dim1=1, dim2=2)
    diagonals[:, :-1] += 1.0
    # The intercept has no penalty; this much keeps the factorisation alive where no row moves it.
    diagonals[:, -1] += 1e-10
    return torch.cholesky_inverse(torch.linalg.cholesky(curvatures))


OfProblems = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""From a (d + 1, a, k) tensor of some problems, and their numbers (a,), to one of the same shape."""

_MEMORY = 8
_START = 1e-3
_START_ITERATIONS = 30
_OVERSHOOT = 0.5


@dataclass(frozen=True)
class Solved:
    """Weights (d + 1, p, k), the norms of their gradients (p,), and the evaluations it took."""

    weights: "torch.Tensor"
    gradient_norms: "torch.Tensor"
    iterations: int


def descend(
    objective: LogisticObjective, penalties: NDArray[np.float64], *, tolerance: float, max_iterations: int
) -> Solved:
    """Minimise the objective for every training set and its penalties.

    Args:
        objective: f training sets.
        penalties: (f, c) values of C.
        tolerance: Euclidean norm of the gradient to reach.
        max_iterations: evaluations of the gradient after which to stop.

    Returns:
        The solutions; problem i is set i // c with its penalty i % c.
    """
    import torch

    x = objective.x
    distinct, which = np.unique(penalties.ravel(), return_inverse=True)
    c_values = torch.as_tensor(distinct, device=x.device)
    value_of = torch.as_tensor(which.ravel(), device=x.device)
    sets = torch.arange(penalties.shape[0], device=x.device).repeat_interleave(penalties.shape[1])
    starts = _starts(objective, c_values)

    sizes = objective.masks.sum(dim=0).double()
    share = float(sizes.mean() / objective.masks.any(dim=1).sum())
    inverses = [inverse_hessian(objective, starts[:, [i]], share * c) for i, c in enumerate(c_values.tolist())]
    return _minimise(
        lambda w, active: objective.gradient(w, sets[active], c_values[value_of[active]]),
        lambda g, active: _step(inverses, value_of[active], g),
        starts.index_select(1, value_of),
        tolerance=tolerance,
        max_iterations=max_iterations,
    )


def _starts(objective: LogisticObjective, c_values: "torch.Tensor") -> "torch.Tensor":
    """Return near-minimisers (d + 1, values, k) of the fits on all rows, one for each value of C."""
    import torch

    pooled, values = objective.pooled(), len(c_values)
    inverses = inverse_bounds(pooled, c_values.tolist())
    zeros = torch.zeros(
        (objective.x.shape[1], values, pooled.outputs), dtype=torch.float64, device=objective.x.device
    )
    first = torch.zeros(values, dtype=torch.int64, device=zeros.device)
    norms = pooled.gradient(zeros, first, c_values).square().sum(dim=(0, 2)).sqrt()
    return _minimise(
        lambda w, active: pooled.gradient(w, torch.zeros_like(active), c_values[active]),
        lambda g, active: _step(inverses, active, g),
        zeros,
        tolerance=_START * float(norms.min()),
        max_iterations=_START_ITERATIONS,
    ).weights


def _step(inverses: "list[torch.Tensor]", value_of: "torch.Tensor", g: "torch.Tensor") -> "torch.Tensor":
    """Multiply each problem's gradient (d + 1, p, k) with the inverse Hessian of its C."""
    import torch

    step = torch.empty_like(g)
    for value in torch.unique(value_of).tolist():
        columns = torch.nonzero(value_of == value)[:, 0]
        step[:, columns] = apply_inverse(inverses[value], g.index_select(1, columns))
    # Adding a constant to all classes changes no probability: the minimum has none, so no step has any.
    return step - step.mean(dim=2, keepdim=True) if g.shape[2] > 1 else step


def _minimise(
    gradient_of: OfProblems,
    precondition: OfProblems,
    w: "torch.Tensor",
    *,
    tolerance: float,
    max_iterations: int,
) -> Solved:
    """Minimise p convex functions side by side.

    A step that overshoots, so that the slope along it has turned and is more than half as steep as it was,
    is shortened to where the secant of the two slopes is zero; the others of the batch go on meanwhile.
    Converged problems leave the batch.

    Args:
        gradient_of: from weights (d + 1, a, k) of some problems and their numbers (a,) to their gradients.
        precondition: from gradients and numbers to the product with an approximate inverse Hessian.
        w: (d + 1, p, k), where to start.
        tolerance: Euclidean norm of the gradient to reach.
        max_iterations: evaluations after which to stop.
    """
    import torch

    final, norms = w.clone(), torch.empty(w.shape[1], dtype=w.dtype, device=w.device)
    active = torch.arange(w.shape[1], device=w.device)
    g = gradient_of(w, active)
    iterations = 1
    memory: deque[_Pair] = deque(maxlen=_MEMORY)
    direction, length = -precondition(g, active), torch.ones_like(norms)
    while True:
        size = _dot(g, g).sqrt()
        done = size <= tolerance
        final[:, active], norms[active] = w, size
        if bool(done.all()) or iterations >= max_iterations:
            return Solved(final, norms, iterations)
        if bool(done.any()):
            keep = torch.nonzero(~done)[:, 0]
            active, w, g, direction, length = (
                active[keep],
                w[:, keep],
                g[:, keep],
                direction[:, keep],
                length[keep],
            )
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
    """A step s and the change y of the gradient along it; `rho` is 1 / (s.y), 0 where there was no step."""

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
    """Return the product of L-BFGS's inverse Hessian with g (Nocedal and Wright 2006, algorithm 7.4)."""
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
