"""The transfer tasks: a classifier on frozen sentence vectors, by SentEval's protocol.

Conneau and Kiela 2018; SimCSE (Gao et al. 2021) table E.1; `acc` is the score of the SimCSE and ESimCSE tables,
`devacc` that of MoCoSE's. Order of rows, folds and logistic regression, the default: `classifiers`. SentEval's
PyTorch net, the SimCSE papers': `mlp`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.data.sentence_ids import id_columns
from stsbench.data.tables import LabelledData
from stsbench.records.parts import Interval
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
    Rows,
    arrange,
    demand_foldable,
    stratified,
)
from stsbench.scoring.intervals import Support, share_limits
from stsbench.scoring.mlp import Mlp
from stsbench.scoring.settings import CLASSIFIERS, KFOLD, SEED, Intervals

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TransferResult:
    """The scores of one transfer task. All scores are in percent.

    Attributes:
        task: for example `TREC`.
        design: `nested`, `kfold` or `split`.
        classifier: `logreg` or the net's name.
        kfold: the number of folds; 0 where none were made.
        seed: of the run.
        acc: accuracy on test, two decimals; nested: the mean over the outer folds of their rounded accuracies.
        devacc: the accuracy that the regulariser was chosen by; nested: the mean over the outer folds.
        f1: of class 1 on test, for two classes of sentence pairs; else None.
        acc_interval: over the test items (out-of-fold items where there is no test set).
        devacc_interval: over the dev items (the out-of-fold ones of training where there is no dev set).
        f1_interval: over the test items.
        grid: the regularisers, C of `logreg` and the L2 penalty of a net.
        chosen: the regulariser of each final fit: one for each outer fold, or a single one.
        ndev: how many items `devacc` is over.
        ntest: how many items `acc` is over.
        items: one row per prediction: task, split, item_id, label, prediction, correct, fold (of the fold that
            held the item out; -1 where none did), the sentences' numbers (see `id_columns`). Besides the test
            items those of `devacc`, except for nested folds, where an item has nine of them.
        notes: what the person should know.
        support: what the interval of `acc` rests on.
    """

    task: str
    design: Design
    classifier: str
    kfold: int
    seed: int
    acc: float
    devacc: float
    f1: float | None
    acc_interval: Interval | None
    devacc_interval: Interval | None
    f1_interval: Interval | None
    grid: tuple[float, ...]
    chosen: tuple[float, ...]
    ndev: int
    ntest: int
    items: "pd.DataFrame"
    notes: tuple[str, ...]
    support: Support


def score_labelled(
    data: LabelledData,
    vectors1: NDArray[np.floating],
    vectors2: NDArray[np.floating] | None = None,
    *,
    classifier: str | Classifier = "logreg",
    seed: int = SEED,
    kfold: int = KFOLD,
    intervals: Intervals | None = None,
    device: str = "cpu",
) -> TransferResult:
    """Score one transfer task from its sentences' vectors.

    Args:
        data: the task, n items.
        vectors1: (n, d) vectors of `data.items["sentence1"]`, in its order.
        vectors2: (n, d) vectors of `sentence2`, for a task of pairs. Its features are |u - v| and u * v.
        classifier: one of `CLASSIFIERS`, or a classifier made by the caller.
        seed: of the folds of `kfold` tasks and of the net; nested folds have their own.
        kfold: how many folds, at either level.
        intervals: how intervals are computed.
        device: where the classifier computes.

    Raises:
        UserError: if a name is unknown, or the task cannot be folded so.
        ValueError: if there is not one finite vector for each sentence.
    """
    intervals = intervals or Intervals()
    fitter = make_classifier(classifier, seed=seed, device=device) if isinstance(classifier, str) else classifier
    task = arrange(data)
    x = _features(data, vectors1, vectors2)[task.order]
    told = len(fitter.notes)
    outcome = run_design(Trial(data, task, x, fitter, seed, kfold))

    items = _items_table(data, task, outcome)
    tested = items[np.isin(items["position"], task.order[outcome.test])]
    positive = data.items["sentence2"].notna().all() and len(data.classes) == 2
    f1, f1_interval = _f1(data, tested, intervals) if positive else (None, None)
    correct = tested["correct"].to_numpy()
    acc_interval, support = share_limits(correct, None, tested, intervals)
    dev = _ids(data, task.order[outcome.dev])
    devacc_interval, _ = share_limits(outcome.dev_correct, None, dev, intervals)
    return TransferResult(
        task=data.task,
        design=task.design,
        classifier=fitter.name,
        kfold=0 if task.design == "split" else kfold,
        seed=seed,
        acc=outcome.acc,
        devacc=outcome.devacc,
        f1=f1,
        acc_interval=_percents(acc_interval),
        devacc_interval=_percents(devacc_interval),
        f1_interval=_percents(f1_interval),
        grid=fitter.grid(task.design),
        chosen=outcome.chosen,
        ndev=len(outcome.dev),
        ntest=len(outcome.test),
        items=items.drop(columns="position"),
        notes=fitter.notes[told:],
        support=support,
    )


def make_classifier(name: str, *, seed: int = SEED, device: str = "cpu") -> Classifier:
    """Return the classifier called `name`.

    Raises:
        UserError: if there is none.
    """
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
        raise ValueError(f"{data.task} has {'two sentences' if paired else 'one sentence'} an item")
    sides = [np.asarray(side, dtype=np.float32) for side in (vectors1, vectors2) if side is not None]
    if any(side.ndim != 2 or len(side) != len(data.items) for side in sides):
        raise ValueError(f"expected {len(data.items)} vectors, got {[side.shape for side in sides]}")
    return sides[0] if len(sides) == 1 else pair_features(*sides)


def pair_features(u: Features, v: Features) -> Features:
    """Return the (n, 2d) features of pairs of sentences: |u - v| and u * v (Tai et al. 2015)."""
    return np.concatenate([np.abs(u - v), u * v], axis=1)


def _items_table(data: LabelledData, task: Labelled, outcome: "Outcome") -> "pd.DataFrame":
    import pandas as pd

    position = task.order[outcome.rows]
    names = np.array([str(label) for label in data.classes], dtype=object)
    actual = task.labels[outcome.rows]
    ids = _ids(data, position)
    table = pd.DataFrame(
        {
            "task": data.task,
            "split": data.items["split"].to_numpy()[position],
            "item_id": data.items["item_id"].to_numpy()[position],
            "label": names[actual],
            "prediction": names[outcome.predictions],
            "correct": outcome.predictions == actual,
            "fold": outcome.held_out_by,
            **{name: ids[name].to_numpy() for name in ids},
            "position": position,
        }
    )
    return table.sort_values("position", kind="stable", ignore_index=True)


def _f1(data: LabelledData, tested: "pd.DataFrame", intervals: Intervals) -> tuple[float, Interval | None]:
    above, below = f1_shares(tested, str(data.classes[1]))
    return f1_percent(above, below), share_limits(above, below, tested, intervals)[0]


def f1_shares(tested: "pd.DataFrame", positive: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each item adds to the upper and to the lower sum of F1.

    Args:
        tested: n rows of an item table.
        positive: the class that F1 is of.
    """
    said, is_ = (tested[name].to_numpy() == positive for name in ("prediction", "label"))
    return 2.0 * (said & is_), said.astype(np.float64) + is_


def f1_percent(above: NDArray[np.float64], below: NDArray[np.float64]) -> float:
    """Return F1 in percent with two decimals, of what items add to its two sums; 0 where nothing is positive."""
    return percent(above.sum() / max(below.sum(), 1.0))


def _ids(data: LabelledData, positions: Rows) -> "pd.DataFrame":
    import pandas as pd

    items = data.items.iloc[positions]
    return pd.DataFrame(id_columns(items["sentence1"], items["sentence2"]))


def _percents(limits: Interval | None) -> Interval | None:
    return limits and (100 * limits[0], 100 * limits[1])


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
    on_dev, predicted = validated[dev, 0, place], validated[test, 0, place]
    # A net is trained again, with another count of its draws; a regression would only be solved again.
    if (predicted == UNSEEN).any():
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
    return mean_accuracy(
        [predictions[fold.held_out, column] == y[fold.held_out, None] for column, fold in enumerate(folds)]
    )


def mean_accuracy(correct: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """Return the mean over folds of the share of rows that are right.

    Args:
        correct: for each fold (rows held out, regularisers), whether the prediction is right.

    Returns:
        (regularisers,) shares.
    """
    means: NDArray[np.float64] = np.mean([fold.mean(axis=0) for fold in correct], axis=0)
    return means


def nested_accuracy(correct: Sequence[NDArray[np.bool_]]) -> float:
    """Return the mean over outer folds of their accuracies in percent, each and the mean with two decimals.

    Args:
        correct: for each outer fold (rows held out,), whether the prediction is right.
    """
    return float(np.round(np.mean([percent(np.mean(fold)) for fold in correct]), 2))


def percent(share: float | np.floating) -> float:
    """Return a share in percent with two decimals."""
    # As NumPy rounds, which is what SentEval does.
    return float(np.round(100 * np.float64(share), 2))
