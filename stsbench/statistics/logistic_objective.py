"""The objective of many logistic regressions on one feature matrix, and its gradient.

Tensors of weights have the shape (d + 1, p, k): the last row is the intercept, p counts problems (a training
set with a regulariser), k the rows of weights of a problem (1 for two classes).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

_BLOCK_BYTES = 24 * 2**20
"""Size of the residuals that are held at once: enough rows for a fast product, few enough for the cache."""


@dataclass(frozen=True)
class Objective:
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
    ) -> "Objective":
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

    def pooled(self) -> "Objective":
        """Return the objective with a single training set: every row that is in any."""
        return Objective(self.x, self.targets, self.masks.any(dim=1, keepdim=True))

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
