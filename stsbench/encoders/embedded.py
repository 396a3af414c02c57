"""`stsbench embed`: the vectors of millions of sentences in one file, of which a part is read at a time.

The file is NumPy's own (`numpy.load(path, mmap_mode="r")`), a row for each sentence in the order of the lines.
Beside it stands a JSON file that says what made it. It is written chunk by chunk: after a kill the same command
goes on with the chunk at which it was.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Unpack
from zlib import crc32

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, require_file, sha256_of, told_as_unwritable
from stsbench.base.manifest import fingerprint
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.data.rows import text_lines
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.load import load, load_with
from stsbench.encoders.places import placed
from stsbench.encoders.plan import embed as embed_texts
from stsbench.encoders.plan import refuse_without_side
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.use import Use, UseOptions, takes_use
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

if TYPE_CHECKING:
    import pandas as pd

STORED = {"fp32": "<f4", "fp16": "<f2"}
"""How a number is stored, and NumPy's name of that."""

AT_ONCE = 10_000
"""Sentences that are in memory at once, and that a kill costs at most."""

Part = NDArray[np.float32]


@dataclass(frozen=True)
class About:
    """What a file of vectors is of.

    Attributes:
        stsbench: the version that made it.
        model: its name.
        use: how it was used, as a signature says it.
        key: digest of all that a vector depends on.
        sentences: the text file.
        sha256: its hash.
        rows: its sentences: lines that are not empty.
        stored: how a number is stored.
        at_once: how many rows a part has; the last may have fewer.
    """

    stsbench: str
    model: str
    use: str
    key: str
    sentences: str
    sha256: str
    rows: int
    stored: str
    at_once: int


@dataclass(frozen=True)
class Embedded(Result):
    """A file of vectors.

    Attributes:
        path: of the file.
        about: what it is of.
        dimensions: of a vector.
        sums: the CRC-32 of each part's bytes.
    """

    path: Path
    about: About
    dimensions: int
    sums: tuple[int, ...]

    @property
    def frame(self) -> "pd.DataFrame":
        """What it is of, in one row."""
        import pandas as pd

        return pd.DataFrame([{**asdict(self.about), "dimensions": self.dimensions, "path": str(self.path)}])

    def table(self) -> Tables:
        """Return how many vectors of what there are."""
        columns = ["model", "use", "rows", "dimensions", "stored", "path"]
        return Tables([Table(self.frame[columns], "Sentences embedded")])

    @classmethod
    def read(cls, path: Path) -> "Embedded":
        """Read what a file of vectors says of itself.

        Raises:
            UserError: if it is none of `embed`'s, or is not whole.
        """
        said = _beside(path)
        for file in (path, said):
            if file.exists():
                require_file(file)
        try:
            about, sums = _read(said)
            shape, dtype, start = _header(path, about)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{path} is no file of vectors that `stsbench embed` made, with {said.name} beside it ({error}): "
                "make it again."
            ) from error
        whole = start + int(np.prod(shape)) * dtype.itemsize
        if shape[0] != about.rows or path.stat().st_size != whole:
            raise UserError(f"{path} does not hold the {about.rows:,} vectors of {said.name}: make it again.")
        return cls(path, about, shape[1], sums)

    def require_of(self, identity: Identity) -> None:
        """Refuse another model, one used otherwise or whitened, and one that nothing tells to be the same."""
        if identity.weights_sha256 is None:
            raise UserError(
                f"{identity.name} has no weights that could be hashed, so nothing tells if the vectors in "
                f"{self.path} are of it as it is now: name {self.about.sentences} itself."
            )
        if identity.use.whiten is not None:
            raise UserError(
                f"the vectors in {self.path} are not whitened, and queries alone cannot be: fit it with `stsbench "
                "fit whitening`, and embed with that."
            )
        if _key(identity) != self.about.key:
            raise UserError(
                f"the vectors in {self.path} are of {self.about.model} ({self.about.use}), and the queries of "
                f"{identity.name} ({identity.use.signature()}): ask with the same model, used alike."
            )

    def parts(self, size: int = AT_ONCE) -> Iterator[Part]:
        """Yield the vectors in their order, (size, dimensions) or fewer at a time, in float32.

        Raises:
            UserError: if a part is not as it was written.
        """
        for part in _parts(self.path, self.about, self.sums):
            for start in range(0, len(part), size):
                yield part[start : start + size].astype(np.float32)

    def sentences(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the sentences of some rows; the text file is read through, and has to be what it was."""
        file, wanted = Path(self.about.sentences), set(rows)
        if not file.is_file() or sha256_of(file) != self.about.sha256:
            raise UserError(
                f"{file}, whose vectors {self.path} holds, is not there or has changed: embed it anew."
            )
        return {row: text for row, text in enumerate(_sentences(file)) if row in wanted}


def embed(
    model: str | Path | Callable[[list[str]], Any] | Encoder,
    texts: Sequence[str],
    *,
    use_cache: bool = True,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Return the vectors of texts.

    Args:
        model: whatever `load` takes, or what it returned.
        texts: any number; equal ones are encoded once.
        use_cache: whether to read and write the embedding cache.
        progress: called with the number of tokens encoded so far.

    Returns:
        An array of shape (texts, dimensions), float32, in the order of the texts.

    Raises:
        UserError: if there is no such model, or it returns vectors that are not finite.

    >>> embed(lambda texts: [[len(text), 1.0] for text in texts], ["A dog.", "A cat sat."]).tolist()
    [[6.0, 1.0], [10.0, 1.0]]
    """
    if isinstance(texts, str):
        raise UserError("texts is a single string: give a list of texts.")
    encoder = model if isinstance(model, Encoder) else load(model)
    embeddings = embed_texts(encoder, texts, use_cache=use_cache, progress=progress)
    (vectors,) = embeddings.vectors.values()
    return vectors[embeddings.rows]


@takes_use
def embed_file(
    sentences: str | Path,
    encoder: Encoder | str | Path = PACKAGED,
    *,
    out: str | Path,
    stored: str = "fp32",
    devices: str | None = None,
    on: str | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
    **use: Unpack[UseOptions],
) -> Embedded:
    """Embed a file of sentences into a file of vectors, whatever its size.

    Sentences are read, encoded and written 10,000 at a time, each distinct one of these once; memory does not grow
    with the file. What was killed goes on where it was with the same command. The embedding cache is left alone.

    Args:
        sentences: a UTF-8 file with one sentence a line (`.gz` and `.zst` are uncompressed on the way). Whitespace
            around a sentence is dropped, and so are empty lines.
        encoder: what embeds: a Hub name, a folder, `minilm`, a file of word vectors, `module:function`. In Python
            also an encoder that was loaded.
        out: the file to write, `vectors.npy`; what it is of stands in `vectors.npy.json`.
        stored: how a number is stored: `fp32` or `fp16`.
        devices: share the batches over GPUs, `0,1`, or groups of cores where there is none; `all` for every one,
            or each core. The vectors are those of one of them.
        on: `ray`: share them over the GPUs, or the machines, of a Ray cluster (`pip install 'stsbench[ray]'`).
        overwrite: whether to replace other vectors there.
        progress: told how many sentences are done.
        **use: how the model is used.

    Returns:
        The file, with `.path`, `.about` and `.parts()`, which yields the vectors some rows at a time.

    Raises:
        UserError: if the file has no sentence, other vectors stand there, or a number does not fit in fp16.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (lines := Path(folder) / "lines.txt").write_text(chr(10).join(["A dog.", "A cat sat."]))
    ...     made = embed_file(lines, lambda texts: [[len(text), 1.0] for text in texts], out=f"{folder}/lines.npy")
    ...     np.load(made.path).tolist()
    [[6.0, 1.0], [10.0, 1.0]]
    """
    if stored not in STORED:
        raise UserError(f"numbers stored as {stored!r}: {suggestion(stored, STORED)}")
    target = Path(out).expanduser()
    if target.suffix != ".npy":
        raise UserError(f"--out {target}: name a file that ends in .npy.")
    loaded = encoder if isinstance(encoder, Encoder) else load_with(encoder, Use(**use))
    loaded = placed(loaded, devices, on)
    if loaded.identity.use.whiten is not None:
        raise UserError(
            "vectors that come some at a time cannot be whitened: fit it with `stsbench fit whitening`."
        )
    if loaded.identity.use.prompts is not None:
        refuse_without_side(loaded.identity)
    file = Path(sentences).expanduser()
    rows = sum(1 for _ in _sentences(file))
    if not rows:
        raise UserError(f"{file} holds no sentence: write one a line.")
    identity = loaded.identity
    about = About(
        __version__,
        identity.name,
        identity.use.signature(),
        _key(identity),
        str(file.resolve()),
        sha256_of(file),
        rows,
        stored,
        AT_ONCE,
    )
    if target.exists() and not overwrite:
        try:
            there = Embedded.read(target)
        except UserError as error:
            raise UserError(f"{error} Or name another --out; --overwrite replaces it.") from error
        if there.about != about or identity.weights_sha256 is None:
            _refuse_others(target, there.about, about)
        return there
    with told_as_unwritable(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            # Of what has no hash nobody knows if it is what an earlier attempt was made with.
            begin_anew = overwrite or identity.weights_sha256 is None
            _write(loaded, file, about, target, begin_anew=begin_anew, progress=progress)
    return Embedded.read(target)


def _write(
    encoder: Encoder, file: Path, about: About, target: Path, *, begin_anew: bool, progress: Progress
) -> None:
    """Write the vectors beside their place, from where an earlier attempt was, and put them there when all are."""
    begun, state = (target.with_name(target.name + ending) for ending in (".unfinished", ".unfinished.json"))
    sums = [] if begin_anew else _done(begun, state, about)
    done = len(sums) * about.at_once
    with begun.open("r+b" if done else "wb") as stream:
        if done:
            shape, dtype, start = _header(begun, about)
            stream.truncate(start + done * shape[1] * dtype.itemsize)
            stream.seek(0, os.SEEK_END)
        texts = islice(_sentences(file), done, None)
        progress("embedding", done, about.rows)
        while part := list(islice(texts, about.at_once)):
            vectors = _vectors(encoder, part, about, _within(progress, done, len(part), about.rows))
            if not done:
                # Of the second kind, as that is what long shapes need.
                header = {"descr": STORED[about.stored], "fortran_order": False}
                np.lib.format.write_array_header_2_0(stream, {**header, "shape": (about.rows, vectors.shape[1])})
            stream.write(vectors.data)
            stream.flush()
            os.fsync(stream.fileno())
            sums.append(crc32(vectors.data))
            done += len(part)
            _say(state, about, sums)
            progress("embedding", done, about.rows)
    if done != about.rows or sha256_of(file) != about.sha256:
        state.unlink()
        raise UserError(f"{file} has changed while it was read: begin again.")
    # Never new words beside old vectors.
    target.unlink(missing_ok=True)
    _say(_beside(target), about, sums)
    begun.replace(target)
    state.unlink()


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Refuse to write where another process does."""
    lock = target.with_name(f"{target.name}.unfinished.lock")
    try:
        with FileLock(lock, timeout=0):
            yield
            lock.unlink(missing_ok=True)
    except Timeout as error:
        raise UserError(f"another process is writing {target}: wait for it, or name another --out.") from error


def _done(begun: Path, state: Path, about: About) -> list[int]:
    """Return the sums of the parts that an earlier attempt has embedded and that are there as it wrote them."""
    if not (begun.is_file() and state.is_file()):
        return []
    try:
        earlier, sums = _read(state)
        _header(begun, earlier)
    except (ValueError, TypeError, KeyError):
        return []
    if earlier != about:
        _refuse_others(begun, earlier, about)
    sound: list[int] = []
    with suppress(UserError):
        for _ in _parts(begun, about, sums):
            sound.append(sums[len(sound)])
    # A part that is not full is the last: with it all is made again but the parts before.
    return sound[: about.rows // about.at_once]


def _parts(path: Path, about: About, sums: Sequence[int]) -> Iterator[NDArray[Any]]:
    """Yield the vectors of a file as they are stored, part by part, each held against its sum."""
    shape, dtype, start = _header(path, about)
    with path.open("rb") as stream:
        stream.seek(start)
        for number, wanted in enumerate(sums):
            count = min(about.at_once, about.rows - number * about.at_once)
            part = np.fromfile(stream, dtype, count * shape[1])
            if len(part) < count * shape[1] or crc32(part.data) != wanted:
                first = number * about.at_once + 1
                those = f"vectors {first:,} to {first + count - 1:,}"
                raise UserError(f"{path}: some of the {those} are not as they were written: make it again.")
            yield part.reshape(count, shape[1])


def _say(path: Path, about: About, sums: Sequence[int]) -> None:
    said = {**asdict(about), "crc32": list(sums)}
    with atomic_path(path) as place:
        place.write_text(json.dumps({**said, "digest": fingerprint(said)}, indent=2) + "\n", encoding="utf-8")


def _read(path: Path) -> tuple[About, tuple[int, ...]]:
    """Read what `_say` wrote; a ValueError, TypeError or KeyError if it is not that any more."""
    said = json.loads(path.read_text(encoding="utf-8"))
    if said.pop("digest") != fingerprint(said):
        raise ValueError(f"{path.name} is not as it was written")
    sums = tuple(map(int, said.pop("crc32")))
    return About(**said), sums


def _refuse_others(path: Path, there: About, wanted: About) -> NoReturn:
    """Say which is the first thing in which two files of vectors differ."""
    differing = [name for name, value in asdict(there).items() if value != getattr(wanted, name)]
    other = f"another {differing[0]} ({getattr(there, differing[0])})" if differing else "a model without a hash"
    raise UserError(f"{path} holds vectors of {other}: name another --out, or add --overwrite.")


def _within(progress: Progress, before: int, count: int, rows: int) -> Progress:
    """Return what tells how far a part is as how far all of it is."""
    # Sentences without a word that is known are no tokens at all.
    return lambda _stage, done, total: progress("embedding", before + count * done // max(1, total), rows)


def _vectors(encoder: Encoder, texts: Sequence[str], about: About, progress: Progress) -> NDArray[Any]:
    """Return the vectors of some texts, a row each, as they are stored."""
    embeddings = embed_texts(encoder, texts, use_cache=False, progress=progress)
    (vectors,) = embeddings.vectors.values()
    limits, largest = np.finfo(STORED[about.stored]), np.abs(vectors).max(axis=1)
    # Vectors of tiny numbers alone would be zero there, or nearly.
    if ((largest > limits.max) | ((largest > 0) & (largest < limits.tiny))).any():
        raise UserError(f"{encoder.identity.name} has numbers that fp16 does not hold: leave out --stored fp16.")
    return vectors[embeddings.rows].astype(STORED[about.stored])


def _sentences(file: Path) -> Iterator[str]:
    return filter(None, (text.strip() for _, text in text_lines(file)))


def _header(path: Path, about: About) -> tuple[tuple[int, ...], "np.dtype[Any]", int]:
    """Read NumPy's header: the shape, how a number is stored, and where the numbers begin.

    Raises:
        ValueError: if it is none, or does not say what is said of the file.
    """
    with path.open("rb") as stream:
        np.lib.format.read_magic(stream)
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(stream)
        if len(shape) != 2 or by_columns or dtype.str != STORED[about.stored]:
            raise ValueError(f"its header says {dtype.str} of shape {shape}")
        return shape, dtype, stream.tell()


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _key(identity: Identity) -> str:
    """Return what tells vectors apart that are scaled or not, too."""
    return fingerprint({"vectors": identity.key(), "use": identity.use.signature()})
