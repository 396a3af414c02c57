"""A corpus tokenised once, as an Arrow file that is mapped into memory.

Before a store is used its files are compared with the hashes in its manifest; a damaged store is made again.
"""

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import Manifest, atomic_folder, cache_dir, fingerprint, writing
from stsbench.base.progress import Progress, silent
from stsbench.data.corpus import Row
from stsbench.encoders.tokenizer import Tokenizer
from stsbench.training.views import Tokens

_log = logging.getLogger(__name__)

_LAYOUT = 5

_ABOUT, _SENTENCES = "about.json", "sentences.arrow"
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class CorpusCounts:
    """The counts of a corpus.

    Attributes:
        empty: rows left out, because a sentence in them is empty or has no sub-word.
        cut: sentences longer than training reads.
        tokens: sub-words kept, without special tokens.
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
        """Map the file of a folder that `open_store` made."""
        self.counts = CorpusCounts(**json.loads((folder / _ABOUT).read_bytes())["counts"])
        self._sentences = pa.ipc.open_file(pa.memory_map(str(folder / _SENTENCES))).read_all()

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.counts.rows

    def tokens(self, row: int, column: int) -> Tokens:
        """Return the token ids of a sentence."""
        ids: Tokens = self._sentences["tokens"][row * self.counts.columns + column].values.to_numpy()
        return ids

    def lengths(self) -> NDArray[np.int64]:
        """Return the sub-words of each row's first sentence, without special tokens: (rows,)."""
        lengths: NDArray[np.int64] = pc.list_value_length(self._sentences["tokens"]).to_numpy().astype(np.int64)
        return lengths[:: self.counts.columns]

    def text(self, row: int, column: int) -> str:
        """Return a sentence; the store must have been built with text."""
        return str(self._sentences["text"][row * self.counts.columns + column])


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
    """Return the store of a corpus; build it if it does not exist."""
    about = {**meaning, "layout": _LAYOUT, "limit": limit, "lower_case": lower_case, "with_text": with_text}
    folder = root / fingerprint(about)[:32]
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(_lock_of(folder)):
            if not _is_whole(folder):
                if folder.exists():
                    _log.warning("the tokenised corpus %s was damaged and is made again.", folder)
                with atomic_folder(folder) as building:
                    _build(building, rows, tokenizer, limit, lower_case, with_text, progress)
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
    """Return the folders of all complete stores."""
    return sorted(about.parent for about in tokens_dir().glob(f"[!.]*/{_ABOUT}"))


def bytes_of(store: Path) -> int:
    """Return the size of a store on disk."""
    return sum(file.stat().st_size for file in store.iterdir())


def clear_stores() -> int:
    """Delete all stores and return the freed bytes. A running training keeps the store that it has open."""
    freed = 0
    for store in stores():
        with FileLock(_lock_of(store)):
            freed += bytes_of(store)
            shutil.rmtree(store)
    return freed


def _lock_of(store: Path) -> Path:
    return store.with_name(f".{store.name}.lock")


def _build(  # noqa: PLR0917 - of one caller
    folder: Path,
    rows: Iterator[Row],
    tokenizer: Tokenizer,
    limit: int,
    lower_case: bool,
    with_text: bool,
    progress: Progress,
) -> None:
    kept = empty = cut = columns = tokens = 0
    token = pa.uint16() if tokenizer.vocabulary <= 2**16 else pa.uint32()
    schema = pa.schema({"tokens": pa.list_(token), **({"text": pa.string()} if with_text else {})})
    with pa.ipc.new_file(str(folder / _SENTENCES), schema) as writer:
        while block := [row for _, row in islice(rows, _ROWS_AT_ONCE)]:
            columns = len(block[0])
            sentences = [sentence for row in block for sentence in row]
            ids = tokenizer([s.lower() for s in sentences] if lower_case else sentences, special_tokens=False)
            starts = range(0, len(sentences), columns)
            full = [place for at in starts if all(ids[at : at + columns]) for place in range(at, at + columns)]
            kept, empty = kept + len(full) // columns, empty + len(block) - len(full) // columns
            cut += sum(len(ids[place]) > limit for place in full)
            short = [ids[place][:limit] for place in full]
            tokens += sum(map(len, short))
            values = {"tokens": short, "text": [sentences[place] for place in full]}
            writer.write_batch(pa.record_batch([pa.array(values[f.name], f.type) for f in schema], schema=schema))
            progress("tokenising", kept + empty, 0)
    if not kept:
        raise UserError("the corpus holds no sentence: every line of it is empty.")
    counts = CorpusCounts(kept, columns, empty, cut, tokens)
    Manifest.of(folder, {"counts": asdict(counts)}, [_SENTENCES]).write(folder, _ABOUT)
