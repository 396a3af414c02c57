"""SentEval's order of rows and folds for transfer tasks, and the default classifier.

Folds depend on the order of rows. SentEval sorts the rows of a task to reduce padding and splits that order into
folds. Folds of the files' order give scores that differ by tenths of a point.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.tables import LabelledData
from stsbench.statistics.logistic import TOLERANCE, fit_logistic

Design = Literal["nested", "kfold", "split"]
"""`nested`: two levels of cross-validation, for tasks without splits; `kfold`: cross-validation on train, then one
fit for test; `split`: train, dev and test."""

NESTED_SEED = 1111
"""SentEval's constant seed for both levels of nested folds."""

Rows = NDArray[np.int64]
Features = NDArray[np.float32]


@dataclass(frozen=True)
class Fold:
    """The rows to train on and the rows to predict, ascending.

    `dev` are rows for early stopping; without them a net holds out a part of `train`.
    """

    train: Rows
    held_out: Rows
    dev: Rows | None = None


@dataclass(frozen=True)
class Selection:
    """The folds that select a regulariser, and the final fit with it."""

    folds: list[Fold]
    final: Fold


@dataclass(frozen=True)
class Labelled:
    """A labelled task in SentEval's order of rows.

    Attributes:
        data: the task.
        order: (n,) the position of each row in `data.items`.
        labels: (n,) the class of each row, as an index into `data.classes`.
        splits: (n,) the split of each row.
        design: the design that fits the task's splits.
    """

    data: LabelledData
    order: Rows
    labels: Rows
    splits: NDArray[np.str_]
    design: Design

    def rows(self, split: str) -> Rows:
        """Returns the rows of a split."""
        return np.flatnonzero(self.splits == split)

    def selections(self, kfold: int, seed: int) -> list[Selection]:
        """Returns a selection for each outer fold of a nested design, else a single one.

        Args:
            kfold: number of folds at either level.
            seed: the seed of the folds of `kfold` tasks.

        Raises:
            UserError: if a class has too few rows.
        """
        y = self.labels
        if self.design == "nested":
            self.require_foldable(y, kfold)
            outer = stratified(y, np.arange(len(y)), kfold, NESTED_SEED)
            return [Selection(_validated(stratified(y, fold.train, kfold, NESTED_SEED)), fold) for fold in outer]
        train, dev, test = (self.rows(split) for split in ("train", "dev", "test"))
        if self.design == "kfold":
            self.require_foldable(y[train], kfold)
            return [Selection(_validated(stratified(y, train, kfold, seed)), Fold(train, test))]
        self.require_foldable(y[train], 2)
        return [Selection([Fold(train, dev, dev)], Fold(train, test, dev))]

    def require_foldable(self, labels: Rows, folds: int) -> None:
        """Raises unless every class has enough rows for every fold."""
        task = self.data.task
        if folds < 2:
            raise UserError(f"{folds} folds are too few to cross-validate {task}: use 2 or more.")
        for code, label in enumerate(self.data.classes):
            count = int((labels == code).sum())
            if count < folds:
                raise UserError(
                    f"class {label} of {task} has {count} training items, too few for {folds} folds: "
                    "use fewer folds."
                )


def arrange(data: LabelledData) -> Labelled:
    """Sorts rows as SentEval does: by split, by number of tokens (first sentence, then second), then by label.

    Ties keep the order of the files.
    """
    items = data.items
    code_of = {label: code for code, label in enumerate(data.classes)}
    labels = np.array([code_of[label] for label in items["label"]], dtype=np.int64)
    splits = items["split"].to_numpy().astype(str)
    split_code, names = pd.factorize(splits)
    keys = [labels, *(token_counts(items[side]) for side in ("sentence2", "sentence1")), split_code]
    order = np.lexsort(keys)
    return Labelled(data, order, labels[order], splits[order], _design(data.task, names.tolist()))


def stratified(labels: Rows, among: Rows, folds: int, seed: int) -> list[Fold]:
    """Returns stratified, shuffled folds of the rows `among` (scikit-learn's `StratifiedKFold`)."""
    from sklearn.model_selection import StratifiedKFold  # not in the base install, which only reads records

    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    return [
        Fold(among[train], among[held_out])
        for train, held_out in splitter.split(np.zeros((len(among), 1)), labels[among])
    ]


def _validated(folds: Sequence[Fold]) -> list[Fold]:
    """Returns folds that stop early by their held-out rows."""
    return [Fold(fold.train, fold.held_out, fold.held_out) for fold in folds]


def token_counts(sentences: "pd.Series[str]") -> Rows:
    """Returns the (n,) numbers of tokens, separated by white space; 0 for a missing sentence."""
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
            f"{task} has the splits {', '.join(splits)}; expected a single split `all`, train and test, or train, "
            "dev and test."
        )
    return design


class Classifier(Protocol):
    """A classifier that can be cross-validated."""

    @property
    def name(self) -> str:
        """The name in the record."""

    @property
    def notes(self) -> Sequence[str]:
        """Warnings about the fits so far."""

    def grid(self, design: Design) -> tuple[float, ...]:
        """Returns the regularisers to choose from; the first of equally good ones wins."""

    def predict(
        self, x: Features, y: Rows, classes: int, folds: Sequence[Fold], regularisers: Sequence[Sequence[float]]
    ) -> list[NDArray[np.int16]]:
        """Trains each fold with each of its regularisers.

        Args:
            x: (n, d) features.
            y: (n,) classes, from 0.
            classes: the number of classes.
            folds: the rows to train on and to predict.
            regularisers: (folds, r) regularisers.

        Returns:
            The (held-out rows, r) predicted classes of each fold.
        """


@dataclass
class LogisticRegression:
    """L2-regularised logistic regression with scikit-learn's objective, solved to convergence, and SentEval's C.

    SentEval uses scikit-learn's solver with its defaults, which stops after 100 iterations, before convergence.

    Attributes:
        device: `cpu`, or a torch device such as `cuda`.
        notes: a warning for fits that did not converge.
    """

    device: str = "cpu"
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "logreg"

    def grid(self, design: Design) -> tuple[float, ...]:
        """Returns values of C: 2^-1 to 2^5 for `kfold`, else 2^-2 to 2^3."""
        low, high = (-1, 5) if design == "kfold" else (-2, 3)
        return tuple(2.0**power for power in range(low, high + 1))

    def predict(
        self, x: Features, y: Rows, classes: int, folds: Sequence[Fold], regularisers: Sequence[Sequence[float]]
    ) -> list[NDArray[np.int16]]:
        masks = np.zeros((len(x), len(folds)), dtype=bool)
        for column, fold in enumerate(folds):
            masks[fold.train, column] = True
        fits = fit_logistic(x, y, np.array(regularisers), masks, classes=classes, device=self.device)
        not_converged = int((~fits.converged).sum())
        if not_converged:
            self.notes.append(
                f"{not_converged} of {fits.converged.size} logistic regressions did not converge: the largest "
                f"gradient norm is {fits.gradient_norms.max():.1e} instead of {TOLERANCE:.0e}."
            )
        return [fits.predict(number, x[fold.held_out]).astype(np.int16) for number, fold in enumerate(folds)]
