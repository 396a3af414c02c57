"""Logistic regressions on one feature matrix, minimised together: objective, curvature, L-BFGS in many columns.

It is ours because it is measured faster: `benchmarks/transfer_speed.py` holds it against scikit-learn, which
fits one at a time and gives the same minimisers.

Tensors of weights have the shape (k, p, d + 1): k counts the rows of weights of a problem (1 for two classes), p
problems (a training set with a regulariser); the last column is the intercept. With the classes in front and rows
of data behind, a softmax runs over long stretches of memory; over the last of few numbers it takes seven times as
long as the product that made them.
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
"""A curvature is taken from this many rows for each weight of a class: more hardly change a preconditioner."""

_BLOCK_BYTES = 24 * 2**20
"""Size of the residuals that are held at once: enough rows for a fast product, few enough for the cache."""


@dataclass(frozen=True)
class LogisticObjective:
    """The data of the fits; rows of no training set are left out.

    Features are without their means, which an intercept that is not penalised takes up: what they have in common
    would cost the precision that tells them apart.

    Attributes:
        x: (n, d + 1) features with a column of ones.
        means: (d,), of the features.
        targets: (k, 1, n) in float64: the class (0 or 1) for two classes, else one-hot.
        masks: (f, n) booleans: the rows of each training set.
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
        """Put the rows that any training set has on the device, in float64."""
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
        """The number k of rows of weights of a problem."""
        return int(self.targets.shape[0])

    def pooled(self) -> "LogisticObjective":
        """Return the objective with a single training set: every row that is in any."""
        import torch

        every = torch.ones((1, len(self.x)), dtype=torch.bool, device=self.x.device)
        return LogisticObjective(self.x, self.means, self.targets, every)

    def single(self) -> "LogisticObjective":
        """Return the objective in single precision, in which products take half the time."""
        return LogisticObjective(self.x.float(), self.means, self.targets.float(), self.masks)

    def gradient(self, w: "torch.Tensor", sets: "torch.Tensor", c: "torch.Tensor") -> "torch.Tensor":
        """Return the (k, p, d + 1) gradient of every problem.

        Args:
            w: (k, p, d + 1) weights.
            sets: (p,) each problem's training set, a row of `masks`.
            c: (p,) each problem's C.
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
        """Yield blocks of every row, or of every second, third ..., with how many rows each stands for.

        Args:
            width: how many numbers are computed for each row.
        """
        stride = max(1, len(self.x) // (_ROWS_A_WEIGHT * self.x.shape[1]))
        for rows in self.blocks(width):
            yield self.x[rows][-rows.start % stride :: stride], stride

    def blocks(self, width: int) -> "Iterator[slice]":
        """Yield slices of rows such that `width` numbers for each row are not too many."""
        step = max(256, _BLOCK_BYTES // (8 * width))
        for start in range(0, len(self.x), step):
            yield slice(start, min(start + step, len(self.x)))


def _probabilities(logits: "torch.Tensor") -> "torch.Tensor":
    """Return the (k, p, n) probabilities, in the logits' place where possible."""
    return logits.sigmoid_() if len(logits) == 1 else logits.softmax(dim=0)


_MOST_CLASSES = 16
"""Above, the classes share the inverse of their mean Hessian: there would be too many to factorise."""


def inverse_bounds(objective: LogisticObjective, c_values: Sequence[float]) -> "list[torch.Tensor]":
    """Return for each C the (1, d + 1, d + 1) inverse of a Hessian above all, for every class alike.

    The second derivatives of the loss never exceed a quarter of the features' inner products for two classes,
    and a half for more (Boehning 1992).
    """
    import torch

    d, k = objective.x.shape[1], objective.outputs
    total = torch.zeros((1, d, d), dtype=objective.x.dtype, device=objective.x.device)
    for x, stands_for in objective.sample(d):
        total[0].addmm_(x.T, x, alpha=stands_for)
    return [_inverse(total * (c / (4 if k == 1 else 2))) for c in c_values]


def inverse_hessian(objective: LogisticObjective, w: "torch.Tensor", c: float) -> "torch.Tensor":
    """Return the inverses of the Hessians of one problem on all rows, without what couples the classes.

    What couples them is left out because it does not pay: with it, the folds of TREC take as many iterations.

    Args:
        objective: the data.
        w: (k, 1, d + 1) weights at which the Hessians are taken.
        c: the weight of the loss.

    Returns:
        (k, d + 1, d + 1), or (1, d + 1, d + 1) meant for each class alike.
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
    # The intercept has no penalty; this much keeps the factorisation alive where no row moves it.
    diagonals[:, -1] += 1e-10
    return torch.cholesky_inverse(torch.linalg.cholesky(curvatures))


OfProblems = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""From a (k, a, d + 1) tensor of some problems, and their numbers (a,), to one of the same shape."""

_MEMORY = 8
_START = 1e-3
_START_ITERATIONS = 60
_SINGLE = 1e-6
"""Single precision brings a gradient down to this share of what it is at zero, a few times its rounding."""

_OVERSHOOT = 0.5


class Solved(NamedTuple):
    """Weights (k, p, d + 1), and the norms of their gradients (p,)."""

    weights: "torch.Tensor"
    gradient_norms: "torch.Tensor"


def descend(
    objective: LogisticObjective, penalties: NDArray[np.float64], *, tolerance: float, max_iterations: int
) -> Solved:
    """Minimise the objective of f training sets for every set and its penalties, (f, c) values of C.

    Single precision leads close to the minima, in half the time a step; double precision goes on from there.
    It ends where every gradient's Euclidean norm is within the tolerance, or after `max_iterations` gradients at
    either precision.
    Problem i of the solutions is set i // c with its penalty i % c.
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
    # The curvature is taken where the next smaller C has its solution. A row that a fold holds out is less sure in
    # that fold than in the fit on all rows; the smaller C has about the curvature that the folds have on average.
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
    """Return near-minimisers (k, values, d + 1) of the fits on all rows for each C, and the norms at zero."""
    import torch

    pooled, values = single.pooled(), len(c_values)
    # A curvature in single precision may have no inverse, as where one feature is far larger than the others.
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
    """Multiply each problem's gradient (k, p, d + 1) with the inverse Hessian of its C."""
    import torch

    step = torch.empty_like(g)
    for value in torch.unique(value_of).tolist():
        columns = torch.nonzero(value_of == value)[:, 0]
        inverse = inverses[value]
        step[:, columns] = (g.index_select(1, columns).double() @ inverse).to(g.dtype)
    return _centred(step)


def _finite(w: "torch.Tensor") -> "torch.Tensor":
    """Return weights with zero, a safe start, where features were too large for single precision."""
    return w.nan_to_num(0.0, 0.0, 0.0)


def _centred(w: "torch.Tensor") -> "torch.Tensor":
    """Return weights or a step without what all classes have in common: it changes no probability."""
    return w - w.mean(dim=0, keepdim=True) if len(w) > 1 else w


def _minimise(
    gradient_of: OfProblems,
    precondition: OfProblems,
    w: "torch.Tensor",
    *,
    tolerance: "float | torch.Tensor",
    max_iterations: int,
) -> Solved:
    """Minimise p convex functions side by side.

    A step that overshoots, so that the slope along it has turned and is more than half as steep as it was,
    is shortened to where the secant of the two slopes is zero; the others of the batch go on meanwhile.
    Converged problems leave the batch.

    Args:
        gradient_of: from weights of some problems and their numbers to their gradients.
        precondition: from gradients and numbers to the product with an approximate inverse Hessian.
        w: (k, p, d + 1), where to start.
        tolerance: Euclidean norm of the gradient to reach, one for all or (p,).
        max_iterations: evaluations after which to stop.
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
