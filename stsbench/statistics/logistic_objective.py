"""The objective of logistic regressions on one feature matrix: gradients of many fits at once, and curvature.

Tensors of weights have the shape (d + 1, k, p): the last row is the intercept, k counts the rows of weights of a
problem (1 for two classes), p problems (a training set with a regulariser).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

_BLOCK_BYTES = 8 * 2**20
"""Size of the residuals that are held at once: enough rows for a fast product, few enough for the cache."""

_MOST_ROWS = 2048
"""Of a block: their features stay in the cache between the two products."""


@dataclass(frozen=True)
class LogisticObjective:
    """The data of the fits.

    Attributes:
        x: (n, d + 1) features with a column of ones, float64.
        single: the same in float32.
        targets: (n, k, 1) in float64: the class (0 or 1) for two classes, else one-hot.
        masks: (n, f) booleans: the rows of each training set.
    """

    x: "torch.Tensor"
    single: "torch.Tensor"
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
        """Put the data on the device."""
        import torch

        x = torch.ones((features.shape[0], features.shape[1] + 1), dtype=torch.float64, device=device)
        x[:, :-1] = torch.as_tensor(np.ascontiguousarray(features), device=device)
        y = torch.as_tensor(labels.astype(np.int64), device=device)
        targets = y.double()[:, None] if classes == 2 else torch.nn.functional.one_hot(y, classes).double()
        return cls(x, x.float(), targets[:, :, None], torch.as_tensor(masks, device=device))

    @property
    def outputs(self) -> int:
        """The number k of rows of weights of a problem."""
        return int(self.targets.shape[1])

    def pooled(self) -> "LogisticObjective":
        """Return the objective with a single training set: every row that is in any."""
        return LogisticObjective(self.x, self.single, self.targets, self.masks.any(dim=1, keepdim=True))

    def gradient(
        self, w: "torch.Tensor", sets: "torch.Tensor", c: "torch.Tensor", shares: "torch.Tensor | None" = None
    ) -> "torch.Tensor":
        """Return the (d + 1, k, p) gradient of every problem.

        Args:
            w: (d + 1, k, p) weights.
            sets: (p,) each problem's training set, a column of `masks`.
            c: (p,) each problem's C.
            shares: an (n, k, p) tensor that takes the probabilities; 0 in rows outside a problem's training set.
        """
        import torch

        d, k, p = w.shape
        columns = w.reshape(d, k * p)
        total = torch.zeros((k * p, d), dtype=w.dtype, device=w.device)
        for rows in self.blocks(k * p):
            x = self.x[rows]
            member = self.masks[rows].index_select(1, sets).to(w.dtype)[:, None]
            residuals = _probabilities((x @ columns).view(len(x), k, p)).mul_(member)
            if shares is not None:
                shares[rows] = residuals
            residuals.addcmul_(self.targets[rows], member, value=-1)
            # The other way round is slower where problems are few.
            total.addmm_(residuals.view(len(x), k * p).T, x)
        gradient = total.T.reshape(d, k, p) * c
        gradient[:-1] += w[:-1]
        return gradient

    def change(self, step: "torch.Tensor", shares: "torch.Tensor", c: "torch.Tensor") -> "torch.Tensor":
        """Return by how much a step from where the probabilities are known changes the gradients, in float32.

        The difference is computed as such, and not as that of two gradients: its rounding is in proportion to
        the step, however small.

        Args:
            step: (d + 1, k, p).
            shares: (n, k, p) probabilities where the step begins, from `gradient`.
            c: (p,) each problem's C.
        """
        import torch

        d, k, p = step.shape
        columns = step.reshape(d, k * p)
        total = torch.zeros((k * p, d), dtype=step.dtype, device=step.device)
        for rows in self.blocks(k * p):
            x = self.single[rows]
            differences = _differences((x @ columns).view(len(x), k, p), shares[rows])
            total.addmm_(differences.view(len(x), k * p).T, x)
        change = total.T.reshape(d, k, p) * c
        change[:-1] += step[:-1]
        return change

    def probabilities(self, rows: slice, w: "torch.Tensor") -> "torch.Tensor":
        """Return the (m, k) probabilities of some rows by the weights (d + 1, k, 1) of one problem, in float32."""
        return _probabilities((self.single[rows] @ w[:, :, 0].to(self.single.dtype))[:, :, None])[:, :, 0]

    def blocks(self, width: int) -> Iterator[slice]:
        """Yield slices of rows such that `width` numbers for each row are not too many."""
        step = min(max(256, _BLOCK_BYTES // (8 * width)), _MOST_ROWS)
        for start in range(0, len(self.x), step):
            yield slice(start, min(start + step, len(self.x)))


def _probabilities(logits: "torch.Tensor") -> "torch.Tensor":
    """Return the (n, k, p) probabilities, in the logits' place where possible."""
    return logits.sigmoid_() if logits.shape[1] == 1 else logits.softmax(dim=1)


_STEEPEST = 60.0
"""Logits change by no more: beyond, a probability is 0 or 1, and the exponential soon infinite."""

_LEAST = 1e-25
"""The least sum of probabilities that a logarithm is taken of: rows outside a training set have none."""

_ROUNDING = 1e-7
"""Of a number in float32, in proportion."""


def _differences(logits: "torch.Tensor", shares: "torch.Tensor") -> "torch.Tensor":
    """Return how (n, k, p) probabilities change when the logits change by so much, which are overwritten.

    With t = exp(change) - 1 the probability p becomes p (1 + t) / (1 + sum of p t over the classes). That sum is
    kept near 0, so that neither small nor large changes cancel in it: a constant added to all logits is free.
    """
    if logits.shape[1] == 1:
        growth = logits.clamp_(max=_STEEPEST).expm1_().mul_(shares)
        below = growth + 1
        return growth.addcmul_(growth, shares, value=-1).div_(below)
    logits.sub_(logits.amax(dim=1, keepdim=True))
    logits.sub_(logits.exp().mul_(shares).sum(dim=1, keepdim=True).clamp_(min=_LEAST).log_())
    growth = logits.expm1_()
    mean = (growth * shares).sum(dim=1, keepdim=True)
    return growth.sub_(mean).mul_(shares).div_(mean + 1)


_MOST_CLASSES = 16
"""Above, the classes share the inverse of their mean Hessian: there would be too many to factorise."""


@dataclass(frozen=True)
class InverseHessian:
    """(k, d + 1, d + 1) inverses, or (1, d + 1, d + 1) meant for each class alike, in float64 and in float32."""

    double: "torch.Tensor"
    single: "torch.Tensor"

    def times(self, g: "torch.Tensor") -> "torch.Tensor":
        """Multiply with gradients (d + 1, k, p) of either precision."""
        inverse = self.double if g.dtype == self.double.dtype else self.single
        return (inverse @ g.permute(1, 0, 2)).permute(1, 0, 2)


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of the loss on all rows of a pooled objective, class by class.

    Attributes:
        products: (k or 1, d + 1, d + 1) for C = 1, float64.
        rounding: a bound of what rounding to float32 put into them; 0 where they are computed in float64.
    """

    products: "torch.Tensor"
    rounding: float

    @classmethod
    def bound(cls, objective: LogisticObjective, largest: float) -> "Curvature":
        """Return a curvature above all, for every class alike.

        The second derivatives of the loss never exceed a quarter of the features' inner products for two
        classes, and a half for more (Boehning 1992).

        Args:
            objective: with one training set.
            largest: the largest C that the curvature is for.
        """
        share = 0.25 if objective.outputs == 1 else 0.5
        return _curvature(objective, lambda rows: share * objective.masks[rows].double(), 1, largest)

    @classmethod
    def at(cls, objective: LogisticObjective, w: "torch.Tensor", largest: float) -> "Curvature":
        """Return the curvature at the weights (d + 1, k, 1)."""
        shared = objective.outputs > _MOST_CLASSES

        def weights(rows: slice) -> "torch.Tensor":
            share = objective.probabilities(rows, w)
            curvature = share * (1 - share) * objective.masks[rows]
            return curvature.mean(dim=1, keepdim=True) if shared else curvature

        return _curvature(objective, weights, 1 if shared else objective.outputs, largest)

    def inverse(self, c: float) -> InverseHessian:
        """Return the inverses of the Hessians of the objective with this C."""
        import torch

        hessian = c * self.products
        diagonals = hessian.diagonal(dim1=1, dim2=2)
        diagonals[:, :-1] += 1.0
        # The intercept has no penalty; this much keeps the factorisation alive where no row moves it.
        diagonals[:, -1] += 1e-10
        diagonals += c * self.rounding
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(hessian))
        return InverseHessian(inverse, inverse.float())


def _curvature(
    objective: LogisticObjective, weights: "Callable[[slice], torch.Tensor]", count: int, largest: float
) -> Curvature:
    """Return the sums of the features' outer products, weighted by the row.

    They are computed in float32, which is three times faster, where its rounding is below the penalty's share of
    the Hessian, which is 1.

    Args:
        objective: the data.
        weights: from rows to their (rows, count) weights.
        count: how many.
        largest: the largest C that the curvature is for.
    """
    import torch

    rounding = _ROUNDING * float(objective.single.square().sum()) / 4
    exact = largest * rounding > 1
    x = objective.x if exact else objective.single
    total = torch.zeros((count, x.shape[1], x.shape[1]), dtype=x.dtype, device=x.device)
    for rows in objective.blocks(x.shape[1]):
        block = x[rows]
        for place, weight in enumerate(weights(rows).to(x.dtype).T):
            total[place].addmm_((block * weight[:, None]).T, block)
    return Curvature(total.double(), 0.0 if exact else rounding)
