"""What a board needs of a record's items: computed once, and kept in the cache as long as nothing has changed.

A record's scores are computed again from its items, as `compare` does; what each item contributes to each score is
kept beside them. So a second board reads no table, and two records are compared without their items.
"""

import gc
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import cache_dir, sha256_of
from stsbench.base.machine import cores, thread_limits
from stsbench.base.manifest import fingerprint
from stsbench.base.progress import Progress
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.encoders.cache import kept_by_board
from stsbench.judging.aligned import AlignedScores, aligned_scores, with_average
from stsbench.records.items import ITEMS
from stsbench.records.parts import Score
from stsbench.records.provenance import redact
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run
from stsbench.scoring.kinds import statistic_of
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.statistic import sharing_of
from stsbench.statistics import Dependence

Floats = NDArray[np.float64]

_LAYOUT = "board 2"
"""Of what is kept: under another name nothing of this is found."""

_NOT_OURS = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""What SQLite says of a file that is damaged, or holds something else; all else is about the disk."""

_TRUTHS = ("gold", "label")

_WORTH_A_PROCESS = 25
"""Records for which a process of its own is started: it takes half a second to begin, as some ten of them."""

_KEEP = "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)"


class Shelf:
    """What was made before, by a key that says of what; one SQLite file in the cache.

    What is damaged, or was never written here, is as good as absent: it is made again.

    Attributes:
        path: of the file.
        trouble: why it is held in memory, and gone with the process; empty where it is not.
        sound: the keys of what was put there, or found whole, by this process.
    """

    def __init__(self) -> None:
        self.path = kept_by_board()
        self.trouble = ""
        self.sound: set[str] = set()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _opened(self.path)
        except (OSError, sqlite3.Error) as error:
            self._recover(error)

    def __enter__(self) -> "Shelf":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if not self.trouble:
            with suppress(OSError):  # cleared meanwhile
                os.utime(self.path)

    def get(self, key: str) -> tuple[Any, Floats] | None:
        """Return what is kept under a key: plain data, and numbers; None if there is nothing, or it is damaged."""
        try:
            row = self._file.execute("SELECT said, numbers, digest FROM kept WHERE key = ?", [key]).fetchone()
            if row is None or row[2] != _digest(key, row[0], row[1]):
                return None
            self.sound.add(key)
            return json.loads(row[0]), np.frombuffer(row[1], dtype="<f8")
        except (sqlite3.Error, TypeError, ValueError, AttributeError):
            return None

    def put(self, key: str, said: Any, numbers: Floats) -> None:
        """Keep plain data and numbers under a key."""
        text, blob = json.dumps(said), np.asarray(numbers, dtype="<f8").tobytes()
        row = [key, text, blob, _digest(key, text, blob)]
        try:
            self._file.execute(_KEEP, row)
        except sqlite3.Error as error:
            self._recover(error)
            self._file.execute(_KEEP, row)
        self.sound.add(key)

    def _recover(self, error: Exception) -> None:
        """Begin a damaged file, or one of something else, again; go on in memory where the disk is in the way."""
        self.sound.clear()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_OURS:
            with suppress(OSError, sqlite3.Error):
                self.path.unlink()
                self._file = _opened(self.path)
                return
        self.trouble = (
            f"{redact(str(self.path))} cannot be used ({error}): the next board is made from the beginning."
        )
        self._file = _opened(":memory:")


def _opened(path: Path | str) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=5, isolation_level=None)
    try:
        # What a power cut takes is made again, and what it leaves by half is told by its digest.
        file.execute("PRAGMA synchronous = OFF")
        columns = "key TEXT PRIMARY KEY, said TEXT NOT NULL, numbers BLOB NOT NULL, digest TEXT NOT NULL"
        file.execute(f"CREATE TABLE IF NOT EXISTS kept ({columns})")
        file.execute("SELECT key, said, numbers, digest FROM kept LIMIT 1").fetchone()
    except sqlite3.Error:
        file.close()
        raise
    return file


def _digest(key: str, said: str, numbers: bytes) -> str:
    return hashlib.sha256(b"\0".join([key.encode(), said.encode(), numbers])).hexdigest()


@dataclass(frozen=True)
class TaskKept:
    """A record's score on one task or on average, as its items give it.

    Attributes:
        value: from 0 to 1 as the statistic has it; None where it is undefined.
        low: the lower limit of its interval; None where there is none.
        high: the upper one.
        size: how many items it is over.
        items: of a task what stands for its items and their truth, whatever their order; of an average empty.
    """

    value: float | None
    low: float | None
    high: float | None
    size: int
    items: str = ""


@dataclass(frozen=True)
class Kept:
    """What is kept of a record.

    Attributes:
        key: under which it is kept; empty where its items are not there.
        tasks: a score for each task, kind by kind; empty where the items are not there.
        averages: of the kinds that have one, in their order.
        note: why scores were not computed again; empty where they were.
    """

    key: str
    tasks: tuple[TaskKept, ...] = ()
    averages: tuple[TaskKept, ...] = ()
    note: str = ""

    @property
    def is_defined(self) -> bool:
        """Whether it has items, and a score on each task."""
        return bool(self.tasks) and all(task.value is not None for task in self.tasks)


def key_of(record: RunRecord, interval: Dependence, level: float, items: str = "") -> str:
    """Return under which key a record is kept; empty where its items are not there.

    `items` is the hash of their file, which is read if it is not given.
    """
    place = (record.folder or Path()) / ITEMS
    if record.is_imported or not place.is_file():
        return ""
    said = {"layout": _LAYOUT, "stsbench": __version__, "interval": interval, "level": level}
    return fingerprint({**said, "record": record.to_dict(), "items": items or sha256_of(place)})


def keep(
    record: RunRecord, key: str, shelf: Shelf, interval: Dependence, level: float, *, anew: bool = False
) -> Kept:
    """Return what a board needs of a record, from the shelf or from its items.

    Args:
        record: one that was read from a folder.
        key: under which it is kept (`key_of`).
        shelf: where it is kept.
        interval: which items depend on each other.
        level: of the intervals.
        anew: whether to make it again, whatever is kept.

    Raises:
        UserError: if it does not say what its items give, or these cannot be read.
    """
    if not key:
        return Kept("", note=" ".join(require_recomputed(record, intervals=False)))
    known = None if anew else shelf.get(key)
    if known is not None:
        tasks, averages = ([TaskKept(*fields) for fields in part] for part in known[0])
        return Kept(key, tuple(tasks), tuple(averages))
    # Read once for all that follows.
    held = record.with_items(record.items, record.folder)
    require_recomputed(held, intervals=False)
    made: tuple[list[TaskKept], list[TaskKept]] = ([], [])
    terms = []
    for task in aligned_scores({record.model.name: held}, may_be_undefined=True, whole=True)[0]:
        limits = task.limits(0, interval, level)
        low, high = (limits.low, limits.high) if limits.exists else (None, None)
        value, items = float(task.scores[0]), ""
        if not task.is_average:
            arranged = _arranged(*_told(task.items[0]))
            items = arranged.digest
            if items not in shelf.sound and shelf.get(items) is None:
                # Kept as numbers are: by their bits.
                shelf.put(items, _LAYOUT, arranged.sentences.view(np.float64).ravel())
            terms.append(task.terms[0][arranged.order])
        made[task.is_average].append(TaskKept(None if np.isnan(value) else value, low, high, task.size, items))
    shelf.put(key, [[list(vars(task).values()) for task in part] for part in made], np.concatenate(terms))
    return Kept(key, tuple(made[0]), tuple(made[1]))


class _Arranged(NamedTuple):
    """The n items of a task: an order that does not depend on how they were written, and in it their sentences.

    `digest` stands for the items and their truth, `sentences` is (4, n).
    """

    order: NDArray[np.intp]
    digest: str
    sentences: NDArray[np.uint64]


def _told(table: pd.DataFrame) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Any, ...], bytes]:
    """Return what tells a task's items from others: subsets, ids, truths, and the numbers of their sentences."""
    truths = [table[name].to_numpy() for name in _TRUTHS if name in table.columns]
    numbers = np.stack([table[name].to_numpy(np.uint64) for name in (*SENTENCES, *FOLDED)])
    told = [tuple(values.tolist()) if values.dtype.kind == "O" else values.tobytes() for values in truths]
    return tuple(table["subset"].tolist()), tuple(table["item_id"].tolist()), tuple(told), numbers.tobytes()


@lru_cache(maxsize=64)
def _arranged(
    subsets: tuple[str, ...], ids: tuple[str, ...], truths: tuple[Any, ...], numbers: bytes
) -> _Arranged:
    """Arrange the items of a task, once for the many records of it."""
    names = list(zip(subsets, ids, strict=True))
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
    digest = hashlib.sha256(repr([names[place] for place in order]).encode())
    for truth in truths:
        values = np.frombuffer(truth, dtype="V8") if isinstance(truth, bytes) else np.array(truth, dtype=object)
        digest.update(repr(values[order].tolist()).encode())
    sentences = np.frombuffer(numbers, dtype=np.uint64).reshape(4, -1)[:, order]
    digest.update(sentences.tobytes())
    return _Arranged(order, digest.hexdigest(), sentences)


@contextmanager
def filled_ahead(
    paths: Sequence[Path], shelf: Shelf, interval: Dependence, level: float, progress: Progress
) -> Iterator[None]:
    """Fill the shelf with what is not there of many records on all cores, beside what is done meanwhile.

    Each core has a process of its own, which writes into the same shelf; what it cannot make is left to `keep`,
    which says why. Nothing of the main program is run in it. Whether many are new, some of them tell.

    Args:
        paths: the records' files.
        shelf: where `keep` finds them.
        interval: which items depend on each other.
        level: of the intervals.
        progress: told how far it is, once what is done meanwhile is done.
    """
    processes, some = cores(), []
    if processes < 2 or len(paths) < _WORTH_A_PROCESS * processes or shelf.trouble:
        yield
        return
    for path in paths[:: max(1, len(paths) // _WORTH_A_PROCESS)]:
        with suppress(UserError):
            some.append(load_run(path))
    keys = [key for record in some if (key := key_of(record, interval, level))]
    new = sum(shelf.get(key) is None for key in keys) / max(1, len(some)) * len(paths)
    if new < _WORTH_A_PROCESS * processes:
        yield
        return
    code = "from stsbench.browsing.kept import _keep_named; _keep_named()"
    ours = {"STSBENCH_CACHE": str(cache_dir()), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment = {**os.environ, **ours, **thread_limits(1)}
    working: list[subprocess.Popen[str]] = []
    try:
        for core in range(processes):
            with tempfile.TemporaryFile("w+") as asked:
                json.dump([list(map(str, paths[core::processes])), interval, level], asked)
                asked.seek(0)
                # One of them says how far they are.
                said = subprocess.PIPE if core == 0 else subprocess.DEVNULL
                command = [sys.executable, "-c", code]
                working.append(
                    subprocess.Popen(
                        command, stdin=asked, stdout=said, stderr=subprocess.DEVNULL, env=environment, text=True
                    )
                )
        yield
        for number, _ in enumerate(working[0].stdout or ()):
            progress("records", min(number * processes, len(paths)), len(paths))
        for process in working:
            process.wait()
    finally:
        for process in working:
            process.kill()
            process.communicate()


def _keep_named() -> None:
    """Keep the records that are named on standard input, and print a line for each."""
    # Nothing here refers to itself, and looking for it among a table's texts takes a seventh of the time.
    gc.disable()
    paths, interval, level = json.load(sys.stdin)
    with Shelf() as shelf:
        for path in paths:
            with suppress(UserError):
                record = load_run(path)
                # Of other items than it says nothing is kept: they are hashed when they are read.
                key = key_of(record, interval, level, record.items_file.sha256 if record.items_file else "")
                if key and shelf.get(key) is None:
                    keep(record, key, shelf, interval, level)
            print(".", flush=True)


def aligned(
    records: Sequence[Kept], scores: Sequence[Score], labels: Sequence[str], shelf: Shelf
) -> tuple[AlignedScores, ...] | None:
    """Return records with the same items as `aligned_scores` does, from what is kept of them.

    Args:
        records: what is kept of each.
        scores: those of one of them, in the order of its tasks.
        labels: what the tasks are called.
        shelf: which holds what is kept.

    Returns:
        None if the shelf lacks any of it.
    """
    first = records[0]
    tables = [shelf.get(task.items) for task in first.tasks]
    terms = [shelf.get(kept.key) for kept in records]
    ends = np.cumsum([task.size for task in first.tasks])[:-1]
    found = [np.split(numbers, ends) for _, numbers in filter(None, terms)]
    sharings = [numbers.view(np.uint64).reshape(4, -1) for _, numbers in filter(None, tables)]
    if len(found) < len(records) or len(sharings) < len(first.tasks):
        return None
    by_kind: dict[str, list[AlignedScores]] = {}
    for place, (label, score, columns) in enumerate(zip(labels, scores, sharings, strict=True)):
        table = pd.DataFrame(dict(zip((*SENTENCES, *FOLDED), columns, strict=True)))
        by_kind.setdefault(score.kind, []).append(
            AlignedScores(
                score.kind,
                label,
                statistic_of(score),
                np.array([kept.tasks[place].value for kept in records], dtype=np.float64),
                np.stack([parts[place] for parts in found]),
                sharing_of(table),
                sharing_of(table, folded=True),
            )
        )
    return tuple(task for of_kind in by_kind.values() for task in with_average(of_kind))
