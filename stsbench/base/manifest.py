"""Fingerprints of values, and the JSON file that describes a folder and holds the hashes of its files."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of

DIGEST = "digest"
"""The field of a JSON file that holds the fingerprint of all its other fields, to detect accidents and edits."""

_FILES = "files"


def fingerprint(*parts: Any) -> str:
    """Returns the SHA-256 of plain values as 64 hexadecimal digits.

    The values are hashed as JSON, so the order of keys does not matter; NaN and infinity are a ValueError.

    >>> fingerprint({"b": 1, "a": 0.5}) == fingerprint({"a": 0.5, "b": 1})
    True
    """
    texts = (json.dumps(part, sort_keys=True, separators=(",", ":"), allow_nan=False) for part in parts)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """The description of a folder.

    Attributes:
        content: its fields, as JSON has them.
        files: the SHA-256 of each file that belongs to it, by the file's path in the folder.
    """

    content: Mapping[str, Any]
    files: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, content: Mapping[str, Any], names: Iterable[str]) -> "Manifest":
        """Returns the manifest of some files of a folder."""
        return cls(content, {name: sha256_of(folder / name) for name in sorted(names)})

    def write(self, folder: Path, name: str) -> None:
        """Writes the manifest into its folder."""
        fields = {**self.content, _FILES: dict(self.files)}
        text = json.dumps({**fields, DIGEST: fingerprint(fields)}, indent=1)
        (folder / name).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, name: str, remedy: str) -> "Manifest":
        """Reads a manifest and checks the files that it names.

        Args:
            folder: the folder.
            name: of the manifest's file.
            remedy: what to do if it is damaged, for the message.

        Raises:
            UserError: if the manifest was edited or is not one, or a file is missing or differs.
        """
        path = folder / name
        try:
            fields = json.loads(path.read_bytes())
            digest = fields.pop(DIGEST)
            files: dict[str, str] = fields[_FILES]
            if digest != fingerprint(fields):
                raise UserError(f"{path} was edited after it was written: {remedy}.")
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is damaged ({type(error).__name__}: {error}): {remedy}.") from error
        for file, sha256 in fields.pop(_FILES).items():
            if not (folder / file).is_file():
                raise UserError(f"{folder} lacks {file}, which its {name} names: {remedy}.")
            if sha256_of(folder / file) != sha256:
                raise UserError(f"{folder / file} is not the file that its {name} was written with: {remedy}.")
        return cls(fields, files)
