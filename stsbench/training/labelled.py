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
from stsbench.data.tables import folded_ids, pair_ids, sentence_ids, shared_ids
from stsbench.scoring.tasks import STS_TASKS
from stsbench.statistics.seeds import generator
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import Task

STS_B = ("STS-B:dev", "STS-B:test")
SCORED = (*STS_B, *(f"{task}:test" for task in STS_TASKS if task != "STS-B"))
"""The sets that encoders are selected by (STS-B's dev split) and scored on."""

_AT_ONCE = 200_000  # Sentences of a corpus in memory at once, as it may not fit
_HELD_OUT = 0.1
"""The share of rows that a task without a dev table is scored on."""


def corpus_sentence(texts: Iterable[str], data_dirs: Sequence[Path] = ()) -> str:
    """Returns how many scored sentences a corpus contains; empty, without reading it, if no set is available."""
    sets, absent = read_splits(SCORED, data_dirs)
    if not sets:
        return ""
    ways, left = (sentence_ids, folded_ids), iter(texts)
    corpora = [ids_of([]) for ids_of in ways]
    while batch := list(islice(left, _AT_ONCE)):
        corpora = [np.append(ids, ids_of(batch)) for ids, ids_of in zip(corpora, ways, strict=True)]
    some, none = [], []
    for name, data in sets.items():
        ids = [ids_of(sentences_in(data)) for ids_of in ways]
        released, letters = map(shared_ids, ids, corpora)
        if letters.shared:
            counts = f"{letters.shared:,} of the {letters.distinct:,} of {name}"
            some.append(f"{counts} ({released.shared:,} as released)")
        else:
            none.append(name)
    parts = [
        listed(some),
        f"none of {listed(none)}" if none else "",
        f"not checked: {listed(list(absent))}, missing or broken" if absent else "",
    ]
    return f"the corpus contains these scored sentences (by letters and digits): {'; '.join(filter(None, parts))}."


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
    part: Task
    train: LabelledRows
    dev: LabelledRows
    finding: str
    remark: str | None
    sha256: str


def read_tasks(recipe: Recipe, data_dirs: Sequence[str | Path] = ()) -> list[LabelledTask]:
    """Reads the tables of all tasks of a recipe; scored pairs are also looked for in `data_dirs`."""
    if all(part.sentences == 1 for part in recipe.tasks.values()):
        return [_read_task(name, recipe, {}, ()) for name in recipe.tasks]
    sets, absent = read_splits(SCORED, [Path(folder) for folder in data_dirs])
    for name in STS_B if recipe.labelled.test_pairs == "dropped" else ():
        if name in absent:
            raise UserError(
                f"labelled.test_pairs: dropped drops the pairs of {name}, which is missing: {absent[name]}"
            ) from absent[name]
    scored = {
        name: pair_ids(*(folded_ids(data.pairs[side]) for side in ("sentence1", "sentence2")))
        for name, data in sets.items()
    }
    return [_read_task(name, recipe, scored, list(absent)) for name in recipe.tasks]


def table_file(path: str, folder: str | None = None) -> Path:
    file = Path(folder or "").expanduser() / Path(path).expanduser()
    if not file.is_file():
        raise UserError(
            f"there is no labelled table {file.name} in {folder or file.parent.resolve()}: name its folder with "
            "--set labelled.folder=FOLDER."
        )
    return file


def _read_task(
    name: str, recipe: Recipe, scored: Mapping[str, NDArray[np.uint64]], absent: Sequence[str]
) -> LabelledTask:
    part = recipe.tasks[name]
    files = [table_file(path, recipe.labelled.folder) for path in (part.train, part.dev) if path is not None]
    rows, empty = _read_table(files[0], part, part.rows)
    has_pairs = part.sentences > 1
    pairs = pair_ids(*map(folded_ids, rows.sentences)) if has_pairs else np.zeros(len(rows), dtype=np.uint64)
    dropped = {of: scored[of] for of in STS_B} if has_pairs and recipe.labelled.test_pairs == "dropped" else {}
    kept = np.ones(len(rows), dtype=bool)
    for ids in dropped.values():
        kept &= ~shared_ids(pairs, ids).mask
    places = np.flatnonzero(kept)
    facts = []
    if dropped:
        counts = _shared(dropped, pairs)
        facts += [f"dropped {len(rows) - len(places):,} with scored pairs" + (f" ({counts})" if counts else "")]
    if len(files) > 1:
        dev, empty_dev = _read_table(files[1], part, part.dev_rows)
        empty += empty_dev
    else:
        order = generator(recipe.seed, "held-out", name).permutation(places)
        size = max(1, round(_HELD_OUT * len(order)))
        places, dev = np.sort(order[size:]), rows.at(np.sort(order[:size]))
    train = rows.at(places)
    if not len(train) or not len(dev):
        which = "to train on" if not len(train) else "to score"
        raise UserError(f"tasks.{name}: {files[0]} leaves no row {which}: give more rows.")
    if has_pairs and absent:
        facts.append(f"not checked for the pairs of {listed(absent)}, which are missing")
    facts = [f"left out {empty:,} with an empty cell", *facts] if empty else facts
    finding = "; ".join([f"task {name}: {len(train):,} rows to train on, {len(dev):,} to score", *facts])
    tests = _shared(scored, pairs[places])
    remark = f"Trained on test pairs: {name} is trained on {tests}, so scores there are not results."
    sha256 = ":".join(map(sha256_of, files))
    return LabelledTask(name, part, train, dev, f"{finding}.", remark if tests else None, sha256)


def _shared(sets: Mapping[str, NDArray[np.uint64]], pairs: NDArray[np.uint64]) -> str:
    """Returns how many distinct pairs are in each set; empty if there are none."""
    counts = {name: shared_ids(pairs, scored).shared for name, scored in sets.items()}
    return listed([f"{count:,} of {name}" for name, count in counts.items() if count])


def _read_table(path: Path, part: Task, most: int | None) -> tuple[LabelledRows, int]:
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
