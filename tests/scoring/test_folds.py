"""Rows stand in SentEval's order, and are folded by scikit-learn with SentEval's seeds."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled
from stsbench.scoring.classifiers import arrange, demand_foldable, stratified


def order_by_python(data):
    """Return item positions as SentEval's own `sorted` leaves them, split by split."""
    positions = []
    for split in dict.fromkeys(data.items["split"]):
        rows = [
            (
                len(item.sentence1.split()),
                len((item.sentence2 or "").split()),
                data.classes.index(item.label),
                place,
            )
            for place, item in enumerate(data.items.itertuples())
            if item.split == split
        ]
        positions += [row[3] for row in sorted(rows, key=lambda row: row[:3])]
    return positions


@pytest.mark.parametrize(("design", "pairs"), [("nested", False), ("kfold", True), ("split", False)])
def test_rows_are_sorted_by_tokens_then_label_and_ties_stay(toy, design, pairs):
    data = toy(design, pairs=pairs, classes=3)
    task = arrange(data)
    assert task.design == design
    assert task.order.tolist() == order_by_python(data)
    assert [data.classes[code] for code in task.labels] == data.items["label"].iloc[task.order].tolist()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["CR", "TREC", "MRPC", "SICK-E"])
def test_real_tasks_are_sorted_as_senteval_sorts_them(senteval, name):
    data = load_labelled(name, [senteval])
    assert arrange(data).order.tolist() == order_by_python(data)


def test_folds_are_scikit_learns_and_number_the_tasks_own_rows(toy):
    task = arrange(toy("kfold"))
    among = task.rows("test")
    theirs = StratifiedKFold(5, shuffle=True, random_state=1111).split(among, task.labels[among])
    for ours, (train, held_out) in zip(stratified(task.labels, among, 5, 1111), theirs, strict=True):
        assert ours.train.tolist() == among[train].tolist()
        assert ours.held_out.tolist() == among[held_out].tolist()


def test_a_class_too_small_to_fold_is_named(toy):
    data = toy(classes=2, n=90)
    labels = np.array([0] * 81 + [1] * 9)
    with pytest.raises(UserError, match="class class1 of toy has 9 training items, too few for 10 folds"):
        demand_foldable(data, labels, 10)
    with pytest.raises(UserError, match="1 folds are too few"):
        demand_foldable(data, labels, 1)


def test_splits_that_no_design_has_are_named(toy):
    data = toy("split")
    data.items.loc[data.items["split"] == "train", "split"] = "dev"
    with pytest.raises(UserError, match="toy has the splits dev, test; expected"):
        arrange(data)
