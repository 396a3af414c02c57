"""`stsbench embed`: vectors of millions of sentences in one .npy file, of which a part is in memory at a time.

`numpy.load("made.npy", mmap_mode="r")` reads it: one row per sentence, in the order of the lines. `made.npy.json`
says what it was made from. Sentences are encoded and written in parts to `made.npy.unfinished`, which becomes
`made.npy` when it is complete. Whatever stops it, the same command resumes after the last complete part.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, require_file, sha256_of, writing
from stsbench.base.manifest import fingerprint
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.data.rows import text_lines
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.load import Model, load
from stsbench.encoders.plan import embed as embed_texts
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.sides import refuse_without_side
from stsbench.encoders.use_text import use_signature
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

STORED = {"fp32": "<f4", "fp16": "<f2"}
"""The number formats of a file, and NumPy's names for them."""

AT_ONCE = 10_000
"""Sentences encoded at a time: what is in memory, and what an interruption costs at most."""


@dataclass(frozen=True)
class Embedded(Result):
    """A file of vectors, and what it was made from.

    Attributes:
        path: of the file.
        stsbench: the version that made it.
        model: the model's name.
        use: how the model was used, as in a signature.
        key: digest of everything that a vector depends on.
        source: the text file.
        sha256: the hash of the text file.
        rows: its number of sentences (non-empty lines).
        stored: the number format.
        done: the number of rows that are written.
    """

    path: Path
    stsbench: str
    model: str
    use: str
    key: str
    source: str
    sha256: str
    rows: int
    stored: str
    done: int = 0

    @property
    def frame(self) -> pd.DataFrame:
        """One row that describes the file."""
        dimensions = self._matrix().shape[1]
        return pd.DataFrame([vars(self) | {"dimensions": dimensions, "path": str(self.path)}])

    def table(self) -> Tables:
        """Returns the number of vectors and what they were made from."""
        columns = ["model", "use", "rows", "dimensions", "stored", "path"]
        return Tables([Table(self.frame[columns], "Sentences embedded")])

    @classmethod
    def read(cls, path: Path) -> "Embedded":
        """Reads the description of a file of vectors.

        Raises:
            UserError: if the file was not made by `embed` or is incomplete.
        """
        for file in (path, _beside(path, "json")):
            if file.exists():
                require_file(file)
        try:
            embedded = cls._described(path)
            embedded._matrix()
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path} is not an intact file of vectors of `stsbench embed` ({error}): make it again."
            ) from error
        return embedded

    @classmethod
    def _described(cls, path: Path) -> "Embedded":
        return cls(path, **json.loads(_beside(path, "json").read_text(encoding="utf-8")))

    def _matrix(self, path: Path | None = None) -> "np.memmap[Any, Any]":
        """Maps the vectors into memory; a ValueError if they do not have the shape and format stated here."""
        file = path or self.path
        matrix = np.load(file, mmap_mode="r")
        if not isinstance(matrix, np.memmap) or matrix.ndim != 2 or len(matrix) != self.rows:
            raise ValueError(f"not a matrix of {self.rows} rows")
        if matrix.dtype.str != STORED[self.stored] or file.stat().st_size != matrix.offset + matrix.nbytes:
            raise ValueError(f"not {matrix.nbytes} bytes of {self.stored}")
        return matrix

    def require_of(self, identity: Identity) -> None:
        """Checks that the vectors are those of a model as it is used now, not whitened."""
        if identity.weights_sha256 is None:
            raise UserError(
                f"{identity.name} has no weights to hash, so its vectors in {self.path} may be outdated. "
                f"Search in {self.source} instead."
            )
        if identity.use.whiten is not None:
            raise UserError(
                f"the vectors in {self.path} are not whitened. Fit a whitening with `stsbench fit whitening` and "
                "embed with that."
            )
        if _key(identity) != self.key:
            raise UserError(
                f"the vectors in {self.path} are from {self.model} ({self.use}), the queries from "
                f"{identity.name} ({use_signature(identity.use)}). Use the same model in the same way."
            )

    def parts(self, size: int = AT_ONCE) -> Iterator[NDArray[np.float32]]:
        """Yields the vectors in order, shape (size or fewer, dimensions), float32."""
        matrix = self._matrix()
        for start in range(0, len(matrix), size):
            yield matrix[start : start + size].astype(np.float32)

    def sentences(self, rows: Sequence[int]) -> dict[int, str]:
        """Returns the sentences of some rows, from the text file, which must be unchanged."""
        file, wanted = Path(self.source), set(rows)
        if not file.is_file() or sha256_of(file) != self.sha256:
            raise UserError(f"{file}, the source of {self.path}, is missing or has changed: embed it again.")
        return {row: text for row, text in enumerate(_sentences(file)) if row in wanted}


def embed(
    model: Model,
    texts: Sequence[str],
    *,
    use_cache: bool = True,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Embed texts.

    Args:
        model: what `load` accepts.
        texts: any number; equal texts are encoded once.
        use_cache: whether to read and write the embedding cache.
        progress: called with the number of tokens encoded so far.

    Returns:
        An array of shape (texts, dimensions), float32, in the order of the texts.

    Raises:
        UserError: if there is no such model, or its vectors are not finite.

    >>> embed(lambda texts: [[len(text), 1.0] for text in texts], ["A dog.", "A cat sat."]).tolist()
    [[6.0, 1.0], [10.0, 1.0]]
    """
    if isinstance(texts, str):
        raise UserError("texts is a single string: give a list of texts.")
    encoder = load(model)
    embeddings = embed_texts(encoder, texts, use_cache=use_cache, progress=progress)
    (vectors,) = embeddings.vectors.values()
    return vectors[embeddings.rows]


def embed_file(
    sentences: str | Path,
    encoder: Model = PACKAGED,
    *,
    out: str | Path,
    stored: str = "fp32",
    overwrite: bool = False,
    progress: Progress = silent,
) -> Embedded:
    """Embed a file of sentences of any size into a file of vectors.

    Sentences are encoded and written 10,000 at a time; after an interruption the same call resumes. The embedding
    cache is not used.

    Args:
        sentences: a UTF-8 file with one sentence per line (also `.gz` and `.zst`). Surrounding whitespace and
            empty lines are dropped.
        encoder: what `load` accepts.
        out: the file to write, `vectors.npy`; `vectors.npy.json` describes it.
        stored: the number format: `fp32` or `fp16`.
        overwrite: whether to replace other vectors in that file.
        progress: called with the number of sentences done.

    Returns:
        The file, with `.path`, `.rows` and `.parts()`, which yields some rows at a time.

    Raises:
        UserError: if the file has no sentences, `out` has other vectors, or a number does not fit in fp16.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (lines := Path(folder) / "lines.txt").write_text(chr(10).join(["A dog.", "A cat sat."]))
    ...     made = embed_file(lines, lambda texts: [[len(text), 1.0] for text in texts], out=f"{folder}/lines.npy")
    ...     np.load(made.path).tolist()
    [[6.0, 1.0], [10.0, 1.0]]
    """
    if stored not in STORED:
        raise UserError(f"unknown number format {stored!r}: {suggestion(stored, STORED)}")
    target, file = Path(out).expanduser(), Path(sentences).expanduser()
    if target.suffix != ".npy":
        raise UserError(f"--out {target}: use a file name that ends in .npy.")
    loaded = load(encoder)
    identity = loaded.identity
    if identity.use.whiten is not None:
        raise UserError("vectors of a file cannot be whitened: fit it with `stsbench fit whitening`.")
    if identity.use.prompts is not None:
        refuse_without_side(identity)
    rows = sum(1 for _ in _sentences(file))
    if not rows:
        raise UserError(f"{file} has no sentences: write one per line.")
    how, source = use_signature(identity.use), str(file.resolve())
    key, sha256 = _key(identity), sha256_of(file)
    made = Embedded(target, __version__, identity.name, how, key, source, sha256, rows, stored)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            if not overwrite:
                made = _resumed(made, has_hash=identity.weights_sha256 is not None)
            if made.done < rows or not target.exists():
                _write(loaded, file, made, progress)
    return Embedded.read(target)


def _resumed(made: Embedded, *, has_hash: bool) -> Embedded:
    """Returns the description with the rows that an earlier call has written; refuses a file of something else."""
    target, advice = made.path, "use another --out, or add --overwrite"
    try:
        earlier = Embedded._described(target)
        earlier._matrix(target if target.exists() else _beside(target, "unfinished"))
    except (OSError, ValueError, TypeError, KeyError) as error:
        if target.exists():
            raise UserError(f"{target} is not an intact file of vectors ({error}): {advice}.") from error
        return made
    for name, value in vars(earlier).items():
        if name != "done" and value != getattr(made, name):
            raise UserError(f"{target} has vectors of another {name} ({value}): {advice}.")
    if not has_hash and target.exists():
        raise UserError(f"{target} has vectors of a model without a hash, which may have changed: {advice}.")
    return earlier if has_hash else made


def _write(encoder: Encoder, file: Path, made: Embedded, progress: Progress) -> None:
    """Writes the rows that are missing beside the target, then renames the complete file."""
    target, begun, done = made.path, _beside(made.path, "unfinished"), made.done
    texts = islice(_sentences(file), done, None)
    progress("embedding", done, made.rows)
    try:
        while part := list(islice(texts, AT_ONCE)):
            vectors = _vectors(encoder, part, replace(made, done=done), progress)
            if not done:
                target.unlink(missing_ok=True)
                shape = made.rows, vectors.shape[1]
                np.lib.format.open_memmap(begun, "w+", STORED[made.stored], shape, version=(2, 0))
            with begun.open("r+b") as stream:
                stream.seek(made._matrix(begun).offset + done * vectors.strides[0])
                stream.write(vectors.data)
                stream.flush()
                os.fsync(stream.fileno())
            done += len(part)
            fields = {name: value for name, value in vars(made).items() if name != "path"}
            with atomic_path(_beside(target, "json")) as place:
                place.write_text(json.dumps(fields | {"done": done}, indent=2) + "\n", encoding="utf-8")
            progress("embedding", done, made.rows)
        if done != made.rows or sha256_of(file) != made.sha256:
            done = 0
            raise UserError(f"{file} changed while it was read: start again.")
        begun.replace(target)
    finally:
        if not done:  # there is nothing to resume
            begun.unlink(missing_ok=True)
            if not target.exists():
                _beside(target, "json").unlink(missing_ok=True)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    lock = target.with_name(f"{target.name}.lock")
    try:
        with FileLock(lock, timeout=0):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
    except Timeout as error:
        raise UserError(f"another process is writing {target}: wait for it, or use another --out.") from error


def _beside(target: Path, ending: str) -> Path:
    return target.with_name(f"{target.name}.{ending}")


def _vectors(encoder: Encoder, texts: Sequence[str], made: Embedded, progress: Progress) -> NDArray[Any]:
    """Returns one row per text in the number format of the file."""

    def of_file(_stage: str, done: int, total: int) -> None:
        progress("embedding", made.done + len(texts) * done // max(1, total), made.rows)

    embeddings = embed_texts(encoder, texts, use_cache=False, progress=of_file)
    (vectors,) = embeddings.vectors.values()
    limits, largest = np.finfo(STORED[made.stored]), np.abs(vectors).max(axis=1)
    if ((largest > limits.max) | ((largest > 0) & (largest < limits.tiny))).any():
        raise UserError(f"{encoder.identity.name} has numbers that do not fit in fp16: leave out --stored fp16.")
    return vectors[embeddings.rows].astype(STORED[made.stored])


def _sentences(file: Path) -> Iterator[str]:
    return filter(None, (text.strip() for _, text in text_lines(file)))


def _key(identity: Identity) -> str:
    """Returns a digest of everything that a vector depends on, scaling included."""
    return fingerprint({"vectors": identity.key(), "use": use_signature(identity.use)})
