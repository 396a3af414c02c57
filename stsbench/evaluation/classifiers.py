"""The classifiers of the transfer tasks: what cross-validation asks of one, and the converged logistic regression.

A classifier gets all fits of a task at once, because that is what makes them cheap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stsbench.evaluation.folds import Design, Fold, Rows
from stsbench.statistics.logistic import LogisticFits, fit_logistic

Features = NDArray[np.float32]

UNSEEN = -1
"""The prediction of a row that a fit was not asked about."""


@dataclass(frozen=True)
class FinalFit:
    """A fit whose predictions count: where it trains, what it predicts, its regulariser.

    `dev` are rows to stop early by; None where the protocol holds out a part of `train` for that.
    """

    train: Rows
    predict: Rows
    regulariser: float
    dev: Rows | None = None


class Classifier(Protocol):
    """What can be cross-validated."""

    @property
    def name(self) -> str:
        """What stands in the record."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the person should know of the fits made so far."""

    def grid(self, design: Design) -> tuple[float, ...]:
        """Return the regularisers to choose from, in the order in which the first of equals wins."""

    def validate(
        self, x: Features, y: Rows, classes: int, folds: Sequence[Fold], grid: Sequence[float]
    ) -> NDArray[np.int16]:
        """Return the (n, f, c) predictions of every row by every fold and regulariser, or `UNSEEN`.

        Rows held out by a fold are predicted in any case.
        """

    def predict(self, x: Features, y: Rows, classes: int, fits: Sequence[FinalFit]) -> list[NDArray[np.int16]]:
        """Return each fit's predictions of the rows that it is asked about."""


@dataclass
class LogisticRegression:
    """L2-regularised logistic regression, solved to convergence: scikit-learn's objective and optimum.

    SentEval's own grids of C. Its solver, today's scikit-learn with its defaults, stops after 100 iterations,
    before it converges.

    Attributes:
        device: where to compute: `cpu`, or a torch device such as `cuda`.
    """

    device: str = "cpu"
    _notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What stands in the record."""
        return "logreg"

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on fits that did not converge."""
        return tuple(self._notes)

    def grid(self, design: Design) -> tuple[float, ...]:
        """Return values of C: 2^-1 to 2^5 for `kfold`, else 2^-2 to 2^3."""
        low, high = (-1, 5) if design == "kfold" else (-2, 3)
        return tuple(2.0**power for power in range(low, high + 1))

    def validate(
        self, x: Features, y: Rows, classes: int, folds: Sequence[Fold], grid: Sequence[float]
    ) -> NDArray[np.int16]:
        """Return the (n, f, c) predictions of every row by every fold and regulariser."""
        train = np.zeros((len(x), len(folds)), dtype=bool)
        for column, fold in enumerate(folds):
            train[fold.train, column] = True
        return self._fit(x, y, grid, train, classes).predict(x).astype(np.int16)

    def predict(self, x: Features, y: Rows, classes: int, fits: Sequence[FinalFit]) -> list[NDArray[np.int16]]:
        """Return each fit's predictions of the rows that it is asked about."""
        train = np.zeros((len(x), len(fits)), dtype=bool)
        for column, fit in enumerate(fits):
            train[fit.train, column] = True
        solved = self._fit(x, y, [[fit.regulariser] for fit in fits], train, classes)
        return [solved.predict(x[fit.predict])[:, column, 0].astype(np.int16) for column, fit in enumerate(fits)]

    def _fit(
        self,
        x: Features,
        y: Rows,
        regularisers: Sequence[float] | Sequence[Sequence[float]],
        train: NDArray[np.bool_],
        classes: int,
    ) -> LogisticFits:
        fits = fit_logistic(x, y, regularisers, train, classes=classes, device=self.device)
        missed = int((~fits.converged).sum())
        if missed:
            self._notes.append(
                f"{missed} of {fits.converged.size} logistic regressions did not converge: "
                f"the largest gradient norm is {fits.gradient_norms.max():.1e} instead of {fits.tolerance:.0e}."
            )
        return fits
