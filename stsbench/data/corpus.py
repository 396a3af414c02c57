"""A corpus: sentences to look at (`load_corpus`), or rows of sentences to train on (`read_rows`).

`write_nli_triplets` makes one of natural language inference data: premise, entailed and contradicting sentence.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.base.machine import require_memory
from stsbench.data.benchmarks import sample_sentences
from stsbench.data.catalogue import source
from stsbench.data.locate import bundled_root
from stsbench.data.rows import decode, ending_of, open_rows, read_bytes, split_lines, text_lines

SAMPLE = "sample"
"""The name of the corpus that comes with stsbench."""

Row = tuple[int, tuple[str, ...]]
"""The line (in Parquet the row) counted from 1, and its sentences without the whitespace around them."""

# The first row of a CSV or TSV file is its header if all its cells are among these (SimCSE's own, and those that
# data sets of pairs and triplets use); a sentence that is one such word would have to stand in every cell.
HEADER_NAMES = frozenset(
    {"sentence", "sentence1", "sentence2", "sentence3", "text", "text1", "text2", "sent0", "sent1", "sent2"}
    | {"hard_neg", "anchor", "positive", "negative", "query", "document"}
    | {"premise", "hypothesis", "entailment", "contradiction"}
)


def load_corpus(corpus: str | Path) -> tuple[str, ...]:
    """Return the sentences of a corpus, each once, in the order of their first occurrence.

    Args:
        corpus: a UTF-8 file with one sentence a line (`.gz` and `.zst` are uncompressed on the way), or `sample`
            for the sample's own sentences. Whitespace around a sentence is dropped, and so are empty lines.

    Raises:
        UserError: if the file cannot be read, is not UTF-8, holds no sentence, or more than memory does.

    >>> len(load_corpus("sample"))
    400
    """
    return tuple(numbered_corpus(corpus))


def numbered_corpus(corpus: str | Path) -> dict[str, int]:
    """Return the sentences of a corpus as `load_corpus` does, each with its number.

    Lines that are not empty are numbered from 0, like the rows of a vector file. Of equal ones the first counts.
    """
    if str(corpus) == SAMPLE:
        return {sentence: number for number, sentence in enumerate(sample_sentences())}
    path = Path(corpus).expanduser()
    require_room_for(path)
    numbers: dict[str, int] = {}
    for number, sentence in enumerate(filter(None, (text.strip() for _, text in text_lines(path)))):
        numbers.setdefault(sentence, number)
    if not numbers:
        raise UserError(f"{path} holds no sentence: write one a line.")
    return numbers


def require_room_for(path: Path) -> None:
    """Refuse a corpus whose sentences memory does not hold, before it is read."""
    if path.is_file():
        # At the least: a sentence of 100 letters takes 150 bytes, and as many again to be found once.
        require_memory(2 * path.stat().st_size, f"the sentences of {path}", "look at a part of them")


def corpus_file(path: str) -> Path:
    """Return the file of a corpus to train on, which has to be there and of a known format."""
    if path == SAMPLE:
        return bundled_root(source("sample")) / "sentences.txt"
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no corpus {file}: check the path given to --corpus.")
    ending_of(file)
    return file


def read_rows(file: Path, columns: int, names: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a corpus, its empty ones too; they are read as they are taken.

    Args:
        file: see `corpus_file`.
        columns: how many sentences a row has.
        names: the columns to read, in order; None for all that there are.
    """
    if names is not None and len(names) != columns:
        raise UserError(
            f"corpus.names {', '.join(names)}: the recipe wants {columns} sentences a row (corpus.columns), so "
            f"name {columns} columns."
        )
    table = open_rows(file, is_header=_is_header, names=names)
    for line, cells in table.rows:
        sentences = tuple(_sentence(cell, table.at(line)) for cell in cells)
        if len(sentences) != columns:
            raise UserError(
                f"{table.at(line)}: {len(sentences)} columns found, but the recipe wants {columns} sentences a "
                "row (corpus.columns); name the columns with --columns, or choose another recipe."
            )
        yield line, sentences


def _is_header(cells: Sequence[str]) -> bool:
    return {cell.strip().casefold() for cell in cells} <= HEADER_NAMES


def _sentence(cell: object, where: str) -> str:
    if cell is not None and not isinstance(cell, str):
        raise UserError(f"{where}: {cell!r} is no sentence; name the columns with --columns.")
    return (cell or "").strip()


HEADER = ("sent0", "sent1", "hard_neg")
"""The columns of the file that the SimCSE authors host; `stsbench train` reads three columns under any name."""

_LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class TripletCounts:
    """How much there was, and what came of it.

    Attributes:
        pairs: sentence pairs read.
        premises: distinct ones.
        triplets: written.
        without: premises that lack an entailed or a contradicting sentence.
        file: where the triplets are.
    """

    pairs: int
    premises: int
    triplets: int
    without: int
    file: Path


def write_nli_triplets(
    folders: Sequence[Path],
    out: str | Path = "nli-triplets.csv",
    split: str = "train",
) -> TripletCounts:
    """Write triplets (premise, entailment, contradiction) as CSV.

    Of each premise the first entailed sentence goes with the first contradicting one, the second with the second,
    as far as there are both. Premises stand in the order in which they are first met. The same files give the same
    triplets.

    Args:
        folders: folders with `s1.SPLIT`, `s2.SPLIT` and `labels.SPLIT`, one line a pair, as SentEval lays out SNLI
            and InferSent both SNLI and MultiNLI.
        out: the CSV file to write.
        split: the split to read: `train`, `dev`, `dev.matched`, ...

    Raises:
        UserError: if a file is missing or broken, or no premise has both.
    """
    # Of each label the hypotheses, each once: a sentence that stands there twice makes no second triplet.
    by_premise: dict[str, dict[str, dict[str, None]]] = {}
    pairs = 0
    for folder in folders:
        for premise, hypothesis, label in _labelled_pairs(folder, split):
            pairs += 1
            if premise:
                by_label = by_premise.setdefault(premise, {name: {} for name in _LABELS})
                if hypothesis:
                    by_label[label][hypothesis] = None
    triplets = [
        (premise, entailment, contradiction)
        for premise, by_label in by_premise.items()
        for entailment, contradiction in zip(by_label["entailment"], by_label["contradiction"], strict=False)
    ]
    if not triplets:
        raise UserError(f"no premise in {', '.join(map(str, folders))} has an entailment and a contradiction.")
    with atomic_path(Path(out)) as path, path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(triplets)
    without = sum(not (by_label["entailment"] and by_label["contradiction"]) for by_label in by_premise.values())
    return TripletCounts(pairs, len(by_premise), len(triplets), without, Path(out))


def _labelled_pairs(folder: Path, split: str) -> Iterable[tuple[str, str, str]]:
    files = [folder / f"{name}.{split}" for name in ("s1", "s2", "labels")]
    for file in files:
        if not file.is_file():
            splits = sorted(path.name.removeprefix("labels.") for path in folder.glob("labels.*"))
            hint = f"splits there: {', '.join(splits)}" if splits else "no split is there"
            raise UserError(f"there is no {file}: {hint}; choose one with --split, or another folder.")
    first, second, labels = ([text.strip() for text in _lines(file)] for file in files)
    if not len(first) == len(second) == len(labels):
        raise UserError(
            f"{files[0]} has {len(first)} lines, {files[1].name} {len(second)} and {files[2].name} {len(labels)}: "
            "they must match line by line, so get all three again."
        )
    for line, label in enumerate(labels, start=1):
        if label not in _LABELS:
            raise UserError(f"{files[2]}, line {line}: {label!r} is not a label ({', '.join(_LABELS)}); mend it.")
    return zip(first, second, labels, strict=True)


def _lines(file: Path) -> list[str]:
    data = read_bytes(file)
    try:
        return split_lines(data.decode("utf-8"))
    except UnicodeDecodeError:
        # SentEval's copy of SNLI is Latin-1.
        return split_lines(decode(data, file, "latin-1"))
