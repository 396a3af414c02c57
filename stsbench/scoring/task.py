"""What a task is: it names its sentences, turns their vectors into items, and says which numbers they give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.data.shared import id_columns
from stsbench.data.tables import FileRead, Status, StsData
from stsbench.records.parts import Number, Training
from stsbench.records.signature import Signature
from stsbench.scoring.settings import Intervals, Settings
from stsbench.scoring.statistic import Support

Texts = pd.Series | Sequence[str]
"""(n,) texts."""


class Meaning(NamedTuple):
    """What a task's signature says of its headline, beside text and data."""

    split: str
    aggregation: str
    metric: str
    similarity: str


@dataclass(frozen=True)
class Vectors:
    """The vectors of a task's sentences.

    Attributes:
        matrix: a row for each token sequence, post-processing done; shape (sequences, dimensions).
        rows: (k,) the row of each sentence, in the order of `Task.sentences`.
        lengths: (k,) of the same in sub-words; -1 where unknown.
        device: where what is trained on them is computed.
    """

    matrix: NDArray[np.floating]
    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    device: str = "cpu"

    @property
    def of_sentences(self) -> NDArray[np.floating]:
        """(k, dimensions) the vector of each sentence."""
        return self.matrix[self.rows]


@dataclass(frozen=True)
class Items:
    """What a task makes of the vectors.

    Attributes:
        table: its rows of the items table: those that the headline is over, and those that were held out.
        training: what was trained; None if nothing was.
        stated: numbers that the table does not give, or gives to fewer digits.
        notes: what the person should know.
    """

    table: pd.DataFrame
    training: Training | None = None
    stated: tuple[Number, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Numbers:
    """The numbers of a task, the headline first, and what the headline's interval rests on."""

    numbers: tuple[Number, ...]
    support: Support


@dataclass(frozen=True)
class Rows:
    """The items that a headline is over, and those of other splits of a task that is trained on."""

    scored: pd.DataFrame
    held_out: pd.DataFrame

    @classmethod
    def of(cls, table: pd.DataFrame, split: str) -> "Rows":
        """Return the rows of one score's part of the items table."""
        is_scored = table["split"] == split
        return cls(table[is_scored].reset_index(drop=True), table[~is_scored].reset_index(drop=True))


@dataclass(frozen=True)
class Scoring:
    """How items become numbers: the headline's signature, what was trained to make them, and the intervals."""

    signature: Signature
    training: Training | None
    intervals: Intervals


class Source(Protocol):
    """What a task was read as: its name, text variant and files, with a hash over them.

    The problems are a sentence for each file that is not the catalogued one.
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
    """A task to score, of any kind."""

    kind: ClassVar[str]
    is_trained: ClassVar[bool]
    """Whether something is trained on its vectors, which come straight from the pooling then."""

    @property
    def data(self) -> Source:
        """What it was read as: its name, text, files and their hashes."""

    @property
    def sides(self) -> int:
        """How many sentences an item has: 2 of pairs, or 1."""

    @property
    def pairs(self) -> StsData | None:
        """The pairs whose vectors are compared; None where something is trained on them, or there are none."""

    def sentences(self) -> list[str]:
        """Return its sentences, of pairs all first sides, then all second ones; each is encoded once."""

    def demand_scorable(self) -> None:
        """Raise unless a score can be defined on it.

        Raises:
            UserError: saying why not.
        """

    def meaning(self, settings: Settings) -> Meaning:
        """Return what its headline means."""

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        """Turn the vectors of its sentences into items."""

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Return what the items give: when they are measured, and whenever a record is computed again."""


def item_columns(
    kind: str,
    data: Source,
    split: str | Texts,
    subset: Texts,
    item_id: Texts,
    *,
    sides: Sequence[Texts],
) -> dict[str, Any]:
    """Return the columns that every row of the items table has.

    Args:
        kind: the task's kind.
        data: the task's name, text and files.
        split: the split of all rows, or (n,) the split of each.
        subset: (n,) subsets; empty strings where the task has none.
        item_id: (n,) the items' ids in the data.
        sides: (n,) first sentences and (n,) second sentences; the latter are None where an item has one sentence.
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
