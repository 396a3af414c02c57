"""The planner: every distinct token sequence is encoded once, in length-sorted batches of a token budget.

It is ours and not a library's: `SentenceTransformer.encode` sorts by characters and fills batches by number,
encodes equal sentences again, pools in one way a pass, and fails where a batch does not fit. Here texts that
tokenise alike share a vector, one pass gives all poolings, the cache is asked first, and a batch that is too large
is halved.
"""

import hashlib
import time
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder, told_as_unwritable
from stsbench.base.machine import require_memory
from stsbench.base.progress import Progress, silent
from stsbench.encoders.cache import (
    CachedText,
    EmbeddingCache,
    max_cache_bytes,
    text_key,
    touch_and_trim,
)
from stsbench.encoders.postprocess import normalize as to_unit_length
from stsbench.encoders.postprocess import processed, whiten
from stsbench.encoders.protocol import (
    DeviceOutOfMemory,
    Encoder,
    FloatMatrix,
    Identity,
    Place,
    Placed,
    Tailed,
    TokenSequence,
    require_own_pooling,
)
from stsbench.encoders.use import FP32

_Work = tuple[bytes, TokenSequence]
_Known = dict[bytes, NDArray[np.float32]]
_Taken = tuple[int, int, int]
"""Sequences that were not in the cache, and the real and the padded tokens that the model took for them."""
_Forward = Callable[[], dict[str, FloatMatrix]]
"""Called for the vectors of a batch that was given to be computed, or to compute them."""

# A killed run loses at most this much encoding.
_SAVE_EVERY_SECONDS = 5.0


@dataclass(frozen=True)
class EncodingCost:
    """What encoding took.

    Attributes:
        texts: distinct texts asked for.
        sequences: distinct token sequences among them.
        encoded: sequences that went through the model; the others came from the cache.
        tokens: real tokens that went through the model (characters for a callable).
        padded_tokens: the same with padding.
        seconds: `load` (tokeniser and weights), `tokenize` (with asking the cache), `encode` (forward passes,
            with writing the cache).
    """

    texts: int
    sequences: int
    encoded: int
    tokens: int
    padded_tokens: int
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Embeddings:
    """The vectors of some texts, one row for each distinct token sequence.

    Attributes:
        rows: for each text asked for, in order, its row; shape (texts,).
        vectors: for each pooling an array of shape (sequences, dimensions), float32.
        lengths: for each text its length in sub-words, without special tokens; -1 where unknown.
        truncated: for each text whether the model read only its beginning.
        cost: what encoding took.
    """

    rows: NDArray[np.int64]
    vectors: dict[str, FloatMatrix]
    lengths: NDArray[np.int64]
    truncated: NDArray[np.bool_]
    cost: EncodingCost


def embed(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    poolings: Sequence[str] | None = None,
    normalize: bool | None = None,
    use_cache: bool = True,
    cache_folder: Path | None = None,
    token_budget: int | None = None,
    progress: Progress = silent,
) -> Embeddings:
    """Encode texts: each distinct token sequence once, longest first, results in the order asked for.

    Args:
        encoder: what encodes.
        texts: any number, equal ones included.
        poolings: the poolings wanted, all from one pass; the encoder's own by default.
        normalize: whether to scale the vectors to unit length; None for what the encoder's identity
            says, with fewer dimensions and whitening on these texts, too. The cache holds them as they were.
        use_cache: whether to read and write the embedding cache. An encoder without a weight hash has none.
        cache_folder: where the cache is; None for the person's.
        token_budget: padded tokens in a batch; the encoder's own by default. It moves a score by rounding
            noise only.
        progress: told of the real tokens done.

    Raises:
        UserError: if the encoder returns no finite vectors, one sentence does not fit in memory, or the encoder
            has a prompt for each side of a pair, of which texts alone do not tell.
    """
    if encoder.identity.use.prompts is not None:
        refuse_without_side(encoder.identity)
    poolings = tuple(dict.fromkeys(poolings or (encoder.identity.use.pooling,)))
    caches = _caches(encoder, poolings, cache_folder) if use_cache else {}
    cache_size = max_cache_bytes()
    clock = _Stopwatch()
    distinct = list(dict.fromkeys(texts))
    about, recalled = _recall(caches, poolings, distinct)
    new = [text for text in distinct if text not in about]
    clock.lap("tokenize")
    if new:
        encoder.prepare(weights=False)
    clock.lap("load")
    tokenized, sequences = _tokenize(encoder, new)
    about |= tokenized
    of_distinct = [about[text] for text in distinct]
    source = _Source(encoder, caches, cache_folder, token_budget or encoder.token_budget, progress, clock)
    vectors = _Vectors(list(dict.fromkeys(row.sequence for row in of_distinct)), poolings, encoder.identity.name)
    taken = source.fill(vectors, recalled, sequences)
    for cache in caches.values():
        cache.add_texts(tokenized)
        touch_and_trim(cache.path, cache_size)
    clock.lap("encode")

    place = {text: number for number, text in enumerate(distinct)}
    places = np.fromiter(map(place.__getitem__, texts), dtype=np.int64, count=len(texts))
    rows = np.array([vectors.row_of[row.sequence] for row in of_distinct], dtype=np.int64)[places]
    for pooling, matrix in vectors.matrices.items():
        vectors.matrices[pooling] = _processed(matrix, rows, encoder, normalize)
    return Embeddings(
        rows=rows,
        vectors=vectors.matrices,
        lengths=np.array([row.length for row in of_distinct], dtype=np.int64)[places],
        truncated=np.array([row.truncated for row in of_distinct], dtype=bool)[places],
        cost=EncodingCost(len(distinct), len(vectors.row_of), *taken, clock.seconds),
    )


def refuse_without_side(identity: Identity) -> NoReturn:
    """Refuse to encode texts of which nobody says on which side of a pair they are."""
    raise UserError(
        f"{identity.name} has a prompt for each side of a pair, and here sentences are read without a side: give "
        "one prompt for all with --prompt or --prompt-name in place of --prompts."
    )


def _processed(
    vectors: FloatMatrix, rows: NDArray[np.int64], encoder: Encoder, normalize: bool | None
) -> FloatMatrix:
    """Return the vectors with what is done to them afterwards; a whitening is by those of some rows."""
    if normalize is not None:
        return to_unit_length(vectors, out=vectors) if normalize else vectors
    vectors, dimensions = processed(vectors, encoder.identity), encoder.identity.use.whiten
    return vectors if dimensions is None else whiten(vectors, vectors[rows], dimensions or None).astype(np.float32)


class _Vectors:
    """The vectors of some token sequences, each in its row, as they come from the cache and the encoder.

    They are held once: a matrix is made when the first vectors tell how wide it is, and refused there if it does
    not fit in memory, before the work begins.
    """

    def __init__(self, keys: Sequence[bytes], poolings: Sequence[str], name: str) -> None:
        self.row_of = {key: row for row, key in enumerate(keys)}
        self.matrices = {pooling: np.zeros((0, 0), dtype=np.float32) for pooling in poolings}
        self._name = name
        self._to_come = len(keys) * len(poolings)

    def put(self, pooling: str, keys: Sequence[bytes], vectors: FloatMatrix) -> None:
        """Keep the vectors of some keys, shape (len(keys), dimensions)."""
        if len(vectors) != len(keys):
            raise UserError(f"{self._name} returned {len(vectors)} vectors for {len(keys)} sentences.")
        self._matrix(pooling, vectors.shape[1])[[self.row_of[key] for key in keys]] = vectors

    def move(self, recalled: Mapping[str, _Known]) -> None:
        """Move the cached vectors of each pooling into their rows, one by one, so that memory holds them once."""
        # The vectors from the cache are in memory already.
        self._to_come -= sum(map(len, recalled.values()))
        for pooling, known in recalled.items():
            while known:
                key, vector = known.popitem()
                if (row := self.row_of.get(key)) is not None:
                    self._matrix(pooling, len(vector))[row] = vector

    def of(self, pooling: str, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the vectors of some keys by key."""
        matrix = self.matrices[pooling]
        return {key: matrix[self.row_of[key]] for key in keys}

    def _matrix(self, pooling: str, width: int) -> FloatMatrix:
        matrix = self.matrices[pooling]
        if matrix.shape[1] == 0:
            if not any(other.size for other in self.matrices.values()):
                require_memory(
                    self._to_come * width * matrix.itemsize,
                    f"the vectors of {len(self.row_of):,} sentences ({width} dimensions"
                    + (f", {len(self.matrices)} poolings)" if len(self.matrices) > 1 else ")"),
                    "take fewer sentences at a time",
                )
            self.matrices[pooling] = matrix = np.empty((len(self.row_of), width), dtype=np.float32)
        if matrix.shape[1] != width:
            fewer, more = sorted((matrix.shape[1], width))
            raise UserError(f"{self._name} returned vectors of {fewer} and of {more} dimensions.")
        return matrix


@dataclass(frozen=True)
class _Source:
    """An encoder with its caches, from which vectors come."""

    encoder: Encoder
    caches: dict[str, EmbeddingCache]
    folder: Path | None
    budget: int
    progress: Progress
    clock: "_Stopwatch"

    def fill(
        self, vectors: _Vectors, recalled: dict[str, _Known], sequences: dict[bytes, TokenSequence]
    ) -> _Taken:
        """Put in the recalled vectors, then those of token sequences by their keys, cached or encoded."""
        # A new text may be a known sequence, and a killed run has left vectors without their texts.
        for pooling, cache in self.caches.items():
            recalled[pooling] |= cache.vectors([key for key in sequences if key not in recalled[pooling]])
        work = [
            (key, sequence)
            for key, sequence in sequences.items()
            if not all(key in known for known in recalled.values())
        ]
        sequences.clear()  # of the known ones
        vectors.move(recalled)
        self.clock.lap("tokenize")
        if not work:
            return 0, 0, 0
        encoder = self.encoder
        return self._derive(encoder, work, vectors) if isinstance(encoder, Tailed) else self._encode(work, vectors)

    def _derive(self, encoder: Tailed, work: Sequence[_Work], vectors: _Vectors) -> _Taken:
        """Make vectors of those of the encoder without its tail, which may be in the cache already."""
        require_own_pooling(encoder.identity, list(vectors.matrices))
        (pooling,), keys, base = vectors.matrices, [key for key, _ in work], encoder.base
        caches = _caches(base, (pooling,), self.folder) if self.caches else {}
        plain = _Vectors(keys, (pooling,), base.identity.name)
        _, tokens, padded = replace(self, encoder=base, caches=caches).fill(plain, {pooling: {}}, dict(work))
        derived = encoder.tail(plain.matrices[pooling])
        _require_finite(derived, encoder)
        vectors.put(pooling, keys, derived)
        self._save(keys, vectors)
        return len(work), tokens, padded

    def _encode(self, work: Sequence[_Work], vectors: _Vectors) -> _Taken:
        """Encode token sequences into vectors and the caches."""
        self.encoder.prepare(weights=True)
        self.clock.lap("load")
        poolings = tuple(vectors.matrices)
        total, tokens, padded = sum(len(sequence) for _, sequence in work), 0, 0
        unsaved: list[bytes] = []
        saved_at = time.monotonic()
        stage = f"encoding {len(work):,} sentence{'s' if len(work) > 1 else ''}"
        for batch, matrices in _forward(self.encoder, work, poolings, self.budget):
            keys = [key for key, _ in batch]
            for pooling in poolings:
                matrix = matrices[pooling]
                _require_finite(matrix, self.encoder)
                vectors.put(pooling, keys, matrix)
            unsaved += keys
            tokens += sum(len(sequence) for _, sequence in batch)
            padded += len(batch) * max(len(sequence) for _, sequence in batch)
            if time.monotonic() - saved_at > _SAVE_EVERY_SECONDS:
                self._save(unsaved, vectors)
                unsaved, saved_at = [], time.monotonic()
            self.progress(stage, tokens, total)
        self._save(unsaved, vectors)
        return len(work), tokens, padded

    def _save(self, keys: Sequence[bytes], vectors: _Vectors) -> None:
        for pooling, cache in self.caches.items():
            cache.add_vectors(vectors.of(pooling, keys))


def _forward(
    encoder: Encoder, work: Sequence[_Work], poolings: Sequence[str], budget: int
) -> Iterator[tuple[Sequence[_Work], dict[str, FloatMatrix]]]:
    """Yield batches of at most `budget` padded tokens with their vectors.

    Longest first, so that a batch too large for the device is met at once, and time left is not promised too
    early. Where a batch does not fit, the budget is halved for it and all that follow.
    """
    order = sorted(work, key=lambda item: -len(item[1]))
    start = begun = 0
    in_work: deque[tuple[list[_Work], _Forward]] = deque()
    with _computing(encoder) as (most, compute):
        while start < len(order):
            while len(in_work) < most and begun < len(order):
                longest = max(1, len(order[begun][1]))
                batch = order[begun : begun + max(1, budget // longest)]
                in_work.append((batch, compute([sequence for _, sequence in batch], poolings)))
                begun += len(batch)
            batch, vectors = in_work.popleft()
            try:
                matrices = vectors()
            except DeviceOutOfMemory as error:
                longest = max(1, len(batch[0][1]))
                if len(batch) == 1:
                    raise UserError(
                        f"one sentence of {longest} tokens does not fit in the device's memory: "
                        "use --max-length, --precision bf16 or --device cpu."
                    ) from error
                budget = len(batch) * longest // 2
                # Those behind it are cut anew, as where they had not been begun.
                in_work.clear()
                begun = start
                continue
            yield batch, matrices
            start += len(batch)


@contextmanager
def _computing(
    encoder: Encoder,
) -> Iterator[tuple[int, Callable[[Sequence[TokenSequence], Sequence[str]], _Forward]]]:
    """Yield how many batches to have in work, and a function to give one to be computed.

    An encoder without places computes a batch when its vectors are asked for.
    """
    places = encoder.places if isinstance(encoder, Placed) else ()
    if not places:
        yield 1, lambda sequences, poolings: lambda: encoder.forward(sequences, poolings)
        return
    import torch

    free: SimpleQueue[Place] = SimpleQueue()
    for place in places:
        free.put(place)

    def computed(sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        place = free.get()
        try:
            return place.forward(encoder, sequences, poolings)
        finally:
            free.put(place)

    threads = torch.get_num_threads()
    with ThreadPoolExecutor(len(places)) as pool:
        try:
            # One more for each waits, so that none of them does.
            yield 2 * len(places), lambda sequences, poolings: pool.submit(computed, sequences, poolings).result
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)


def _tokenize(encoder: Encoder, texts: Sequence[str]) -> tuple[dict[str, CachedText], dict[bytes, TokenSequence]]:
    if not texts:  # with everything in the cache, not even the tokeniser is loaded
        return {}, {}
    tokenized = encoder.tokenize(texts)
    keys = [_sequence_key(sequence) for sequence in tokenized.sequences]
    about = map(CachedText, keys, tokenized.lengths, tokenized.truncated)
    return dict(zip(texts, about, strict=True)), dict(zip(keys, tokenized.sequences, strict=True))


def _sequence_key(sequence: TokenSequence) -> bytes:
    if isinstance(sequence, str):
        content = sequence.encode("utf-8", errors="surrogatepass")
    elif sequence and isinstance(sequence[0], int):
        content = array("q", sequence).tobytes()
    else:
        content = "\n".join(map(str, sequence)).encode("utf-8", errors="surrogatepass")
    return hashlib.sha256(content).digest()[:16]


def _caches(encoder: Encoder, poolings: Sequence[str], folder: Path | None) -> dict[str, EmbeddingCache]:
    if encoder.identity.weights_sha256 is None or encoder.identity.kind == "vectors":
        return {}
    return {pooling: EmbeddingCache(encoder.identity, pooling, folder) for pooling in poolings}


def _recall(
    caches: dict[str, EmbeddingCache], poolings: Sequence[str], texts: Sequence[str]
) -> tuple[dict[str, CachedText], dict[str, _Known]]:
    """Return what the caches know of those texts of which they have every vector, and these vectors."""
    vectors: dict[str, _Known] = {pooling: {} for pooling in poolings}
    if not caches:
        return {}, vectors
    about: dict[str, CachedText] = {}
    for cache in caches.values():  # a text is the same sequence to every pooler: mostly the first knows them all
        if unknown := [text for text in texts if text not in about]:
            about |= cache.texts(unknown)
    keys = list({row.sequence for row in about.values()})
    vectors |= {pooling: cache.vectors(keys) for pooling, cache in caches.items()}
    if all(len(known) == len(keys) for known in vectors.values()):
        return about, vectors
    whole = set(keys).intersection(*vectors.values())
    return {text: row for text, row in about.items() if row.sequence in whole}, vectors


def _require_finite(matrix: FloatMatrix, encoder: Encoder) -> None:
    bad = int((~np.isfinite(matrix).all(axis=1)).sum())
    if bad:
        half = encoder.identity.use.computed_in != FP32
        advice = "use --precision fp32" if half else "look at what it computes"
        raise UserError(
            f"{encoder.identity.name} gives NaN or infinite values in {bad} of {len(matrix)} vectors: {advice}."
        )


class _Stopwatch:
    """Adds up the seconds of stages that come in turns."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] += now - self._last
        self._last = now


def shared_vectors(
    encoder: Encoder,
    texts: Sequence[str],
    folder: Path,
    *,
    poolings: Sequence[str] = (),
    progress: Progress = silent,
) -> Path:
    """Return a cache folder, for `embed`, with the vectors of some texts that several processes need.

    Whoever comes first encodes all of the texts, the others read them. The embedding cache keeps what an
    interrupted run has encoded, and who goes on puts the rest into other batches: the last bits of its vectors
    differ from those of a run that was left alone. Here the vectors come from one call, and are there whole or
    not at all: the same bits, whoever made them.

    Args:
        encoder: what encodes; it has a weight hash.
        texts: any number, in an order that is always the same.
        folder: what the processes share; a set of texts has a folder of its own in it.
        poolings: the poolings wanted, all from one pass; the encoder's own by default.
        progress: told of the real tokens done.
    """
    poolings = tuple(dict.fromkeys(poolings or (encoder.identity.use.pooling,)))
    digest = hashlib.sha256()
    for pooling in poolings:
        digest.update(EmbeddingCache(encoder.identity, pooling, folder).path.stem.encode())
    for text in texts:
        digest.update(text_key(text))
    place = folder / digest.hexdigest()[:16]
    with told_as_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    # Of several that come at once the others wait: that takes them no longer than to encode it themselves.
    with FileLock(folder / f".{place.name}.lock"):
        if not place.is_dir():
            with atomic_folder(place) as building:
                embed(encoder, texts, poolings=poolings, normalize=False, cache_folder=building, progress=progress)
    return place
