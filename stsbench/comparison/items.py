"""Two models on the same labelled items: is the difference of their accuracies real?"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.comparison.aligned import labels_of, left_out, require_same_protocol
from stsbench.comparison.pairs import Scored, row_of
from stsbench.comparison.result import AVERAGES, Difference, corrected
from stsbench.records.record import RunRecord
from stsbench.scoring.sts import Bootstrap
from stsbench.statistics.bootstrap import bootstrap_ratio, generator
from stsbench.statistics.significance import mcnemar

if TYPE_CHECKING:
    import pandas as pd

_ITEM = ["split", "item_id"]


def compare_transfer(
    a: RunRecord, b: RunRecord, names: tuple[str, str], *, bootstrap: Bootstrap
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return how two records differ on the transfer tasks that both hold, and what a reader should know.

    Args:
        a: the one, often the baseline.
        b: the other.
        names: what to call them.
        bootstrap: resamples (at least one), level and seed.

    Raises:
        UserError: if protocols differ on a task (naming the field), or the two were scored on other items; or an
            item table is missing.
    """
    one, other = (dict(zip(labels_of(record.transfer), record.transfer, strict=True)) for record in (a, b))
    shared = [label for label in one if label in other]
    for label in shared:
        require_same_protocol(label, one[label], other[label], names)
    if not shared:
        return (), left_out([*one, *other])
    return compare_items(_items(a), _items(b), bootstrap=bootstrap)


def _items(record: RunRecord) -> "pd.DataFrame":
    """Return the items of a record's transfer tasks, each under its task's label."""
    import pandas as pd

    table = record.items
    return pd.concat(
        table[(table["task"] == part.task) & (table["text"] == part.text)].assign(task=label)
        for label, part in zip(labels_of(record.transfer), record.transfer, strict=True)
    )


def compare_items(
    a: "pd.DataFrame", b: "pd.DataFrame", *, bootstrap: Bootstrap
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return how the predictions of two models differ on the transfer tasks that both were scored on, and notes.

    An accuracy is the share of test items that are right; for tasks without a test set of all items, each
    predicted by the fold that held it out. The mean over folds, which papers print, differs from it a
    little.

    Args:
        a: the items of the one: columns task, split, item_id, label, correct.
        b: the items of the other.
        bootstrap: resamples (at least one), level and seed.

    Raises:
        UserError: if they were scored on other items or labels.
    """
    tasks = [task for task in dict.fromkeys(a["task"]) if (b["task"] == task).any()]
    rows: list[Difference] = []
    wholes: list[Scored] = []
    for task in tasks:
        correct = _aligned(task, _tested(a, task), _tested(b, task))
        wholes.append(_scores(correct, task, bootstrap))
        test = mcnemar(*correct)
        tests: dict[str, Any] = {
            "test": "mcnemar",
            "test_p": test.p_value,
            "details": {"only_a": float(test.only_first), "only_b": float(test.only_second)},
        }
        rows.append(row_of(wholes[-1], "transfer", task, correct.shape[1], level=bootstrap.level, **tests))
    if len(tasks) > 1:
        size = sum(row.size for row in rows)
        rows.append(row_of(Scored.mean(wholes), "transfer", AVERAGES["transfer"], size, level=bootstrap.level))
    return corrected(rows), left_out(sorted({*a["task"], *b["task"]} - set(tasks)))


def _tested(items: "pd.DataFrame", task: str) -> "pd.DataFrame":
    """Return the items that a task's accuracy is over: its test set, or all where it has none."""
    own = items[items["task"] == task]
    is_test = own["split"] == "test"
    return (own[is_test] if is_test.any() else own).reset_index(drop=True)


def _aligned(task: str, one: "pd.DataFrame", other: "pd.DataFrame") -> NDArray[np.bool_]:
    """Return (2, n) whether each model got each item right.

    Raises:
        UserError: if they do not hold the same items with the same labels.
    """
    keyed = other.set_index(_ITEM)
    wanted = one.set_index(_ITEM).index
    if len(one) != len(other) or not wanted.isin(keyed.index).all():
        raise UserError(
            f"the two do not compare on {task}: item_id differs ({len(one)} items in one, {len(other)} in the "
            "other, not all of them the same): measure both on the same data."
        )
    keyed = keyed.loc[wanted]
    if not np.array_equal(one["label"].to_numpy(), keyed["label"].to_numpy()):
        raise UserError(
            f"the two do not compare on {task}: label differs for the same item_id: measure both on the same data."
        )
    return np.array([one["correct"].to_numpy(), keyed["correct"].to_numpy()], dtype=bool)


def _scores(correct: NDArray[np.bool_], task: str, bootstrap: Bootstrap) -> Scored:
    # The same draws for both, named as the records name theirs.
    replicates = [
        bootstrap_ratio(side, rng=generator(bootstrap.seed, task, "acc"), resamples=bootstrap.resamples)
        for side in correct
    ]
    return Scored(correct.mean(axis=1), np.array(replicates))
