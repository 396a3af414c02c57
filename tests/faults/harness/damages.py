"""What happens to a file: it is gone, cut, changed, another one, or no file at all."""

import os
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
        yield Damage(f"bit {bit} of byte {place} turned", _turned(place, 1 << bit), is_of_content=True)
    yield Damage("longer", _lengthened, is_of_content=True)
    if another is not None and another.read_bytes() != path.read_bytes():
        yield Damage(ANOTHER, lambda file: shutil.copy(another, file) and None, is_of_content=True)
    yield Damage("unreadable", lambda file: file.chmod(0), is_unreadable=True)
    yield Damage("a folder", _made_a_folder)
    yield Damage("a pipe", _made_a_pipe)


def _turned(place: int, bit: int) -> Callable[[Path], None]:
    def turn(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[place] ^= bit
        file.write_bytes(bytes(content))

    return turn


def _lengthened(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"\x00\xff garbage")


def _made_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _made_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)
