"""The labelled tables of tasks: read, freed of pairs that encoders are measured on, parted in train and dev."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.words import listed
from stsbench.data.benchmarks import load_sts
from stsbench.data.rows import Rows, number, open_rows
from stsbench.data.sentence_ids import folded_ids, unordered_pairs
from stsbench.statistics.bootstrap import generator
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import Label, TaskHead

BENCHMARK = ("dev", "test")
"""The splits of STS-B whose pairs no training may see: selection is by the first, reports are of the second."""

Pairs = Mapping[str, frozenset[tuple[int, int]]]
"""For each benchmark set its pairs, by letters and digits, whichever sentence is named first."""


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


@dataclass(frozen=True)
class Dropped:
    """What was found of the benchmark's pairs in a training table.

    Attributes:
        rows: of the table that are such pairs.
        pairs: of each benchmark set that occur in it, each counted once.
        kept: whether they stayed.
    """

    rows: int
    pairs: Mapping[str, int]
    kept: bool

    def sentence(self) -> str:
        """Return it as part of a sentence."""
        of_sets = listed([f"{count:,} of {name}" for name, count in self.pairs.items()])
        return f"{self.rows:,} rows are pairs of STS-B ({of_sets}) and were {'kept' if self.kept else 'dropped'}"


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """A task with its table.

    Attributes:
        name: in the recipe.
        part: the recipe's.
        classes: the labels by their numbers; empty where labels are scores.
        scale: the lowest and highest score; None where labels are classes.
        train: what is trained on.
        dev: what is scored.
        left_out: rows with an empty cell.
        dropped: pairs of the benchmark among the training rows; None where rows have one sentence or nobody looked.
        sha256: of its files.
    """

    name: str
    part: TaskHead
    classes: tuple[str, ...]
    scale: tuple[float, float] | None
    train: LabelledRows
    dev: LabelledRows
    left_out: int
    dropped: Dropped | None
    sha256: str

    def sentence(self) -> str:
        """Return what was found in its table."""
        found = [f"{len(self.train):,} rows to train on, {len(self.dev):,} to score"]
        found += [f"left out {self.left_out:,} with an empty cell"] if self.left_out else []
        found += [] if self.dropped is None else [self.dropped.sentence()]
        return f"task {self.name}: {'; '.join(found)}."


def read_tasks(recipe: Recipe, data_dirs: Sequence[str | Path] = ()) -> list[LabelledTask]:
    """Read the tables of all tasks of a recipe.

    Args:
        recipe: names them.
        data_dirs: folders to look for STS-B in, whose pairs are dropped.

    Raises:
        UserError: naming file and line of what is wrong, or if STS-B is not here.
    """
    if not recipe.tasks:
        return []
    in_pairs = [name for name, part in recipe.tasks.items() if part.sentences > 1]
    pairs = _benchmark(in_pairs, [Path(folder) for folder in data_dirs], recipe.labelled.test_pairs == "kept")
    return [_read_task(name, part, recipe, pairs) for name, part in recipe.tasks.items()]


def table_file(name: str, path: str, folder: str | None = None) -> Path:
    """Return the file of a task's table.

    Raises:
        UserError: if it is not there.
    """
    file = Path(path).expanduser() if folder is None else Path(folder).expanduser() / Path(path).expanduser()
    if not file.is_file():
        where = f"in {folder}" if folder is not None else f"in {file.parent.resolve()}"
        raise UserError(
            f"tasks.{name}: there is no {file.name} {where}: name the folder that holds it with --set "
            "labelled.folder=FOLDER."
        )
    return file


def _benchmark(tasks: Sequence[str], data_dirs: Sequence[Path], kept: bool) -> Pairs | None:
    """Return the benchmark's pairs; None where no task needs them, or where they may stay and are not here."""
    if not tasks:
        return None
    try:
        return {
            name: frozenset(_pairs_of(data.pairs["sentence1"].tolist(), data.pairs["sentence2"].tolist()))
            for name, data in (
                (f"STS-B:{split}", load_sts("STS-B", split, data_dirs=data_dirs)) for split in BENCHMARK
            )
        }
    except UserError as error:
        if kept:
            return None
        raise UserError(
            f"the pairs of STS-B are dropped from the labelled tables ({listed(list(tasks))}), and it is not here "
            f"to tell them by: {error}"
        ) from error


def _pairs_of(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    return unordered_pairs(folded_ids(first), folded_ids(second))


def _read_task(name: str, part: TaskHead, recipe: Recipe, benchmark: Pairs | None) -> LabelledTask:
    folder = recipe.labelled.folder
    files = {key: table_file(name, path, folder) for key in ("train", "dev") if (path := getattr(part, key))}
    table = _Table.read(files["train"], part, part.rows)
    dev_table = _Table.read(files["dev"], part, part.dev_rows) if "dev" in files else None
    classes, scale = _labels_of(part, table)
    rows = table.rows(classes, scale)
    kept, dropped = np.ones(len(rows), dtype=bool), None
    if benchmark is not None and part.sentences > 1:
        pairs = _pairs_of(*rows.sentences)
        among = {key: [pair in known for pair in pairs] for key, known in benchmark.items()}
        found = np.any(list(among.values()), axis=0)
        counts = {key: len(known & set(pairs)) for key, known in benchmark.items()}
        dropped = Dropped(int(found.sum()), counts, recipe.labelled.test_pairs == "kept")
        kept = ~found if recipe.labelled.test_pairs == "dropped" else kept
    places = np.flatnonzero(kept)
    if dev_table is None:
        order = generator(recipe.seed, "held-out", name).permutation(places)
        size = max(1, round(part.share_held_out * len(order)))
        places, held_out = np.sort(order[size:]), np.sort(order[:size])
        dev = rows.at(held_out)
    else:
        dev = dev_table.rows(classes, scale)
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
        dropped,
        ":".join(sha256_of(file) for file in files.values()),
    )


@dataclass(frozen=True)
class _Table:
    """The rows of a file.

    Attributes:
        path: of the file.
        sentences: a list for each column.
        labels: of each row, as the file has them.
        places: where each row is, for a message.
        left_out: rows with an empty cell.
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
        """Return the rows with their targets.

        Raises:
            UserError: naming the line of a label that is none of the classes, or no score.
        """
        if scale is None:
            numbers = {label: float(place) for place, label in enumerate(classes)}
            rows = zip(self.labels, self.places, strict=True)
            targets = [self._class(label, numbers, place) for label, place in rows]
        else:
            low, high = scale
            targets = [(score - low) / (high - low) for score in self.scores()]
        return LabelledRows(self.sentences, np.array(targets, dtype=np.float64))

    def scores(self, scale: tuple[float, float] | None = None) -> list[float]:
        """Return the labels as scores.

        Raises:
            UserError: naming the line of one that is none, or outside of the scale.
        """
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
    """Return the classes or the scale: the recipe's, or what the training table has.

    Raises:
        UserError: if there are not two of them.
    """
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
