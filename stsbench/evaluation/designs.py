"""The three designs of the transfer tasks: nested cross-validation, cross-validation on train, a dev split.

What follows from the numbers of a classifier: which regulariser wins, and which predictions count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.datasets import LabelledData
from stsbench.evaluation.classifiers import Classifier, Features, FinalFit
from stsbench.evaluation.folds import NESTED_SEED, Fold, Labelled, Rows, demand_foldable, stratified


@dataclass(frozen=True)
class Trial:
    """A task with its features in SentEval's order of rows, and how to classify it."""

    data: LabelledData
    task: Labelled
    x: Features
    classifier: Classifier
    seed: int
    kfold: int

    @property
    def classes(self) -> int:
        """How many classes the task has."""
        return len(self.data.classes)


@dataclass(frozen=True)
class Outcome:
    """What a design finds out: scores, and for each row of the task what was predicted.

    `predictions` and `held_out_by` are of the rows in `rows`; `dev_correct` is of the rows in `dev`, the mean
    over the fits that held the row out.
    """

    acc: float
    devacc: float
    chosen: tuple[float, ...]
    test: Rows
    dev: Rows
    dev_correct: NDArray[np.float64]
    rows: Rows
    predictions: NDArray[np.int16]
    held_out_by: Rows


def run_design(trial: Trial) -> Outcome:
    """Choose the regulariser and predict, as the task's splits allow.

    Raises:
        UserError: if a class has too few items for the folds.
    """
    return {"nested": _nested, "kfold": _kfold, "split": _split}[trial.task.design](trial)


def choose(scores: ArrayLike) -> int:
    """Return the place of the best mean accuracy, rounded to two decimals of a percent; the first best wins.

    >>> choose([0.81234, 0.81230, 0.81229])
    0
    """
    return int(np.argmax([percent(score) for score in np.asarray(scores)]))


def _nested(trial: Trial) -> Outcome:
    x, y, classes, fitter, kfold = trial.x, trial.task.labels, trial.classes, trial.classifier, trial.kfold
    every, grid = np.arange(len(x)), fitter.grid("nested")
    demand_foldable(trial.data, y, kfold)
    outer = stratified(y, every, kfold, NESTED_SEED)
    # A class with k rows has k - 1 of them in an outer training set: enough as long as each inner one has any.
    inner = [stratified(y, fold.train, kfold, NESTED_SEED) for fold in outer]
    validated = fitter.validate(x, y, classes, [fold for folds in inner for fold in folds], grid)
    chosen, best = [], []
    right, times = np.zeros(len(x)), np.zeros(len(x))
    for number, folds in enumerate(inner):
        own = validated[:, number * kfold : (number + 1) * kfold]
        scores = _mean_accuracies(own, y, folds)
        place = choose(scores)
        chosen.append(grid[place])
        best.append(percent(scores[place]))
        for column, fold in enumerate(folds):
            right[fold.held_out] += own[fold.held_out, column, place] == y[fold.held_out]
            times[fold.held_out] += 1
    finals = [FinalFit(fold.train, fold.held_out, value) for fold, value in zip(outer, chosen, strict=True)]
    predicted, by = np.empty(len(x), dtype=np.int16), np.empty(len(x), dtype=np.int64)
    accuracies = []
    for number, (fold, values) in enumerate(zip(outer, fitter.predict(x, y, classes, finals), strict=True)):
        predicted[fold.held_out], by[fold.held_out] = values, number
        accuracies.append(percent(np.mean(values == y[fold.held_out])))
    return Outcome(
        acc=float(np.round(np.mean(accuracies), 2)),
        devacc=float(np.round(np.mean(best), 2)),
        chosen=tuple(chosen),
        test=every,
        dev=every,
        dev_correct=right / times,
        rows=every,
        predictions=predicted,
        held_out_by=by,
    )


def _kfold(trial: Trial) -> Outcome:
    x, y, classes, fitter = trial.x, trial.task.labels, trial.classes, trial.classifier
    train, test, grid = trial.task.rows("train"), trial.task.rows("test"), fitter.grid("kfold")
    demand_foldable(trial.data, y[train], trial.kfold)
    folds = stratified(y, train, trial.kfold, trial.seed)
    validated = fitter.validate(x, y, classes, folds, grid)
    scores = _mean_accuracies(validated, y, folds)
    place = choose(scores)
    (predicted,) = fitter.predict(x, y, classes, [FinalFit(train, test, grid[place])])
    held, by = np.empty(len(x), dtype=np.int16), np.full(len(x), -1)
    for number, fold in enumerate(folds):
        held[fold.held_out] = validated[fold.held_out, number, place]
        by[fold.held_out] = number
    return Outcome(
        acc=percent(np.mean(predicted == y[test])),
        devacc=percent(scores[place]),
        chosen=(grid[place],),
        test=test,
        dev=train,
        dev_correct=(held[train] == y[train]).astype(np.float64),
        rows=np.concatenate([train, test]),
        predictions=np.concatenate([held[train], predicted]),
        held_out_by=np.concatenate([by[train], by[test]]),
    )


def _split(trial: Trial) -> Outcome:
    x, y, classes, fitter = trial.x, trial.task.labels, trial.classes, trial.classifier
    train, dev, test = (trial.task.rows(split) for split in ("train", "dev", "test"))
    demand_foldable(trial.data, y[train], 2)
    folds, grid = [Fold(train, dev)], fitter.grid("split")
    validated = fitter.validate(x, y, classes, folds, grid)
    scores = _mean_accuracies(validated, y, folds)
    place = choose(scores)
    on_dev = validated[dev, 0, place]
    (predicted,) = fitter.predict(x, y, classes, [FinalFit(train, test, grid[place], dev)])
    rows = np.concatenate([dev, test])
    return Outcome(
        acc=percent(np.mean(predicted == y[test])),
        devacc=percent(scores[place]),
        chosen=(grid[place],),
        test=test,
        dev=dev,
        dev_correct=(on_dev == y[dev]).astype(np.float64),
        rows=rows,
        predictions=np.concatenate([on_dev, predicted]),
        held_out_by=np.full(len(rows), -1),
    )


def _mean_accuracies(predictions: NDArray[np.int16], y: Rows, folds: Sequence[Fold]) -> NDArray[np.float64]:
    """Return for each regulariser the mean over the folds of the accuracy on the rows held out."""
    accuracies = [
        (predictions[fold.held_out, column] == y[fold.held_out, None]).mean(axis=0)
        for column, fold in enumerate(folds)
    ]
    means: NDArray[np.float64] = np.mean(accuracies, axis=0)
    return means


def percent(share: float | np.floating) -> float:
    """Return a share in percent with two decimals."""
    # As NumPy rounds, which is what SentEval does.
    return float(np.round(100 * np.float64(share), 2))
