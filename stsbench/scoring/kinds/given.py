"""Items scored by another tool: a table of `task, item, score`, and groups of dependent items.

The score of a task is the mean. A table does not state the measure of its scores; a known one (such as nDCG@10 of
queries) names the score and is part of the signature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import fingerprint
from stsbench.data.qrels import IdenticalIds, Qrels, Ranking
from stsbench.data.reading import Column, Schema, as_name, as_number, read_table
from stsbench.data.rows import open_rows
from stsbench.data.tables import FOLDED, SENTENCES, FileRead, Status, sentence_ids
from stsbench.records.kinds import GIVEN
from stsbench.records.signature import Signature
from stsbench.scoring.kinds.retrieval import Measure
from stsbench.scoring.settings import GIVEN_SIMILARITY, Protocol, Settings
from stsbench.scoring.statistic import ItemsEstimate, Mean, MeanShare
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Vectors

MEAN: Final = "mean"
"""The name of the score if the measure is unknown."""

GIVEN_PROTOCOL = Protocol("given", metric=MEAN, similarity=GIVEN_SIMILARITY)
"""The protocol of records of items only."""

_MAX_GROUPS = 2
_LARGEST = 1e100
"""Intervals need squares of scores, which overflow above this."""

_Item = tuple[float, tuple[str, ...]]
"""The score and the groups of an item."""


@dataclass(frozen=True)
class GivenData:
    """The data of one task without the scores.

    The hash is over items and groups, so that two models are comparable; the table, which has scores, is not part
    of it.
    """

    task: str
    sha256: str
    files: tuple[FileRead, ...] = ()
    text: str = "user"
    status: Status = "user"
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class GivenItems:
    """Items with given scores, without sentences or vectors."""

    data: GivenData
    table: pd.DataFrame
    measure: str = MEAN
    split: str = "all"

    kind: ClassVar[str] = GIVEN
    is_trained: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    sides: ClassVar[int] = 1
    pairs: ClassVar[None] = None

    def sentences(self) -> list[str]:
        return []

    def demand_scorable(self) -> None:
        """Accepts any items."""

    def meaning(self, settings: Settings) -> Meaning:
        return Meaning(self.split, "all", self.measure, GIVEN_SIMILARITY)

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        return Items(self.table)

    @staticmethod
    def statistic(signature: Signature) -> Mean:
        # A measure with a name, such as `ndcg_at_10`, is between 0 and 1.
        return Mean() if signature.metric == MEAN else MeanShare()

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Returns the mean of the scores."""
        mean = ItemsEstimate.of(GivenItems.statistic(how.signature), rows.scored, how.intervals)
        return Numbers((mean.number(how.signature.metric),), mean)


def read_items(path: str | Path) -> list[GivenItems]:
    """Reads the items of one or several tasks from a table.

    The columns are `task` (by default the name of the file), `item`, `score`, and one or two columns whose names
    begin with `group`. Items with the same group in either column are dependent; for example, the two columns hold
    the two sentences of a pair.

    Args:
        path: a .csv, .tsv, .jsonl or .parquet file, the first three also with .gz or .zst.
    """
    path = Path(path).expanduser()
    headers = open_rows(path, is_header=lambda _: True).columns
    groups = [name for name in headers if name.casefold().startswith("group")]
    if len(groups) > _MAX_GROUPS:
        raise UserError(
            f"{path} has the group columns {', '.join(groups)}: give one or two, for items that depend on each "
            "other."
        )
    columns = [Column("task", as_name, optional=True), Column("item", as_name), Column("score", _as_score)]
    table = read_table(path, Schema("item", [*columns, *(Column(name, as_name) for name in groups)]))
    frame = table.frame if "task" in table.frame else table.frame.assign(task=path.stem)
    repeated = frame[frame.duplicated(["task", "item"])]
    if len(repeated):
        line, item, task = (repeated[name].tolist()[0] for name in ("line", "item", "task"))
        raise UserError(f"{table.rows.at(line)}: item {item!r} of {task} occurs twice: keep one of them.")
    tasks = []
    for task, rows in frame.groupby("task", sort=False):
        of_items = zip(rows["score"], rows[groups].itertuples(index=False, name=None), strict=True)
        tasks.append(_as_task(str(task), dict(zip(rows["item"], of_items, strict=True))))
    return tasks


def measured_items(
    task: str,
    scores: Mapping[str, float],
    *,
    measure: str,
    split: str,
    truth: object,
    files: Sequence[FileRead] = (),
) -> GivenItems:
    """Returns the items of a task whose scores, from 0 to 1, are of a known measure, such as `ndcg_at_10`.

    Two records are comparable only if `truth`, the gold data as JSON, is the same.
    """
    items: dict[str, _Item] = {item: (float(score), ()) for item, score in scores.items()}
    data = GivenData(task, fingerprint({"items": sorted(items), "truth": truth}), tuple(files))
    return replace(_as_task(task, items, split), data=data, measure=measure, split=split)


def ranked_items(
    name: str,
    ranking: Ranking,
    qrels: Qrels,
    measure: Measure,
    *,
    split: str,
    identical: IdenticalIds | None,
    files: Sequence[FileRead],
) -> tuple[GivenItems, Items]:
    """Returns the measure of each query of a ranking, as MTEB computes it, and notes."""
    alike = [query for query, documents in ranking.items() if query in documents]
    if alike and identical is None:
        raise UserError(
            f"{name}: {len(alike):,} of {len(ranking):,} queries retrieve a document with their own id "
            f"({alike[0]!r}). Give --identical-ids drop for tasks with MTEB's ignore_identical_ids (ArguAna, "
            "Quora), or keep if equal ids mean nothing."
        )
    # Only the unusual choice belongs to the gold data's hash, so that records without it are still comparable.
    truth: dict[str, object] = {"qrels": qrels} | ({"identical ids": identical} if identical == "drop" else {})
    notes = [f"{name}: {measure} by ir-measures {version('ir-measures')}."]
    if identical == "drop":
        ranking = {query: {key: of[key] for key in of if key != query} for query, of in ranking.items()}
        notes.append(f"{name}: documents with the query's id were left out ({len(alike):,} queries).")
    scores = measure.by_query(ranking, qrels)
    task = measured_items(name, scores, measure=str(measure), split=split, truth=truth, files=files)
    return task, Items(task.table, notes=tuple(notes))


def _as_task(task: str, items: Mapping[str, _Item], split: str = "all") -> GivenItems:
    # An item without a group depends on no other item.
    groups = [of_item or (f"{task}\0{item}",) for item, (_, of_item) in items.items()]
    ends = [of_item[0] for of_item in groups] + [of_item[-1] for of_item in groups]
    places, names = pd.factorize(np.array(ends, dtype=object))
    sides = np.split(sentence_ids(names)[places], 2)
    table = pd.DataFrame(
        {"kind": GIVEN, "task": task, "split": split, "text": "user", "subset": ""}, range(len(items))
    )
    table = table.assign(
        item_id=list(items),
        **{name: side for pair in (SENTENCES, FOLDED) for name, side in zip(pair, sides, strict=True)},
        score=np.array([score for score, _ in items.values()]),
    )
    known = sorted([item, *of_item] for item, (_, of_item) in items.items())
    return GivenItems(GivenData(task, fingerprint({"items": known})), table)


def _as_score(cell: object) -> float:
    score = as_number(cell)
    if abs(score) > _LARGEST:
        raise ValueError(f"{cell!r} is too large; divide all scores by one number.")
    return score
