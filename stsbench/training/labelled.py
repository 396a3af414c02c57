"""The labelled tables of tasks: read, freed of pairs that encoders are measured on, parted in train and dev.

What encoders are scored on and a table holds is dropped and counted, or told everywhere; what a corpus holds of it
is told. `stsbench data overlap --corpus` counts pairs and near-duplicates, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.words import listed
from stsbench.data.benchmarks import read_splits
from stsbench.data.rows import Rows, number, open_rows
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import pair_numbers, sentences_met
from stsbench.scoring.tasks import STS_TASKS
from stsbench.statistics.seeds import generator
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import Label, TaskHead, TestPairs

STS_B = ("STS-B:dev", "STS-B:test")
"""Checkpoints are selected by the first and reported by the second."""

SCORED = (*STS_B, *(f"{task}:test" for task in STS_TASKS if task != "STS-B"))
"""What encoders are scored on, and STS-B's dev split."""

_DROPPED: Mapping[TestPairs, Sequence[str]] = {"dropped": STS_B, "all-dropped": SCORED, "kept": ()}


def corpus_sentence(texts: Iterable[str], data_dirs: Sequence[Path] = ()) -> str:
    """Return what a corpus holds of the sentences that encoders are scored on, and of STS-B's dev split.

    It is empty, and the texts are not read, where none of the sets is here.
    """
    sets, absent = read_splits(SCORED, data_dirs)
    if not sets:
        return ""
    counts = sentences_met(texts, {name: sentences_in(data) for name, data in sets.items()})
    some = [
        f"{met.letters:,} of the {met.distinct:,} of {name} ({met.released:,} as released)"
        for name, met in counts.items()
        if met.letters
    ]
    none = [name for name, met in counts.items() if not met.letters]
    parts = [
        f"it holds {listed(some)}" if some else "",
        f"it holds none of {listed(none)}" if none else "",
        f"nobody looked for those of {listed(list(absent))}, not here or broken" if absent else "",
    ]
    return (
        "the corpus and the distinct sentences that encoders are scored on, by letters and digits: "
        f"{'; '.join(filter(None, parts))}."
    )


@dataclass(frozen=True)
class Leakage:
    """What is common to a labelled table and the scored pairs of tasks. Pairs are counted once, rows as they come.

    Attributes:
        rows: that were dropped.
        left: pairs of each set that are trained on; sets without any left out.
        absent: sets that are not here, so nobody looked for their pairs.
    """

    rows: int
    dropped: Mapping[str, int]
    left: Mapping[str, int]
    trained_on: int
    absent: Sequence[str]

    def sentence(self) -> str:
        """Return what was dropped, as a part of a sentence."""
        of_sets = listed([f"{count:,} of {name}" for name, count in self.dropped.items() if count])
        parts = []
        if self.dropped:
            parts.append(f"dropped {self.rows:,} that hold scored pairs{f' ({of_sets})' if of_sets else ''}")
        if self.absent:
            parts.append(f"not looked for the pairs of {listed(list(self.absent))}, which are not here")
        return "; ".join(parts)

    def remark(self, task: str) -> str | None:
        """Return what everybody should know who reads a score of what is trained so; None if that is nothing."""
        if not self.left:
            return None
        of_sets = listed([f"{count:,} of {name}" for name, count in self.left.items()])
        return (
            f"Trained on test pairs: of the {self.trained_on:,} pairs that {task} is trained on, with labels, "
            f"some are scored pairs of tasks ({of_sets}), so scores there are no results."
        )


class _ScoredPairs:
    """The scored pairs of tasks."""

    def __init__(self, test_pairs: TestPairs, data_dirs: Sequence[Path]) -> None:
        """Read the sets; those whose pairs are to be dropped must be here."""
        sets, absent = read_splits(SCORED, data_dirs)
        self._dropped, self._absent = _DROPPED[test_pairs], list(absent)
        for name in filter(absent.__contains__, self._dropped):
            raise UserError(
                f"pairs of {name} are to be dropped from labelled training data (labelled.test_pairs: "
                f"{test_pairs}), and it is not here to tell them by: {absent[name]}"
            ) from absent[name]
        self._pairs = {
            name: frozenset(pair_numbers(data.pairs["sentence1"], data.pairs["sentence2"]))
            for name, data in sets.items()
        }
        self._gone = frozenset[tuple[int, int]]().union(*(self._pairs[name] for name in self._dropped))

    def kept(self, table: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
        """Return the places of the pairs that are not dropped."""
        return np.array([place for place, pair in enumerate(table) if pair not in self._gone], dtype=np.int64)

    def met(self, table: Sequence[tuple[int, int]], trained_on: NDArray[np.int64]) -> Leakage:
        """Return what was found in a table, and at those places of it that are trained on."""
        everything, left = frozenset(table), frozenset(table[place] for place in trained_on.tolist())
        counts = {name: len(scored & left) for name, scored in self._pairs.items()}
        return Leakage(
            rows=len(table) - len(self.kept(table)),
            dropped={name: len(self._pairs[name] & everything) for name in self._dropped},
            left={name: count for name, count in counts.items() if count},
            trained_on=len(left),
            absent=self._absent,
        )


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
    """Read the tables of all tasks of a recipe; scored pairs are looked for in `data_dirs` too."""
    folder = recipe.labelled.folder
    files = {
        name: [table_file(name, path, folder) for path in (part.train, part.dev) if path is not None]
        for name, part in recipe.tasks.items()
    }
    scored = None
    if any(part.sentences > 1 for part in recipe.tasks.values()):
        scored = _ScoredPairs(recipe.labelled.test_pairs, [Path(folder) for folder in data_dirs])
    return [_read_task(name, files[name], recipe, scored) for name in recipe.tasks]


def table_file(name: str, path: str, folder: str | None = None) -> Path:
    """Return the file of a task's table, which is there."""
    file = Path(path).expanduser() if folder is None else Path(folder).expanduser() / Path(path).expanduser()
    if not file.is_file():
        where = f"in {folder}" if folder is not None else f"in {file.parent.resolve()}"
        raise UserError(
            f"tasks.{name}: there is no {file.name} {where}: name the folder that holds it with --set "
            "labelled.folder=FOLDER."
        )
    return file


def _read_task(name: str, files: Sequence[Path], recipe: Recipe, scored: _ScoredPairs | None) -> LabelledTask:
    part = recipe.tasks[name]
    tables = [_Table.read(file, part, most) for file, most in zip(files, (part.rows, part.dev_rows), strict=False)]
    classes, scale = ((), tables[0].scale()) if not part.has_classes else (tables[0].classes(), None)
    rows = tables[0].rows(classes, scale)
    pairs = [] if scored is None or part.sentences == 1 else pair_numbers(*rows.sentences)
    places = np.arange(len(rows)) if scored is None or not pairs else scored.kept(pairs)
    if len(tables) > 1:
        dev = tables[1].rows(classes, scale)
    else:
        order = generator(recipe.seed, "held-out", name).permutation(places)
        size = max(1, round(part.share_held_out * len(order)))
        places, held_out = np.sort(order[size:]), np.sort(order[:size])
        dev = rows.at(held_out)
    train = rows.at(places)
    if not len(train) or not len(dev):
        which = "to train on" if not len(train) else "to score"
        raise UserError(f"tasks.{name}: {files[0]} leaves no row {which}: give more rows.")
    return LabelledTask(
        name=name,
        part=part,
        classes=classes,
        scale=scale,
        train=train,
        dev=dev,
        left_out=sum(table.left_out for table in tables),
        overlap=scored.met(pairs, places) if scored is not None and pairs else None,
        sha256=":".join(map(sha256_of, files)),
    )


@dataclass(frozen=True)
class _Table:
    """The rows of a file that have no empty cell; `places` says where each is, for a message."""

    path: Path
    part: TaskHead
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
        return cls(path, part, sentences, labels, places, left_out)

    def classes(self) -> tuple[str, ...]:
        """Return the classes: the recipe's, or in order those that the table has."""
        known = self.part.known_labels
        if known is None:
            classes = tuple(sorted({_spelt(label) for label in self.labels}, key=_by_number))
        else:
            classes = tuple(map(_spelt, known))
        self._require_two("classes", classes)
        return classes

    def scale(self) -> tuple[float, float]:
        """Return the lowest and the highest score: the recipe's, or those that the table has."""
        known = self.part.known_labels
        if known is not None:
            low, high = (float(str(value)) for value in known)
            self._scores((low, high))
            return low, high
        scores = self._scores()
        self._require_two("scores", scores)
        return min(scores), max(scores)

    def _require_two(self, what: str, labels: Iterable[object]) -> None:
        if len(set(labels)) < 2:
            raise UserError(
                f"{self.path} has no two {what} in column {self.part.columns[-1]!r}: there is nothing to learn."
            )

    def rows(self, classes: Sequence[str], scale: tuple[float, float] | None) -> LabelledRows:
        """Return the rows with their targets."""
        if scale is None:
            targets = self._numbers(classes)
        else:
            low, high = scale
            targets = [(score - low) / (high - low) for score in self._scores()]
        return LabelledRows(self.sentences, np.array(targets, dtype=np.float64))

    def _numbers(self, classes: Sequence[str]) -> list[float]:
        """Return the number of each row's class."""
        numbers = {label: float(place) for place, label in enumerate(classes)}
        for label, place in zip(self.labels, self.places, strict=True):
            if _spelt(label) not in numbers:
                raise UserError(
                    f"{place}: the label {label!r} is none of the classes, {', '.join(numbers)}; mend it, or "
                    "the classes."
                )
        return [numbers[_spelt(label)] for label in self.labels]

    def _scores(self, scale: tuple[float, float] | None = None) -> list[float]:
        """Return the labels as scores, none of them outside of a scale."""
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


def _sentence(cell: object, table: Rows, line: int, column: str) -> str:
    if cell is not None and not isinstance(cell, str):
        raise UserError(f"{table.at(line)}: {column} is {cell!r}, no sentence; mend the line, or `columns`.")
    return (cell or "").strip()


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
