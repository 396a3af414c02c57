"""A corpus tokenised once, into files that are mapped into memory and not read whole.

Token ids take two bytes each where the vocabulary allows it, so a million sentences of 25 sub-words take some
60 MB, and with the sentences themselves (for views of text) under 200 MB.

It is ours, not a library's table of rows, because training asks for one thing, the ids of one sentence, and here
that is a slice of a mapped array: nothing is decoded, several processes share the pages, and a resumed training
starts at once. Before a store is used its files are held against the hashes that were taken when it was made: a
damaged one is made again.
"""

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder, cache_dir, writing
from stsbench.base.manifest import Manifest, fingerprint
from stsbench.base.progress import Progress, silent
from stsbench.data.corpus import Row
from stsbench.encoders.tokenizer import Tokenizer
from stsbench.training.views import Tokens

_log = logging.getLogger(__name__)

_LAYOUT = 4

_ABOUT = "about.json"
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class CorpusCounts:
    """What was found in a corpus.

    Attributes:
        empty: rows left out, because a sentence in them is empty or has no sub-word.
        cut: sentences longer than training reads.
        tokens: sub-words kept, special tokens apart.
    """

    rows: int
    columns: int
    empty: int
    cut: int
    tokens: int

    def sentence(self) -> str:
        """Return the counts as a sentence."""
        return (
            f"{self.rows} rows of {self.columns} sentences, {self.tokens / (self.rows * self.columns):.1f} "
            f"sub-words on average; left out {self.empty} empty rows; {self.cut} sentences were cut."
        )


class TokenStore:
    """The sentences of a corpus as token ids without special tokens, and as text if a view needs it."""

    def __init__(self, folder: Path) -> None:
        """Map the files of a folder that `build` made."""
        about = json.loads((folder / _ABOUT).read_bytes())
        self.counts = CorpusCounts(**about["counts"])
        self._tokens = np.memmap(folder / "tokens.bin", dtype=about["dtype"], mode="r")
        self._token_ends = np.memmap(folder / "token_ends.bin", dtype=np.uint64, mode="r")
        if (folder / "text.bin").is_file():
            self._text = np.memmap(folder / "text.bin", dtype=np.uint8, mode="r")
            self._text_ends = np.memmap(folder / "text_ends.bin", dtype=np.uint64, mode="r")

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.counts.rows

    def tokens(self, row: int, column: int) -> Tokens:
        """Return the token ids of a sentence."""
        ids: Tokens = self._tokens[_span(self._token_ends, row * self.counts.columns + column)]
        return ids

    def lengths(self) -> NDArray[np.int64]:
        """Return the sub-words of each row's first sentence, special tokens apart: (rows,)."""
        ends = np.asarray(self._token_ends, dtype=np.int64)
        return np.diff(ends, prepend=0)[:: self.counts.columns]

    def text(self, row: int, column: int) -> str:
        """Return a sentence; the store must have been built with text."""
        place = row * self.counts.columns + column
        return self._text[_span(self._text_ends, place)].tobytes().decode("utf-8")


def _span(ends: NDArray[np.uint64], place: int) -> slice:
    return slice(int(ends[place - 1]) if place else 0, int(ends[place]))


def open_store(
    root: Path,
    meaning: dict[str, Any],
    rows: Iterator[Row],
    tokenizer: Tokenizer,
    *,
    limit: int,
    lower_case: bool = False,
    with_text: bool = False,
    progress: Progress = silent,
) -> TokenStore:
    """Return the store of a corpus, building it where it is not there yet."""
    about = {**meaning, "layout": _LAYOUT, "limit": limit, "lower_case": lower_case, "with_text": with_text}
    folder = root / fingerprint(about)[:32]
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        # Of two that want it at once, the second waits for what the first builds.
        with FileLock(_lock_of(folder)):
            if not _is_whole(folder):
                if folder.exists():
                    _log.warning("the tokenised corpus %s was damaged and is made again.", folder)
                with atomic_folder(folder) as building:
                    _build(
                        building,
                        rows,
                        tokenizer,
                        limit=limit,
                        lower_case=lower_case,
                        with_text=with_text,
                        progress=progress,
                    )
            return TokenStore(folder)


def _is_whole(folder: Path) -> bool:
    """Return whether a store exists and its files are unchanged."""
    try:
        Manifest.read(folder, _ABOUT, "delete it")
    except UserError:
        return False
    return True


def tokens_dir() -> Path:
    """Return the folder of all stores."""
    return cache_dir() / "tokens"


def stores() -> list[Path]:
    """Return the folders of the stores that are there, those still being built left out."""
    return sorted(about.parent for about in tokens_dir().glob(f"[!.]*/{_ABOUT}"))


def bytes_of(store: Path) -> int:
    """Return how much of the disk a store takes."""
    return sum(file.stat().st_size for file in store.iterdir())


def clear_stores() -> int:
    """Delete all stores; return how many bytes that freed. A training that has one open keeps it to its end."""
    freed = 0
    for store in stores():
        with FileLock(_lock_of(store)):
            freed += bytes_of(store)
            shutil.rmtree(store)
    return freed


def _lock_of(store: Path) -> Path:
    return store.with_name(f".{store.name}.lock")


def _build(
    folder: Path,
    rows: Iterator[Row],
    tokenizer: Tokenizer,
    *,
    limit: int,
    lower_case: bool,
    with_text: bool,
    progress: Progress,
) -> None:
    kept = empty = cut = columns = 0
    dtype = np.dtype(np.uint16 if tokenizer.vocabulary <= 2**16 else np.uint32)
    tokens = _Ragged(folder, "tokens.bin", "token_ends.bin")
    texts = _Ragged(folder, "text.bin", "text_ends.bin") if with_text else None
    while block := [row for _, row in islice(rows, _ROWS_AT_ONCE)]:
        columns = len(block[0])
        sentences = [sentence for row in block for sentence in row]
        ids = tokenizer([s.lower() for s in sentences] if lower_case else sentences, special_tokens=False)
        for number, row in enumerate(block):
            ids_of_row = ids[number * columns : (number + 1) * columns]
            if not all(ids_of_row):
                empty += 1
                continue
            kept += 1
            cut += sum(len(sequence) > limit for sequence in ids_of_row)
            for sequence, sentence in zip(ids_of_row, row, strict=True):
                tokens.add(np.array(sequence[:limit], dtype=dtype))
                if texts is not None:
                    texts.add(np.frombuffer(sentence.encode("utf-8"), dtype=np.uint8))
        progress("tokenising", kept + empty, 0)
    for ragged in filter(None, (tokens, texts)):
        ragged.close()
    if not kept:
        raise UserError("the corpus holds no sentence: every line of it is empty.")
    counts = CorpusCounts(kept, columns, empty, cut, tokens.end)
    about = {"counts": asdict(counts), "dtype": dtype.name}
    Manifest.of(folder, about, [path.name for path in folder.iterdir()]).write(folder, _ABOUT)


class _Ragged:
    """Sequences one after the other in one file, and where each ends in another."""

    def __init__(self, folder: Path, content: str, ends: str) -> None:
        self._content: BinaryIO = (folder / content).open("wb")
        self._ends: BinaryIO = (folder / ends).open("wb")
        self.end = 0

    def add(self, values: NDArray[np.generic]) -> None:
        self.end += len(values)
        self._content.write(values.tobytes())
        self._ends.write(np.uint64(self.end).tobytes())

    def close(self) -> None:
        self._content.close()
        self._ends.close()
