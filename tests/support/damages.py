"""Damages of a file, and a full disk."""

import os
import resource
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path


def flip(file, at=0.5, bit=1):
    """Flip bits of the byte at a share of a file."""
    content = bytearray(file.read_bytes())
    content[min(int(len(content) * at), len(content) - 1)] ^= bit
    file.write_bytes(bytes(content))


def cut(file, share=0.5):
    """Keep the first share of a file."""
    os.truncate(file, int(file.stat().st_size * share))


def lengthen(file):
    """Append bytes to a file."""
    with file.open("ab") as stream:
        stream.write(b"\x00\xff garbage")


def make_a_folder(file):
    """Replace a file by a folder."""
    file.unlink()
    file.mkdir()


def make_a_pipe(file):
    """Replace a file by a pipe that nobody writes to."""
    file.unlink()
    os.mkfifo(file)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "absent": Path.unlink,
    "empty": lambda file: cut(file, 0),
    "cut in the middle": cut,
    "without its last byte": lambda file: os.truncate(file, file.stat().st_size - 1),
    "a bit flipped early": lambda file: flip(file, 0.1, 4),
    "a bit flipped": flip,
    "a bit flipped late": lambda file: flip(file, 0.9, 16),
    "longer": lengthen,
    "a folder": make_a_folder,
    "a pipe": make_a_pipe,
}


@contextmanager
def files_of_at_most(size):
    """Let this process write no file of more bytes, by torch's and safetensors' own writers neither."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
