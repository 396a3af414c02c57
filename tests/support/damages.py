"""What happens to a file: it is gone, cut, changed, another one, or no file at all; for all tests of such."""

import os
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ANOTHER = "another of its kind"


@dataclass(frozen=True)
class Damage:
    """One thing that happens to a file.

    Attributes:
        name: what it is called.
        do: does it to a file.
        is_of_content: whether a file is left that may be one of its kind.
        is_unreadable: whether only root could read it then.
    """

    name: str
    do: Callable[[Path], None]
    is_of_content: bool = False
    is_unreadable: bool = False


def damages(path: Path, another: Path | None, *, cuts: int, flips: int) -> Iterator[Damage]:
    """Yield what can happen to a file, the same each time.

    Args:
        path: the file.
        another: one of its kind; None where there is none.
        cuts: at how many places it is cut.
        flips: at how many places a bit is turned.
    """
    size = path.stat().st_size
    rng = random.Random(zlib.crc32(path.name.encode()) + size)
    yield Damage("absent", Path.unlink)
    yield Damage("empty", lambda file: os.truncate(file, 0), is_of_content=True)
    places = [size - 1, size // 2, 1, *(rng.randrange(size) for _ in range(cuts))][:cuts] if size else []
    for place in places:
        yield Damage(f"cut at {place} of {size}", lambda file, at=place: os.truncate(file, at), is_of_content=True)  # type: ignore[misc]
    for _ in range(flips if size else 0):
        place, bit = rng.randrange(size), rng.randrange(8)
        turn = partial(_flip_byte, place=place, bit=1 << bit)
        yield Damage(f"bit {bit} of byte {place} turned", turn, is_of_content=True)
    yield Damage("longer", lengthen, is_of_content=True)
    if another is not None and another.read_bytes() != path.read_bytes():
        yield Damage(ANOTHER, lambda file: shutil.copy(another, file) and None, is_of_content=True)
    yield Damage("unreadable", lambda file: file.chmod(0), is_unreadable=True)
    yield Damage("a folder", make_a_folder)
    yield Damage("a pipe", _make_a_pipe)


def flip(file: Path, at: float = 0.5, bit: int = 1) -> None:
    """Turn bits of the byte that stands at a share of a file; the file's size stays."""
    _flip_byte(file, min(int(file.stat().st_size * at), file.stat().st_size - 1), bit)


def cut(file: Path, share: float = 0.5) -> None:
    """Leave the first share of a file."""
    os.truncate(file, int(file.stat().st_size * share))


def lengthen(file: Path) -> None:
    """Write something behind the end of a file."""
    with file.open("ab") as stream:
        stream.write(b"\x00\xff garbage")


def make_a_folder(file: Path) -> None:
    """Put a folder in the place of a file."""
    file.unlink()
    file.mkdir()


def _make_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _flip_byte(file: Path, place: int, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= bit
    file.write_bytes(bytes(content))
