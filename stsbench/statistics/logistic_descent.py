"""Preconditioned L-BFGS in many columns at once, for the fits of `logistic`.

The fits of a cross-validation are nearly one problem: their training sets overlap by four fifths and more.
So one fit on all rows for each regulariser is a close start for all its folds, and the Hessian there, scaled
to the size of a fold's training set, is close to every fold's own: a Newton step with it leaves a fraction of
the error, L-BFGS (Nocedal and Wright 2006, algorithm 7.4) learns the rest, and some ten evaluations of the
gradient reach rounding. The start itself is found with the upper bound of the Hessian that holds everywhere
(Boehning 1992: a quarter of the Gram matrix for two classes, half of it for more).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics.logistic_curvature import apply_inverse, inverse_bounds, inverse_hessian
from stsbench.statistics.logistic_objective import Objective

if TYPE_CHECKING:
    import torch

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
    objective: Objective, penalties: NDArray[np.float64], *, tolerance: float, max_iterations: int
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


def _starts(objective: Objective, c_values: "torch.Tensor") -> "torch.Tensor":
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
