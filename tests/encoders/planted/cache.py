"""Wrong numbers planted in an embedding cache: what is done to its file, and what comes of it.

`VARIANTS` are bytes changed all over the file, the file cut, blocks edited whose heads are as they should be, and
another model's file in its place. `outcome` plants one and measures again.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np

from stsbench.base.errors import UserError
from stsbench.encoders.blocks import _DIGEST as DIGEST
from stsbench.encoders.blocks import _HEAD as HEAD
from stsbench.encoders.blocks import KEY_BYTES, blocks_in, salt_of
from stsbench.encoders.cache import EmbeddingCache, embeddings_dir
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.protocol import Identity, Tokenized
from stsbench.encoders.use import own_use

TEXTS = [f"word {number} " * (number % 7 + 1) for number in range(40)]
DIMENSIONS = 16
TEXT_ROW = 25


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
    for path in embeddings_dir().glob("*.vectors"):
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


def rewritten(file: Path, change: Callable[[str, bytearray, bytearray], None], *, digests: bool = False) -> None:
    """Write a cache file again with its blocks changed.

    Args:
        file: of the cache.
        change: is given the kind of each block, its keys and its contents, and changes them in place.
        digests: whether they are to agree with what was changed, as if the cache had written it.
    """
    with file.open("rb") as stream:
        blocks = blocks_in(stream, salt_of(file))
    content, written = file.read_bytes(), b""
    for block in blocks:
        keys = bytearray(content[block.keys_start : block.contents_start])
        contents = bytearray(content[block.contents_start : block.end])
        change(block.kind.decode(), keys, contents)
        rows = len(keys) // KEY_BYTES
        width = len(contents) // rows if rows else 0
        keys_digest, digest = block.keys_digest, block.digest
        if digests:
            keys_digest = crc32(keys, salt_of(file))
            digest = crc32(contents, keys_digest)
        if rows:
            head = HEAD.pack(block.kind, rows, width, keys_digest, digest)
            written += head + DIGEST.pack(crc32(head, salt_of(file))) + keys + contents
    file.write_bytes(written)


def without(kind: str, file: Path) -> None:
    """Take all blocks of a kind out of a cache file."""
    rewritten(file, lambda found, keys, _: keys.clear() if found == kind else None)


def _of(kind: str, change: Callable[[bytearray, bytearray], object]) -> Callable[[Path], None]:
    """Return what changes the keys and contents of blocks of a kind, whose heads tell their new number."""

    def plant(file: Path) -> None:
        rewritten(file, lambda found, keys, contents: change(keys, contents) and None if found == kind else None)

    return plant


def _filled(contents: bytearray, value: float) -> None:
    contents[:] = np.full(len(contents) // 4, value, "<f4").tobytes()


def _put(content: bytearray, start: int, new: bytes) -> None:
    content[start : start + len(new)] = new


def _turned(content: bytearray, by: int) -> None:
    content[:] = content[by:] + content[:by]


def _set_lengths(contents: bytearray, length: int) -> None:
    for start in range(0, len(contents), TEXT_ROW):
        _put(contents, start + KEY_BYTES, length.to_bytes(8, "little"))


def _set_cuts(contents: bytearray, value: int) -> None:
    for start in range(TEXT_ROW - 1, len(contents), TEXT_ROW):
        contents[start] = value


def _flip_bit(contents: bytearray, place: int) -> None:
    start = (place % 40) * DIMENSIONS * 4
    contents[start + place] ^= 1 << place % 8


def _head(change: Callable[[bytearray], object]) -> Callable[[Path], None]:
    """Return what plants a change of the head of the block of vectors."""

    def plant(file: Path) -> None:
        with file.open("rb") as stream:
            block = next(block for block in blocks_in(stream, salt_of(file)) if block.kind == b"vectors")
        content = bytearray(file.read_bytes())
        head = content[block.start : block.keys_start]
        change(head)
        content[block.start : block.keys_start] = head
        file.write_bytes(content)

    return plant


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

_ROW = DIMENSIONS * 4

_BLOCKS = {
    "a vector zeroed": _of("vectors", lambda _, contents: _put(contents, 3 * _ROW, bytes(_ROW))),
    "all vectors zeroed": _of("vectors", lambda _, contents: _filled(contents, 0.0)),
    "all NaN": _of("vectors", lambda _, contents: _filled(contents, np.nan)),
    "all the same": _of("vectors", lambda _, contents: _filled(contents, 1.5)),
    "all cut to 2 of 16 dimensions": _of("vectors", lambda _, contents: contents.__delitem__(slice(40 * 8, None))),
    "all cut within a number": _of("vectors", lambda _, contents: contents.__delitem__(slice(40 * 62, None))),
    "empty vectors": _of("vectors", lambda _, contents: contents.clear()),
    "longer vectors": _of("vectors", lambda _, contents: contents.extend(bytes(contents))),
    "all vectors another's": _of("vectors", lambda _, contents: _put(contents, _ROW, bytes(contents[:_ROW]) * 39)),
    "vectors of their neighbours": _of("vectors", lambda _, contents: _turned(contents, _ROW)),
    "keys of their neighbours": _of("vectors", lambda keys, _: _turned(keys, KEY_BYTES)),
    "two keys swapped": _of("vectors", lambda keys, _: _put(keys, 0, bytes(keys[16:32] + keys[:16]))),
    "fewer keys than vectors": _of("vectors", lambda keys, _: keys.__delitem__(slice(20 * KEY_BYTES, None))),
    "more keys than vectors": _of("vectors", lambda keys, _: keys.extend(bytes(keys))),
    "no digest of keys": _head(lambda head: _put(head, 24, bytes(4))),
    "no digest of vectors": _head(lambda head: _put(head, 28, bytes(4))),
    "no digest of a head": _head(lambda head: _put(head, 32, bytes(4))),
    "another kind": _head(lambda head: _put(head, 0, b"texts\0\0\0")),
    "a head of more rows": _head(lambda head: _put(head, 8, (41).to_bytes(8, "little"))),
    "a head of endless rows": _head(lambda head: _put(head, 8, b"\xff" * 8)),
    "a head of fewer dimensions": _head(lambda head: _put(head, 16, (32).to_bytes(8, "little"))),
    "lengths changed": _of("texts", lambda _, contents: _set_lengths(contents, 3)),
    "huge lengths": _of("texts", lambda _, contents: _set_lengths(contents, 2**63 - 1)),
    "cuts denied": _of("texts", lambda _, contents: _set_cuts(contents, 0)),
    "cuts of no truth": _of("texts", lambda _, contents: _set_cuts(contents, 2)),
    "all texts one sequence": _of("texts", lambda _, contents: _put(contents, 25, bytes(contents[:25]) * 39)),
    "rows of other texts": _of("texts", lambda _, contents: _turned(contents, TEXT_ROW)),
    "texts of other rows": _of("texts", lambda keys, _: _turned(keys, KEY_BYTES)),
    "rows of texts that are too short": _of(
        "texts", lambda _, contents: contents.__delitem__(slice(40 * 9, None))
    ),
    "vectors gone": lambda file: without("vectors", file),
    "texts gone": lambda file: without("texts", file),
    "nothing about it": lambda file: without("about", file),
}

VARIANTS = [
    *(
        Variant(f"{name} {n}", _bytes(change, f"{name} {n}"))
        for name, (change, count) in _GENERATED.items()
        for n in range(count)
    ),
    *(Variant(name, plant) for name, plant in _BLOCKS.items()),
    *(
        Variant(f"bit {place} of a vector", _of("vectors", lambda _, contents, at=place: _flip_bit(contents, at)))
        for place in range(0, 64, 3)
    ),
    Variant("the last byte lost", _bytes(_lose_the_last_byte, "")),
    Variant("another model's file", _another_models_file),
    Variant("empty", lambda file: file.write_bytes(b"") and None),
    Variant("text", lambda file: file.write_text("not a database " * 99) and None),
]
"""All of them; each ends in the right number or in one sentence."""
