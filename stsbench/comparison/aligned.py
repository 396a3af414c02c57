"""Two records side by side: the same tasks by the same protocol, pair by pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.records.parts import TaskPart, TransferPart
from stsbench.records.record import RunRecord
from stsbench.records.signature import PROTOCOL_FIELDS, Signature

if TYPE_CHECKING:
    import pandas as pd

_PAIR = ["subset", "pair_id"]

ScoredPart = TaskPart | TransferPart


@dataclass(frozen=True)
class AlignedTask:
    """One task as both models scored it, pair by pair.

    Attributes:
        label: the task's name, with split and text where the records hold several.
        signature: of A's score; B's has the same protocol.
        subsets: their names, in the order of the data.
        codes: (n,) the subset of each pair, an index into `subsets`.
        gold: (n,) the annotators' scores.
        a: (n,) the similarities by A; `b`: by B.
    """

    label: str
    signature: Signature
    subsets: tuple[str, ...]
    codes: NDArray[np.int64]
    gold: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]


def align(a: RunRecord, b: RunRecord, names: tuple[str, str]) -> tuple[list[AlignedTask], list[str]]:
    """Return the STS tasks that both records hold, pair by pair, and the names of those that only one holds.

    Args:
        a: the one record.
        b: the other.
        names: of the two, for messages.

    Raises:
        UserError: if protocols differ on a task (naming the field), or the two scored other pairs; or a pair table
            is missing.
    """
    couples, alone = _couples(a.tasks, b.tasks)
    labels = labels_of([one for one, _ in couples])
    for label, (one, other) in zip(labels, couples, strict=True):
        require_same_protocol(label, one, other, names)
    return [
        _aligned(label, one, _rows(a, one), _rows(b, other), a.protocol.similarity)
        for label, (one, other) in zip(labels, couples, strict=True)
    ], alone


def require_same_protocol(label: str, one: ScoredPart, other: ScoredPart, names: tuple[str, str]) -> None:
    """Make sure that two scores of a task mean the same.

    Args:
        label: of the task.
        one: the one score; `other`: the other.
        other: see `one`.
        names: of the runs, for the message.

    Raises:
        UserError: naming the first field of their signatures in which they differ.
    """
    first, second = Signature.parse(one.signature), Signature.parse(other.signature)
    for field in PROTOCOL_FIELDS:
        if getattr(first, field) != getattr(second, field):
            raise UserError(
                f"{names[0]} and {names[1]} do not compare on {label}: {field} is {getattr(first, field)} in one "
                f"and {getattr(second, field)} in the other: measure both by one protocol."
            )


def _couples(a: Sequence[TaskPart], b: Sequence[TaskPart]) -> tuple[list[tuple[TaskPart, TaskPart]], list[str]]:
    """Return the parts that belong together, in A's order, and the names of those without a counterpart.

    A task that both measured on other splits or texts is a couple too: the one to be refused.
    """
    left = {(part.task, part.split, part.text): part for part in b}
    found = {id(part): left.pop((part.task, part.split, part.text), None) for part in a}
    couples, alone = [], []
    for part in a:
        other = found[id(part)] or next((own for own in left.values() if own.task == part.task), None)
        if other is None:
            alone.append(part.task)
            continue
        left.pop((other.task, other.split, other.text), None)
        couples.append((part, other))
    return couples, [*alone, *(part.task for part in left.values())]


def _aligned(
    label: str, part: TaskPart, one: "pd.DataFrame", other: "pd.DataFrame", similarity: str
) -> AlignedTask:
    if not one[_PAIR].equals(other[_PAIR]):
        keyed = other.set_index(_PAIR)
        wanted = one.set_index(_PAIR).index
        if len(one) != len(other) or not wanted.isin(keyed.index).all():
            missing = int((~wanted.isin(keyed.index)).sum()) or len(other) - len(one)
            raise UserError(
                f"the two do not compare on {label}: pair_id differs ({missing} of one are not in the other): "
                "measure both on the same data."
            )
        other = keyed.loc[wanted].reset_index()
    gold = one["gold"].to_numpy()
    if not np.array_equal(gold, other["gold"].to_numpy()):
        raise UserError(
            f"the two do not compare on {label}: gold differs for the same pair_id: measure both on the same data."
        )
    subsets = tuple(dict.fromkeys(one["subset"]))
    codes = one["subset"].map({name: code for code, name in enumerate(subsets)}).to_numpy()
    return AlignedTask(
        label=label,
        signature=Signature.parse(part.signature),
        subsets=subsets,
        codes=codes,
        gold=gold,
        a=one[similarity].to_numpy(),
        b=other[similarity].to_numpy(),
    )


def _rows(record: RunRecord, part: TaskPart) -> "pd.DataFrame":
    pairs = record.pairs
    own = (pairs["task"] == part.task) & (pairs["split"] == part.split) & (pairs["text"] == part.text)
    return pairs[own].reset_index(drop=True)


def left_out(tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the note on tasks that not all records hold."""
    return (f"not all records hold {', '.join(tasks)}: left out.",) if tasks else ()


def labels_of(parts: Sequence[ScoredPart]) -> list[str]:
    """Return a name for each task, with split and text where there are several of that name."""
    names = [part.task for part in parts]
    return [part.task if names.count(part.task) == 1 else _full_name(part) for part in parts]


def _full_name(part: ScoredPart) -> str:
    split = f":{part.split}" if isinstance(part, TaskPart) else ""
    return f"{part.task}{split}@{part.text}"
