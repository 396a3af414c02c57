"""The layout of an embedding cache file: blocks, one behind the other, each with a digest.

    file  = block block ...
    block = head, a key of 16 bytes for each row, the content of each row (all of one width)
    head  = kind, number of rows, width, digest of the keys, digest of the contents, digest of the head

A file grows at its end, and what stands in it is never moved. The head of a block that is found damaged is marked;
where a head itself is damaged nobody knows where the next one is, and what follows is cut off. A process that is
killed while it writes leaves an unfinished block at the end, which is cut off, too. To look for keys takes heads
and keys; contents are read, and their digest is taken, only in blocks that hold a key that is looked for.

Blocks are read and not mapped into memory: a failing disk is an error there, and would be a killed process here.

A digest is a CRC-32. It goes on from that of what it belongs to: from a number for the file to the keys, and from
the keys to the contents. So of contents under other keys, and of a block of another file, nothing agrees. Of
damaged blocks one in four thousand million passes, and none whose damage is within 32 bits. It guards against
accidents, not against a person who writes blocks on purpose.
"""

import errno
import struct
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 16
ROWS_AT_ONCE = 256
"""The rows of a block at most: what one damage costs, and what is read for one vector."""

Contents = NDArray[np.uint8]
"""Bytes of shape (rows, width)."""

_HEAD = struct.Struct("<8sQQII")
_DIGEST = struct.Struct("<I")
_HEAD_BYTES = _HEAD.size + _DIGEST.size
_DROPPED = b"dropped"


class Block(NamedTuple):
    """What the head of a block says, and where it starts."""

    start: int
    kind: bytes
    rows: int
    width: int
    keys_digest: int
    digest: int

    @property
    def keys_start(self) -> int:
        """Where its keys start."""
        return self.start + _HEAD_BYTES

    @property
    def contents_start(self) -> int:
        """Where its contents start."""
        return self.keys_start + self.rows * KEY_BYTES

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.contents_start + self.rows * self.width


def salt_of(path: Path) -> int:
    """Return the number that the digests of a file go on from: it is by its name."""
    return crc32(path.stem.encode())


def opened(path: Path) -> BinaryIO:
    """Open a file to read it; a pipe, on which one would wait for ever, is an OSError like a folder."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file")
    return path.open("rb")


def blocks_in(stream: BinaryIO, salt: int) -> list[Block]:
    """Return the blocks of a file up to the first whose head is damaged, or that is unfinished."""
    size, start, blocks = stream.seek(0, 2), 0, list[Block]()
    while start + _HEAD_BYTES <= size:
        head = _read(stream, start, _HEAD_BYTES)
        if len(head) < _HEAD_BYTES or _DIGEST.unpack(head[_HEAD.size :]) != (crc32(head[: _HEAD.size], salt),):
            break
        kind, *numbers = _HEAD.unpack(head[: _HEAD.size])
        block = Block(start, kind.rstrip(b"\0"), *numbers)
        if block.end > size:
            break
        blocks.append(block)
        start = block.end
    return blocks


def content_of(stream: BinaryIO, block: Block) -> bytes | None:
    """Return the contents of all rows of a block; None if they are damaged."""
    content = _read(stream, block.contents_start, block.rows * block.width)
    return content if crc32(content, block.keys_digest) == block.digest else None


class BlockFile:
    """A file of blocks, opened by who holds the lock of its folder.

    Attributes:
        path: of the file, which need not be there yet.
        cut_at: the byte from which on a damaged or unfinished file was cut; None where it was whole.
        dropped: how many rows were in blocks that were found damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_at: int | None = None
        self.dropped = 0
        self._salt = salt_of(path)
        self._blocks: list[Block] = []
        with suppress(FileNotFoundError), opened(path) as stream:
            self._blocks = blocks_in(stream, self._salt)
            if stream.seek(0, 2) > self._end:
                self.cut_at = self._end
        if self.cut_at is not None:
            with path.open("r+b", buffering=0) as out:
                out.truncate(self.cut_at)

    @property
    def _end(self) -> int:
        return self._blocks[-1].end if self._blocks else 0

    def find(
        self, kind: bytes, wanted: Container[bytes], is_sound: Callable[[Contents], bool] = lambda _: True
    ) -> list[tuple[list[bytes], Contents]]:
        """Return the wanted keys that are in blocks of a kind, block by block, each with its content.

        Args:
            kind: of the rows.
            wanted: any keys.
            is_sound: what else is to hold of the contents of a block.

        Returns:
            Of each block that has any its keys, in order, and their contents, shape (keys, width). Blocks that are
            damaged are dropped.
        """
        found: list[tuple[list[bytes], Contents]] = []
        damaged: list[Block] = []
        for block, keys, stream in self._keys(kind, damaged):
            if places := [place for place, key in enumerate(keys) if key in wanted]:
                content = content_of(stream, block)
                shape = block.rows, block.width
                contents: Contents | None = None if content is None else np.ndarray(shape, np.uint8, content)
                if contents is None or not is_sound(contents):
                    damaged.append(block)
                elif len(places) == block.rows:
                    found.append((keys, contents))
                else:
                    found.append(([keys[place] for place in places], contents[places]))
        self._drop(damaged)
        return found

    def add(self, kind: bytes, keys: Sequence[bytes], contents: Contents) -> None:
        """Append the rows whose keys are not there yet, in whole blocks; if the disk is full, none of them.

        Args:
            kind: of the rows.
            keys: of 16 bytes each, every one once.
            contents: shape (keys, width).
        """
        damaged: list[Block] = []
        there = {key for _, known, _ in self._keys(kind, damaged) for key in known}
        self._drop(damaged)
        new = [place for place, key in enumerate(keys) if key not in there]
        if not new:
            return
        before = self._end
        with self.path.open("r+b" if before else "wb", buffering=0) as out:
            try:
                for start in range(0, len(new), ROWS_AT_ONCE):
                    places = new[start : start + ROWS_AT_ONCE]
                    joined, content = b"".join([keys[place] for place in places]), contents[places].tobytes()
                    keys_digest = crc32(joined, self._salt)
                    block = Block(
                        self._end, kind, len(places), contents.shape[1], keys_digest, crc32(content, keys_digest)
                    )
                    self._write(out, block, joined + content)
                    self._blocks.append(block)
            except OSError:
                with suppress(OSError):
                    out.truncate(before)
                raise

    @property
    def is_empty(self) -> bool:
        """Whether there is no block."""
        return not self._blocks

    def _keys(self, kind: bytes, damaged: list[Block]) -> Iterator[tuple[Block, list[bytes], BinaryIO]]:
        """Yield the blocks of a kind and their keys; those whose keys are damaged go into `damaged`."""
        if self.is_empty:
            return
        with self.path.open("rb") as stream:
            for block in self._blocks:
                if block.kind != kind:
                    continue
                keys = _read(stream, block.keys_start, block.rows * KEY_BYTES)
                if crc32(keys, self._salt) != block.keys_digest:
                    damaged.append(block)
                    continue
                yield block, np.frombuffer(keys, f"V{KEY_BYTES}").tolist(), stream

    def _drop(self, damaged: Sequence[Block]) -> None:
        """Mark damaged blocks: nobody looks into them any more."""
        if not damaged:
            return
        with self.path.open("r+b", buffering=0) as out:
            for block in damaged:
                self._write(out, block._replace(kind=_DROPPED), b"")
        self.dropped += sum(block.rows for block in damaged)
        self._blocks = [block._replace(kind=_DROPPED) if block in damaged else block for block in self._blocks]

    def _write(self, out: BinaryIO, block: Block, content: bytes) -> None:
        head = _HEAD.pack(*block[1:])
        out.seek(block.start)
        left = memoryview(head + _DIGEST.pack(crc32(head, self._salt)) + content)
        while left:  # a disk that is nearly full takes a part, and refuses the next
            left = left[out.write(left) :]


def _read(stream: BinaryIO, start: int, size: int) -> bytes:
    stream.seek(start)
    return stream.read(size)
