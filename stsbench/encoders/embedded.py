"""`stsbench embed`: the vectors of millions of sentences in one .npy file, with its description in a second file.

Vectors are written in parts; after any interruption, the same command resumes after the last complete part.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, fingerprint, sha256_of, writing
from stsbench.base.progress import Progress, silent
from stsbench.data.corpus import sentences_in
from stsbench.encoders.checkpoint import PACKAGED
from stsbench.encoders.load import Model, embed, load
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity
from stsbench.encoders.use import use_signature
from stsbench.render.table import Result, Table, Tables

AT_ONCE = 10_000
"""Sentences in a part, which is in memory at once, and the most that an interruption loses."""


@dataclass(frozen=True)
class Embedded(Result):
    """A file of vectors, with its model, how it was used, a digest of both, the text file and its hash."""

    path: Path
    stsbench: str
    model: str
    use: str
    key: str
    source: str
    sha256: str
    rows: int

    @property
    def vectors(self) -> FloatMatrix:
        """The vectors on the disk, shape (rows, dimensions), float32."""
        return np.lib.format.open_memmap(self.path, mode="r")

    @property
    def frame(self) -> pd.DataFrame:
        """One row that describes the file."""
        return pd.DataFrame([vars(self) | {"dimensions": self.vectors.shape[1], "path": str(self.path)}])

    def table(self) -> Tables:
        """Returns the number of vectors and what they were made from."""
        return Tables([Table(self.frame[["model", "use", "rows", "dimensions", "path"]], "Sentences embedded")])

    @classmethod
    def read(cls, path: Path) -> "Embedded":
        """Reads the description of a file of vectors; raises a UserError if they are not intact."""
        about = Path(f"{path}.json")
        try:
            embedded = cls(path, **json.loads(about.read_bytes()))
            is_intact = embedded.vectors.dtype == "<f4" and embedded.vectors.shape[:-1] == (embedded.rows,)
        except (OSError, ValueError, TypeError):
            is_intact = False
        if not is_intact:
            raise UserError(
                f"{path} and {about.name} are not an intact file of vectors: make it again with `stsbench embed "
                "--overwrite`."
            )
        return embedded

    def require_of(self, identity: Identity) -> None:
        """Checks that the vectors are those of a model with its current use."""
        name, use, key = _described(identity)
        if identity.weights_sha256 is None or key != self.key:
            raise UserError(
                f"{self.path} has vectors of {self.model} ({self.use}), and {name} ({use}) may give others: use "
                f"the same model in the same way, or search in {self.source}."
            )

    def sentences(self, rows: Sequence[int]) -> dict[int, str]:
        """Returns the sentences of some rows, from the text file, which must be unchanged."""
        file, wanted = Path(self.source), set(rows)
        if not file.is_file() or sha256_of(file) != self.sha256:
            raise UserError(f"{file}, the source of {self.path}, is missing or has changed: embed it again.")
        return {row: text for row, text in enumerate(sentences_in(file)) if row in wanted}


def embed_file(
    sentences: Path, encoder: Model = PACKAGED, *, out: Path, overwrite: bool = False, progress: Progress = silent
) -> Embedded:
    """Embeds the lines of a text file into a file, which must not have other vectors unless `overwrite`."""
    target, file, model = Path(out).expanduser(), Path(sentences).expanduser(), load(encoder)
    identity, rows = model.identity, sum(1 for _ in sentences_in(file))
    if target.suffix != ".npy":
        raise UserError(f"--out {target}: use a file name that ends in .npy.")
    if identity.use.whiten is not None:
        raise UserError("vectors of a file cannot be whitened: fit it with `stsbench fit whitening`.")
    if not rows:
        raise UserError(f"{file} has no sentences: write one per line.")
    made = Embedded(target, __version__, *_described(identity), str(file.resolve()), sha256_of(file), rows)
    if not target.exists() or overwrite:
        _write(model, made, progress)
    elif Embedded.read(target) != made or identity.weights_sha256 is None:
        raise UserError(
            f"{target} has vectors of another model, use or file, or of a model without a hash: use another --out "
            "or add --overwrite."
        )
    return made


def _write(model: Encoder, made: Embedded, progress: Progress) -> None:
    target, about, file = made.path, Path(f"{made.path}.json"), Path(made.source)
    description = {name: value for name, value in vars(made).items() if name != "path"}
    # The name identifies the content, so only the same command resumes.
    unfinished = target.with_name(f"{target.name}.{fingerprint(description)[:12]}.unfinished")
    lines = sentences_in(file)
    width = embed(model, [next(sentences_in(file))], use_cache=False).shape[1]
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with writing(target), unfinished.open("r+b" if unfinished.exists() else "w+b") as stream:
        shape = {"descr": "<f4", "fortran_order": False, "shape": (made.rows, width)}
        np.lib.format.write_array_header_1_0(stream, shape)
        begin, size = stream.tell(), 4 * width * AT_ONCE
        complete = 0 if model.identity.weights_sha256 is None else (stream.seek(0, os.SEEK_END) - begin) // size
        for part in range(-(-made.rows // AT_ONCE)):
            texts = list(islice(lines, AT_ONCE))
            if part >= complete:
                stream.seek(begin + part * size)
                stream.write(embed(model, texts, use_cache=False, progress=progress).data)
                stream.flush()
                os.fsync(stream.fileno())
            progress("embedding", part * AT_ONCE + len(texts), made.rows)
        stream.truncate()
    if sha256_of(file) != made.sha256:
        unfinished.unlink()
        raise UserError(f"{file} changed while it was read: start again.")
    with atomic_path(target) as place:
        unfinished.replace(place)
        about.unlink(missing_ok=True)
    with atomic_path(about) as place:
        place.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _described(identity: Identity) -> tuple[str, str, str]:
    """Returns a model's name, its use, and a digest of everything that a vector depends on, scaling included."""
    use = f"{use_signature(identity.use)} {identity.use.whitening}".rstrip()
    return identity.name, use, fingerprint({"vectors": identity.key(), "use": use})
