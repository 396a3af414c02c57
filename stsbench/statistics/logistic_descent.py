"""Logistic regressions on one feature matrix, minimised together: L-BFGS in many columns, mostly in float32.

It is ours because it is measured faster: `benchmarks/transfer_speed.py` holds it against scikit-learn, which
fits one at a time and gives the same minimisers.

Gradients in float32 are less than half the work, but end where their rounding begins. So the descent goes in
rounds, as iterative refinement of linear systems does: the gradient where a round begins is computed in float64;
within the round only what steps change about it, in float32. What is left after the rounds is done in float64,
and a fit counts as converged by its gradient in float64 alone.

Tensors of weights have the shape (d + 1, k, p), as in `logistic_objective`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics.logistic_objective import Curvature, InverseHessian, LogisticObjective

if TYPE_CHECKING:
    import torch

OfProblems = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""From a (d + 1, k, a) tensor of some problems, and their numbers (a,), to one of the same shape."""

_MEMORY = 8
_START = 1e-3
_START_ITERATIONS = 30
_OVERSHOOT = 0.5

_ROUNDS = 4
_GAIN = 1e-4
"""A round in float32 makes a gradient this much smaller: its rounding is a hundredth of that."""

_SAFETY = 0.5
"""The share of the tolerance that a round aims at, so that the gradient in float64 is within it."""

_ROUND_ITERATIONS = 80
_SHARES_BYTES = 256 * 2**20
"""Size of the probabilities that are held at once: more problems than that are solved one lot after another."""


@dataclass(frozen=True)
class Solved:
    """Weights (d + 1, k, p), the norms of their gradients (p,), and the evaluations it took."""

    weights: "torch.Tensor"
    gradient_norms: "torch.Tensor"
    iterations: int


@dataclass(frozen=True)
class _Problems:
    """p problems on one objective.

    Attributes:
        objective: the data.
        sets: (p,) the training set of each.
        c: (p,) the C of each, float64.
        value_of: (p,) which of the inverses is near that of each.
        inverses: approximate inverse Hessians.
    """

    objective: LogisticObjective
    sets: "torch.Tensor"
    c: "torch.Tensor"
    value_of: "torch.Tensor"
    inverses: "Sequence[InverseHessian]"

    def of(self, keep: "torch.Tensor") -> "_Problems":
        return _Problems(self.objective, self.sets[keep], self.c[keep], self.value_of[keep], self.inverses)

    def gradient(
        self, w: "torch.Tensor", active: "torch.Tensor", shares: "torch.Tensor | None" = None
    ) -> "torch.Tensor":
        return self.objective.gradient(w, self.sets[active], self.c[active], shares)

    def precondition(self, g: "torch.Tensor", active: "torch.Tensor") -> "torch.Tensor":
        """Multiply each problem's gradient with the inverse Hessian of its C."""
        import torch

        values, step = self.value_of[active], torch.empty_like(g)
        for value in torch.unique(values).tolist():
            columns = torch.nonzero(values == value)[:, 0]
            step[..., columns] = self.inverses[value].times(g.index_select(2, columns))
        return _centred(step)


def _centred(step: "torch.Tensor") -> "torch.Tensor":
    """Return a step without its mean over the classes.

    Adding a constant to all classes changes no probability: the minimum has none, so no step has any.
    """
    return step - step.mean(dim=1, keepdim=True) if step.shape[1] > 1 else step


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

    device = objective.x.device
    distinct, which = np.unique(penalties.ravel(), return_inverse=True)
    value_of = torch.as_tensor(which.ravel(), device=device)
    sets = torch.arange(penalties.shape[0], device=device).repeat_interleave(penalties.shape[1])
    starts, inverses, spent = _starts(objective, distinct)

    c = torch.as_tensor(distinct, device=device)[value_of]
    problems = _Problems(objective, sets, c, value_of, inverses)
    w, norms, most = starts.index_select(2, value_of), torch.empty(len(sets)).to(starts), 0
    for lot in torch.split(torch.arange(len(sets), device=device), _lot(objective)):
        solved = _solve(
            problems.of(lot), w[..., lot], tolerance=tolerance, max_iterations=max(1, max_iterations - spent)
        )
        w[..., lot], norms[lot], most = solved.weights, solved.gradient_norms, max(most, solved.iterations)
    return Solved(w, norms, spent + most)


def _lot(objective: LogisticObjective) -> int:
    """Return how many problems are solved at once."""
    return max(1, _SHARES_BYTES // (4 * len(objective.x) * objective.outputs))


def _starts(
    objective: LogisticObjective, c_values: NDArray[np.float64]
) -> "tuple[torch.Tensor, list[InverseHessian], int]":
    """Return what the fits start from, by C: near-minimisers on all rows, and inverse Hessians there.

    One value after the other, each from the minimiser of the one below it.

    Returns:
        (d + 1, k, values) weights, the inverses for a mean training set, the evaluations it took.
    """
    import torch

    pooled = objective.pooled()
    share = float(objective.masks.sum(dim=0).double().mean() / pooled.masks.sum())
    w = torch.zeros((objective.x.shape[1], pooled.outputs, 1), dtype=torch.float64, device=objective.x.device)
    first = torch.zeros(1, dtype=torch.int64, device=w.device)
    curvature = Curvature.bound(pooled, float(c_values.max()))
    found, inverses, spent = [], [], 0
    for c in c_values.tolist():
        problem = _Problems(pooled, first, w.new_full((1,), c), first, [curvature.inverse(c)])
        w, _, evaluations = _round(problem, w, tolerance=0.0, gain=_START, max_iterations=_START_ITERATIONS)
        curvature = Curvature.at(pooled, w, float(c_values.max()))
        found.append(w)
        inverses.append(curvature.inverse(share * c))
        spent += evaluations
    return torch.cat(found, dim=2), inverses, spent


def _solve(problems: _Problems, w: "torch.Tensor", *, tolerance: float, max_iterations: int) -> Solved:
    """Minimise in rounds of float32, and to the end in float64."""
    import torch

    w, norms, spent = w.clone(), w.new_empty(w.shape[2:]), 0
    unsolved = torch.arange(w.shape[2], device=w.device)
    for _ in range(_ROUNDS):
        most = min(_ROUND_ITERATIONS, max_iterations - spent)
        nearer, sizes, evaluations = _round(
            problems.of(unsolved), w[..., unsolved], tolerance=tolerance, gain=_GAIN, max_iterations=most
        )
        w[..., unsolved], norms[unsolved] = nearer, sizes
        spent += evaluations
        unsolved = unsolved[sizes > tolerance]
        if not len(unsolved) or spent >= max_iterations:
            break
    if len(unsolved):
        solved = _minimise(
            problems.of(unsolved),
            w[..., unsolved],
            tolerance=w.new_full(unsolved.shape, tolerance),
            max_iterations=max_iterations - spent,
        )
        w[..., unsolved], norms[unsolved] = solved.weights, solved.gradient_norms
        spent += solved.iterations
    return Solved(w, norms, spent)


def _round(
    problems: _Problems, w: "torch.Tensor", *, tolerance: float, gain: float, max_iterations: int
) -> "tuple[torch.Tensor, torch.Tensor, int]":
    """Return weights nearer to the minima.

    Args:
        problems: p of them.
        w: (d + 1, k, p) where to begin, in float64.
        tolerance: norm of the gradient up to which a problem is left as it is.
        gain: how much smaller gradients are to become.
        max_iterations: evaluations after which to stop.

    Returns:
        The weights, the norms (p,) of the gradients in float64 where the round began, the evaluations it took.
    """
    import torch

    everyone, single = torch.arange(w.shape[2], device=w.device), torch.float32
    shares = torch.empty((len(problems.objective.x), *w.shape[1:]), dtype=single, device=w.device)
    g = problems.gradient(w, everyone, shares)
    norms = _dot(g, g).sqrt()
    if bool((norms <= tolerance).all()):
        return w, norms, 1
    start, c, held = g.to(single), problems.c.to(single), everyone

    def gradient_of(step: "torch.Tensor", active: "torch.Tensor") -> "torch.Tensor":
        nonlocal shares, held
        if len(active) < len(held):
            shares, held = shares.index_select(2, torch.searchsorted(held, active)), active
        return start.index_select(2, active) + problems.objective.change(step, shares, c[active])

    aims = (gain * norms).clamp(min=_SAFETY * tolerance)
    solved = _minimise(
        problems,
        torch.zeros_like(start),
        gradient_of,
        start,
        tolerance=aims.where(norms > tolerance, norms.new_tensor(torch.inf)).to(single),
        max_iterations=max_iterations,
    )
    return w + _centred(solved.weights.double()), norms, solved.iterations


def _minimise(
    problems: _Problems,
    w: "torch.Tensor",
    gradient_of: OfProblems | None = None,
    g: "torch.Tensor | None" = None,
    *,
    tolerance: "torch.Tensor",
    max_iterations: int,
) -> Solved:
    """Minimise p convex functions side by side.

    A step that overshoots, so that the slope along it has turned and is more than half as steep as it was,
    is shortened to where the secant of the two slopes is zero; the others of the batch go on meanwhile.
    Converged problems leave the batch.

    Args:
        problems: p of them.
        w: (d + 1, k, p), where to start.
        gradient_of: from weights (d + 1, k, a) of some problems and their numbers (a,) to their gradients; by
            default the problems' own.
        g: the gradient at `w`, where it is known.
        tolerance: (p,) Euclidean norms of the gradients to reach.
        max_iterations: evaluations after which to stop.
    """
    import torch

    final, norms = w.clone(), torch.empty(w.shape[2], dtype=w.dtype, device=w.device)
    active = torch.arange(w.shape[2], device=w.device)
    gradient_of, precondition = gradient_of or problems.gradient, problems.precondition
    g = gradient_of(w, active) if g is None else g
    iterations = 1
    memory: deque[_Pair] = deque(maxlen=_MEMORY)
    direction, length = -precondition(g, active), torch.ones_like(norms)
    while True:
        size = _dot(g, g).sqrt()
        done = size <= tolerance[active]
        final[..., active], norms[active] = w, size
        if bool(done.all()) or iterations >= max_iterations:
            return Solved(final, norms, iterations)
        if bool(done.any()):
            keep = torch.nonzero(~done)[:, 0]
            active, w, g, direction, length = (
                active[keep],
                w[..., keep],
                g[..., keep],
                direction[..., keep],
                length[keep],
            )
            memory = deque((pair.of(keep) for pair in memory), maxlen=_MEMORY)
        step = direction * length
        reached = gradient_of(w + step, active)
        iterations += 1
        before, after = -_dot(g, direction), _dot(reached, direction)
        accepted = after <= _OVERSHOOT * before
        moved = accepted.to(w.dtype)
        step, change = step * moved, (reached - g) * moved
        memory.append(_Pair.of_step(step, change))
        w, g = w + step, g + change
        direction = torch.where(accepted, -_two_loop(memory, g, active, precondition), direction)
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
        return _Pair(self.s[..., keep], self.y[..., keep], self.rho[keep])


def _two_loop(
    memory: "deque[_Pair]", g: "torch.Tensor", active: "torch.Tensor", precondition: OfProblems
) -> "torch.Tensor":
    """Return the product of L-BFGS's inverse Hessian with g (Nocedal and Wright 2006, algorithm 7.4)."""
    q, alphas = g.clone(), []
    for pair in reversed(memory):
        alpha = pair.rho * _dot(pair.s, q)
        q.addcmul_(pair.y, alpha, value=-1)
        alphas.append(alpha)
    r = precondition(q, active)
    for pair, alpha in zip(memory, reversed(alphas), strict=True):
        r.addcmul_(pair.s, alpha - pair.rho * _dot(pair.y, r))
    return r


def _dot(a: "torch.Tensor", b: "torch.Tensor") -> "torch.Tensor":
    return (a * b).sum(dim=(0, 1))
