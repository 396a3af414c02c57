"""`stsbench embed`: vectors of millions of sentences in one .npy file, of which a part is in memory at a time.

`numpy.load("made.npy", mmap_mode="r")` reads it: one row per sentence, in the order of the lines. `made.npy.json`
says what it was made from. Each part of the sentences becomes a file in an unfinished folder beside it; the last
step joins them. Whatever stops it, the same command resumes after the last complete part.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, fingerprint, sha256_of, writing
from stsbench.base.progress import Progress, silent
from stsbench.data.rows import text_lines
from stsbench.encoders.checkpoint import PACKAGED
from stsbench.encoders.load import Model, load
from stsbench.encoders.plan import embed as embed_texts
from stsbench.encoders.prompts import refuse_without_side
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity
from stsbench.encoders.use import use_signature
from stsbench.render.table import Result, Table, Tables

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
    """

    path: Path
    stsbench: str
    model: str
    use: str
    key: str
    source: str
    sha256: str
    rows: int

    @property
    def frame(self) -> pd.DataFrame:
        """One row that describes the file."""
        dimensions = self._matrix().shape[1]
        return pd.DataFrame([vars(self) | {"dimensions": dimensions, "path": str(self.path)}])

    def table(self) -> Tables:
        """Returns the number of vectors and what they were made from."""
        columns = ["model", "use", "rows", "dimensions", "path"]
        return Tables([Table(self.frame[columns], "Sentences embedded")])

    @classmethod
    def read(cls, path: Path) -> "Embedded":
        """Reads the description of a file of vectors.

        Raises:
            UserError: if the file was not made by `embed` or is incomplete.
        """
        try:
            embedded = cls(path, **json.loads(_description_of(path).read_bytes()))
            matrix = embedded._matrix()
            is_intact = matrix.dtype == np.dtype("<f4") and matrix.shape[:-1] == (embedded.rows,)
        except (OSError, ValueError, TypeError):
            is_intact = False
        if not is_intact:
            raise UserError(
                f"{path} and {_description_of(path).name} are not an intact file of vectors: make it again with "
                "`stsbench embed --overwrite`."
            )
        return embedded

    def _matrix(self) -> FloatMatrix:
        matrix: FloatMatrix = np.lib.format.open_memmap(self.path, mode="r")
        return matrix

    def require_of(self, identity: Identity) -> None:
        """Checks that the vectors are those of a model as it is used now."""
        if identity.weights_sha256 is None:
            raise UserError(
                f"{identity.name} has no weights to hash, so its vectors in {self.path} may be outdated. "
                f"Search in {self.source} instead."
            )
        if _key(identity) != self.key or identity.use.whiten is not None:
            how = " ".join([use_signature(identity.use), identity.use.whitening]).rstrip()
            raise UserError(
                f"the vectors in {self.path} are from {self.model} ({self.use}), the queries from "
                f"{identity.name} ({how}). Use the same model in the same way."
            )

    def parts(self, size: int = AT_ONCE) -> Iterator[NDArray[np.float32]]:
        """Yields the vectors in order, shape (size or fewer, dimensions), float32."""
        matrix = self._matrix()
        for start in range(0, len(matrix), size):
            yield np.array(matrix[start : start + size])

    def sentences(self, rows: Sequence[int]) -> dict[int, str]:
        """Returns the sentences of some rows, from the text file, which must be unchanged."""
        file, wanted = Path(self.source), set(rows)
        if not file.is_file() or sha256_of(file) != self.sha256:
            raise UserError(f"{file}, the source of {self.path}, is missing or has changed: embed it again.")
        return {row: text for row, text in enumerate(_sentences(file)) if row in wanted}


def embed(
    model: Model, texts: Sequence[str], *, use_cache: bool = True, progress: Progress = silent
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
    overwrite: bool = False,
    progress: Progress = silent,
) -> Embedded:
    """Embed a file of sentences of any size into a file of vectors.

    Sentences are encoded and written 10,000 at a time; after an interruption the same call resumes. The parts are
    joined at the end, for which the disk needs room twice. The embedding cache is not used.

    Args:
        sentences: a UTF-8 file with one sentence per line (also `.gz` and `.zst`). Surrounding whitespace and
            empty lines are dropped.
        encoder: what `load` accepts.
        out: the file to write, `vectors.npy`; `vectors.npy.json` describes it.
        overwrite: whether to replace other vectors in that file.
        progress: called with the number of sentences done.

    Returns:
        The file, with `.path`, `.rows` and `.parts()`, which yields some rows at a time.

    Raises:
        UserError: if the file has no sentences, or `out` has other vectors.
    """
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
    made = Embedded(target, __version__, identity.name, how, key, source, sha256, rows)
    if target.exists() and not overwrite:
        earlier = Embedded.read(target)
        other = [name for name, value in vars(made).items() if getattr(earlier, name) != value]
        if other or identity.weights_sha256 is None:
            what = f"another {other[0]}" if other else "a model without a hash, which may have changed"
            raise UserError(f"{target} has vectors of {what}: use another --out, or add --overwrite.")
        return made
    with writing(target):
        _write(loaded, file, made, progress)
    return made


def _write(encoder: Encoder, file: Path, made: Embedded, progress: Progress) -> None:
    target, description = made.path, {name: value for name, value in vars(made).items() if name != "path"}
    # The name states what the folder has, so only the same command resumes.
    begun = target.with_name(f"{target.name}.{fingerprint(description)[:12]}.unfinished")
    if encoder.identity.weights_sha256 is None:
        shutil.rmtree(begun, ignore_errors=True)
    texts, starts = _sentences(file), range(0, made.rows, AT_ONCE)
    for start in starts:
        part = list(islice(texts, AT_ONCE))
        if not (begun / f"{start}.npy").exists():
            embeddings = embed_texts(encoder, part, use_cache=False, progress=progress)
            (vectors,) = embeddings.vectors.values()
            with atomic_path(begun / f"{start}.npy") as place:
                np.save(place, vectors[embeddings.rows])
        progress("embedding", start + len(part), made.rows)
    if sha256_of(file) != made.sha256:
        shutil.rmtree(begun)
        raise UserError(f"{file} changed while it was read: start again.")
    with atomic_path(target) as place:
        first = np.load(begun / "0.npy")
        matrix = np.lib.format.open_memmap(place, "w+", first.dtype, (made.rows, first.shape[1]))
        for start in starts:
            matrix[start : start + AT_ONCE] = np.load(begun / f"{start}.npy")
        matrix.flush()
        _description_of(target).unlink(missing_ok=True)
    with atomic_path(_description_of(target)) as place:
        place.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(begun)


def _sentences(file: Path) -> Iterator[str]:
    return filter(None, (text.strip() for _, text in text_lines(file)))


def _key(identity: Identity) -> str:
    """Returns a digest of everything that a vector depends on, scaling included."""
    return fingerprint({"vectors": identity.key(), "use": use_signature(identity.use)})


def _description_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
