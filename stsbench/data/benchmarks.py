"""From catalogued files to rows: what the readers of scored and of labelled data share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.data.catalogue import DataSet, Label, Part, TextVariant, data_set, data_sets, source, text_variant
from stsbench.data.lines import CataloguedLines, decode, number, read_bytes, read_catalogued, split_lines
from stsbench.data.locate import bundled_root, find_root
from stsbench.data.tables import FileRead, LabelledData, Pair, Status, StsData, combined_sha256, pair_table


@dataclass(frozen=True)
class PartRead:
    """A part of the catalogue with its files as they were found, in the catalogue's order."""

    part: Part
    files: tuple[CataloguedLines, ...]


@dataclass(frozen=True)
class Account:
    """What a table says of the files that it was read from."""

    status: Status
    sha256: str
    files: tuple[FileRead, ...]
    problems: tuple[str, ...]


def read_parts(
    entry: DataSet, variant: TextVariant, parts: Sequence[Part], data_dirs: Sequence[Path]
) -> list[PartRead]:
    """Find and read the files of some parts of a data set.

    Raises:
        UserError: if they are not found, incomplete, unreadable or wrongly encoded.
    """
    paths = [file.path for part in parts for file in part.files]
    root = find_root(source(variant.source), paths, entry.task, data_dirs)
    return [
        PartRead(part, tuple(read_catalogued(root, file, variant.encoding) for file in part.files))
        for part in parts
    ]


def account(task: str, reads: Sequence[PartRead], counts: Sequence[int]) -> Account:
    """Hold what was read against the catalogue.

    Args:
        task: the task's name, for the messages.
        reads: the parts read.
        counts: how many pairs or items each part gave, in the same order.
    """
    found = [file for read in reads for file in read.files]
    problems = [file.problem for file in found if file.problem]
    for read, count in zip(reads, counts, strict=True):
        if count != read.part.count:
            name = " ".join(filter(None, (task, read.part.subset, read.part.split)))
            problems.append(f"{name}: {read.part.count} items expected, {count} found.")
    files = tuple(file.read for file in found)
    return Account("modified" if problems else "verified", combined_sha256(files), files, tuple(problems))


def table_rows(file: CataloguedLines, variant: TextVariant) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row of a tab-separated file; quotes are plain characters.

    Raises:
        UserError: naming the file and line of a row with a number of columns that it may not have.
    """
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


def demand_equal_length(one: CataloguedLines, other: CataloguedLines) -> None:
    """Raise unless two files that belong together line by line have as many lines as each other.

    Raises:
        UserError: naming both files with their counts.
    """
    if len(one.lines) != len(other.lines):
        raise UserError(
            f"{one.path} has {len(one.lines)} lines but {other.path} has {len(other.lines)}: "
            "they must match line by line, so get both files again."
        )


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
        data_dirs: folders to look in first (default: `STSBENCH_DATA`, then the cache).

    Raises:
        UserError: if the task, split or text does not exist, or its files are missing or broken.
    """
    entry = data_set(task)
    if entry.gold_range is None:
        scored = ", ".join(name for name, other in data_sets().items() if other.kind == "sts")
        raise UserError(f"{entry.task} has labels, not similarity scores: choose one of {scored}.")
    variant = text_variant(entry, text)
    reads = read_parts(entry, variant, _parts_of(entry, variant, split), data_dirs)
    found = [list(_pairs_of(entry, variant, read)) for read in reads]
    about = account(entry.task, reads, [len(pairs) for pairs in found])
    return StsData(
        task=entry.task,
        split=split,
        text=text,
        pairs=pair_table([pair for pairs in found for pair in pairs]),
        gold_range=entry.gold_range,
        status=about.status,
        sha256=about.sha256,
        files=about.files,
        problems=about.problems,
    )


def _parts_of(entry: DataSet, variant: TextVariant, split: str) -> list[Part]:
    splits = list(dict.fromkeys(part.split for part in variant.parts))
    if split == "all" and len(splits) > 1:
        return list(variant.parts)
    if split not in splits:
        choices = [*splits, "all"] if len(splits) > 1 else splits
        raise UserError(f"{entry.task} has no split {split!r}: choose one of {', '.join(choices)}.")
    return [part for part in variant.parts if part.split == split]


def _pairs_of(entry: DataSet, variant: TextVariant, read: PartRead) -> Iterator[Pair]:
    if variant.layout == "pairs-and-gold":
        return _from_pairs_and_gold(entry, variant, read)
    return _from_table(entry, variant, read)


def _from_pairs_and_gold(entry: DataSet, variant: TextVariant, read: PartRead) -> Iterator[Pair]:
    pairs, golds = read.files
    demand_equal_length(pairs, golds)
    subset = read.part.subset or entry.task
    for (line, cells), gold in zip(table_rows(pairs, variant), golds.lines, strict=True):
        if gold.strip():
            yield Pair(
                subset=subset,
                split=read.part.split,
                pair_id=f"{subset}-{line}",
                gold=_gold(gold, golds, line),
                sentence1=cells[0].strip(),
                sentence2=cells[1].strip(),
            )


def _from_table(entry: DataSet, variant: TextVariant, read: PartRead) -> Iterator[Pair]:
    (file,) = read.files
    columns = variant.columns
    assert columns is not None, "the schema demands columns for a table"
    assert columns.sentence2 is not None, "an STS table has two sentences"
    for line, cells in table_rows(file, variant):
        yield Pair(
            subset=entry.task if columns.subset is None else cells[columns.subset],
            split=read.part.split,
            pair_id=f"{read.part.split}-{line}" if columns.id is None else cells[columns.id],
            gold=_gold(cells[columns.value], file, line),
            sentence1=cells[columns.sentence1].strip(),
            sentence2=cells[columns.sentence2].strip(),
            design=None if columns.design is None else cells[columns.design],
        )


def _gold(text: str, file: CataloguedLines, line: int) -> float:
    value = number(text)
    if value is None:
        raise UserError(
            f"{file.path}, line {line}: the gold score {text!r} is not a number; "
            "mend the line or get the file again."
        )
    return value


class _Item(NamedTuple):
    split: str
    item_id: str
    label: Label
    sentence1: str
    sentence2: str | None


Classes = dict[str, Label]
"""The labels that a task may have, by how a file spells them."""


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
        data_dirs: folders to look in first (default: `STSBENCH_DATA`, then the cache).
        text: "senteval", or "sample" for the labelled sets of the bundled sample.

    Raises:
        UserError: if the task or text does not exist, or its files are missing or broken.
    """
    entry = data_set(task)
    if entry.classes is None:
        labelled = ", ".join(name for name, other in data_sets().items() if other.kind == "labelled")
        raise UserError(f"{entry.task} has similarity scores, not labels: choose one of {labelled}.")
    variant = text_variant(entry, text)
    reads = read_parts(entry, variant, variant.parts, data_dirs)
    read_items = _LAYOUTS[variant.layout]
    spelt: Classes = {str(label): label for label in entry.classes}
    found = [list(read_items(read, variant, spelt)) for read in reads]
    about = account(entry.task, reads, [len(items) for items in found])

    import pandas as pd

    rows = [item for items in found for item in items]
    return LabelledData(
        task=entry.task,
        text=text,
        items=pd.DataFrame(rows, columns=list(_Item._fields), dtype=object),
        classes=entry.classes,
        status=about.status,
        sha256=about.sha256,
        files=about.files,
        problems=about.problems,
    )


def _from_one_label(read: PartRead, _variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    (file,) = read.files
    label = classes[str(read.part.label)]
    for line, text in enumerate(file.lines, start=1):
        yield _Item(read.part.split, f"{label}-{line}", label, text.strip(), None)


def _from_label_first(read: PartRead, _variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    (file,) = read.files
    for line, text in enumerate(file.lines, start=1):
        spelling, _, sentence = text.strip().partition(" ")
        label = _label(spelling.partition(":")[0], classes, file, line)
        yield _Item(read.part.split, f"{read.part.split}-{line}", label, sentence.strip(), None)


def _from_parallel(read: PartRead, _variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    first, second, labels = read.files
    demand_equal_length(first, second)
    demand_equal_length(first, labels)
    rows = zip(first.lines, second.lines, labels.lines, strict=True)
    for line, (sentence1, sentence2, spelling) in enumerate(rows, start=1):
        label = _label(spelling.strip(), classes, labels, line)
        item_id = f"{read.part.split}-{line}"
        yield _Item(read.part.split, item_id, label, sentence1.strip(), sentence2.strip())


def _from_table_read_transfer(read: PartRead, variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    (file,) = read.files
    columns = variant.columns
    assert columns is not None, "the schema demands columns for a table"
    for line, cells in table_rows(file, variant):
        split = read.part.split if columns.split is None else cells[columns.split]
        yield _Item(
            split=split,
            item_id=f"{split}-{line}" if columns.id is None else cells[columns.id],
            label=_label(cells[columns.value].strip(), classes, file, line),
            sentence1=cells[columns.sentence1].strip(),
            sentence2=None if columns.sentence2 is None else cells[columns.sentence2].strip(),
        )


_LAYOUTS: dict[str, Callable[[PartRead, TextVariant, Classes], Iterator[_Item]]] = {
    "one-label": _from_one_label,
    "label-first": _from_label_first,
    "parallel": _from_parallel,
    "table": _from_table_read_transfer,
}


def _label(spelling: str, classes: Classes, file: CataloguedLines, line: int) -> Label:
    if spelling not in classes:
        raise UserError(
            f"{file.path}, line {line}: {spelling!r} is not a label of this task ({', '.join(classes)}); "
            "mend the line or get the file again."
        )
    return classes[spelling]


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
        raise UserError(f"the sample has no labelled set {name!r}: choose one of {', '.join(names)}.")
    return load_labelled(f"sample-{name}", text="sample")


def sample_sentences() -> tuple[str, ...]:
    """Return the sample's training sentences (`sample/sentences.txt`, one a line).

    >>> len(sample_sentences()) > 100
    True
    """
    path = bundled_root(source("sample")) / "sentences.txt"
    return tuple(split_lines(decode(read_bytes(path), path, "utf-8")))
