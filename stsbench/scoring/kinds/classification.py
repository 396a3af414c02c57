"""Transfer tasks: a classifier on frozen sentence vectors, with SentEval's protocol.

Conneau and Kiela (2018); SimCSE (Gao et al., 2021), table E.1. SimCSE and ESimCSE report `acc`, MoCoSE `devacc`.
The order of rows, the folds and the default classifier are in `classifiers`; SentEval's PyTorch net, which the
SimCSE papers used, is in `mlp`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.base.words import suggestion
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import id_columns
from stsbench.data.tables import LabelledData
from stsbench.records.kinds import TRANSFER
from stsbench.records.parts import Interval, Number, Training
from stsbench.records.signature import Signature
from stsbench.scoring.classifiers import (
    NESTED_SEED,
    UNSEEN,
    Classifier,
    Design,
    Features,
    FinalFit,
    Fold,
    Labelled,
    LogisticRegression,
    arrange,
    demand_foldable,
    stratified,
)
from stsbench.scoring.classifiers import Rows as Positions
from stsbench.scoring.mlp import Mlp
from stsbench.scoring.settings import CLASSIFIERS, KFOLD, SEED, Settings
from stsbench.scoring.statistic import F1, Accuracy, interval_of
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Vectors, item_columns

_TESTED: Mapping[Design, str] = {"nested": "all", "kfold": "test", "split": "test"}
"""The split that `acc` is computed on."""


@dataclass(frozen=True)
class Classified:
    """The result of classifying a task's vectors. Scores are in percent, with two decimals.

    Attributes:
        table: one row per prediction: the held-out rows behind `devacc` (none for nested folds), then the rows
            behind `acc`.
        training: the classifier and its choices.
        acc: test accuracy; for nested folds the mean of the outer folds' rounded accuracies.
        devacc: the accuracy that selected the regulariser; for nested folds the mean over outer folds.
        f1: F1 of class 1 on test, for sentence pairs with two classes; else None.
        ndev: number of items behind `devacc`.
        ntest: number of items behind `acc`.
        dev: the items behind `devacc`: sentence ids, and `correct`, the share of fits that predict the item
            correctly.
        notes: warnings for the user.
    """

    table: pd.DataFrame
    training: Training
    acc: float
    devacc: float
    f1: float | None
    ndev: int
    ntest: int
    dev: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Classification:
    """Labelled sentences or sentence pairs, classified from their vectors."""

    data: LabelledData

    kind: ClassVar[str] = TRANSFER
    is_trained: ClassVar[bool] = True
    pairs: ClassVar[None] = None

    @property
    def sides(self) -> int:
        return 2 if self.data.items["sentence2"].notna().all() else 1

    def sentences(self) -> list[str]:
        return sentences_in(self.data)

    def demand_scorable(self) -> None:
        require(MODELS, f"the classifier of {self.data.task}")
        arrange(self.data)

    def meaning(self, settings: Settings) -> Meaning:
        design = arrange(self.data).design
        folds = "" if design == "split" else str(settings.classification.kfold)
        return Meaning(_TESTED[design], design + folds, "acc", settings.classification.classifier)

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        how, of_sentences = settings.classification, vectors.of_sentences
        size = len(self.data.items)
        sides = [of_sentences[:size], of_sentences[size:]][: len(of_sentences) // size]
        result = classify(
            self.data, *sides, classifier=how.classifier, seed=how.seed, kfold=how.kfold, device=vectors.device
        )
        limits, _ = interval_of(Accuracy(), result.dev, settings.intervals)
        devacc = _number("devacc", result.devacc, result.ndev, limits)
        notes = tuple(f"{self.data.task}: {note}" for note in result.notes)
        return Items(result.table, result.training, (devacc,), notes)

    @staticmethod
    def statistic(_: Signature) -> Accuracy:
        return Accuracy()

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Returns `acc`, `devacc` if the held-out rows are in the table, and `f1` for two classes of pairs."""
        tested, training, intervals = rows.scored, how.training, how.intervals
        assert training is not None, "a classifier was trained"
        limits, support = interval_of(Accuracy(), tested, intervals)
        acc = nested_accuracy(_by_fold(tested)) if training.design == "nested" else percent(support.value)
        numbers = [_number("acc", acc, len(tested), limits)]
        if len(rows.held_out):
            held_out = [fold[:, np.newaxis] for fold in _by_fold(rows.held_out)]
            devacc = percent(mean_accuracy(held_out)[0])
            limits, _ = interval_of(Accuracy(), rows.held_out, intervals)
            numbers.append(_number("devacc", devacc, len(rows.held_out), limits))
        if training.positive:
            limits, f1 = interval_of(F1(training.positive), tested, intervals)
            numbers.append(_number("f1", percent(f1.value), len(tested), limits))
        return Numbers(tuple(numbers), support)


def classify(
    data: LabelledData,
    vectors1: NDArray[np.floating],
    vectors2: NDArray[np.floating] | None = None,
    *,
    classifier: str | Classifier = "logreg",
    seed: int = SEED,
    kfold: int = KFOLD,
    device: str = "cpu",
) -> Classified:
    """Classifies the items of a task from their sentence vectors.

    Args:
        data: the task, n items.
        vectors1: (n, d) vectors of `data.items["sentence1"]`, in that order.
        vectors2: (n, d) vectors of `sentence2`, for pairs. The features are |u - v| and u * v.
        classifier: one of `CLASSIFIERS`, or a classifier object.
        seed: the seed of the folds of `kfold` tasks and of the net; nested folds have a fixed seed.
        kfold: number of folds at either level.
        device: where to compute.
    """
    fitter = _classifier(classifier, seed, device) if isinstance(classifier, str) else classifier
    task = arrange(data)
    notes_before = len(fitter.notes)
    x = _features(data, vectors1, vectors2)[task.order]
    outcome = _DESIGNS[task.design](Trial(data, task, x, fitter, seed, kfold))
    is_tested = np.isin(outcome.rows, outcome.test)
    # Held-out rows in the order of training, tested rows in the order of the data.
    order = np.argsort(task.order[outcome.rows], kind="stable")
    places = np.concatenate([np.flatnonzero(~is_tested), order[is_tested[order]]])
    table = _table(data, task, outcome).iloc[places].reset_index(drop=True)
    tested = table[table["split"] == _TESTED[task.design]]
    paired = bool(data.items["sentence2"].notna().all())
    positive = str(data.classes[1]) if paired and len(data.classes) == 2 else ""
    on_dev = data.items.iloc[task.order[outcome.dev]]
    return Classified(
        table=table,
        training=Training(
            method=fitter.name,
            design=task.design,
            kfold=0 if task.design == "split" else kfold,
            seed=seed,
            positive=positive,
            grid=fitter.grid(task.design),
            chosen=outcome.chosen,
        ),
        acc=outcome.acc,
        devacc=outcome.devacc,
        f1=percent(F1(positive).value(tested)) if positive else None,
        ndev=len(outcome.dev),
        ntest=len(outcome.test),
        dev=pd.DataFrame({**id_columns(on_dev["sentence1"], on_dev["sentence2"]), "correct": outcome.dev_correct}),
        notes=fitter.notes[notes_before:],
    )


def _classifier(name: str, seed: int, device: str) -> Classifier:
    if name == "logreg":
        return LogisticRegression(device=device)
    if name == "mlp-adam":
        return Mlp(seed=seed, device=device)
    raise UserError(f"unknown classifier {name!r}: {suggestion(name, CLASSIFIERS)}")


def _features(
    data: LabelledData, vectors1: NDArray[np.floating], vectors2: NDArray[np.floating] | None
) -> Features:
    paired = data.items["sentence2"].notna().all()
    if paired != (vectors2 is not None):
        raise ValueError(f"{data.task} has {'two sentences' if paired else 'one sentence'} per item")
    sides = [np.asarray(side, dtype=np.float32) for side in (vectors1, vectors2) if side is not None]
    if any(side.ndim != 2 or len(side) != len(data.items) for side in sides):
        raise ValueError(f"expected {len(data.items)} vectors, got {[side.shape for side in sides]}")
    return sides[0] if len(sides) == 1 else pair_features(*sides)


def pair_features(u: Features, v: Features) -> Features:
    """Returns the (n, 2d) features of sentence pairs: |u - v| and u * v (Tai et al., 2015)."""
    return np.concatenate([np.abs(u - v), u * v], axis=1)


def _table(data: LabelledData, task: Labelled, outcome: "Outcome") -> pd.DataFrame:
    position = task.order[outcome.rows]
    names = np.array([str(label) for label in data.classes], dtype=object)
    actual = task.labels[outcome.rows]
    splits, ids, *sides = (
        data.items[name].iloc[position].tolist() for name in ("split", "item_id", "sentence1", "sentence2")
    )
    columns = {
        **item_columns(TRANSFER, data, splits, [""] * len(ids), ids, sides=sides),
        "label": names[actual],
        "prediction": names[outcome.predictions],
        "correct": (outcome.predictions == actual).astype(np.float64),
        "fold": outcome.held_out_by,
    }
    return pd.DataFrame(columns)


def _by_fold(table: pd.DataFrame) -> list[NDArray[np.bool_]]:
    """Returns which rows are correct, for each fold; a split counts as one fold."""
    return [(of_fold > 0).to_numpy() for _, of_fold in table.groupby("fold")["correct"]]


def _number(statistic: str, percent: float, items: int, limits: Interval | None) -> Number:
    # The nearest number with two decimals of a percent, free of the quotient's rounding error. Limits pass through
    # percent, too, so that they round like the scores.
    interval = limits and (100 * limits[0] / 100, 100 * limits[1] / 100)
    return Number(statistic=statistic, value=round(percent / 100, 12), items=items, interval=interval)


@dataclass(frozen=True)
class Trial:
    """A task with features in SentEval's order of rows, and a classifier."""

    data: LabelledData
    task: Labelled
    x: Features
    classifier: Classifier
    seed: int
    kfold: int

    @property
    def classes(self) -> int:
        return len(self.data.classes)


@dataclass(frozen=True)
class Outcome:
    """The scores and predictions of a design.

    `predictions` and `held_out_by` belong to the rows in `rows`; `dev_correct` belongs to the rows in `dev` and
    is a mean over the fits that held a row out.
    """

    acc: float
    devacc: float
    chosen: tuple[float, ...]
    test: Positions
    dev: Positions
    dev_correct: NDArray[np.float64]
    rows: Positions
    predictions: NDArray[np.int16]
    held_out_by: Positions


def choose(scores: ArrayLike) -> int:
    """Returns the index of the best accuracy, rounded to two decimals of a percent; the first best wins.

    >>> choose([0.81234, 0.81230, 0.81229])
    0
    """
    return int(np.argmax([percent(score) for score in np.asarray(scores)]))


def _nested(trial: Trial) -> Outcome:
    x, y, classes, fitter, kfold = trial.x, trial.task.labels, trial.classes, trial.classifier, trial.kfold
    every, grid = np.arange(len(x)), fitter.grid("nested")
    demand_foldable(trial.data, y, kfold)
    outer = stratified(y, every, kfold, NESTED_SEED)
    inner = [stratified(y, fold.train, kfold, NESTED_SEED) for fold in outer]
    validated = fitter.validate(x, y, classes, [fold for folds in inner for fold in folds], grid)
    chosen, best = [], []
    right, times = np.zeros(len(x)), np.zeros(len(x))
    for number, folds in enumerate(inner):
        predictions = validated[:, number * kfold : (number + 1) * kfold]
        scores = _mean_accuracies(predictions, y, folds)
        place = choose(scores)
        chosen.append(grid[place])
        best.append(percent(scores[place]))
        for column, fold in enumerate(folds):
            right[fold.held_out] += predictions[fold.held_out, column, place] == y[fold.held_out]
            times[fold.held_out] += 1
    finals = [FinalFit(fold.train, fold.held_out, value) for fold, value in zip(outer, chosen, strict=True)]
    predicted, by = np.empty(len(x), dtype=np.int16), np.empty(len(x), dtype=np.int64)
    correct = []
    for number, (fold, values) in enumerate(zip(outer, fitter.predict(x, y, classes, finals), strict=True)):
        predicted[fold.held_out], by[fold.held_out] = values, number
        correct.append(values == y[fold.held_out])
    return Outcome(
        acc=nested_accuracy(correct),
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
    y, train, test = trial.task.labels, trial.task.rows("train"), trial.task.rows("test")
    demand_foldable(trial.data, y[train], trial.kfold)
    folds, grid = stratified(y, train, trial.kfold, trial.seed), trial.classifier.grid("kfold")
    validated, place, devacc = _best(trial, folds, grid)
    (predicted,) = trial.classifier.predict(trial.x, y, trial.classes, [FinalFit(train, test, grid[place])])
    on_train, by = np.empty(len(y), dtype=np.int16), np.empty(len(y), dtype=np.int64)
    for number, fold in enumerate(folds):
        on_train[fold.held_out] = validated[fold.held_out, number, place]
        by[fold.held_out] = number
    return _tested(y, devacc, grid[place], (train, on_train[train], by[train]), (test, predicted))


def _split(trial: Trial) -> Outcome:
    y = trial.task.labels
    train, dev, test = (trial.task.rows(split) for split in ("train", "dev", "test"))
    demand_foldable(trial.data, y[train], 2)
    grid = trial.classifier.grid("split")
    validated, place, devacc = _best(trial, [Fold(train, dev)], grid)
    on_dev, predicted = validated[dev, 0, place], validated[test, 0, place]
    # A net is trained again, because its random draws differ; a regression has predicted these rows already.
    if (predicted == UNSEEN).any():
        final = FinalFit(train, test, grid[place], dev)
        (predicted,) = trial.classifier.predict(trial.x, y, trial.classes, [final])
    return _tested(y, devacc, grid[place], (dev, on_dev, np.full(len(dev), -1)), (test, predicted))


def _best(trial: Trial, folds: Sequence[Fold], grid: Sequence[float]) -> tuple[NDArray[np.int16], int, float]:
    """Returns all predictions, the index of the best regulariser, and its accuracy in percent."""
    y = trial.task.labels
    validated = trial.classifier.validate(trial.x, y, trial.classes, folds, grid)
    scores = _mean_accuracies(validated, y, folds)
    place = choose(scores)
    return validated, place, percent(scores[place])


def _tested(
    y: Positions,
    devacc: float,
    regulariser: float,
    held_out: tuple[Positions, NDArray[np.int16], Positions],
    tested: tuple[Positions, NDArray[np.int16]],
) -> Outcome:
    """Returns the outcome for one regulariser; `held_out` are rows, their predictions and their folds."""
    (dev, on_dev, by), (test, predicted) = held_out, tested
    return Outcome(
        acc=percent(np.mean(predicted == y[test])),
        devacc=devacc,
        chosen=(regulariser,),
        test=test,
        dev=dev,
        dev_correct=(on_dev == y[dev]).astype(np.float64),
        rows=np.concatenate([dev, test]),
        predictions=np.concatenate([on_dev, predicted]),
        held_out_by=np.concatenate([by, np.full(len(test), -1)]),
    )


_DESIGNS: Mapping[Design, Callable[[Trial], Outcome]] = {"nested": _nested, "kfold": _kfold, "split": _split}
"""Selects the regulariser and predicts, by design."""


def _mean_accuracies(predictions: NDArray[np.int16], y: Positions, folds: Sequence[Fold]) -> NDArray[np.float64]:
    """Returns the mean held-out accuracy over folds, for each regulariser."""
    return mean_accuracy(
        [predictions[fold.held_out, column] == y[fold.held_out, None] for column, fold in enumerate(folds)]
    )


def mean_accuracy(correct: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """Returns (regularisers,) means over folds of the accuracy, from (rows, regularisers) for each fold."""
    means: NDArray[np.float64] = np.mean([fold.mean(axis=0) for fold in correct], axis=0)
    return means


def nested_accuracy(correct: Sequence[NDArray[np.bool_]]) -> float:
    """Returns the mean of the outer folds' accuracies in percent; they and the mean have two decimals."""
    return float(np.round(np.mean([percent(np.mean(fold)) for fold in correct]), 2))


def percent(share: float | np.floating) -> float:
    """Returns a share in percent, rounded to two decimals by NumPy as in SentEval."""
    return float(np.round(100 * np.float64(share), 2))
