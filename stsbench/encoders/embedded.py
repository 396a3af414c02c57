"""`stsbench embed`: vectors of millions of sentences in one .npy file, of which a part is in memory at a time.

`numpy.load(path, mmap_mode="r")` reads it: one row per sentence, in the order of the lines. A JSON file beside it
describes it. It is written part by part, so that a killed command resumes where it was.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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
from stsbench.encoders.plan import refuse_without_side
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.use_text import use_signature
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

STORED = {"fp32": "<f4", "fp16": "<f2"}
"""The number formats of a file, and NumPy's names for them."""

AT_ONCE = 10_000
"""Sentences encoded at a time: what is in memory, and what an interruption costs at most."""


@dataclass(frozen=True)
class About:
    """What a file of vectors was made from.

    Attributes:
        stsbench: the version that made it.
        model: its name.
        use: how it was used, as in a signature.
        key: digest of everything that a vector depends on.
        sentences: the text file.
        sha256: its hash.
        rows: its number of sentences (non-empty lines).
        stored: the number format.
    """

    stsbench: str
    model: str
    use: str
    key: str
    sentences: str
    sha256: str
    rows: int
    stored: str


@dataclass(frozen=True)
class Embedded(Result):
    """A file of vectors.

    Attributes:
        path: of the file.
        about: what it was made from.
        dimensions: of a vector.
    """

    path: Path
    about: About
    dimensions: int

    @property
    def frame(self) -> pd.DataFrame:
        """One row that describes the file."""
        return pd.DataFrame([{**asdict(self.about), "dimensions": self.dimensions, "path": str(self.path)}])

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
        for file in (path, _description(path)):
            if file.exists():
                require_file(file)
        try:
            about, done = _read(path)
            matrix = _matrix(path, about)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path} is not an intact file of vectors of `stsbench embed` ({error}): make it again."
            ) from error
        if done < about.rows:
            raise UserError(f"{path} is not finished ({done:,} of {about.rows:,} rows): make it again.")
        return cls(path, about, matrix.shape[1])

    def require_of(self, identity: Identity) -> None:
        """Checks that the vectors are those of a model as it is used now, not whitened."""
        if identity.weights_sha256 is None:
            raise UserError(
                f"{identity.name} has no weights to hash, so its vectors in {self.path} may be outdated. "
                f"Search in {self.about.sentences} instead."
            )
        if identity.use.whiten is not None:
            raise UserError(
                f"the vectors in {self.path} are not whitened. Fit a whitening with `stsbench fit whitening` and "
                "embed with that."
            )
        if _key(identity) != self.about.key:
            raise UserError(
                f"the vectors in {self.path} are from {self.about.model} ({self.about.use}), the queries from "
                f"{identity.name} ({use_signature(identity.use)}). Use the same model in the same way."
            )

    def parts(self, size: int = AT_ONCE) -> Iterator[NDArray[np.float32]]:
        """Yields the vectors in order, shape (size or fewer, dimensions), float32."""
        matrix = _matrix(self.path, self.about)
        for start in range(0, len(matrix), size):
            yield matrix[start : start + size].astype(np.float32)

    def sentences(self, rows: Sequence[int]) -> dict[int, str]:
        """Returns the sentences of some rows, from the text file, which must be unchanged."""
        file, wanted = Path(self.about.sentences), set(rows)
        if not file.is_file() or sha256_of(file) != self.about.sha256:
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
        The file, with `.path`, `.about` and `.parts()`, which yields some rows at a time.

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
    about = About(
        __version__,
        identity.name,
        use_signature(identity.use),
        _key(identity),
        str(file.resolve()),
        sha256_of(file),
        rows,
        stored,
    )
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            done = 0 if overwrite else _done(target, about, has_hash=identity.weights_sha256 is not None)
            if done < rows or not target.exists():
                _write(loaded, file, about, target, done=done, progress=progress)
    return Embedded.read(target)


def _done(target: Path, about: About, *, has_hash: bool) -> int:
    """Returns how many rows an earlier call has written; refuses a file of something else."""
    advice = "use another --out, or add --overwrite"
    try:
        earlier, done = _read(target)
        _matrix(target if target.exists() else _unfinished(target), earlier)
    except (OSError, ValueError, TypeError, KeyError) as error:
        if target.exists():
            raise UserError(f"{target} is not an intact file of vectors ({error}): {advice}.") from error
        return 0
    for name, value in asdict(earlier).items():
        if value != getattr(about, name):
            raise UserError(f"{target} has vectors of another {name} ({value}): {advice}.")
    if not has_hash and target.exists():
        raise UserError(f"{target} has vectors of a model without a hash, which may have changed: {advice}.")
    return done if has_hash else 0


def _write(encoder: Encoder, file: Path, about: About, target: Path, *, done: int, progress: Progress) -> None:
    """Writes the rows that follow the first `done` beside the target, then renames the complete file."""
    begun = _unfinished(target)
    target.unlink(missing_ok=True)
    texts = islice(_sentences(file), done, None)
    progress("embedding", done, about.rows)
    while part := list(islice(texts, AT_ONCE)):
        vectors = _vectors(encoder, part, about, _of_part(progress, done, len(part), about.rows))
        if not done:
            _create(begun, about, vectors.shape[1])
        with begun.open("r+b") as stream:
            stream.seek(_matrix(begun, about).offset + done * vectors.strides[0])
            stream.write(vectors.data)
            stream.flush()
            os.fsync(stream.fileno())
        done += len(part)
        with atomic_path(_description(target)) as place:
            place.write_text(json.dumps({**asdict(about), "done": done}, indent=2) + "\n", encoding="utf-8")
        progress("embedding", done, about.rows)
    if done != about.rows or sha256_of(file) != about.sha256:
        _description(target).unlink()
        raise UserError(f"{file} changed while it was read: start again.")
    begun.replace(target)


def _create(path: Path, about: About, dimensions: int) -> None:
    """Creates a .npy file of full size."""
    header = {"descr": STORED[about.stored], "fortran_order": False, "shape": (about.rows, dimensions)}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_2_0(stream, header)
        stream.truncate(stream.tell() + about.rows * dimensions * np.dtype(STORED[about.stored]).itemsize)


def _matrix(path: Path, about: About) -> "np.memmap[Any, Any]":
    """Maps a file of vectors into memory.

    Raises:
        ValueError: if it is not of the shape and format that its description states.
    """
    matrix = np.load(path, mmap_mode="r")
    if not isinstance(matrix, np.memmap) or matrix.ndim != 2 or len(matrix) != about.rows:
        raise ValueError(f"not a matrix of {about.rows} rows")
    if matrix.dtype.str != STORED[about.stored] or path.stat().st_size != matrix.offset + matrix.nbytes:
        raise ValueError(f"not {matrix.nbytes} bytes of {about.stored}")
    return matrix


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    lock = target.with_name(f"{target.name}.lock")
    try:
        with FileLock(lock, timeout=0):
            yield
            lock.unlink(missing_ok=True)
    except Timeout as error:
        raise UserError(f"another process is writing {target}: wait for it, or use another --out.") from error


def _unfinished(target: Path) -> Path:
    return target.with_name(f"{target.name}.unfinished")


def _description(target: Path) -> Path:
    return target.with_name(f"{target.name}.json")


def _read(target: Path) -> tuple[About, int]:
    """Reads what a file of vectors is made from, and how many rows are written."""
    content = json.loads(_description(target).read_text(encoding="utf-8"))
    done = int(content.pop("done"))
    return About(**content), done


def _of_part(progress: Progress, before: int, count: int, rows: int) -> Progress:
    """Rescales the progress of one part to the progress of the file."""
    return lambda _stage, done, total: progress("embedding", before + count * done // max(1, total), rows)


def _vectors(encoder: Encoder, texts: Sequence[str], about: About, progress: Progress) -> NDArray[Any]:
    """Returns one row per text in the number format of the file."""
    embeddings = embed_texts(encoder, texts, use_cache=False, progress=progress)
    (vectors,) = embeddings.vectors.values()
    limits, largest = np.finfo(STORED[about.stored]), np.abs(vectors).max(axis=1)
    if ((largest > limits.max) | ((largest > 0) & (largest < limits.tiny))).any():
        raise UserError(f"{encoder.identity.name} has numbers that do not fit in fp16: leave out --stored fp16.")
    return vectors[embeddings.rows].astype(STORED[about.stored])


def _sentences(file: Path) -> Iterator[str]:
    return filter(None, (text.strip() for _, text in text_lines(file)))


def _key(identity: Identity) -> str:
    """Returns a digest of everything that a vector depends on, scaling included."""
    return fingerprint({"vectors": identity.key(), "use": use_signature(identity.use)})
