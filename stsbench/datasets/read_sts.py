"""The STS tasks: scored sentence pairs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stsbench.datasets.catalogue import data_set, data_sets, text_variant
from stsbench.datasets.lines import CataloguedLines, number
from stsbench.datasets.reading import PartRead, account, demand_equal_length, read_parts, table_rows
from stsbench.datasets.schema import DataSet, Part, TextVariant
from stsbench.datasets.tables import Pair, StsData, pair_table
from stsbench.foundation.errors import UserError


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
