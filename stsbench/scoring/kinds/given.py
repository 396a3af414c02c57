"""Items that another tool scored: a table of `task, item, score`, and of groups whose items depend on each other.

The headline of a task is the mean of its scores. What the tool measured, on what and how, nobody says of a table;
where it is known (`nDCG@10` of queries, say) the measure is the headline's name, and stands in the signature.
"""

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.base.manifest import fingerprint
from stsbench.base.words import storable
from stsbench.data.rows import FORMATS, Rows, ending_of, number, open_rows
from stsbench.data.shared import FOLDED, SENTENCES, sentence_ids
from stsbench.data.tables import FileRead, Status
from stsbench.records.kinds import GIVEN
from stsbench.records.signature import Signature
from stsbench.scoring.settings import GIVEN_SIMILARITY, Settings
from stsbench.scoring.statistic import Mean, MeanShare, number_of
from stsbench.scoring.task import Items, Meaning, Numbers, Scoring, Vectors
from stsbench.scoring.task import Rows as ScoredRows

FORMATS_READ = FORMATS[1:]
"""The endings of such a table: a line of text is no item."""

MEAN: Final = "mean"
"""What the score of items is called of which nobody says what they are scored by."""

_GROUP = "group"
_MOST_GROUPS = 2
_COLUMNS = ("task", "item", "score")
_LARGEST = 1e100
"""Squares of larger scores, which intervals are made of, are no numbers any more."""


@dataclass(frozen=True)
class GivenData:
    """What a table says of one task, apart from the scores.

    The hash is over items and groups, so that the scores of two models on the same items compare. The table is
    none of its files: it has the scores too, which no two models have in common.
    """

    task: str
    sha256: str
    files: tuple[FileRead, ...] = ()
    text: str = "user"
    status: Status = "user"
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class GivenItems:
    """Items with the scores that they were given: there are no sentences, and no vectors are wanted."""

    data: GivenData
    table: pd.DataFrame
    measure: str = MEAN
    split: str = "all"

    kind: ClassVar[str] = GIVEN
    is_trained: ClassVar[bool] = False
    sides: ClassVar[int] = 1
    pairs: ClassVar[None] = None

    def sentences(self) -> list[str]:
        return []

    def demand_scorable(self) -> None:
        """Any items have a mean."""

    def meaning(self, settings: Settings) -> Meaning:
        return Meaning(self.split, "all", self.measure, GIVEN_SIMILARITY)

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        return Items(self.table)

    @staticmethod
    def statistic(signature: Signature) -> Mean:
        # A measure with a name, such as `ndcg_at_10`, is between 0 and 1.
        return Mean() if signature.metric == MEAN else MeanShare()

    @staticmethod
    def numbers(rows: ScoredRows, how: Scoring) -> Numbers:
        """Return the mean of the scores."""
        statistic = GivenItems.statistic(how.signature)
        number, support = number_of(how.signature.metric, statistic, rows.scored, how.intervals)
        return Numbers((number,), support)


def read_items(path: str | Path) -> list[GivenItems]:
    """Read the items of one or several tasks.

    The columns are `task` (else the file's name is the task's), `item`, `score`, and one or two whose names begin
    with `group`: items of one group depend on each other, in whichever of the two it stands (the two sentences of
    a pair, say).

    Args:
        path: a .csv, .tsv, .jsonl or .parquet file, the first three also with .gz or .zst.
    """
    path = Path(path).expanduser()
    require_file(path, absent="name a table of items")
    ending_of(path, FORMATS_READ)
    table = open_rows(path, is_header=lambda cells: "score" in {cell.casefold() for cell in cells})
    places = {name.casefold(): place for place, name in enumerate(table.columns)}
    for name in _COLUMNS[1:]:
        if name not in places:
            there = ", ".join(map(repr, table.columns)) or "none that are named"
            raise UserError(f"{path} has no column {name!r} (its columns: {there}): give task, item and score.")
    groups = [name for name in places if name.startswith(_GROUP)]
    if len(groups) > _MOST_GROUPS:
        raise UserError(
            f"{path} has the group columns {', '.join(groups)}: give one or two, which say what items depend on "
            "each other."
        )
    tasks: dict[str, dict[str, tuple[float, tuple[str, ...]]]] = {}
    for line, cells in table.rows:
        task = _text(cells[places["task"]], "task", table, line) if "task" in places else storable(path.stem)
        item = _text(cells[places["item"]], "item", table, line)
        score = _score(cells[places["score"]], table, line)
        of_task = tasks.setdefault(task, {})
        if item in of_task:
            raise UserError(f"{table.at(line)}: item {item!r} of {task} stands there twice: keep one of them.")
        of_task[item] = (score, tuple(_text(cells[places[name]], name, table, line) for name in groups))
    if not tasks:
        raise UserError(f"{path} has no items: give one a line.")
    return [_as_task(task, items) for task, items in tasks.items()]


def measured_items(
    task: str,
    scores: Mapping[str, float],
    *,
    measure: str,
    split: str,
    truth: object,
    files: Sequence[FileRead] = (),
) -> GivenItems:
    """Return the items of a task that a known measure scored, each by itself.

    Args:
        task: its name.
        scores: of each item.
        measure: what the scores, from 0 to 1, are: `ndcg_at_10`, say.
        split: of the task's data.
        truth: what they were scored against, as JSON has it: two records compare only if it is the same.
        files: that this was read from.
    """
    items = {item: (float(score), ()) for item, score in scores.items()}
    data = GivenData(task, fingerprint({"items": sorted(items), "truth": truth}), tuple(files))
    return replace(_as_task(task, items, split), data=data, measure=measure, split=split)


def _as_task(task: str, items: Mapping[str, tuple[float, tuple[str, ...]]], split: str = "all") -> GivenItems:
    size, groups = len(items), [of_item for _, of_item in items.values()]
    # An item that is in no group depends on no other.
    firsts = [of_item[0] if of_item else f"{task}\0{item}" for item, of_item in zip(items, groups, strict=True)]
    seconds = [of_item[-1] if of_item else first for first, of_item in zip(firsts, groups, strict=True)]
    places, names = pd.factorize(np.array([*firsts, *seconds], dtype=object))
    ids = sentence_ids(names)[places]
    sides = (ids[:size], ids[size:])
    table = pd.DataFrame(
        {
            **{name: [value] * size for name, value in zip(_KEY, (GIVEN, task, split, "user", ""), strict=True)},
            "item_id": list(items),
            **{name: side for pair in (SENTENCES, FOLDED) for name, side in zip(pair, sides, strict=True)},
            "score": np.array([score for score, _ in items.values()]),
        }
    )
    known = sorted((item, *of_item) for item, of_item in zip(items, groups, strict=True))
    return GivenItems(GivenData(task, fingerprint({"items": [list(row) for row in known]})), table)


_KEY = ("kind", "task", "split", "text", "subset")


def _text(cell: object, column: str, table: Rows, line: int) -> str:
    text = str(cell).strip() if isinstance(cell, str | int) and not isinstance(cell, bool) else ""
    if not text:
        raise UserError(f"{table.at(line)}: {column} is {cell!r}; give a name or a whole number.")
    return storable(text)


def _score(cell: object, table: Rows, line: int) -> float:
    plain = isinstance(cell, numbers.Real) and not isinstance(cell, bool)
    value = number(str(cell)) if plain or isinstance(cell, str) else None
    if value is None or not math.isfinite(value):
        raise UserError(
            f"{table.at(line)}: the score {cell!r} is not a finite number; mend it or delete the line."
        )
    if abs(value) > _LARGEST:
        raise UserError(f"{table.at(line)}: the score {cell!r} is too large; divide all scores by one number.")
    return value
