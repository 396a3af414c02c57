"""Wrong numbers planted in an embedding cache: what is done to its file, and what comes of it.

`VARIANTS` are bytes changed all over the file, the file cut, rows edited as one can with SQLite, and another
model's file in its place. `outcome` plants one and measures again.
"""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stsbench.base.errors import UserError
from stsbench.encoders.cache import EmbeddingCache, embeddings_dir
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.protocol import Identity, Tokenized
from stsbench.encoders.use import own_use

TEXTS = [f"word {number} " * (number % 7 + 1) for number in range(40)]
DIMENSIONS = 16


class Variant(NamedTuple):
    """One wrong number: its name, and what plants it in a cache file."""

    name: str
    plant: Callable[[Path], None]


class Encoder:
    """Encodes a text as numbers drawn by its letters, and counts how many it was asked for."""

    notes: tuple[str, ...] = ()
    token_budget = 10_000

    def __init__(self, weights: str = "0") -> None:
        self.identity = Identity("model", "transformer", own_use("avg"), weights_sha256=weights * 64)

    def prepare(self, *, weights: bool) -> None:
        """Nothing to load."""

    def tokenize(self, texts):
        lengths = [len(text) for text in texts]
        return Tokenized([tuple(text.encode()) for text in texts], lengths, [length > 30 for length in lengths])

    def forward(self, sequences, poolings):
        rows = [np.random.default_rng([*self.identity.weights_sha256[:1].encode(), *q]) for q in sequences]
        return {
            pooling: np.array([row.normal(size=DIMENSIONS) for row in rows], np.float32) for pooling in poolings
        }


def begun() -> tuple[Path, Embeddings]:
    """Return the file of a new cache, and what was measured when it was filled."""
    measured = embed(Encoder(), TEXTS)
    return EmbeddingCache(Encoder().identity, "avg").path, measured


def outcome(variant: Variant, file: Path, content: bytes, measured: Embeddings) -> str:
    """Plant a variant in a cache of that content and measure again.

    Returns:
        `right` for the numbers measured before, `told` for one sentence, else `wrong`.
    """
    for path in embeddings_dir().glob("*sqlite*"):
        path.unlink()
    file.write_bytes(content)
    variant.plant(file)
    try:
        again = embed(Encoder(), TEXTS)
    except UserError as error:
        return "told" if "\n" not in str(error) else "wrong"
    alike = all(
        np.array_equal(getattr(again, name), getattr(measured, name)) for name in ("rows", "lengths", "truncated")
    )
    return "right" if alike and np.array_equal(again.vectors["avg"], measured.vectors["avg"]) else "wrong"


def _bytes(change: Callable[[bytearray, random.Random], None], seed: str) -> Callable[[Path], None]:
    def plant(file: Path) -> None:
        content = bytearray(file.read_bytes())
        change(content, random.Random(seed))
        file.write_bytes(content)

    return plant


def _sql(*statements: str) -> Callable[[Path], None]:
    def plant(file: Path) -> None:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.create_function("floats", 1, lambda value: np.full(DIMENSIONS, value, "<f4").tobytes())
            connection.create_function("nans", 0, lambda: np.full(DIMENSIONS, np.nan, "<f4").tobytes())
            connection.create_function("flipped", 2, _with_a_bit_flipped)
            for statement in statements:
                connection.execute(statement)

    return plant


def _with_a_bit_flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place % len(changed)] ^= 1 << place % 8
    return bytes(changed)


def _used(content: bytes) -> list[int]:
    return np.flatnonzero(np.frombuffer(content, np.uint8)).tolist() or [0]


def _flip(content: bytearray, rng: random.Random) -> None:
    content[rng.choice(_used(content))] ^= rng.randrange(1, 256)


def _flip_header(content: bytearray, rng: random.Random) -> None:
    content[rng.randrange(100)] ^= rng.randrange(1, 256)


def _cut(content: bytearray, rng: random.Random) -> None:
    del content[rng.randrange(len(content)) :]


def _cut_a_little(content: bytearray, rng: random.Random) -> None:
    del content[-rng.randrange(1, 200) :]


def _zero_a_stretch(content: bytearray, rng: random.Random) -> None:
    start, length = rng.choice(_used(content)), rng.choice([4, 64, 512, 4096])
    content[start : start + length] = bytes(len(content[start : start + length]))


def _swap_stretches(content: bytearray, rng: random.Random) -> None:
    length = rng.choice([16, 64, 100])
    a, b = (rng.choice(_used(content)) for _ in range(2))
    a, b = min(a, len(content) - length), min(b, len(content) - length)
    content[a : a + length], content[b : b + length] = content[b : b + length], content[a : a + length]


def _lose_the_last_byte(content: bytearray, _: random.Random) -> None:
    content.pop()


def _another_models_file(file: Path) -> None:
    other = Encoder("1")
    embed(other, TEXTS)
    EmbeddingCache(other.identity, "avg").path.replace(file)


_GENERATED = {
    "a byte changed": (_flip, 25),
    "a byte of the header changed": (_flip_header, 15),
    "cut": (_cut, 8),
    "cut by a few bytes": (_cut_a_little, 6),
    "a stretch zeroed": (_zero_a_stretch, 8),
    "two stretches swapped": (_swap_stretches, 8),
}

_ROWS = {
    "a vector zeroed": "UPDATE vectors SET vector = zeroblob(64) WHERE rowid = 3",
    "all vectors zeroed": "UPDATE vectors SET vector = zeroblob(64)",
    "all NaN": "UPDATE vectors SET vector = nans()",
    "all the same": "UPDATE vectors SET vector = floats(1.5)",
    "all cut to 2 of 16 dimensions": "UPDATE vectors SET vector = substr(vector, 1, 8)",
    "one cut to 15 dimensions": "UPDATE vectors SET vector = substr(vector, 1, 60) WHERE rowid = 5",
    "one cut within a number": "UPDATE vectors SET vector = substr(vector, 1, 62) WHERE rowid = 5",
    "empty vectors": "UPDATE vectors SET vector = x''",
    "longer vectors": "UPDATE vectors SET vector = vector || vector",
    "a number for a vector": "UPDATE vectors SET vector = 7",
    "text for a vector": "UPDATE vectors SET vector = 'seven'",
    "a fraction for a vector": "UPDATE vectors SET vector = 0.5",
    "all vectors another's": "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE rowid = 1)",
    "vectors and digests another's": "UPDATE vectors SET (vector, digest) = "
    "(SELECT vector, digest FROM vectors LIMIT 1)",
    "no digests": "UPDATE vectors SET digest = 0",
    "text for digests": "UPDATE vectors SET digest = 'none'",
    "a length changed": "UPDATE texts SET length = length + 1",
    "a length that is text": "UPDATE texts SET length = 'long'",
    "a huge length": "UPDATE texts SET length = 9223372036854775807",
    "a cut denied": "UPDATE texts SET truncated = 0",
    "a cut of no truth": "UPDATE texts SET truncated = 2",
    "all texts one sequence": "UPDATE texts SET sequence = (SELECT sequence FROM texts LIMIT 1)",
    "a sequence of no key": "UPDATE texts SET sequence = x'00'",
    "a sequence that is a number": "UPDATE texts SET sequence = 3",
    "rows of another text": "UPDATE texts SET (sequence, length, truncated, digest) = "
    "(SELECT sequence, length, truncated, digest FROM texts LIMIT 1)",
    "vectors gone": "DELETE FROM vectors",
    "some vectors gone": "DELETE FROM vectors WHERE rowid % 3 = 0",
    "texts gone": "DELETE FROM texts",
    "no table of vectors": "DROP TABLE vectors",
    "no table of texts": "DROP TABLE texts",
    "another table of vectors": "ALTER TABLE vectors ADD COLUMN more",
    "columns renamed": "ALTER TABLE vectors RENAME COLUMN vector TO content",
    "nothing about it": "DELETE FROM about",
}

VARIANTS = [
    *(
        Variant(f"{name} {n}", _bytes(change, f"{name} {n}"))
        for name, (change, count) in _GENERATED.items()
        for n in range(count)
    ),
    *(Variant(name, _sql(statement)) for name, statement in _ROWS.items()),
    *(
        Variant(
            f"bit {place} of a vector",
            _sql(f"UPDATE vectors SET vector = flipped(vector, {place}) WHERE rowid = {place % 40 + 1}"),
        )
        for place in range(0, 64, 5)
    ),
    Variant("the last byte lost", _bytes(_lose_the_last_byte, "")),
    Variant("another model's file", _another_models_file),
    Variant("empty", lambda file: file.write_bytes(b"") and None),
    Variant("text", lambda file: file.write_text("not a database " * 99) and None),
]
"""All of them; each ends in the right number or in one sentence."""
