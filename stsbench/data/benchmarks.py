"""From catalogued files to tables: reading the scored pairs and the labelled sentences of the benchmarks.

A text of a data set is laid out in one of six shapes (`layouts`), which give rows; a row becomes a scored pair
(`load_sts`) or a labelled item (`load_labelled`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.data.catalogue import (
    CataloguePart,
    DataSet,
    Label,
    TextVariant,
    data_set,
    data_sets,
    source,
    task_split_text,
    text_variant,
)
from stsbench.data.layouts import PartRead, Row, read_part, rows_of
from stsbench.data.locate import bundled_root, find_root
from stsbench.data.rows import decode, number, read_bytes, split_lines
from stsbench.data.tables import LabelledData, Pair, StsData, combined_sha256, pair_table

_SCORED = ("dev", "test")
"""The splits that are scored: where a repeated pair counts."""


def load_sts(task: str, split: str = "test", text: str = "senteval", data_dirs: Sequence[Path] = ()) -> StsData:
    """Read the scored pairs of an STS task.

    A sentence is the file's own text without the whitespace around it; nothing inside is changed. (SentEval
    splits at whitespace and its batchers join with single spaces.) Pairs whose gold line is empty were not
    scored and are left out. A `pair_id` is `<subset>-<line>` for STS12 to STS16, the set's own number where it
    has one (SICK), and `<split>-<line>` else, with lines counted from 1. Where ratings are published one by one,
    the pairs have a column `ratings`.

    Args:
        task: "STS12" ... "STS16", "STS-B", "SICK-R", or another of `stsbench data list`, in any case;
            "STSBenchmark" and the like will do.
        split: "train", "dev", "test", a language ("en-de") where each is a task of its own, or "all" of them in
            the catalogue's order.
        text: "senteval" (tokenised, lower-cased; what the papers score), "raw" (as first released), or another
            that the task comes in.
        data_dirs: folders to look in first (default: the places of `stsbench.data.locate`).

    Raises:
        UserError: if the task, split or text does not exist, its files are missing or broken, or a gold score is
            not on the catalogued scale.
    """
    entry = data_set(task)
    if entry.gold_range is None:
        scored = ", ".join(name for name, other in data_sets().items() if other.kind == "sts")
        raise UserError(f"{entry.task} has labels, not similarity scores: choose one of {scored}.")
    variant = text_variant(entry, text)
    wanted = _parts_of(entry, variant, split)
    # What stands in another split too is known when all of them were read.
    parts = _read_parts(entry, variant, variant.parts if variant.drop_repeated else wanted, data_dirs)
    pairs = [_pairs_of(part, variant, entry) for part in parts]
    notes = list[str]()
    if variant.drop_repeated:
        whole, pairs = pairs, _without_repeated(pairs)
        notes += [
            f"{entry.task}: {len(before) - len(after)} of {len(before):,} pairs of {read.part.split} are left "
            "out, as they stand there twice or in another split too."
            for before, after, read in zip(whole, pairs, parts, strict=True)
            if len(after) < len(before) and read.part in wanted
        ]
    return StsData(
        task=entry.task,
        split=split,
        text=text,
        pairs=pair_table(
            chain.from_iterable(of_part for read, of_part in zip(parts, pairs, strict=True) if read.part in wanted)
        ),
        gold_range=entry.gold_range,
        notes=tuple(notes),
        **_account(entry.task, parts, pairs),
    )


def read_splits(
    names: Iterable[str], data_dirs: Sequence[Path] = ()
) -> tuple[dict[str, StsData], dict[str, UserError]]:
    """Return splits of STS tasks by name (`STS-B:dev`), and why those that are not here, or broken, are not."""
    sets: dict[str, StsData] = {}
    absent: dict[str, UserError] = {}
    for name in names:
        task, split, _ = task_split_text(name)
        try:
            sets[name] = load_sts(task, split, data_dirs=data_dirs)
        except UserError as error:
            absent[name] = error
    return sets, absent


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
    entry = data_set(task)
    if entry.classes is None:
        labelled = ", ".join(name for name, other in data_sets().items() if other.kind == "labelled")
        raise UserError(f"{entry.task} has similarity scores, not labels: choose one of {labelled}.")
    variant = text_variant(entry, text)
    parts = _read_parts(entry, variant, variant.parts, data_dirs)
    classes = {str(label): label for label in entry.classes}
    items = [[_item(row, classes) for row in rows_of(part, variant)] for part in parts]
    return LabelledData(
        task=entry.task,
        text=text,
        items=pd.DataFrame(chain.from_iterable(items), columns=list(_Item._fields), dtype=object),
        classes=entry.classes,
        **_account(entry.task, parts, items),
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


def _read_parts(
    entry: DataSet, variant: TextVariant, parts: Sequence[CataloguePart], data_dirs: Sequence[Path]
) -> list[PartRead]:
    paths = [file.path for part in parts for file in part.files]
    root = find_root(source(variant.source), paths, entry.task, data_dirs)
    return [read_part(root, part, variant, entry.task) for part in parts]


def _parts_of(entry: DataSet, variant: TextVariant, split: str) -> list[CataloguePart]:
    if split == variant.whole:
        return list(variant.parts)
    if split not in variant.splits:
        choices = dict.fromkeys([*variant.splits, variant.whole])
        raise UserError(f"{entry.task} has no split {split!r}: {suggestion(split, choices)}")
    return [part for part in variant.parts if part.split == split]


def _account(task: str, parts: Sequence[PartRead], rows: Sequence[Sized]) -> dict[str, Any]:
    """Return what a table says of the files that it was read from: status, sha256, files and problems."""
    catalogued = [file for part in parts for file in part.files]
    problems = [file.problem for file in catalogued if file.problem]
    for (part, _), of_part in zip(parts, rows, strict=True):
        if len(of_part) != part.count:
            # Where each language is a task of its own, its name is both the split and the subset.
            name = " ".join(dict.fromkeys(filter(None, (task, part.subset, part.split))))
            problems.append(f"{name}: {part.count} items expected, {len(of_part)} found.")
    files = tuple(file.read for file in catalogued)
    known = all(file.expected for file in files)
    return {
        "status": "modified" if problems else "verified" if known else "unverified",
        "sha256": combined_sha256(files),
        "files": files,
        "problems": tuple(problems),
    }


def _pairs_of(read: PartRead, variant: TextVariant, entry: DataSet) -> list[Pair]:
    assert entry.gold_range is not None, "an STS task has a scale"
    pairs = [_pair(row, entry.task, entry.gold_range) for row in rows_of(read, variant)]
    highest = max((pair.gold for pair in pairs), default=None)
    low, high = entry.gold_range
    # Of a catalogued file the scale is known. Of another one that says 0 to 1 for 0 to 5, nothing else would tell.
    is_known = all(file.sha256 == file.entry.expected for file in read.files)
    if not is_known and highest is not None and highest < (low + high) / 2:
        raise UserError(
            f"{read.files[-1].path}: no gold score is above {highest:g}, where {entry.task} has a scale from "
            f"{low:g} to {high:g}: this is another release, or its scores were scaled; get the one that "
            f"`stsbench data list --json` names, or give your file as it is with --data."
        )
    return pairs


def _pair(row: Row, task: str, gold_range: tuple[float, float]) -> Pair:
    gold = number(row.value)
    if gold is None:
        raise UserError(
            f"{row.where}: the gold score {row.value!r} is not a number; mend the line or get the file again."
        )
    low, high = gold_range
    for what, value in (("gold score", gold), *(("rating", rating) for rating in row.ratings)):
        if not low <= value <= high:
            raise UserError(
                f"{row.where}: the {what} {value:g} is not on the scale of {task}, {low:g} to {high:g}: this is "
                "another release, or its scores were scaled; get the file again, or give it as it is with --data."
            )
    assert row.sentence2 is not None, "an STS text has two sentences"
    return Pair(
        task if row.subset is None else row.subset,
        row.split,
        row.id,
        gold,
        row.sentence1.strip(),
        row.sentence2.strip(),
        row.design,
        row.ratings,
    )


def _without_repeated(pairs: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
    """Leave out of dev and test what stands twice in its split, or in another split too."""

    def sentences(pair: Pair) -> frozenset[str]:
        return frozenset((pair.sentence1, pair.sentence2))

    times = Counter(map(sentences, chain(*pairs)))
    return [[pair for pair in part if pair.split not in _SCORED or times[sentences(pair)] == 1] for part in pairs]


class _Item(NamedTuple):
    split: str
    item_id: str
    label: Label
    sentence1: str
    sentence2: str | None


def _item(row: Row, classes: Mapping[str, Label]) -> _Item:
    spelling = row.value.strip()
    if spelling not in classes:
        raise UserError(
            f"{row.where}: {spelling!r} is not a label of this task ({', '.join(classes)}); "
            "mend the line or get the file again."
        )
    second = None if row.sentence2 is None else row.sentence2.strip()
    return _Item(row.split, row.id, classes[spelling], row.sentence1.strip(), second)
