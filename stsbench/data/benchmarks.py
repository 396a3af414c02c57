"""Reading the scored pairs and the labelled sentences of the benchmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import chain
from pathlib import Path
from typing import Any

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
from stsbench.data.reading import find_root
from stsbench.data.rows import number
from stsbench.data.tables import LabelledData, Pair, StsData, combined_sha256, pair_table

_ITEMS = ["split", "item_id", "label", "sentence1", "sentence2"]


def load_sts(task: str, split: str = "test", text: str = "senteval", data_dirs: Sequence[Path] = ()) -> StsData:
    """Reads the scored pairs of an STS task.

    Sentences are the files' own text without the whitespace around it. Pairs with an empty gold line were not
    scored and are left out. A `pair_id` is `<subset>-<line>` for STS12 to STS16, the set's own number if it has
    one (SICK), and else `<split>-<line>`, with lines counted from 1. If single ratings are published, the pairs
    have a column `ratings`.

    Args:
        task: "STS12" ... "STS16", "STS-B", "SICK-R", or another of `stsbench data list`, ignoring case; aliases
            such as "STSBenchmark" work, too.
        split: "train", "dev", "test", a language ("en-de") if each is a task of its own, or "all" of them in the
            catalogue's order.
        text: "senteval" (tokenised, lower-cased; the one scored in papers), "raw" (as first released), or another
            text of the task.
        data_dirs: folders to search first (default: the places of `stsbench.data.reading`).

    Raises:
        UserError: if the task, split or text does not exist, its files are missing or broken, or a gold score is
            not on the catalogued scale.
    """
    entry = data_set(task)
    if entry.gold_range is None:
        raise _wrong_kind(entry, "labels, not similarity scores", "sts")
    variant = text_variant(entry, text)
    chosen = _parts_of(entry, variant, split)
    # Repetitions across splits show only if all splits are read.
    parts = _read_parts(entry, variant, variant.parts if variant.drop_repeated else chosen, data_dirs)
    pairs = [_pairs_of(part, variant, entry) for part in parts]
    notes = list[str]()
    if variant.drop_repeated:
        whole, pairs = pairs, _without_repeated(pairs)
        notes += [
            f"{entry.task}: left out {len(before) - len(after)} of {len(before):,} {read.part.split} pairs that "
            "occur twice or in another split."
            for before, after, read in zip(whole, pairs, parts, strict=True)
            if len(after) < len(before) and read.part in chosen
        ]
    kept = chain(*(of_part for read, of_part in zip(parts, pairs, strict=True) if read.part in chosen))
    account = _account(entry.task, parts, pairs)
    return StsData(entry.task, split, text, pair_table(kept), entry.gold_range, notes=tuple(notes), **account)


def read_splits(
    names: Iterable[str], data_dirs: Sequence[Path] = ()
) -> tuple[dict[str, StsData], dict[str, UserError]]:
    """Returns splits of STS tasks by name (`STS-B:dev`), and the errors of those that cannot be read."""
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
    """Reads a labelled task: MR, CR, SUBJ, MPQA, SST2, SST5, TREC, MRPC, SICK-E or SNLI (dev and test).

    Labels are SentEval's: 1 is positive in MR, CR and MPQA, objective in SUBJ; TREC's is the coarse class;
    SICK-E's and SNLI's are the words in the files. Items are in the files' order (class 1 first for tasks with a
    file per class, as in SentEval). Sentences are the files' own text without the whitespace around it; a few of
    CR and MPQA are empty. An `item_id` is `<split>-<line>` with lines counted from 1, SICK's own number, or
    `<label>-<line>` for tasks without splits.

    Args:
        task: the task's name, ignoring case.
        data_dirs: folders to search first (default: the places of `stsbench.data.reading`).
        text: "senteval", or "sample" for the labelled sets of the bundled sample.

    Raises:
        UserError: if the task or text does not exist, or its files are missing or broken.

    >>> load_labelled("sample-questions", text="sample").classes
    ('ABBR', 'DESC', 'ENTY', 'HUM', 'LOC', 'NUM')
    """
    entry = data_set(task)
    if entry.classes is None:
        raise _wrong_kind(entry, "similarity scores, not labels", "labelled")
    variant = text_variant(entry, text)
    parts = _read_parts(entry, variant, variant.parts, data_dirs)
    classes = {str(label): label for label in entry.classes}
    items = [[_item(row, classes) for row in rows_of(part, variant)] for part in parts]
    table = pd.DataFrame(chain(*items), columns=_ITEMS, dtype=object)
    return LabelledData(entry.task, text, table, entry.classes, **_account(entry.task, parts, items))


def labelled_pairs(task: str, data_dirs: Sequence[Path] = ()) -> StsData:
    """Reads a task of pairs with two labels, such as MRPC, as pairs with the gold scores 0 and 1."""
    entry = data_set(task)
    data = load_labelled(task, data_dirs, text=next(iter(entry.texts)))
    if len(data.classes) != 2 or data.items["sentence2"].isna().any():
        raise UserError(f"{entry.task} does not have pairs with two labels.")
    pairs = pair_table(
        Pair(entry.task, "all", item, data.classes.index(label), *sentences)
        for _, item, label, *sentences in data.items[_ITEMS].itertuples(index=False, name=None)
    )
    account = {name: getattr(data, name) for name in ("status", "sha256", "files", "problems")}
    return StsData(entry.task, "all", data.text, pairs, (0.0, 1.0), **account)


def load_sample() -> StsData:
    """Reads the sample's scored pairs (`sample/pairs.tsv`); the column `design` describes the design of a pair.

    >>> sample = load_sample()
    >>> sample.task, sample.status, list(sample.pairs.columns[:4])
    ('sample', 'verified', ['subset', 'split', 'pair_id', 'gold'])
    """
    return load_sts("sample", text="sample")


def _wrong_kind(entry: DataSet, what: str, kind: str) -> UserError:
    names = ", ".join(name for name, other in data_sets().items() if other.kind == kind)
    return UserError(f"{entry.task} has {what}: choose one of {names}.")


def _read_parts(
    entry: DataSet, variant: TextVariant, parts: Sequence[CataloguePart], data_dirs: Sequence[Path]
) -> list[PartRead]:
    paths = [file.path for part in parts for file in part.files]
    root = find_root(source(variant.source), paths, entry.task, data_dirs)
    return [read_part(root, part, variant) for part in parts]


def _parts_of(entry: DataSet, variant: TextVariant, split: str) -> list[CataloguePart]:
    if split == variant.whole:
        return list(variant.parts)
    if split not in variant.splits:
        choices = dict.fromkeys([*variant.splits, variant.whole])
        raise UserError(f"{entry.task} has no split {split!r}: {suggestion(split, choices)}")
    return [part for part in variant.parts if part.split == split]


def _account(task: str, parts: Sequence[PartRead], rows: Sequence[Sized]) -> dict[str, Any]:
    """Returns the fields of a table on the files that it was read from."""
    catalogued = [file for part in parts for file in part.files]
    problems = [file.problem for file in catalogued if file.problem]
    for (part, _), of_part in zip(parts, rows, strict=True):
        if len(of_part) != part.count:
            # If each language is a task of its own, its name is both the split and the subset.
            name = " ".join(dict.fromkeys(filter(None, (task, part.subset, part.split))))
            problems.append(f"{name}: expected {part.count} items, found {len(of_part)}.")
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
    low, high = entry.gold_range
    pairs = [_pair(row, entry.task, low, high) for row in rows_of(read, variant)]
    # A copy that was rescaled from 0 to 5 to 0 to 1 shows only in its highest score.
    is_known = all(file.sha256 == file.entry.sha256 for file in read.files)
    highest = max((pair.gold for pair in pairs), default=high)
    if not is_known and highest < (low + high) / 2:
        raise UserError(
            f"{read.files[-1].path}: no gold score is above {highest:g}, but the scale of {entry.task} is {low:g} "
            f"to {high:g}; get the file again, or use this one with --data."
        )
    return pairs


def _pair(row: Row, task: str, low: float, high: float) -> Pair:
    gold = number(row.value)
    if gold is None:
        raise UserError(f"{row.where}: gold score {row.value!r} is not a number; fix it or get the file again.")
    for what, value in (("gold score", gold), *(("rating", rating) for rating in row.ratings)):
        if not low <= value <= high:
            raise UserError(
                f"{row.where}: {what} {value:g} is not on the scale of {task}, {low:g} to {high:g}; get the file "
                "again, or use this one with --data."
            )
    assert row.sentence2 is not None, "an STS task has two sentences"
    subset = task if row.subset is None else row.subset
    sentences = row.sentence1.strip(), row.sentence2.strip()
    return Pair(subset, row.split, row.id, gold, *sentences, row.design, row.ratings)


def _without_repeated(pairs: Sequence[Sequence[Pair]]) -> list[list[Pair]]:
    """Leaves out pairs of dev and test that occur twice in their split, or in another split."""

    def sentences(pair: Pair) -> frozenset[str]:
        return frozenset((pair.sentence1, pair.sentence2))

    times = Counter(map(sentences, chain(*pairs)))
    return [[pair for pair in part if pair.split == "train" or times[sentences(pair)] == 1] for part in pairs]


def _item(row: Row, classes: Mapping[str, Label]) -> tuple[str, str, Label, str, str | None]:
    spelling = row.value.strip()
    if spelling not in classes:
        raise UserError(
            f"{row.where}: {spelling!r} is not a label of this task ({', '.join(classes)}); fix it or get the "
            "file again."
        )
    second = None if row.sentence2 is None else row.sentence2.strip()
    return row.split, row.id, classes[spelling], row.sentence1.strip(), second
