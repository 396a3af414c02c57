"""Labelled tables of tasks without scored pairs, and the overlap of a corpus with scored sentences.

`stsbench data overlap --corpus` also counts pairs and near-duplicates.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.words import listed
from stsbench.data.benchmarks import read_splits
from stsbench.data.rows import open_rows
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import pair_numbers, sentences_met
from stsbench.scoring.tasks import STS_TASKS
from stsbench.statistics.seeds import generator
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import TaskHead, TestPairs

STS_B = ("STS-B:dev", "STS-B:test")
SCORED = (*STS_B, *(f"{task}:test" for task in STS_TASKS if task != "STS-B"))
"""The sets that encoders are selected by (STS-B's dev split) and scored on."""

_DROPPED: Mapping[TestPairs, Sequence[str]] = {"dropped": STS_B, "all-dropped": SCORED, "kept": ()}


def corpus_sentence(texts: Iterable[str], data_dirs: Sequence[Path] = ()) -> str:
    """Return how many scored sentences a corpus contains; empty, without reading it, if no set is available."""
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
        f"not checked: {listed(list(absent))}, missing or broken" if absent else "",
    ]
    return (
        "the corpus and the distinct sentences that encoders are scored on, by letters and digits: "
        f"{'; '.join(filter(None, parts))}."
    )


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Sentences with labels.

    Attributes:
        sentences: for each sentence of a row a list, (n,).
        targets: (n,) the number of the class, or the score scaled to 0 .. 1; float64.
    """

    sentences: tuple[list[str], ...]
    targets: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.targets)

    def at(self, places: NDArray[np.int64]) -> "LabelledRows":
        return LabelledRows(
            tuple([column[place] for place in places] for column in self.sentences), self.targets[places]
        )


@dataclass(frozen=True, eq=False)
class LabelledTask:
    """A task with its table.

    Attributes:
        finding: a sentence on the numbers of rows and of dropped pairs.
        remark: a warning if it trains on scored pairs, for every record of the checkpoint; else None.
    """

    name: str
    part: TaskHead
    train: LabelledRows
    dev: LabelledRows
    finding: str
    remark: str | None
    sha256: str


def read_tasks(recipe: Recipe, data_dirs: Sequence[str | Path] = ()) -> list[LabelledTask]:
    """Read the tables of all tasks of a recipe; scored pairs are also looked for in `data_dirs`."""
    folder, test_pairs = recipe.labelled.folder, recipe.labelled.test_pairs
    files = {
        name: [table_file(name, path, folder) for path in (part.train, part.dev) if path is not None]
        for name, part in recipe.tasks.items()
    }
    scored: dict[str, frozenset[tuple[int, int]]] = {}
    absent: Sequence[str] = ()
    if any(part.sentences > 1 for part in recipe.tasks.values()):
        sets, errors = read_splits(SCORED, [Path(folder) for folder in data_dirs])
        for name in filter(errors.__contains__, _DROPPED[test_pairs]):
            raise UserError(
                f"labelled.test_pairs: {test_pairs} drops the pairs of {name}, which is missing: {errors[name]}"
            ) from errors[name]
        scored = {
            name: frozenset(pair_numbers(data.pairs["sentence1"], data.pairs["sentence2"]))
            for name, data in sets.items()
        }
        absent = list(errors)
    return [_read_task(name, files[name], recipe, scored, absent) for name in recipe.tasks]


def table_file(name: str, path: str, folder: str | None = None) -> Path:
    file = Path(path).expanduser() if folder is None else Path(folder).expanduser() / Path(path).expanduser()
    if not file.is_file():
        where = f"in {folder}" if folder is not None else f"in {file.parent.resolve()}"
        raise UserError(
            f"tasks.{name}: there is no {file.name} {where}: name its folder with --set labelled.folder=FOLDER."
        )
    return file


def _read_task(
    name: str,
    files: Sequence[Path],
    recipe: Recipe,
    scored: Mapping[str, frozenset[tuple[int, int]]],
    absent: Sequence[str],
) -> LabelledTask:
    part = recipe.tasks[name]
    rows, left_out = _read_table(files[0], part, part.rows)
    pairs = pair_numbers(*rows.sentences) if part.sentences > 1 else []
    dropped = {of: scored[of] for of in _DROPPED[recipe.labelled.test_pairs]} if pairs else {}
    gone = frozenset[tuple[int, int]]().union(*dropped.values())
    places = np.array(
        [place for place in range(len(rows)) if not pairs or pairs[place] not in gone], dtype=np.int64
    )
    facts = (
        [f"dropped {len(rows) - len(places):,} that hold scored pairs{_of_sets(dropped, pairs)}"]
        if dropped
        else []
    )
    if len(files) > 1:
        dev, more = _read_table(files[1], part, part.dev_rows)
        left_out += more
    else:
        order = generator(recipe.seed, "held-out", name).permutation(places)
        size = max(1, round(part.held_out * len(order)))
        places, dev = np.sort(order[size:]), rows.at(np.sort(order[:size]))
    train = rows.at(places)
    if not len(train) or not len(dev):
        which = "to train on" if not len(train) else "to score"
        raise UserError(f"tasks.{name}: {files[0]} leaves no row {which}: give more rows.")
    if pairs and absent:
        facts.append(f"not checked for the pairs of {listed(list(absent))}, which are missing")
    facts = [f"left out {left_out:,} with an empty cell", *facts] if left_out else facts
    counts = f"{len(train):,} rows to train on, {len(dev):,} to score"
    remark, trained_on = None, [pairs[place] for place in places.tolist()] if pairs else []
    if left := _of_sets(scored, trained_on):
        remark = (
            f"Trained on test pairs: of the {len(set(trained_on)):,} pairs that {name} is trained on, with "
            f"labels, some are scored pairs of tasks{left}, so scores there are no results."
        )
    sha256 = ":".join(map(sha256_of, files))
    return LabelledTask(name, part, train, dev, f"task {name}: {'; '.join([counts, *facts])}.", remark, sha256)


def _of_sets(sets: Mapping[str, frozenset[tuple[int, int]]], pairs: Iterable[tuple[int, int]]) -> str:
    distinct = frozenset(pairs)
    counts = [f"{count:,} of {name}" for name, scored in sets.items() if (count := len(scored & distinct))]
    return f" ({listed(counts)})" if counts else ""


def _read_table(path: Path, part: TaskHead, most: int | None) -> tuple[LabelledRows, int]:
    table = open_rows(path, is_header=lambda _: True, names=part.columns, delimiter=part.delimiter)
    sentences: tuple[list[str], ...] = tuple([] for _ in part.columns[1:])
    targets, left_out = [], 0
    for line, cells in islice(table.rows, most):
        for cell, name in zip(cells[:-1], part.columns, strict=False):
            if cell is not None and not isinstance(cell, str):
                raise UserError(f"{table.at(line)}: {name} is {cell!r}, not a sentence; fix it, or `columns`.")
        stripped: list[Any] = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
        *texts, label = stripped
        if not all(texts) or label in {"", None}:
            left_out += 1
            continue
        try:
            targets.append(part.target(label))
        except ValueError as error:
            raise UserError(f"{table.at(line)}: {error}; fix the line or the recipe.") from error
        for column, text in zip(sentences, texts, strict=True):
            column.append(text)
    return LabelledRows(sentences, np.array(targets, dtype=np.float64)), left_out
