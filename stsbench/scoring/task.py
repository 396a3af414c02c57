"""The interface of a task: it names its sentences, turns their vectors into items, and items into numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.data.tables import FileRead, Status, StsData, id_columns
from stsbench.records.parts import Number, Training
from stsbench.records.signature import Signature
from stsbench.scoring.settings import Intervals, Settings
from stsbench.scoring.statistic import ItemsEstimate, Statistic

Texts = pd.Series | Sequence[str]
"""(n,) texts."""


class Meaning(NamedTuple):
    """The parts of a task's signature that define its headline score, apart from text and data."""

    split: str
    aggregation: str
    metric: str
    similarity: str


@dataclass(frozen=True)
class Vectors:
    """The vectors of a task's sentences.

    Attributes:
        matrix: (sequences, d) processed vectors, one row per token sequence.
        rows: (k,) the row of each sentence, in the order of `Task.sentences`.
        lengths: (k,) numbers of sub-words; -1 if unknown.
        device: where to train.
        encode: encodes texts of the second side of a task that streams: (n, d) processed vectors.
    """

    matrix: NDArray[np.floating]
    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    device: str = "cpu"
    encode: Callable[[Sequence[str]], NDArray[np.floating]] = lambda _: np.empty((0, 0))

    @property
    def of_sentences(self) -> NDArray[np.floating]:
        """(k, d) vectors of the sentences."""
        return self.matrix[self.rows]


@dataclass(frozen=True)
class Items:
    """A task's rows of the items table, with the training, numbers and notes that belong to them.

    Attributes:
        table: the rows behind the headline score, and held-out rows.
        training: the trained classifier or regressor; None without training.
        stated: numbers that the table does not determine.
        notes: notes for the user.
        cost: numbers for the record's `encoding`.
    """

    table: pd.DataFrame
    training: Training | None = None
    stated: tuple[Number, ...] = ()
    notes: tuple[str, ...] = ()
    cost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Numbers:
    """The numbers of a task, the headline first, and the headline's estimate."""

    numbers: tuple[Number, ...]
    headline: ItemsEstimate


@dataclass(frozen=True)
class Rows:
    """The items behind a headline score, and held-out items of other splits."""

    scored: pd.DataFrame
    held_out: pd.DataFrame

    @classmethod
    def of(cls, table: pd.DataFrame, split: str) -> "Rows":
        """Splits a task's part of the items table."""
        is_scored = table["split"] == split
        return cls(table[is_scored].reset_index(drop=True), table[~is_scored].reset_index(drop=True))


@dataclass(frozen=True)
class Scoring:
    """How items become numbers: the headline's signature, the training behind the items, and the intervals."""

    signature: Signature
    training: Training | None
    intervals: Intervals


class Source(Protocol):
    """The data of a task: name, text variant and files, with a hash.

    `problems` has a sentence for each file that differs from the catalogue's.
    """

    @property
    def task(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def status(self) -> Status: ...

    @property
    def sha256(self) -> str: ...

    @property
    def files(self) -> tuple[FileRead, ...]: ...

    @property
    def problems(self) -> tuple[str, ...]: ...


class Task(Protocol):
    """A task of any kind."""

    kind: ClassVar[str]
    is_trained: ClassVar[bool]
    """Whether a model is trained on the vectors, which are not normalised then."""
    streams: ClassVar[bool]
    """Whether `sentences` are the first side only, and `items` encodes the second side in parts."""

    @property
    def data(self) -> Source:
        """The data: name, text, files and hashes."""

    @property
    def sides(self) -> int:
        """The number of sides that can have prompts of their own: 2 for pairs, else 1."""

    @property
    def pairs(self) -> StsData | None:
        """The pairs, if their vectors are compared; else None."""

    def sentences(self) -> list[str]:
        """Returns the sentences; for pairs all first sides, then all second sides."""

    def demand_scorable(self) -> None:
        """Raises `UserError` if the data does not define a score."""

    def meaning(self, settings: Settings) -> Meaning:
        """Returns the meaning of the headline score."""

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        """Turns the vectors of the sentences into items."""

    @staticmethod
    def statistic(signature: Signature, /) -> Statistic:
        """Returns the statistic of the headline score."""

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Computes the numbers from the items, when measuring and when checking a record."""


def item_columns(
    kind: str,
    data: Source,
    split: str | Texts,
    subset: Texts,
    item_id: Texts,
    *,
    sides: Sequence[Texts],
) -> dict[str, Any]:
    """Returns the columns that all rows of the items table have.

    Args:
        kind: the task's kind.
        data: the task's name, text and files.
        split: the split of all rows, or (n,) splits.
        subset: (n,) subsets; empty strings if there are none.
        item_id: (n,) ids of the items in the data.
        sides: (n,) first and (n,) second sentences; None for a missing second sentence. Only these two columns
            determine which items are dependent.
    """
    size = len(item_id)
    return {
        "kind": [kind] * size,
        "task": [data.task] * size,
        "split": [split] * size if isinstance(split, str) else list(split),
        "text": [data.text] * size,
        "subset": list(subset),
        "item_id": list(item_id),
        **id_columns(sides[0], sides[1]),
    }
