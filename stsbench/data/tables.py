"""The tables of data sets as read, the ids by which sentences are compared, and `load_pairs` for your pairs."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import require_file, sha256_of
from stsbench.base.machine import require_memory
from stsbench.data.reading import Column, Schema, as_number, as_sentence, read_table
from stsbench.data.rows import PACKED
from stsbench.render.table import Result, Tables

if TYPE_CHECKING:
    from stsbench.data.catalogue import Label

SENTENCES = ("sentence_a", "sentence_b")
"""The columns with `sentence_ids`, which show the pairs of one task that share a sentence."""

FOLDED = ("folded_a", "folded_b")
"""The columns with `folded_ids`, which show shared sentences across tasks and tokenisations."""

_NOT_LETTERS = re.compile(r"[\W_]+")


def same_letters(text: str) -> str:
    """Returns the letters and digits of a text, case-folded and NFC-normalised.

    >>> same_letters("It's a dog.") == same_letters("it 's a dog .")
    True
    """
    folded = unicodedata.normalize("NFC", text).casefold()
    # Normalised again, because case folding decomposes some letters.
    return _NOT_LETTERS.sub("", unicodedata.normalize("NFC", folded))


def sentence_ids(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Returns the ids of n sentences as released, (n,): the first eight bytes of each SHA-256.

    Ids are the same on every machine. Two of a hundred thousand sentences collide with probability 3e-10.

    >>> sentence_ids(["a dog .", "a cat .", "a dog ."]).tolist()
    [8607547623772946423, 15204855711231983037, 8607547623772946423]
    """
    digests = (hashlib.sha256(text.encode(errors="surrogatepass")).digest() for text in texts)
    return np.fromiter((int.from_bytes(digest[:8], "little") for digest in digests), dtype=np.uint64)


def folded_ids(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Returns the ids of n sentences by letters and digits, (n,).

    A sentence without letters and digits is equal only to itself.

    >>> first, second, punctuation = folded_ids(["It's a dog.", "it 's a dog .", "..."]).tolist()
    >>> first == second, first == punctuation
    (True, False)
    """
    return sentence_ids(same_letters(text) or text for text in texts)


RELEASED, LETTERS = "as released", "letters and digits"

IDS = {RELEASED: sentence_ids, LETTERS: folded_ids}
"""The ids for each way in which sentences can be the same."""


def id_columns(first: Iterable[str], second: Iterable[str | None]) -> dict[str, NDArray[np.uint64]]:
    """Returns the four id columns of an items table.

    Args:
        first: the first sentences of n items.
        second: the second ones; None for an item with one sentence, whose second id is its first.
    """
    left = list(first)
    right = [one if other is None else other for one, other in zip(left, second, strict=True)]
    ways = zip((SENTENCES, FOLDED), IDS.values(), strict=True)
    return {name: ids_of(side) for names, ids_of in ways for name, side in zip(names, (left, right), strict=True)}


def pair_ids(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns the ids of n pairs, (n,), which are the same in either order: the sums of their sentences' ids.

    >>> ids = sentence_ids(["a dog .", "a cat ."])
    >>> len(np.unique(pair_ids(ids, ids[::-1])))
    1
    """
    return first + second


class SharedIds(NamedTuple):
    """Which ids are in a corpus: a mask, the number of distinct ids, and the number of those in the corpus."""

    mask: NDArray[np.bool_]
    distinct: int
    shared: int


def shared_ids(ids: NDArray[np.uint64], corpus: NDArray[np.uint64]) -> SharedIds:
    """Returns which sentences, or pairs, are in a corpus; both as ids of the same kind.

    Args:
        ids: ids in an array of any shape, which is that of the mask.
        corpus: the ids of the corpus, in any shape.

    >>> ids = folded_ids(["It's a dog.", "A cat.", "it's a dog"])
    >>> mask, distinct, shared = shared_ids(ids, folded_ids(["It 's a dog .", "rain"]))
    >>> mask.tolist(), distinct, shared
    ([True, False, True], 2, 1)
    """
    # By hashing, which takes a tenth of NumPy's time for a large corpus.
    flat = pd.Index(ids.ravel())
    mask = flat.isin(corpus.ravel())
    return SharedIds(mask.reshape(ids.shape), flat.nunique(), flat[mask].nunique())


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


@dataclass(frozen=True)
class DataOverview(Result):
    """The result of `describe`, `list_data`, `verify` and `overlap`.

    Attributes:
        rows: all rows and columns; see the functions.
        tables: those for readers.
        advice: of `verify`, a sentence for each source with wrong files: the first of them, and what to do.
    """

    rows: pd.DataFrame
    tables: Tables
    advice: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """All rows and columns."""
        return self.rows

    def table(self) -> Tables:
        """Returns the tables for readers."""
        return self.tables


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


PAIRS = (
    Column("sentence1", as_sentence, ("sentence1", "s1", "text1", "sentence_a")),
    Column("sentence2", as_sentence, ("sentence2", "s2", "text2", "sentence_b")),
    Column("score", as_number, ("score", "gold", "label", "similarity")),
)

_SUBSET = "subset"
_ABSENT = "check the path given to --data"


def load_pairs(path: str | Path, subset_column: str = _SUBSET) -> StsData:
    """Reads your own pairs from a .tsv, .csv, .jsonl or .parquet file, the first three also with .gz or .zst.

    Columns are found by name, ignoring case: sentence1 (or s1, text1, sentence_a), sentence2 (s2, text2,
    sentence_b), score (gold, label, similarity), and the subset column if there is one. A TSV or CSV file without
    a header has exactly three columns: sentence1, sentence2, score. Whitespace around a sentence is dropped, blank
    lines are skipped. Assumptions about the file, and the number of repeated pairs, are notes.

    A `pair_id` is the pair's line in the file (Parquet: its row), the split is "all", the task is the file's name
    without its suffix (and so is the subset without such a column), and the gold range is that of the scores. A
    subset column with another name than `subset` is part of the file's name in `files`, and so of the data's hash
    and the signature.

    Args:
        path: the file.
        subset_column: the column with each pair's subset (default "subset", which may be absent).

    Raises:
        UserError: with file and line for all wrong rows (the first ten, and how many more), or if the file or a
            subset has fewer than two pairs or a single score, so that no correlation is defined.
    """
    path = Path(path).expanduser()
    require_file(path, absent=_ABSENT)
    require_memory(path.stat().st_size, f"the pairs of {path}", "measure a part of them")
    subset = Column(_SUBSET, as_sentence, (subset_column,), optional=subset_column == _SUBSET)
    table = read_table(path, Schema("pair", (*PAIRS, subset), [column.name for column in PAIRS], _ABSENT))
    task = Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem
    named = table.frame if _SUBSET in table.frame else table.frame.assign(subset=task)
    columns = [_SUBSET, "line", "score", "sentence1", "sentence2"]
    pairs = pair_table(
        Pair(subset, "all", str(line), *others)
        for subset, line, *others in named[columns].itertuples(index=False, name=None)
    )
    _require_varied_scores(pairs, path)
    header = table.headers.get(_SUBSET, _SUBSET)
    subsets = "" if header.casefold() == _SUBSET else f", subsets by {header}"
    files = (FileRead(path.name + subsets, sha256_of(path), None),)
    gold_range = float(pairs["gold"].min()), float(pairs["gold"].max())
    notes = (*table.rows.notes, *_notes(pairs, path))
    return StsData(task, "all", "user", pairs, gold_range, "user", combined_sha256(files), files, (), notes)


def _notes(pairs: pd.DataFrame, path: Path) -> Iterator[str]:
    sides = [pairs["sentence1"], pairs["sentence2"]]
    if ".tsv" in path.name.lower():
        quoted = sum(len(text) > 1 and text[0] == text[-1] == '"' for side in sides for text in side)
        if quoted:
            yield f"{path.name}: {quoted:,} sentences are in quotes, which are read as text; in .csv they are not."
    both = pair_ids(*map(sentence_ids, sides))
    repeated = len(both) - len(np.unique(both))
    if repeated:
        yield (
            f"{path.name}: {repeated:,} of {len(both):,} rows repeat the sentences of an earlier row, in either "
            "order; each counts as a pair."
        )


def _require_varied_scores(pairs: pd.DataFrame, path: Path) -> None:
    parts = [
        (f"{path}, subset {subset!r},", golds) for subset, golds in pairs.groupby("subset", sort=False)["gold"]
    ]
    for where, golds in [(str(path), pairs["gold"]), *parts]:
        if len(golds) == 1:
            raise UserError(f"{where} has a single pair: a correlation needs at least two; add pairs.")
        if golds.min() == golds.max():
            raise UserError(
                f"{where} has the score {golds.iloc[0]:g} for every pair: a correlation needs scores that differ."
            )
