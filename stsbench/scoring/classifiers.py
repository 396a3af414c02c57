"""The order of rows and the folds of the transfer tasks, as SentEval has them, and the default classifier.

Folds depend on the order of rows. SentEval sorts a task's rows before it encodes them, to pad less, and folds
that order; whoever folds the files' order gets other folds and a score that differs by some tenths.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.tables import LabelledData
from stsbench.statistics.logistic import LogisticFits, fit_logistic

Design = Literal["nested", "kfold", "split"]
"""`nested`: two levels of cross-validation, for a task without splits; `kfold`: cross-validation on train, then
test; `split`: train, dev and test."""

NESTED_SEED = 1111
"""Of both levels of nested folds, whatever the run's seed: SentEval's own constant."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows held out, ascending."""

    train: Rows
    held_out: Rows


@dataclass(frozen=True)
class Labelled:
    """A labelled task in SentEval's order of rows.

    Attributes:
        order: (n,) for each row the item's position in `data.items`.
        labels: (n,) each row's class, as an index into `data.classes`.
        splits: (n,) each row's split.
        design: what the task's splits allow.
    """

    order: Rows
    labels: Rows
    splits: NDArray[np.str_]
    design: Design

    def rows(self, split: str) -> Rows:
        """Return the rows of a split."""
        return np.flatnonzero(self.splits == split)


def arrange(data: LabelledData) -> Labelled:
    """Put a task's rows in SentEval's order: split by split, by numbers of tokens and then by label.

    Rows that tie stay in the files' order. Of a pair the first sentence's number of tokens counts before the
    second's.
    """
    items = data.items
    code_of = {label: code for code, label in enumerate(data.classes)}
    labels = np.array([code_of[label] for label in items["label"]], dtype=np.int64)
    splits = items["split"].to_numpy().astype(str)
    split_code, names = pd.factorize(splits)
    keys = [labels, *(_tokens(items[side]) for side in ("sentence2", "sentence1")), split_code]
    order = np.lexsort(keys)
    return Labelled(order, labels[order], splits[order], _design(data.task, names.tolist()))


def stratified(labels: Rows, among: Rows, folds: int, seed: int) -> list[Fold]:
    """Return the folds of the rows `among` all n rows of a task: scikit-learn's `StratifiedKFold`, shuffled."""
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    return [
        Fold(among[train], among[held_out])
        for train, held_out in splitter.split(np.zeros((len(among), 1)), labels[among])
    ]


def demand_foldable(data: LabelledData, labels: Rows, folds: int) -> None:
    """Raise unless every class has enough rows to be in every training set of the folds."""
    if folds < 2:
        raise UserError(f"{folds} folds are too few to cross-validate {data.task}: use 2 or more.")
    for code, label in enumerate(data.classes):
        count = int((labels == code).sum())
        if count < folds:
            raise UserError(
                f"class {label} of {data.task} has {count} training items, too few for {folds} folds: "
                "use fewer folds."
            )


def _tokens(sentences: "pd.Series[str]") -> Rows:
    return np.array([0 if text is None else len(text.split()) for text in sentences], dtype=np.int64)


def _design(task: str, splits: Sequence[str]) -> Design:
    designs: dict[frozenset[str], Design] = {
        frozenset({"all"}): "nested",
        frozenset({"train", "test"}): "kfold",
        frozenset({"train", "dev", "test"}): "split",
    }
    design = designs.get(frozenset(splits))
    if design is None:
        raise UserError(
            f"{task} has the splits {', '.join(splits)}: "
            "a classifier needs one split of all items, train and test, or train, dev and test."
        )
    return design


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

        Rows held out by a fold are predicted in any case; others only by the fit that `predict` would make, too.
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
        return "logreg"

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def grid(self, design: Design) -> tuple[float, ...]:
        """Return values of C: 2^-1 to 2^5 for `kfold`, else 2^-2 to 2^3."""
        low, high = (-1, 5) if design == "kfold" else (-2, 3)
        return tuple(2.0**power for power in range(low, high + 1))

    def validate(
        self, x: Features, y: Rows, classes: int, folds: Sequence[Fold], grid: Sequence[float]
    ) -> NDArray[np.int16]:
        train = np.zeros((len(x), len(folds)), dtype=bool)
        for column, fold in enumerate(folds):
            train[fold.train, column] = True
        fits = self._fit(x, y, grid, train, classes)
        predictions = np.full((len(x), len(folds), len(grid)), UNSEEN, dtype=np.int16)
        for column in range(len(folds)):
            others = np.flatnonzero(~train[:, column])
            predictions[others, column] = fits.of_set(column).predict(x[others])[:, 0]
        return predictions

    def predict(self, x: Features, y: Rows, classes: int, fits: Sequence[FinalFit]) -> list[NDArray[np.int16]]:
        train = np.zeros((len(x), len(fits)), dtype=bool)
        for column, fit in enumerate(fits):
            train[fit.train, column] = True
        solved = self._fit(x, y, [[fit.regulariser] for fit in fits], train, classes)
        return [
            solved.of_set(column).predict(x[fit.predict])[:, 0, 0].astype(np.int16)
            for column, fit in enumerate(fits)
        ]

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
