"""The labelled tables of tasks: read, freed of pairs that encoders are measured on, parted in train and dev."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.data.rows import Rows, number, open_rows
from stsbench.data.shared import pair_numbers
from stsbench.statistics.draws import generator
from stsbench.training.leakage import Benchmarks, Leakage
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import Label, TaskHead


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Sentences with labels.

    Attributes:
        sentences: a list for each sentence of a row, each (n,).
        targets: (n,) the number of the class, or the score scaled to 0 .. 1; float64.
    """

    sentences: tuple[list[str], ...]
    targets: NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.targets)

    def at(self, places: NDArray[np.int64]) -> "LabelledRows":
        """Return some of the rows."""
        return LabelledRows(
            tuple([column[place] for place in places] for column in self.sentences), self.targets[places]
        )


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """A task with its table.

    Attributes:
        classes: the labels by their numbers; empty where labels are scores.
        scale: the lowest and highest score; None where labels are classes.
        left_out: rows with an empty cell.
        overlap: what it has in common with the scored pairs of tasks; None where a row has one sentence.
    """

    name: str
    part: TaskHead
    classes: tuple[str, ...]
    scale: tuple[float, float] | None
    train: LabelledRows
    dev: LabelledRows
    left_out: int
    overlap: Leakage | None
    sha256: str

    def sentence(self) -> str:
        """Return what was found in its table."""
        facts = [f"{len(self.train):,} rows to train on, {len(self.dev):,} to score"]
        facts += [f"left out {self.left_out:,} with an empty cell"] if self.left_out else []
        facts += [] if self.overlap is None else [self.overlap.sentence()]
        return f"task {self.name}: {'; '.join(filter(None, facts))}."

    def test_remark(self) -> str | None:
        """Return what everybody should know who reads a score of what it trains; None if that is nothing."""
        return None if self.overlap is None else self.overlap.remark(self.name)


def read_tasks(recipe: Recipe, data_dirs: Sequence[str | Path] = ()) -> list[LabelledTask]:
    """Read the tables of all tasks of a recipe."""
    files = {name: _files(name, part, recipe.labelled.folder) for name, part in recipe.tasks.items()}
    benchmarks = None
    if any(part.sentences > 1 for part in recipe.tasks.values()):
        benchmarks = Benchmarks.read(recipe.labelled.test_pairs, [Path(folder) for folder in data_dirs])
    return [_read_task(name, files[name], recipe, benchmarks) for name in recipe.tasks]


def table_file(name: str, path: str, folder: str | None = None) -> Path:
    """Return the file of a task's table."""
    file = Path(path).expanduser() if folder is None else Path(folder).expanduser() / Path(path).expanduser()
    if not file.is_file():
        where = f"in {folder}" if folder is not None else f"in {file.parent.resolve()}"
        raise UserError(
            f"tasks.{name}: there is no {file.name} {where}: name the folder that holds it with --set "
            "labelled.folder=FOLDER."
        )
    return file


def _files(name: str, part: TaskHead, folder: str | None) -> dict[str, Path]:
    paths = {"train": part.train, **({} if part.dev is None else {"dev": part.dev})}
    return {key: table_file(name, path, folder) for key, path in paths.items()}


def _read_task(
    name: str, files: Mapping[str, Path], recipe: Recipe, benchmarks: Benchmarks | None
) -> LabelledTask:
    part = recipe.tasks[name]
    table = _Table.read(files["train"], part, part.rows)
    dev_table = _Table.read(files["dev"], part, part.dev_rows) if "dev" in files else None
    classes, scale = _labels_of(part, table)
    rows = table.rows(classes, scale)
    pairs = [] if benchmarks is None or part.sentences == 1 else pair_numbers(*rows.sentences)
    places = np.arange(len(rows))
    if benchmarks is not None and pairs:
        places = np.flatnonzero(~benchmarks.holds(pairs))
    if dev_table is None:
        order = generator(recipe.seed, "held-out", name).permutation(places)
        size = max(1, round(part.share_held_out * len(order)))
        places, held_out = np.sort(order[size:]), np.sort(order[:size])
        dev = rows.at(held_out)
    else:
        dev = dev_table.rows(classes, scale)
    overlap = None
    if benchmarks is not None and pairs:
        overlap = benchmarks.overlap(pairs, [pairs[place] for place in places.tolist()])
    train = rows.at(places)
    if not len(train) or not len(dev):
        which = "to train on" if not len(train) else "to score"
        raise UserError(f"tasks.{name}: {files['train']} leaves no row {which}: give more rows.")
    return LabelledTask(
        name,
        part,
        classes,
        scale,
        train,
        dev,
        table.left_out + (0 if dev_table is None else dev_table.left_out),
        overlap,
        ":".join(sha256_of(file) for file in files.values()),
    )


@dataclass(frozen=True)
class _Table:
    """The rows of a file.

    Attributes:
        places: where each row is, for a message.
    """

    path: Path
    sentences: tuple[list[str], ...]
    labels: list[object]
    places: list[str]
    left_out: int

    @classmethod
    def read(cls, path: Path, part: TaskHead, most: int | None) -> "_Table":
        table = open_rows(path, is_header=lambda _: True, names=part.columns, delimiter=part.delimiter)
        sentences: tuple[list[str], ...] = tuple([] for _ in part.columns[1:])
        labels: list[object] = []
        places, left_out = [], 0
        for line, cells in islice(table.rows, most):
            texts = [
                _sentence(cell, table, line, name) for cell, name in zip(cells[:-1], part.columns, strict=False)
            ]
            label = cells[-1].strip() if isinstance(cells[-1], str) else cells[-1]
            if not all(texts) or label in {"", None}:
                left_out += 1
                continue
            for column, text in zip(sentences, texts, strict=True):
                column.append(text)
            labels.append(label)
            places.append(table.at(line))
        return cls(path, sentences, labels, places, left_out)

    def rows(self, classes: Sequence[str], scale: tuple[float, float] | None) -> LabelledRows:
        """Return the rows with their targets."""
        if scale is None:
            numbers = {label: float(place) for place, label in enumerate(classes)}
            rows = zip(self.labels, self.places, strict=True)
            targets = [self._class(label, numbers, place) for label, place in rows]
        else:
            low, high = scale
            targets = [(score - low) / (high - low) for score in self.scores()]
        return LabelledRows(self.sentences, np.array(targets, dtype=np.float64))

    def scores(self, scale: tuple[float, float] | None = None) -> list[float]:
        """Return the labels as scores."""
        scores = []
        for label, place in zip(self.labels, self.places, strict=True):
            score = None if isinstance(label, bool) else number(str(label))
            if score is None:
                raise UserError(
                    f"{place}: the score {label!r} is not a finite number; mend it or delete the line."
                )
            if scale is not None and not scale[0] <= score <= scale[1]:
                raise UserError(
                    f"{place}: the score {score:g} is outside of the scale, {scale[0]:g} to {scale[1]:g}; mend "
                    "it, or the scale."
                )
            scores.append(score)
        return scores

    def _class(self, label: object, numbers: Mapping[str, float], place: str) -> float:
        known = numbers.get(_spelt(label))
        if known is None:
            raise UserError(
                f"{place}: the label {label!r} is none of the classes, {', '.join(numbers)}; mend it, or "
                "the classes."
            )
        return known


def _sentence(cell: object, table: Rows, line: int, column: str) -> str:
    if cell is not None and not isinstance(cell, str):
        raise UserError(f"{table.at(line)}: {column} is {cell!r}, no sentence; mend the line, or `columns`.")
    return (cell or "").strip()


def _labels_of(part: TaskHead, table: _Table) -> tuple[tuple[str, ...], tuple[float, float] | None]:
    """Return the classes or the scale: the recipe's, or what the training table has."""
    known = part.known_labels
    if not part.has_classes:
        if known is not None:
            low, high = (float(str(value)) for value in known)
            table.scores((low, high))
            return (), (low, high)
        scores = table.scores()
        if len(set(scores)) < 2:
            raise UserError(
                f"{table.path} has no two scores in column {part.columns[-1]!r}: there is nothing to learn."
            )
        return (), (min(scores), max(scores))
    if known is not None:
        classes = [_spelt(label) for label in known]
    else:
        classes = sorted({_spelt(label) for label in table.labels}, key=_by_number)
    if len(set(classes)) < 2:
        raise UserError(
            f"{table.path} has no two classes in column {part.columns[-1]!r}: there is nothing to learn."
        )
    return tuple(classes), None


def _by_number(label: str) -> tuple[bool, float, str]:
    value = number(label)
    return value is None, value or 0.0, label


def _spelt(label: Label | object) -> str:
    """Return a label in one spelling, numbers as numbers.

    >>> _spelt("1.0"), _spelt(1), _spelt("yes"), _spelt(True)
    ('1', '1', 'yes', 'true')
    """
    if isinstance(label, bool):
        return str(label).lower()
    value = number(str(label))
    if value is None:
        return str(label)
    return str(int(value)) if value == int(value) else repr(value)
