"""The order of rows and the folds of the transfer tasks, as SentEval has them.

Folds depend on the order of rows. SentEval sorts a task's rows before it encodes them, to pad less, and folds
that order; whoever folds the files' order gets other folds and a score that differs by some tenths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from stsbench.datasets import LabelledData
from stsbench.foundation.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

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

    Raises:
        UserError: if the task has no splits to train and test on.
    """
    items = data.items
    code_of = {label: code for code, label in enumerate(data.classes)}
    labels = np.array([code_of[label] for label in items["label"]], dtype=np.int64)
    splits = items["split"].to_numpy().astype(str)
    names = list(dict.fromkeys(splits.tolist()))
    split_code = np.array([names.index(split) for split in splits])
    keys = [labels, *(_tokens(items[side]) for side in ("sentence2", "sentence1")), split_code]
    order = np.lexsort(keys)
    return Labelled(order, labels[order], splits[order], _design(data.task, names))


def stratified(labels: Rows, among: Rows, folds: int, seed: int) -> list[Fold]:
    """Return the folds of some rows: scikit-learn's `StratifiedKFold`, shuffled.

    Args:
        labels: (n,) the class of every row of the task.
        among: the rows to fold.
        folds: how many.
        seed: of the shuffling.
    """
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    return [
        Fold(among[train], among[held_out])
        for train, held_out in splitter.split(np.zeros((len(among), 1)), labels[among])
    ]


def demand_foldable(data: LabelledData, labels: Rows, folds: int) -> None:
    """Raise unless every class has enough rows to be in every training set of the folds.

    Raises:
        UserError: naming the class and how many rows it has.
    """
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
    found = designs.get(frozenset(splits))
    if found is None:
        raise UserError(
            f"{task} has the splits {', '.join(splits)}: "
            "a classifier needs one split of all items, train and test, or train, dev and test."
        )
    return found
