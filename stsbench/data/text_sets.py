"""Sets of sentences or pairs to hold against each other: a split of a task, several splits together, a corpus."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.catalogue import CataloguePart, data_set, data_sets, task_split_text
from stsbench.data.corpus import HEADER_NAMES, SAMPLE, load_corpus, require_room_for
from stsbench.data.rows import ending_of, number, open_rows
from stsbench.data.shared import NUMBERS
from stsbench.data.tables import StsData

_SENTEVAL = "senteval"
_GROUPS = {"sts": ("sts",), "transfer": ("labelled",), "all": ("sts", "labelled")}


@dataclass(frozen=True, eq=False)
class TextSet:
    """Rows of one or two sentences under one name.

    Attributes:
        name: `STS-B:train`, `MR`, `STS12+STS13`, or the name of a corpus' file.
        first: n first sentences.
        second: n second ones; None where a row has one sentence.
        origin: the task, or the path of the corpus.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...] | None = None
    origin: str = ""

    @classmethod
    def of_pairs(cls, data: StsData) -> "TextSet":
        """Return the pairs of a task or of a person's file."""
        name = data.task if data.split == "all" else f"{data.task}:{data.split}"
        return cls(name, tuple(data.table["sentence1"]), tuple(data.table["sentence2"]), data.task)

    @property
    def has_pairs(self) -> bool:
        """Whether a row is a pair."""
        return self.second is not None

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, as often as they stand there: first sides, then second ones."""
        return self.first + (self.second or ())

    def numbers(self, same: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the numbers of each row's two sentences, in one order whichever was named first; each (n,).

        Of a row of one sentence both are its number.

        Args:
            same: by what sentences are the same, of `NUMBERS`.
        """
        first = NUMBERS[same](self.first)
        second = first if self.second is None else NUMBERS[same](self.second)
        return np.minimum(first, second), np.maximum(first, second)


def read_sets(names: Sequence[str], data_dirs: Sequence[Path] = ()) -> list[TextSet]:
    """Return the sets that a person names, each once.

    Args:
        names: `TASK[:split][@text]`, where a task without a split stands for all of its splits, one set each;
            several of those joined by `+`, for one set of them all; `sts`, `transfer` or `all`.
        data_dirs: folders to look for data in first (default: the places of `stsbench.data.locate`).

    Raises:
        UserError: if there is no such task or split, or its data is not here or broken.

    >>> [texts.name for texts in read_sets(["sample", "sample-questions"])]
    ['sample', 'sample-questions:train', 'sample-questions:test']
    """
    sets: dict[str, TextSet] = {}
    for name in names:
        for texts in _named(name, data_dirs):
            sets.setdefault(texts.name, texts)
    return list(sets.values())


def _named(name: str, data_dirs: Sequence[Path]) -> list[TextSet]:
    if kinds := _GROUPS.get(name.casefold()):
        tasks = [task for task, entry in data_sets().items() if entry.kind in kinds and _SENTEVAL in entry.texts]
        return [texts for task in tasks for texts in _splits_of(task, data_dirs)]
    members = [texts for part in name.split("+") for texts in _splits_of(part.strip(), data_dirs)]
    return [_joined(name, members)] if "+" in name else members


def _joined(name: str, members: Sequence[TextSet]) -> TextSet:
    """Return several sets as one.

    Raises:
        UserError: if some are of pairs and others of sentences.
    """
    if len({texts.has_pairs for texts in members}) > 1:
        raise UserError(f"{name}: sets of pairs and of single sentences cannot be joined; name them one by one.")
    first = tuple(text for texts in members for text in texts.first)
    second = tuple(text for texts in members for text in texts.second or ())
    return TextSet(name, first, second if members[0].has_pairs else None, name)


def _splits_of(name: str, data_dirs: Sequence[Path]) -> list[TextSet]:
    task, split, text = task_split_text(name)
    entry = data_set(task)
    chosen = text or (_SENTEVAL if _SENTEVAL in entry.texts else next(iter(entry.texts)))
    if entry.kind == "sts":
        table = load_sts(task, split or _whole(entry.texts[chosen].parts), chosen, data_dirs).pairs
    else:
        table = load_labelled(task, data_dirs, text=chosen).items
    # A few sentences of CR and MPQA are empty: nothing that could be shared.
    table = table[table["sentence1"].astype(bool)]
    there = list(dict.fromkeys(table["split"]))
    wanted = there if split in {"", "all"} else [split]
    if not set(wanted) <= set(there):
        raise UserError(f"{entry.task} has no split {split!r}: choose one of {', '.join(there)}.")
    other_text = f"@{text}" if text not in {"", _SENTEVAL} else ""
    sets = []
    for part in wanted:
        rows = table[table["split"] == part]
        second = tuple(rows["sentence2"]) if rows["sentence2"].notna().all() else None
        is_whole = part == "all" or there == ["test"]
        shown = "" if is_whole else f":{part}"
        sets.append(TextSet(f"{entry.task}{shown}{other_text}", tuple(rows["sentence1"]), second, entry.task))
    return sets


def _whole(parts: Sequence[CataloguePart]) -> str:
    splits = {part.split for part in parts}
    return "all" if len(splits) > 1 else next(iter(splits))


def read_corpus_set(corpus: str | Path, columns: Sequence[str] | None = None) -> TextSet:
    """Return a training corpus: its lines, or the sentences of its rows, the first with each of the others a pair.

    Args:
        corpus: a text file with a sentence a line (each counts once), a .tsv, .csv, .jsonl or .parquet file, or
            `sample`.
        columns: the columns that hold sentences, in order; by default all cells but numbers.

    Raises:
        UserError: if it cannot be read, or holds no sentence.

    >>> corpus = read_corpus_set("sample")
    >>> corpus.name, len(corpus.first), corpus.has_pairs
    ('sample', 400, False)
    """
    path = Path(corpus).expanduser()
    if str(corpus) == SAMPLE or _ending(path) == ".txt":
        if columns is not None:
            raise UserError(f"{path} is text, one sentence a line: it has no columns to name.")
        return TextSet(path.name, load_corpus(corpus), None, str(corpus))
    require_room_for(path)
    rows = list(_sentences_of_rows(path, columns))
    if not rows:
        raise UserError(f"{path} holds no sentence: name the columns that hold some with --columns.")
    if all(len(row) > 1 for row in rows):
        firsts = [row[0] for row in rows for _ in row[1:]]
        return TextSet(path.name, tuple(firsts), tuple(text for row in rows for text in row[1:]), str(path))
    return TextSet(path.name, tuple(text for row in rows for text in row), None, str(path))


def _ending(path: Path) -> str:
    try:
        return ending_of(path)
    except UserError:
        # Of a name that says nothing, text is the likeliest; what is no text is told when it is read.
        return ".txt"


def _sentences_of_rows(path: Path, columns: Sequence[str] | None) -> Iterator[tuple[str, ...]]:
    table = open_rows(path, is_header=_is_header, names=columns)
    for _, cells in table.rows:
        texts = tuple(
            cell.strip()
            for cell in cells
            if isinstance(cell, str) and cell.strip() and (columns is not None or number(cell) is None)
        )
        if texts:
            yield texts


def _is_header(cells: Sequence[str]) -> bool:
    # Tables of pairs name an id or a score beside the sentences.
    known = [cell for cell in cells if cell.strip().casefold() in HEADER_NAMES]
    return len(known) == len(cells) or len(known) > 1
