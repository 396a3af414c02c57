"""From catalogued files to tables: reading the scored pairs and the labelled sentences of the benchmarks.

A text of a data set is laid out in one of five ways; each has a function that turns its files into rows, and a row
becomes a scored pair (`load_sts`) or a labelled item (`load_labelled`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypedDict

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.data.catalogue import (
    CatalogueFile,
    CataloguePart,
    DataSet,
    Label,
    TextVariant,
    data_set,
    data_sets,
    source,
    text_variant,
)
from stsbench.data.locate import bundled_root, find_root
from stsbench.data.rows import decode, number, read_bytes, split_lines
from stsbench.data.tables import FileRead, LabelledData, Pair, Status, StsData, combined_sha256, pair_table


def load_sts(task: str, split: str = "test", text: str = "senteval", data_dirs: Sequence[Path] = ()) -> StsData:
    """Read the scored pairs of an STS task.

    A sentence is the file's own text without the whitespace around it; nothing inside is changed. (SentEval
    splits at whitespace and its batchers join with single spaces.) Pairs whose gold line is empty were not
    scored and are left out. A `pair_id` is `<subset>-<line>` for STS12 to STS16, SICK's own number, and
    `<split>-<line>` for STS-B, with lines counted from 1.

    Args:
        task: "STS12" ... "STS16", "STS-B" or "SICK-R", in any case; "STSBenchmark" and the like will do.
        split: "train", "dev", "test", or "all": train, dev and test in that order (STS-B and SICK-R).
        text: "senteval" (tokenised, lower-cased; what the papers score) or "raw" (as first released).
        data_dirs: folders to look in first (default: the places of `stsbench.data.locate`).

    Raises:
        UserError: if the task, split or text does not exist, or its files are missing or broken.
    """
    entry = data_set(task)
    if entry.gold_range is None:
        scored = ", ".join(name for name, other in data_sets().items() if other.kind == "sts")
        raise UserError(f"{entry.task} has labels, not similarity scores: choose one of {scored}.")
    variant = text_variant(entry, text)
    parts = _read_parts(entry, variant, _parts_of(entry, variant, split), data_dirs)
    pairs = [[_pair(row, entry.task) for row in _rows(part, variant)] for part in parts]
    return StsData(
        task=entry.task,
        split=split,
        text=text,
        pairs=pair_table([pair for of_part in pairs for pair in of_part]),
        gold_range=entry.gold_range,
        **_account(entry.task, parts, list(map(len, pairs))),
    )


def load_labelled(task: str, data_dirs: Sequence[Path] = (), *, text: str = "senteval") -> LabelledData:
    """Read a labelled task: MR, CR, SUBJ, MPQA, SST2, SST5, TREC, MRPC, SICK-E or SNLI (dev and test).

    Labels are SentEval's: of MR, CR and MPQA positive is 1; of SUBJ objective is 1; TREC's is the coarse
    class; SICK-E's and SNLI's are the words in the files. Items come in the files' order (of the tasks with
    a file for each class the one for 1 first, as SentEval has it). A sentence is the file's own text without
    the whitespace around it. A few sentences of CR and MPQA are empty, in everyone's copy.

    An `item_id` is `<split>-<line>` with lines counted from 1, SICK's own number, or `<label>-<line>` for
    tasks without splits.

    Args:
        task: the task's name, in any case.
        data_dirs: folders to look in first (default: the places of `stsbench.data.locate`).
        text: "senteval", or "sample" for the labelled sets of the bundled sample.

    Raises:
        UserError: if the task or text does not exist, or its files are missing or broken.
    """
    import pandas as pd

    entry = data_set(task)
    if entry.classes is None:
        labelled = ", ".join(name for name, other in data_sets().items() if other.kind == "labelled")
        raise UserError(f"{entry.task} has similarity scores, not labels: choose one of {labelled}.")
    variant = text_variant(entry, text)
    parts = _read_parts(entry, variant, variant.parts, data_dirs)
    classes = {str(label): label for label in entry.classes}
    items = [[_item(row, classes) for row in _rows(part, variant)] for part in parts]
    return LabelledData(
        task=entry.task,
        text=text,
        items=pd.DataFrame(
            [item for of_part in items for item in of_part], columns=list(_Item._fields), dtype=object
        ),
        classes=entry.classes,
        **_account(entry.task, parts, list(map(len, items))),
    )


def load_sample() -> StsData:
    """Read the sample's scored pairs (`sample/pairs.tsv`); the column `design` says what a pair tests.

    >>> sample = load_sample()
    >>> sample.task, sample.status, list(sample.pairs.columns[:4])
    ('sample', 'verified', ['subset', 'split', 'pair_id', 'gold'])
    """
    return load_sts("sample", text="sample")


def load_sample_labelled(name: str) -> LabelledData:
    """Read a labelled set of the sample (`sample/transfer/<name>.tsv`).

    Args:
        name: "movies", "products", "subjectivity", "opinions", "sentiment", "questions" or "paraphrases".

    Raises:
        UserError: if the sample has no such set.

    >>> load_sample_labelled("questions").classes
    ('ABBR', 'DESC', 'ENTY', 'HUM', 'LOC', 'NUM')
    """
    names = [task.removeprefix("sample-") for task in data_sets() if task.startswith("sample-")]
    if name not in names:
        raise UserError(f"the sample has no labelled set {name!r}: {suggestion(name, names)}")
    return load_labelled(f"sample-{name}", text="sample")


def sample_sentences() -> tuple[str, ...]:
    """Return the sample's training sentences (`sample/sentences.txt`, one a line).

    >>> len(sample_sentences()) > 100
    True
    """
    path = bundled_root(source("sample")) / "sentences.txt"
    return tuple(split_lines(decode(read_bytes(path), path, "utf-8")))


@dataclass(frozen=True)
class CataloguedLines:
    """A catalogued file as it is here: its lines, its hash and what the catalogue says of it."""

    path: Path
    lines: list[str]
    sha256: str
    entry: CatalogueFile

    @property
    def read(self) -> FileRead:
        """The account of this file for the record."""
        return FileRead(self.entry.path, self.sha256, self.entry.sha256)

    @property
    def problem(self) -> str | None:
        """A sentence saying how the file differs from the catalogued one, or None."""
        if self.sha256 == self.entry.sha256:
            return None
        if len(self.lines) != self.entry.lines:
            how = f"{self.entry.lines} lines expected, {len(self.lines)} found"
        else:
            how = (
                f"{self.entry.lines} lines expected and found, but their bytes differ "
                f"(sha256 {self.entry.sha256[:12]}... expected, {self.sha256[:12]}... found)"
            )
        return f"{self.path} is not the catalogued file: {how}."


def read_catalogued(root: Path, entry: CatalogueFile, encoding: str) -> CataloguedLines:
    """Read one catalogued file below `root`.

    Raises:
        UserError: if it cannot be read, or a byte does not fit the encoding.
    """
    path = root / entry.path
    data = read_bytes(path)
    return CataloguedLines(
        path, split_lines(decode(data, path, encoding)), hashlib.sha256(data).hexdigest(), entry
    )


class _PartRead(NamedTuple):
    """A part of the catalogue with its files as they are here, in the catalogue's order."""

    part: CataloguePart
    files: tuple[CataloguedLines, ...]


def _read_parts(
    entry: DataSet, variant: TextVariant, parts: Sequence[CataloguePart], data_dirs: Sequence[Path]
) -> list[_PartRead]:
    paths = [file.path for part in parts for file in part.files]
    root = find_root(source(variant.source), paths, entry.task, data_dirs)
    return [
        _PartRead(part, tuple(_read_whole(root, file, variant.encoding, entry.task) for file in part.files))
        for part in parts
    ]


def _read_whole(root: Path, file: CatalogueFile, encoding: str, task: str) -> CataloguedLines:
    read = read_catalogued(root, file, encoding)
    if not any(read.lines):
        raise UserError(
            f"{read.path} is empty, where {task} has {file.lines} lines: get it again (`stsbench data verify "
            f"{task}` says which files are not the catalogued ones)."
        )
    return read


def _parts_of(entry: DataSet, variant: TextVariant, split: str) -> list[CataloguePart]:
    splits = list(dict.fromkeys(part.split for part in variant.parts))
    if split == "all" and len(splits) > 1:
        return list(variant.parts)
    if split not in splits:
        choices = [*splits, "all"] if len(splits) > 1 else splits
        raise UserError(f"{entry.task} has no split {split!r}: {suggestion(split, choices)}")
    return [part for part in variant.parts if part.split == split]


class _Account(TypedDict):
    """What a table says of the files that it was read from."""

    status: Status
    sha256: str
    files: tuple[FileRead, ...]
    problems: tuple[str, ...]


def _account(task: str, parts: Sequence[_PartRead], counts: Sequence[int]) -> _Account:
    catalogued = [file for part in parts for file in part.files]
    problems = [file.problem for file in catalogued if file.problem]
    for (part, _), count in zip(parts, counts, strict=True):
        if count != part.count:
            name = " ".join(filter(None, (task, part.subset, part.split)))
            problems.append(f"{name}: {part.count} items expected, {count} found.")
    files = tuple(file.read for file in catalogued)
    return {
        "status": "modified" if problems else "verified",
        "sha256": combined_sha256(files),
        "files": files,
        "problems": tuple(problems),
    }


class _Row(NamedTuple):
    """What a layout's reader finds: `value` is the gold score or the label, as it stands in `line` of `file`."""

    file: CataloguedLines
    line: int
    split: str
    id: str
    value: str
    sentence1: str
    sentence2: str | None = None
    subset: str | None = None
    design: str | None = None


def _pair(row: _Row, task: str) -> Pair:
    gold = number(row.value)
    if gold is None:
        raise UserError(
            f"{row.file.path}, line {row.line}: the gold score {row.value!r} is not a number; "
            "mend the line or get the file again."
        )
    assert row.sentence2 is not None, "an STS text has two sentences"
    subset = task if row.subset is None else row.subset
    return Pair(subset, row.split, row.id, gold, row.sentence1.strip(), row.sentence2.strip(), row.design)


class _Item(NamedTuple):
    split: str
    item_id: str
    label: Label
    sentence1: str
    sentence2: str | None


def _item(row: _Row, classes: Mapping[str, Label]) -> _Item:
    spelling = row.value.strip()
    if spelling not in classes:
        raise UserError(
            f"{row.file.path}, line {row.line}: {spelling!r} is not a label of this task ({', '.join(classes)}); "
            "mend the line or get the file again."
        )
    second = None if row.sentence2 is None else row.sentence2.strip()
    return _Item(row.split, row.id, classes[spelling], row.sentence1.strip(), second)


def _rows(part: _PartRead, variant: TextVariant) -> Iterator[_Row]:
    return _LAYOUTS[variant.layout](part, variant)


def _from_pairs_and_gold(read: _PartRead, variant: TextVariant) -> Iterator[_Row]:
    pairs, golds = read.files
    _demand_equal_length(pairs, golds)
    split, subset = read.part.split, read.part.subset
    for (line, cells), gold in zip(_table_cells(pairs, variant), golds.lines, strict=True):
        if gold.strip():
            yield _Row(golds, line, split, f"{subset}-{line}", gold, cells[0], cells[1], subset)


def _from_table(read: _PartRead, variant: TextVariant) -> Iterator[_Row]:
    (file,) = read.files
    columns = variant.columns
    assert columns is not None, "the schema demands columns for a table"
    for line, cells in _table_cells(file, variant):
        split = read.part.split if columns.split is None else cells[columns.split]
        yield _Row(
            file,
            line,
            split,
            id=f"{split}-{line}" if columns.id is None else cells[columns.id],
            value=cells[columns.value],
            sentence1=cells[columns.sentence1],
            sentence2=None if columns.sentence2 is None else cells[columns.sentence2],
            subset=None if columns.subset is None else cells[columns.subset],
            design=None if columns.design is None else cells[columns.design],
        )


def _from_parallel(read: _PartRead, _variant: TextVariant) -> Iterator[_Row]:
    first, second, labels = read.files
    _demand_equal_length(first, second)
    _demand_equal_length(first, labels)
    split = read.part.split
    rows = zip(first.lines, second.lines, labels.lines, strict=True)
    for line, (sentence1, sentence2, label) in enumerate(rows, start=1):
        yield _Row(labels, line, split, f"{split}-{line}", label, sentence1, sentence2)


def _from_one_label(read: _PartRead, _variant: TextVariant) -> Iterator[_Row]:
    (file,) = read.files
    label = str(read.part.label)
    for line, text in enumerate(file.lines, start=1):
        yield _Row(file, line, read.part.split, f"{label}-{line}", label, text)


def _from_label_first(read: _PartRead, _variant: TextVariant) -> Iterator[_Row]:
    (file,) = read.files
    split = read.part.split
    for line, text in enumerate(file.lines, start=1):
        label, _, sentence = text.strip().partition(" ")
        yield _Row(file, line, split, f"{split}-{line}", label.partition(":")[0], sentence)


_LAYOUTS: dict[str, Callable[[_PartRead, TextVariant], Iterator[_Row]]] = {
    "pairs-and-gold": _from_pairs_and_gold,
    "table": _from_table,
    "parallel": _from_parallel,
    "one-label": _from_one_label,
    "label-first": _from_label_first,
}


def _table_cells(file: CataloguedLines, variant: TextVariant) -> Iterator[tuple[int, list[str]]]:
    # Quotes are plain characters here, and a row may have any of several widths.
    for line, text in enumerate(file.lines, start=1):
        cells = text.split("\t")
        if len(cells) not in variant.widths:
            expected = " or ".join(map(str, variant.widths))
            raise UserError(
                f"{file.path}, line {line}: {expected} tab-separated columns expected, {len(cells)} found; "
                "mend the line or get the file again."
            )
        if line > 1 or not variant.header:
            yield line, cells


def _demand_equal_length(first: CataloguedLines, second: CataloguedLines) -> None:
    if len(first.lines) != len(second.lines):
        raise UserError(
            f"{first.path} has {len(first.lines)} lines but {second.path} has {len(second.lines)}: "
            "they must match line by line, so get both files again."
        )
