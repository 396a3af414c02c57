"""Gold data for predictions: qrels, labels or pairs, from files, the catalogue or MTEB's own tasks.

MTEB's prediction files contain no gold data. It comes from your files, from the tasks of the catalogue, or from
the task that MTEB loads. Such a task also knows how MTEB scores it: whether documents with the query's id count,
whether the first document is skipped, and the headline measure.
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
from stsbench.base.words import storable
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.data.own_pairs import load_pairs
from stsbench.data.qrels import Qrels, gold_file, read_labels, read_qrels
from stsbench.data.tables import FileRead, Pair, StsData, pair_table
from stsbench.records.imports.mteb import MTEB_SPLITS, Part
from stsbench.scoring.ranked import IdenticalIds
from stsbench.scoring.settings import PROTOCOLS
from stsbench.scoring.tasks import AnyTask, parse_tasks, read_data

MTEB = "mteb"
"""The value of `--gold` for MTEB's own data, from its cache or the Hub."""

DEFAULT = "default"
"""MTEB's name for the only subset of a task."""


@dataclass(frozen=True)
class Judgements:
    """The qrels of a task, and how MTEB scores it.

    Attributes:
        qrels: the relevance of each query's judged documents.
        identical: whether documents with the query's id count; None if unknown.
        skips_first: whether the first document of each query is left out.
        headline: the headline measure; empty if unknown.
        files: the files they were read from.
    """

    qrels: Qrels
    identical: IdenticalIds | None = None
    skips_first: bool = False
    headline: str = ""
    files: tuple[FileRead, ...] = ()


@dataclass(frozen=True)
class Labels:
    """The labels of a task's items, in MTEB's order; headline and files as in `Judgements`."""

    labels: Sequence[str]
    headline: str = ""
    files: tuple[FileRead, ...] = ()


class Gold:
    """A source of gold data; it has only some of the kinds."""

    def has(self, part: Part) -> bool:
        """Returns whether it has the gold data of some predictions; the other methods need that."""
        raise NotImplementedError

    def judgements(self, part: Part) -> Judgements:
        """Returns the qrels of a ranking."""
        raise NotImplementedError

    def labels(self, part: Part) -> Labels:
        """Returns the labels of classified items."""
        raise NotImplementedError

    def pairs(self, part: Part) -> StsData:
        """Returns the predicted pairs, in their order."""
        raise NotImplementedError


class MtebTask(Protocol):
    """A task of MTEB, from `mteb.get_task` or a class of your own."""

    metadata: Any
    dataset: Any
    data_loaded: bool

    def load_data(self) -> None:
        """Loads the data, from MTEB's cache or the Hub."""


@dataclass(frozen=True)
class GoldFiles(Gold):
    """A file for one task, or a folder with a file per task.

    Files in a folder are named `TASK.*`, `TASK/qrels/SPLIT.*` or `TASK/SPLIT.*`, with subsets
    `TASK/SUBSET/SPLIT.*`; for a single prediction also `qrels/SPLIT.*` or `SPLIT.*`. Names are MTEB's.

    Attributes:
        path: the file or the folder.
        is_single: whether there is a prediction for a single subset and split of a single task.
    """

    path: Path
    is_single: bool

    def has(self, part: Part) -> bool:
        return self._place(part) is not None

    def judgements(self, part: Part) -> Judgements:
        path = self._existing(part)
        return Judgements(read_qrels(path), files=(_read(path),))

    def labels(self, part: Part) -> Labels:
        path = self._existing(part)
        return Labels(read_labels(path), files=(_read(path),))

    def pairs(self, part: Part) -> StsData:
        data = load_pairs(self._existing(part))
        first, second, gold = (data.pairs[name].tolist() for name in ("sentence1", "sentence2", "gold"))
        return _as_pairs(part, first, second, gold, data.files)

    def _existing(self, part: Part) -> Path:
        path = self._place(part)
        assert path is not None, "there is gold data"
        return path

    def _place(self, part: Part) -> Path | None:
        if not self.path.is_dir():
            if not self.path.exists():
                raise UserError(f"there is no task and no file {self.path}: name the gold data with --gold.")
            if not self.is_single:
                raise UserError(
                    f"{self.path} is a single file, but there are predictions of several tasks or splits: name a "
                    f"folder with a file for each ({part.task}/qrels/{part.split}.tsv, {part.task}.tsv), or "
                    "import a single prediction file."
                )
            return self.path
        of_task = self.path / part.task
        if part.subset == DEFAULT:
            places = [(self.path, part.task), (of_task / "qrels", part.split), (of_task, part.split)]
        else:
            places = [(of_task / part.subset / "qrels", part.split), (of_task / part.subset, part.split)]
        if self.is_single:
            places += [(self.path / "qrels", part.split), (self.path, part.split)]
        files = [path for path in (gold_file(folder, name) for folder, name in places) if path is not None]
        if len(files) > 1:
            raise UserError(f"{self.path} has both {files[0]} and {files[1]} for {part}: keep one of them.")
        return next(iter(files), None)


def _read(path: Path) -> FileRead:
    return FileRead(storable(path.name), sha256_of(path), None)


@dataclass(frozen=True)
class GoldTasks(Gold):
    """Tasks of MTEB, loaded when needed."""

    tasks: Sequence[MtebTask]

    def has(self, part: Part) -> bool:
        return any(task.metadata.name == part.task for task in self.tasks)

    def judgements(self, part: Part) -> Judgements:
        task = self._task(part)
        with _readable(task):
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

    def labels(self, part: Part) -> Labels:
        task: Any = self._task(part)
        if getattr(task, "is_cross_validation", False):
            raise UserError(
                f"{part.task} is cross-validated, and its prediction file has the unknown order of the folds: "
                "leave the task out."
            )
        with _readable(task):
            labels = [label_of(label) for label in _split(task, part)[task.label_column_name]]
        return Labels(labels, str(task.metadata.main_score))

    def pairs(self, part: Part) -> StsData:
        task: Any = self._task(part)
        with _readable(task):
            data = _split(task, part)
            # Older data sets have a single row of lists.
            data = data[0] if len(data) == 1 and isinstance(data[0].get("sentence1"), list) else data
            if part.are_of_labels:
                columns = (task.input1_column_name, task.input2_column_name, task.label_column_name)
            else:
                columns = (*task.column_names, "score")
            first, second, gold = (list(data[column]) for column in columns)
        return _as_pairs(part, first, second, gold)

    def _task(self, part: Part) -> MtebTask:
        task = next(task for task in self.tasks if task.metadata.name == part.task)
        if not task.data_loaded:
            with _readable(task):
                task.load_data()
        return task


_NAMES = {
    (name, MTEB_SPLITS[task][split]): (task, split)
    for name, task in MTEB_TASKS.items()
    for split in MTEB_SPLITS[task]
}
"""The catalogue's tasks and splits, by MTEB's names."""


@dataclass(frozen=True)
class GoldPairs(Gold):
    """Pairs of the catalogue's STS tasks."""

    data: Sequence[StsData]

    def has(self, part: Part) -> bool:
        return part.are_similarities and part.subset == DEFAULT and bool(self._matching(part))

    def pairs(self, part: Part) -> StsData:
        return self._matching(part)[0]

    def _matching(self, part: Part) -> list[StsData]:
        return [data for data in self.data if _NAMES.get((part.task, part.split)) == (data.task, data.split)]


GoldSource = str | Path | AnyTask | MtebTask | Sequence[AnyTask | MtebTask]
"""Names of tasks, their data, a file or folder, `mteb`, or tasks of mteb."""


def names_tasks(gold: str | Path) -> bool:
    """Returns whether a text names tasks of the catalogue, and not a file or folder."""
    if isinstance(gold, Path) or Path(gold).expanduser().exists():
        return False
    try:
        return bool(parse_tasks(gold, PROTOCOLS["mteb"]))
    except UserError:
        return False


def gold_from(gold: GoldSource, parts: Sequence[Part], data_dirs: Sequence[str | Path] = ()) -> Gold:
    """Returns the source of gold data for some predictions; tasks are looked for in `data_dirs`."""
    if gold == MTEB:
        return GoldTasks(_mteb_tasks({part.task for part in parts}))
    if isinstance(gold, str | Path) and not names_tasks(gold):
        return GoldFiles(Path(gold).expanduser(), is_single=len(parts) == 1)
    tasks: Any = gold if isinstance(gold, Sequence) and not isinstance(gold, str) else [gold]
    if all(hasattr(task, "metadata") for task in tasks):
        return GoldTasks(tasks)
    for task in tasks:
        if not isinstance(task, str) and not hasattr(task, "pairs"):
            raise UserError(f"gold is {task!r}: give a path, names of tasks, 'mteb', or tasks of mteb.get_task.")
    sets = read_data(tasks, protocol=PROTOCOLS["mteb"], data_dirs=data_dirs)
    return GoldPairs([task.pairs for task in sets if task.pairs is not None])


def label_of(value: object) -> str:
    """Returns a label as text, the same from JSON, a table or MTEB's data.

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

    tasks = []
    for name in sorted(names):
        try:
            tasks.append(mteb.get_task(name))
        except KeyError as error:
            raise UserError(f"mteb has no task {name}: give a file with --gold, or in Python the task.") from error
    return tasks


@contextmanager
def _readable(task: MtebTask) -> Iterator[None]:
    """Turns any exception of a task's own code into a UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"cannot read the data of mteb's {task.metadata.name} ({type(error).__name__}: {error}): load it with "
            "mteb first, or give a file with --gold."
        ) from error


def _split(task: MtebTask, part: Part) -> Any:
    """Returns the data of a subset and split."""
    data = task.dataset
    if part.subset in data:
        data = data[part.subset]
    elif part.subset != DEFAULT:
        raise UserError(f"mteb's {part.task} has no subset {part.subset}, but there are predictions for it.")
    if part.split not in data:
        raise UserError(f"mteb's {part.task} has no split {part.split}, but there are predictions for it.")
    return data[part.split]


def _as_pairs(
    part: Part, first: Sequence[str], second: Sequence[str], gold: Sequence[float], files: Sequence[FileRead] = ()
) -> StsData:
    """Returns pairs in MTEB's order, numbered from 1."""
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
    """Returns MTEB's name of a task, with the subset if there are several."""
    return storable(part.task if part.subset == DEFAULT else f"{part.task} ({part.subset})")
