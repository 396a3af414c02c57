"""Text files as lines, with the line number in every complaint."""

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.data.catalogue import CatalogueFile
from stsbench.data.tables import FileRead


@dataclass(frozen=True)
class CataloguedLines:
    """A catalogued file as it was found: its lines, its hash and what the catalogue says of it."""

    path: Path
    lines: list[str]
    sha256: str
    entry: CatalogueFile

    @property
    def read(self) -> FileRead:
        """The account of this file for the record."""
        return FileRead(self.entry.path, self.sha256, self.entry.sha256)

    @property
    def problem(self) -> str | None:
        """A sentence saying how the file differs from the catalogued one, or None."""
        if self.sha256 == self.entry.sha256:
            return None
        if len(self.lines) != self.entry.lines:
            how = f"{self.entry.lines} lines expected, {len(self.lines)} found"
        else:
            how = (
                f"{self.entry.lines} lines expected and found, but their bytes differ "
                f"(sha256 {self.entry.sha256[:12]}... expected, {self.sha256[:12]}... found)"
            )
        return f"{self.path} is not the catalogued file: {how}."


def read_catalogued(root: Path, entry: CatalogueFile, encoding: str) -> CataloguedLines:
    """Read one catalogued file below `root`.

    Raises:
        UserError: if it cannot be read, or a byte does not fit the encoding.
    """
    path = root / entry.path
    data = read_bytes(path)
    lines = split_lines(decode(data, path, encoding))
    return CataloguedLines(path, lines, hashlib.sha256(data).hexdigest(), entry)


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes.

    Raises:
        UserError: if the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror or error}; check the path and its permissions."
        ) from error


def decode(data: bytes, path: Path, encoding: str, *, first_line: int = 1) -> str:
    """Decode a file's bytes, or those from line `first_line` on.

    Raises:
        UserError: naming the line of the first byte that does not fit.
    """
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        byte, name = data[error.start], encoding.removesuffix("-sig")
        raise UserError(
            f"{path}, line {line}: byte 0x{byte:02x} is not {name}; save the file as {name}."
        ) from error


def split_lines(text: str) -> list[str]:
    r"""Split on the line feed alone, dropping one carriage return before it.

    `str.splitlines` would also split at characters that occur inside sentences (U+0085, U+2028, ...).

    >>> split_lines("one\u2028still one\r\ntwo\n")
    ['one\u2028still one', 'two']
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def json_object(text: str, path: Path, line: int, of: str) -> dict[str, Any]:
    """Return the object that a line of JSON Lines spells.

    Args:
        text: the line.
        path: of the file.
        line: its number, from 1.
        of: what an object stands for.

    Raises:
        UserError: if it is not JSON, or no object.
    """
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {line}: not valid JSON ({error.msg}); mend the line.") from error
    if not isinstance(record, dict):
        raise UserError(f"{path}, line {line}: a JSON object expected, one for each {of}; mend the line.")
    return record


def number(text: str) -> float | None:
    """Return the finite number that `text` spells, or None.

    >>> number(" 4.75"), number("nan"), number("1_0"), number("four")
    (4.75, None, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads "1_0" as ten; in a table of scores it is a slip.
    return value if math.isfinite(value) and "_" not in text else None
