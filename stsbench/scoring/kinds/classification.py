"""Transfer tasks: a classifier on frozen sentence vectors, with SentEval's protocol.

Conneau and Kiela (2018); SimCSE (Gao et al., 2021), table E.1. SimCSE and ESimCSE report `acc`, MoCoSE `devacc`.
The order of rows, the folds and the default classifier are in `classifiers`; SentEval's PyTorch net, which the
SimCSE papers used, is in `mlp`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from stsbench.base.errors import MODELS, UserError, require
from stsbench.base.words import suggestion
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import LabelledData, id_columns
from stsbench.records.kinds import TRANSFER
from stsbench.records.parts import Number, Training
from stsbench.records.signature import Signature
from stsbench.scoring.classifiers import (
    Classifier,
    Design,
    Features,
    Labelled,
    LogisticRegression,
    arrange,
)
from stsbench.scoring.classifiers import Rows as Positions
from stsbench.scoring.mlp import Mlp
from stsbench.scoring.settings import CLASSIFIERS, KFOLD, SEED, Settings
from stsbench.scoring.statistic import F1, Accuracy, ItemsEstimate
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
    streams: ClassVar[bool] = False
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
        devacc = _number("devacc", result.devacc, ItemsEstimate.of(Accuracy(), result.dev, settings.intervals))
        notes = tuple(f"{self.data.task}: {note}" for note in result.notes)
        return Items(result.table, result.training, (devacc,), notes)

    @staticmethod
    def statistic(_: Signature) -> Accuracy:
        return Accuracy()

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Returns `acc`, `devacc` if the held-out rows are in the table, and `f1` for two classes of pairs."""
        assert how.training is not None, "a classifier was trained"
        acc = ItemsEstimate.of(Accuracy(), rows.scored, how.intervals)
        numbers = [_number("acc", nested_accuracy(_by_fold(rows.scored)), acc)]
        if len(rows.held_out):
            held_out = [fold[:, np.newaxis] for fold in _by_fold(rows.held_out)]
            devacc = ItemsEstimate.of(Accuracy(), rows.held_out, how.intervals)
            numbers.append(_number("devacc", percent(mean_accuracy(held_out)[0]), devacc))
        if how.training.positive:
            f1 = ItemsEstimate.of(F1(how.training.positive), rows.scored, how.intervals)
            numbers.append(_number("f1", percent(f1.value), f1))
        return Numbers(tuple(numbers), acc)


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
    outcome = _outcome(task, _features(data, vectors1, vectors2)[task.order], fitter, kfold, seed)
    held_out, tested = (np.flatnonzero(outcome.rows[name]) for name in ("times", "tested"))
    # Held-out rows in the order of training, then tested rows in the order of the data.
    tested = tested[np.argsort(task.order[tested])]
    rows = tested if task.design == "nested" else np.concatenate([held_out, tested])
    table = _table(task, rows, outcome.rows.iloc[rows])
    paired = bool(data.items["sentence2"].notna().all())
    positive = str(data.classes[1]) if paired and len(data.classes) == 2 else ""
    items, validated = data.items.iloc[task.order[held_out]], outcome.rows.iloc[held_out]
    correct = (validated["right"] / validated["times"]).to_numpy()
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
        f1=percent(F1(positive).value(table[-len(tested) :])) if positive else None,
        ndev=len(held_out),
        ntest=len(tested),
        dev=pd.DataFrame({**id_columns(items["sentence1"], items["sentence2"]), "correct": correct}),
        notes=tuple(fitter.notes),
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


class _Outcome(NamedTuple):
    """Scores in percent, the selected regularisers, and a table of the n rows.

    The columns are `predicted` (by the final fit, else by the validation of the selected regulariser), `fold`,
    `right` of `times` validations, and whether the row is `tested`.
    """

    acc: float
    devacc: float
    chosen: tuple[float, ...]
    rows: pd.DataFrame


def _outcome(task: Labelled, x: Features, fitter: Classifier, kfold: int, seed: int) -> _Outcome:
    """Selects the regulariser, or one for each outer fold, and predicts the test rows with it."""
    y, classes, grid = task.labels, len(task.data.classes), fitter.grid(task.design)
    selections = task.selections(kfold, seed)
    folds = [fold for selection in selections for fold in selection.folds]
    validated = iter(fitter.predict(x, y, classes, folds, [grid] * len(folds)))
    predicted, fold_of = np.empty(len(x), dtype=np.int16), np.full(len(x), -1)
    right, times, is_tested = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x), dtype=bool)
    chosen, best, tested = [], [], []
    for selection in selections:
        predictions = [next(validated) for _ in selection.folds]
        correct = [
            of_fold == y[fold.held_out, None] for of_fold, fold in zip(predictions, selection.folds, strict=True)
        ]
        accuracies = mean_accuracy(correct)
        place = choose(accuracies)
        chosen.append(grid[place])
        best.append(percent(accuracies[place]))
        for number, fold in enumerate(selection.folds):
            right[fold.held_out] += correct[number][:, place]
            times[fold.held_out] += 1
            predicted[fold.held_out] = predictions[number][:, place]
            fold_of[fold.held_out] = number if task.design == "kfold" else -1
    finals = [selection.final for selection in selections]
    by_final = fitter.predict(x, y, classes, finals, [[regulariser] for regulariser in chosen])
    for number, (final, of_final) in enumerate(zip(finals, by_final, strict=True)):
        predicted[final.held_out] = of_final[:, 0]
        fold_of[final.held_out] = number if task.design == "nested" else -1
        is_tested[final.held_out] = True
        tested.append(of_final[:, 0] == y[final.held_out])
    columns = {"predicted": predicted, "fold": fold_of, "right": right, "times": times, "tested": is_tested}
    devacc = float(np.round(np.mean(best), 2))
    return _Outcome(nested_accuracy(tested), devacc, tuple(chosen), pd.DataFrame(columns))


def _table(task: Labelled, rows: Positions, outcome: pd.DataFrame) -> pd.DataFrame:
    items, actual, predicted = task.data.items.iloc[task.order[rows]], task.labels[rows], outcome["predicted"]
    names = np.array([str(label) for label in task.data.classes], dtype=object)
    splits, ids, *sides = (items[name].tolist() for name in ("split", "item_id", "sentence1", "sentence2"))
    columns = {
        **item_columns(TRANSFER, task.data, splits, [""] * len(ids), ids, sides=sides),
        "label": names[actual],
        "prediction": names[predicted],
        "correct": (predicted.to_numpy() == actual).astype(np.float64),
        "fold": outcome["fold"].to_numpy(),
    }
    return pd.DataFrame(columns)


def _by_fold(table: pd.DataFrame) -> list[NDArray[np.bool_]]:
    """Returns which rows are correct, for each fold; a split counts as one fold."""
    return [(of_fold > 0).to_numpy() for _, of_fold in table.groupby("fold")["correct"]]


def _number(statistic: str, percent: float, estimate: ItemsEstimate) -> Number:
    # The nearest number with two decimals of a percent, free of the quotient's rounding error. Limits pass through
    # percent, too, so that they round like the scores.
    limits = estimate.interval
    interval = limits and (100 * limits[0] / 100, 100 * limits[1] / 100)
    return Number(
        statistic=statistic, value=round(percent / 100, 12), items=len(estimate.items), interval=interval
    )


def choose(scores: ArrayLike) -> int:
    """Returns the index of the best accuracy, rounded to two decimals of a percent; the first best wins.

    >>> choose([0.81234, 0.81230, 0.81229])
    0
    """
    return int(np.argmax([percent(score) for score in np.asarray(scores)]))


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
