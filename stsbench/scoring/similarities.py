"""Similarities from other programs: numbers in a file, or MTEB's predictions."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.data.tables import StsData
from stsbench.data.views import split_and_view
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import UNKNOWN, Use, own_use
from stsbench.records.imports.mteb import (
    MTEB_SPLITS,
    Part,
    PredictionFiles,
    are_predictions,
    read_predictions,
)
from stsbench.scoring.settings import GIVEN_SIMILARITY


def given_use(revision: str | None = None) -> Use:
    """Returns the use of a model that is known only by its similarities or predictions: unknown."""
    return replace(own_use(GIVEN_SIMILARITY), precision=UNKNOWN, revision=revision)


@dataclass(frozen=True)
class SavedSimilarities:
    """One similarity per scored pair, task after task, in the order of the pairs.

    Attributes:
        path: a .npy vector, or a text file with one number per line.
    """

    path: Path

    tasks: ClassVar[None] = None
    """The file does not name its tasks."""

    @cached_property
    def content(self) -> bytes:
        """The content of the file, read once for the hash and the numbers."""
        if not self.path.is_file():
            raise UserError(f"no such file: {self.path}.")
        return self.path.read_bytes()

    @cached_property
    def identity(self) -> Identity:
        digest = hashlib.sha256(self.content).hexdigest()
        return Identity(self.path.stem, "similarities", given_use(), weights_sha256=digest)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The similarities, shape (pairs,)."""
        values = self._from_npy() if self.path.suffix == ".npy" else self._from_text()
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise UserError(
                f"{self.path}: number {bad[0] + 1} of {len(values)} is {values[bad[0]]}: "
                "give a finite number for each pair."
            )
        return values

    def columns(self, tasks: Sequence[StsData]) -> list[Mapping[str, NDArray[np.float64]]]:
        """Returns the similarities of each task.

        Raises:
            UserError: unless there is a finite number for each pair.
        """
        values, sizes = self.values, [len(task.pairs) for task in tasks]
        if len(values) != sum(sizes):
            raise UserError(
                f"{self.path} has {len(values)} similarities for {sum(sizes)} pairs "
                f"({', '.join(task.task for task in tasks)}): give one number per pair, in the order of the pairs."
            )
        return [{GIVEN_SIMILARITY: part} for part in np.split(values, np.cumsum(sizes)[:-1])]

    def notes(self, tasks: Sequence[StsData]) -> list[str]:
        return []

    def _from_npy(self) -> NDArray[np.float64]:
        try:
            values = np.load(io.BytesIO(self.content), allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise UserError(f"{self.path} is not a .npy file of numbers: save it with numpy.save.") from error
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiu":
            kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "an archive"
            raise UserError(f"{self.path} holds {kind}: save one number per pair.")
        return np.asarray(values, dtype=np.float64)

    def _from_text(self) -> NDArray[np.float64]:
        try:
            lines = self.content.decode("utf-8").rstrip().split("\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path} is not UTF-8 text: write one number per line.") from error
        numbers = []
        for line, text in enumerate(lines, 1):
            try:
                numbers.append(float(text))
            except ValueError:
                raise UserError(
                    f"{self.path}, line {line}: {text[:40]!r} is not a number: write one per line."
                ) from None
        return np.array(numbers)


_NAMES = {
    (name, MTEB_SPLITS[task][split]): (task, split)
    for name, task in MTEB_TASKS.items()
    for split in MTEB_SPLITS[task]
}
"""The catalogue's tasks and splits, by MTEB's names."""

USER = "user"
"""The text variant of your own pairs."""

_SAME = 0.99
"""Minimum cosine of a sentence with itself; half precision gives 0.999."""


@dataclass(frozen=True)
class SavedPredictions:
    """MTEB's predictions of one model.

    Attributes:
        path: a `TASK_predictions.json`, or a folder of such files.
    """

    path: Path

    @cached_property
    def read(self) -> PredictionFiles:
        return read_predictions(self.path)

    @cached_property
    def identity(self) -> Identity:
        """The model's name, commit and the hash of the files."""
        held = self.read
        use = given_use(held.revision)
        return Identity(held.model or self.path.stem, "predictions", use, weights_sha256=held.sha256)

    @property
    def tasks(self) -> list[str]:
        """The tasks in the catalogue, as `--tasks` names them."""
        known = [_NAMES[pairs.task, pairs.split] for pairs in self.read.pairs if _is_catalogued(pairs)]
        if not known:
            raise UserError(
                f"{self.path} has {_listed(self.read)}, which is not in the catalogue: give the pairs, in MTEB's "
                "order, with --data."
            )
        return [task if split == "test" else f"{task}:{split}" for task, split in known]

    def columns(self, tasks: Sequence[StsData]) -> list[Mapping[str, NDArray[np.float64]]]:
        """Returns the similarities of each task, by kind.

        Raises:
            UserError: if a task has none, or they belong to other pairs.
        """
        columns = []
        for task in tasks:
            pairs = self._of(task)
            require_same_pairs(task, pairs)
            columns.append(pairs.similarities)
        return columns

    def notes(self, tasks: Sequence[StsData]) -> list[str]:
        """Returns notes on the scores."""
        has_dots = any("dot" in pairs.similarities for pairs in self.read.pairs)
        notes = [
            f"the similarities are MTEB's predictions ({self.path.name}), from its own copy of the sentences; the "
            "gold scores are from the files here." + ("" if has_dots else " There are no dot products."),
        ]
        for task in tasks:
            same = int(_is_repeated(task).sum())
            check = (
                f"its {same} pairs of identical sentences have cosine 1, as expected"
                if same
                else "nothing in the file confirms that; compare the score with MTEB's"
            )
            notes.append(f"{task.task}: pairs are assumed to be in the order of the files here; {check}.")
        if self.read.left_out:
            notes.append(f"left out (not STS): {listed(self.read.left_out)}.")
        return notes

    def _of(self, task: StsData) -> Part:
        """Returns the predictions of a task; for your own pairs the only ones."""
        held = self.read.pairs
        if task.text == USER:
            if len(held) > 1:
                raise UserError(
                    f"{self.path} has {_listed(self.read)}, but --data has the pairs of one task: name its file."
                )
            return held[0]
        split, view = split_and_view(task.split)
        if view:
            raise UserError(
                f"{task.task}: predictions cover all pairs of a task, and none can be left out: measure the model."
            )
        for pairs in held:
            if _is_catalogued(pairs) and _NAMES[pairs.task, pairs.split] == (task.task, split):
                return pairs
        raise UserError(
            f"{self.path} has no predictions of {task.task}, split {split}; it has {_listed(self.read)}."
        )


def similarities_from(path: Path) -> SavedSimilarities | SavedPredictions:
    """Returns the similarities in a path: MTEB's predictions, or numbers."""
    return SavedPredictions(path) if are_predictions(path) else SavedSimilarities(path)


def tasks_in(path: Path) -> str | None:
    """Returns the tasks of a path's similarities, as `--tasks` takes them; None for plain numbers."""
    tasks = similarities_from(path).tasks
    return None if tasks is None else ",".join(tasks)


def _is_catalogued(pairs: Part) -> bool:
    return pairs.subset == "default" and (pairs.task, pairs.split) in _NAMES


def _listed(held: PredictionFiles) -> str:
    return listed([str(pairs) for pairs in held.pairs])


def _is_repeated(task: StsData) -> NDArray[np.bool_]:
    return np.asarray(task.pairs["sentence1"] == task.pairs["sentence2"], dtype=bool)


def require_same_pairs(task: StsData, pairs: Part) -> None:
    """Raises if predictions cannot belong to the pairs of a task."""
    cosines, count = pairs.similarities["cosine"], len(task.pairs)
    if len(cosines) != count:
        raise UserError(
            f"{pairs.path} has {len(cosines):,} predictions of {pairs}, but {task.task}, split {task.split}, has "
            f"{count:,} scored pairs: give the predicted pairs, in their order, with --data."
        )
    wrong = np.flatnonzero(_is_repeated(task) & (cosines < _SAME))
    if len(wrong):
        place = int(wrong[0])
        raise UserError(
            f"{pairs.path}: pair {task.pairs['pair_id'][place]} of {task.task} has the same sentence twice, but "
            f"prediction {place + 1} has the cosine {cosines[place]:.4f}: the order differs from the files here; "
            "give the pairs in MTEB's order with --data."
        )
