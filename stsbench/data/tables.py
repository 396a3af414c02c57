"""The tables of data sets as read, with the files they were read from."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from stsbench.data.catalogue import Label

Status = Literal["verified", "unverified", "modified", "user"]
"""`verified`: every file is the catalogued one. `unverified`: the counts are the catalogue's, but not all hashes
are known. `modified`: a file or count differs. `user`: not in the catalogue."""


@dataclass(frozen=True)
class FileRead:
    """A file as it was read.

    `name` is its path relative to the data folder, with forward slashes; `sha256` is the hash of its bytes;
    `expected` is the catalogue's hash, None if it has none.
    """

    name: str
    sha256: str
    expected: str | None


class Pair(NamedTuple):
    """A row of `StsData.pairs`; only the sample has `design`, and only sets that publish them have `ratings`."""

    subset: str
    split: str
    pair_id: str
    gold: float
    sentence1: str
    sentence2: str
    design: str | None = None
    ratings: tuple[float, ...] = ()


@dataclass(frozen=True)
class StsData:
    """Scored sentence pairs.

    Attributes:
        task: "STS12" ... "STS16", "STS-B", "SICK-R", "sample", ..., or the stem of your file's name.
        split: "train", "dev", "test", a language, or "all".
        text: "senteval", "raw", "sample", ..., or "user".
        pairs: one row per scored pair: subset, split, pair_id (str), gold (float64), sentence1, sentence2 (str);
            `design` in the sample, and `ratings` (a tuple of float) in sets that publish them. A task without
            subsets has one with its own name.
        gold_range: the lowest and highest possible score; in your own file, the lowest and highest score.
        status: see `Status`.
        sha256: 64 hexadecimal digits over the names and hashes of `files`, in order.
        files: the files read, in order.
        problems: a sentence for each file that differs from the catalogued one.
        notes: assumptions about the file, and why pairs were left out, one sentence each.
    """

    task: str
    split: str
    text: str
    pairs: pd.DataFrame
    gold_range: tuple[float, float]
    status: Status
    sha256: str
    files: tuple[FileRead, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelledData:
    """Labelled sentences or sentence pairs.

    Attributes:
        task: "MR", "TREC", "MRPC", ...
        text: "senteval" or "sample".
        items: one row per item: split ("all" in a task without splits), item_id (str), label (int or str, as in
            the files), sentence1 (str), sentence2 (str, or None in a task of single sentences).
        classes: the labels in SentEval's order, whose index is SentEval's number.

    `status`, `sha256`, `files` and `problems` are those of `StsData`.
    """

    task: str
    text: str
    items: pd.DataFrame
    classes: tuple["Label", ...]
    status: Status
    sha256: str
    files: tuple[FileRead, ...]
    problems: tuple[str, ...]


def pair_table(pairs: Iterable[Pair]) -> pd.DataFrame:
    """Returns pairs as a table, without the columns `design` and `ratings` if no pair has them."""
    # Text stays Python's `str`: a sentence may have characters that pandas' own strings cannot hold.
    table = pd.DataFrame(list(pairs), columns=list(Pair._fields), dtype=object).astype({"gold": np.float64})
    return table.drop(columns=[name for name in ("design", "ratings") if not table[name].map(bool).any()])


def combined_sha256(files: Iterable[FileRead]) -> str:
    """Returns one hash over the names and hashes of several files, in order.

    >>> combined_sha256([FileRead("a.txt", "00", None)])[:8]
    '29b514fc'
    """
    listing = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()
