"""The scores of each record on a board, recomputed from its items and cached."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, cache_dir, sha256_of
from stsbench.base.manifest import fingerprint
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.records.items import ITEMS
from stsbench.records.provenance import redact
from stsbench.records.record import RunRecord
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import Intervals
from stsbench.statistics import DEPENDENCE


class BoardCache:
    """Plain data by key, one JSON file each with a checksum; `problem` says why a value could not be stored."""

    def __init__(self) -> None:
        self.folder, self.problem = cache_dir() / "board", ""

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Returns the value of a key; makes and stores it if it is absent."""
        path = self.folder / f"{key}.json"
        try:
            digest, text = path.read_text(encoding="utf-8").split("\n", 1)
            if digest == _digest(text):
                return json.loads(text)
        except (OSError, ValueError):
            pass  # absent or damaged
        value = make()
        text = json.dumps(value)
        try:
            with atomic_path(path) as file:
                file.write_text(f"{_digest(text)}\n{text}", encoding="utf-8")
        except UserError as error:
            self.problem = f"{redact(str(self.folder))} cannot be written, so the next board starts anew: {error}"
        return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class TaskSummary:
    """A score from -1 to 1 on a task or on average, with its interval, all recomputed from the items.

    `items` is a hash of the task's items and their gold scores, in any order; empty for an average.
    """

    value: float | None
    low: float | None
    high: float | None
    size: int
    items: str = ""


@dataclass(frozen=True)
class RunSummary:
    """The scores of a record, recomputed from its items.

    Without items there are no scores, and `note` has the reason. `key` identifies record, items and intervals.
    """

    tasks: tuple[TaskSummary, ...] = ()
    averages: tuple[TaskSummary, ...] = ()
    note: str = ""
    key: str = ""

    @property
    def is_defined(self) -> bool:
        """Whether there are items and all scores are defined."""
        return bool(self.tasks) and all(task.value is not None for task in self.tasks)


def summarise(record: RunRecord, intervals: Intervals, cache: BoardCache) -> RunSummary:
    """Returns the scores of a record, from the cache or from its items.

    Raises:
        UserError: if the scores of the record differ from those of its items, or the items cannot be read.
    """
    path = (record.folder or Path()) / ITEMS
    if record.is_imported or not path.is_file():
        return RunSummary(note=" ".join(require_recomputed(record, intervals=False)))
    settings = {"stsbench": __version__, **vars(intervals)}
    key = fingerprint({**settings, "record": record.to_dict(), "items": sha256_of(path)})
    tasks, averages = cache.get(key, lambda: _computed(record, intervals))
    return RunSummary(
        tuple(TaskSummary(**of) for of in tasks), tuple(TaskSummary(**of) for of in averages), key=key
    )


def _computed(record: RunRecord, intervals: Intervals) -> list[list[dict[str, Any]]]:
    held = record.with_items(record.items, record.folder)  # read once
    require_recomputed(held, intervals=False)
    summaries: list[list[dict[str, Any]]] = [[], []]
    for task in aligned_scores({record.model.name: held}, may_be_undefined=True, whole=True)[0]:
        summaries[task.is_average].append(asdict(_summary(task, intervals)))
    return summaries


def _summary(task: AlignedScores, intervals: Intervals) -> TaskSummary:
    limits, value = task.limits(0, intervals.interval or DEPENDENCE, intervals.level), float(task.scores[0])
    low, high = (limits.low, limits.high) if limits.exists else (None, None)
    items = "" if task.is_average else items_digest(task.items[0])
    return TaskSummary(None if np.isnan(value) else value, low, high, task.size, items)


def items_digest(table: pd.DataFrame) -> str:
    """Returns a hash of a task's items, their sentences and gold scores or labels, in any order."""
    names = ["subset", "item_id", *(name for name in ("gold", "label") if name in table), *SENTENCES, *FOLDED]
    return hashlib.sha256(np.sort(pd.util.hash_pandas_object(table[names], index=False)).tobytes()).hexdigest()
