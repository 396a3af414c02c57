"""Inverse Hessians of logistic regressions, class by class, to precondition their descent with.

With more than two classes the second derivatives across classes are left out: measured on TREC, the whole
Hessian takes fewer iterations but more time.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stsbench.statistics.logistic_objective import Objective

if TYPE_CHECKING:
    import torch

_MOST_CLASSES = 16
"""Above, the classes share the inverse of their mean Hessian: there would be too many to factorise."""


def inverse_bounds(objective: Objective, c_values: Sequence[float]) -> "list[torch.Tensor]":
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


def inverse_hessian(objective: Objective, w: "torch.Tensor", c: float) -> "torch.Tensor":
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
