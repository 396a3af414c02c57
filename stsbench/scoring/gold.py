"""What predictions are scored against: qrels, labels or pairs, from files or from MTEB's own tasks.

MTEB's prediction files hold what a model said and nothing of what is true. That lies in a person's files, or in
the task that MTEB loaded, which also knows what MTEB does before it scores (documents with their query's id left
out, the first one skipped) and which measure is the task's headline.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.base.files import sha256_of
from stsbench.base.manifest import fingerprint
from stsbench.base.words import listed, storable
from stsbench.data.own_pairs import load_pairs
from stsbench.data.qrels import Qrels, gold_file, read_labels, read_qrels
from stsbench.data.tables import FileRead, Pair, StsData, pair_table
from stsbench.records.imports.mteb import Part
from stsbench.scoring.ranked import IdenticalIds

MTEB = "mteb"
"""What is typed for MTEB's own data of the tasks, which it reads from its cache or fetches."""

DEFAULT = "default"
"""What MTEB calls the subset of a task that has no others."""


@dataclass(frozen=True)
class Judgements:
    """The qrels of a task, and what MTEB does before it scores by them.

    Attributes:
        qrels: the relevance of each query's judged documents.
        identical: whether documents with their query's id count; None where nobody says.
        skips_first: whether each query's first document is left out.
        headline: the measure that is the task's headline; empty where nobody says.
        files: that they were read from.
    """

    qrels: Qrels
    identical: IdenticalIds | None = None
    skips_first: bool = False
    headline: str = ""
    files: tuple[FileRead, ...] = ()


@dataclass(frozen=True)
class Labels:
    """The labels of a task's items, in MTEB's order; the headline and files as of `Judgements`."""

    labels: Sequence[str]
    headline: str = ""
    files: tuple[FileRead, ...] = ()


class Gold(Protocol):
    """Where what is true of a task's items comes from; None of a task that it has nothing of."""

    def judgements(self, part: Part) -> Judgements | None:
        """Return the qrels of what was predicted."""

    def labels(self, part: Part) -> Labels | None:
        """Return the labels of what was predicted."""

    def pairs(self, part: Part) -> StsData | None:
        """Return the pairs whose similarities were predicted, in their order."""


class MtebTask(Protocol):
    """A task of MTEB's, as `mteb.get_task` returns it or a person's own class makes it."""

    metadata: Any
    dataset: Any
    data_loaded: bool

    def load_data(self) -> None:
        """Load its data, from MTEB's cache or from the Hub."""


@dataclass(frozen=True)
class GoldFiles:
    """A file of one task, or a folder with those of several.

    In a folder it is `TASK.*`, `TASK/qrels/SPLIT.*` or `TASK/SPLIT.*`, of a task with several subsets
    `TASK/SUBSET/SPLIT.*`, by MTEB's names; where one task was predicted `qrels/SPLIT.*` and `SPLIT.*` are its own.

    Attributes:
        path: of the file or the folder.
        is_of_one: whether one part of one task was predicted.
    """

    path: Path
    is_of_one: bool

    def judgements(self, part: Part) -> Judgements | None:
        path = self._place(part)
        return None if path is None else Judgements(read_qrels(path), files=(_read(path),))

    def labels(self, part: Part) -> Labels | None:
        path = self._place(part)
        return None if path is None else Labels(read_labels(path), files=(_read(path),))

    def pairs(self, part: Part) -> StsData | None:
        path = self._place(part)
        if path is None:
            return None
        data = load_pairs(path)
        first, second, gold = (data.pairs[name].tolist() for name in ("sentence1", "sentence2", "gold"))
        return _as_pairs(part, first, second, gold, data.files)

    def _place(self, part: Part) -> Path | None:
        if not self.path.is_dir():
            if not self.path.exists():
                raise UserError(f"no such file: {self.path}; name what is true with --gold.")
            if not self.is_of_one:
                raise UserError(
                    f"{self.path} is one file, and there are predictions of several tasks or splits: name a "
                    f"folder with a file for each ({part.task}/qrels/{part.split}.tsv, {part.task}.tsv), or "
                    "import one prediction file."
                )
            return self.path
        of_task = self.path / part.task
        if part.subset == DEFAULT:
            places = [(self.path, part.task), (of_task / "qrels", part.split), (of_task, part.split)]
        else:
            places = [(of_task / part.subset / "qrels", part.split), (of_task / part.subset, part.split)]
        if self.is_of_one:
            places += [(self.path / "qrels", part.split), (self.path, part.split)]
        there = [path for path in (gold_file(folder, name) for folder, name in places) if path is not None]
        if len(there) > 1:
            raise UserError(f"{self.path} has {there[0]} and {there[1]} for {part}: keep one of them.")
        return next(iter(there), None)


def _read(path: Path) -> FileRead:
    return FileRead(storable(path.name), sha256_of(path), None)


@dataclass(frozen=True)
class GoldTasks:
    """Tasks of MTEB's, whose data are loaded when they are asked for."""

    tasks: Sequence[MtebTask]

    def judgements(self, part: Part) -> Judgements | None:
        task = self._task(part)
        if task is None:
            return None
        with _told(task):
            convert: Callable[..., None] | None = getattr(task, "convert_v1_dataset_format_to_v2", None)
            if convert is not None:
                convert(num_proc=None)
            relevant = _split(task, part)["relevant_docs"]
            qrels = {
                str(query): {str(document): int(value) for document, value in judged.items()}
                for query, judged in relevant.items()
            }
        drops = getattr(task, "ignore_identical_ids", False)
        skips = bool(getattr(task, "skip_first_result", False))
        return Judgements(qrels, "drop" if drops else "keep", skips, str(task.metadata.main_score))

    def labels(self, part: Part) -> Labels | None:
        task = self._task(part)
        if task is None:
            return None
        if getattr(task, "is_cross_validation", False):
            raise UserError(
                f"{part.task} is cross-validated: its prediction file is in the order of the folds, which it does "
                "not tell; leave the task out."
            )
        with _told(task):
            labels = [label_of(label) for label in _split(task, part)[task.label_column_name]]  # type: ignore[attr-defined]
        return Labels(labels, str(task.metadata.main_score))

    def pairs(self, part: Part) -> StsData | None:
        task: Any = self._task(part)
        if task is None:
            return None
        with _told(task):
            data = _split(task, part)
            # Older sets of pairs are one row of lists.
            data = data[0] if len(data) == 1 and isinstance(data[0].get("sentence1"), list) else data
            if part.are_of_labels:
                columns = (task.input1_column_name, task.input2_column_name, task.label_column_name)
            else:
                columns = (*task.column_names, "score")
            first, second, gold = (list(data[column]) for column in columns)
        return _as_pairs(part, first, second, gold)

    def _task(self, part: Part) -> MtebTask | None:
        task = next((task for task in self.tasks if task.metadata.name == part.task), None)
        if task is not None and not task.data_loaded:
            with _told(task):
                task.load_data()
        return task


GoldSource = str | Path | MtebTask | Sequence[MtebTask]
"""What a person names: a file or a folder, `mteb`, or tasks of mteb's."""


def gold_from(gold: GoldSource, parts: Sequence[Part]) -> Gold:
    """Return what was given as the source of what is true of the items of some predictions."""
    if gold == MTEB:
        return GoldTasks(_mteb_tasks({part.task for part in parts}))
    if isinstance(gold, str | Path):
        return GoldFiles(Path(gold).expanduser(), is_of_one=len(parts) == 1)
    tasks: Sequence[Any] = gold if isinstance(gold, Sequence) else [gold]
    for task in tasks:
        if not hasattr(task, "metadata"):
            raise UserError(f"gold is {task!r}: give a path, 'mteb', or tasks as mteb.get_task returns them.")
    return GoldTasks(tasks)


def label_of(value: object) -> str:
    """Return a label as text, the same whether it was read from JSON, a table or MTEB's data.

    >>> label_of(3), label_of(3.0), label_of(True), label_of("joy")
    ('3', '3', '1', 'joy')
    """
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _mteb_tasks(names: set[str]) -> Sequence[MtebTask]:
    require("mteb", "--gold mteb")
    import mteb

    known, unknown = [], []
    for name in sorted(names):
        try:
            known.append(mteb.get_task(name))
        except KeyError:
            unknown.append(name)
    if unknown:
        raise UserError(
            f"mteb knows no task {listed(unknown)}: give a file with --gold, or in Python the task itself."
        )
    return known


@contextmanager
def _told(task: MtebTask) -> Iterator[None]:
    """Make a sentence of whatever keeps a task's data from being read: other people's code may raise anything."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"the data of mteb's {task.metadata.name} cannot be read ({type(error).__name__}: {error}): load them "
            "with mteb first, or give a file with --gold."
        ) from error


def _split(task: MtebTask, part: Part) -> Any:
    """Return the data of a subset and split."""
    data = task.dataset
    if part.subset in data:
        data = data[part.subset]
    elif part.subset != DEFAULT:
        raise UserError(f"mteb's {part.task} has no subset {part.subset}, of which there are predictions.")
    if part.split not in data:
        raise UserError(f"mteb's {part.task} has no split {part.split}, of which there are predictions.")
    return data[part.split]


def _as_pairs(
    part: Part, first: Sequence[str], second: Sequence[str], gold: Sequence[float], files: Sequence[FileRead] = ()
) -> StsData:
    """Return pairs as MTEB's task has them: in one subset, each called by its place."""
    texts = [[str(text).strip() for text in side] for side in (first, second)]
    scores = [float(score) for score in gold]
    rows = [
        Pair(task_name(part), part.split, str(place), score, one, other)
        for place, (one, other, score) in enumerate(zip(*texts, scores, strict=True), 1)
    ]
    return StsData(
        task=task_name(part),
        split=part.split,
        text="user",
        pairs=pair_table(rows),
        gold_range=(min(scores), max(scores)),
        status="user",
        sha256=fingerprint({"pairs": [[row.sentence1, row.sentence2, row.gold] for row in rows]}),
        files=tuple(files),
        problems=(),
    )


def task_name(part: Part) -> str:
    """Return what a task is called here: as MTEB calls it, with the subset where it has several."""
    return storable(part.task if part.subset == DEFAULT else f"{part.task} ({part.subset})")
