"""The planner: encodes every distinct token sequence once, longest first, in batches of a token budget.

`SentenceTransformer.encode` encodes equal sentences again, pools in one way per pass, and fails if a batch does
not fit in memory. Here texts that tokenise alike share a vector, one pass serves several poolings, cached vectors
are reused, and a batch that is too large is halved.
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
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.base.progress import Progress, silent
from stsbench.encoders.cache import CachedText, EmbeddingCache, max_cache_bytes, touch_and_trim
from stsbench.encoders.postprocess import normalize as to_unit_length
from stsbench.encoders.postprocess import processed, whiten
from stsbench.encoders.protocol import (
    DeviceOutOfMemory,
    Encoder,
    FloatMatrix,
    Identity,
    Place,
    Tailed,
    TokenSequence,
    require_own_pooling,
)
from stsbench.encoders.use import FP32

_Known = dict[bytes, NDArray[np.float32]]
"""Cached vectors by the key of their token sequence."""
_Work = tuple[bytes, TokenSequence]
_Result = Callable[[], dict[str, FloatMatrix]]
"""Returns the vectors of a batch for each pooling, computing or waiting for them."""

# A killed run loses at most this much encoding.
_SAVE_EVERY_SECONDS = 5.0


@dataclass(frozen=True)
class EncodingCost:
    """What encoding took.

    Attributes:
        texts: distinct texts.
        sequences: distinct token sequences.
        encoded: sequences that went through the model; the others were cached.
        tokens: real tokens that went through the model (characters for a callable).
        padded_tokens: the same, with padding.
        seconds: `load` (tokenizer and weights), `tokenize` (including reading the cache), `encode` (forward
            passes, including writing the cache).
    """

    texts: int
    sequences: int
    encoded: int
    tokens: int
    padded_tokens: int
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Embeddings:
    """The vectors of some texts, one row per distinct token sequence.

    Attributes:
        rows: the row of each text, shape (texts,).
        vectors: for each pooling an array of shape (sequences, dimensions), float32.
        lengths: sub-words of each text, without special tokens; -1 if unknown.
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
    """Encodes texts.

    Args:
        encoder: the model.
        texts: any number; equal ones are encoded once.
        poolings: all computed in one pass; by default the encoder's own.
        normalize: whether to scale vectors to unit length; None for all processing that the encoder's `Use` asks
            for (normalisation, dimensions, whitening on these texts). The cache holds unprocessed vectors.
        use_cache: whether to read and write the embedding cache. An encoder without a weight hash is never cached.
        cache_folder: of the cache; None for the user's.
        token_budget: padded tokens per batch; by default the encoder's own. It changes vectors by rounding only.
        progress: receives the number of encoded tokens.

    Raises:
        UserError: if vectors are not finite, a sentence does not fit in memory, or the encoder has a prompt for
            each side of a pair.
    """
    if encoder.identity.use.prompts is not None:
        refuse_without_side(encoder.identity)
    poolings = tuple(dict.fromkeys(poolings or (encoder.identity.use.pooling,)))
    caches = _caches(encoder, poolings, cache_folder) if use_cache else {}
    cache_size = max_cache_bytes()
    clock = _Stopwatch()
    distinct = list(dict.fromkeys(texts))
    about, known = _recall(caches, poolings, distinct)
    new = [text for text in distinct if text not in about]
    clock.lap("tokenize")
    if new:
        encoder.prepare(weights=False)
    clock.lap("load")
    tokenized, sequences = _tokenize(encoder, new)
    about |= tokenized
    source = _Source(encoder, caches, cache_folder, token_budget or encoder.token_budget, progress, clock)
    taken = source.fill(known, sequences)
    for cache in caches.values():
        cache.add_texts(tokenized)
        touch_and_trim(cache.path, cache_size)
    clock.lap("encode")

    row_of = {key: row for row, key in enumerate(dict.fromkeys(about[text].sequence for text in distinct))}
    of_texts = [about[text] for text in texts]
    rows = np.array([row_of[text.sequence] for text in of_texts], dtype=np.int64)
    return Embeddings(
        rows=rows,
        vectors={
            pooling: _processed(_matrix(known[pooling], list(row_of), encoder), rows, encoder, normalize)
            for pooling in poolings
        },
        lengths=np.array([text.length for text in of_texts], dtype=np.int64),
        truncated=np.array([text.truncated for text in of_texts], dtype=bool),
        cost=EncodingCost(len(distinct), len(row_of), *taken, clock.seconds),
    )


def refuse_without_side(identity: Identity) -> NoReturn:
    """Raises a UserError: texts have no side, but the model has a prompt for each side of a pair."""
    raise UserError(
        f"{identity.name} has a prompt for each side of a pair, but sentences are read here without a side. Use "
        "--prompt or --prompt-name instead of --prompts."
    )


def _processed(
    vectors: FloatMatrix, rows: NDArray[np.int64], encoder: Encoder, normalize: bool | None
) -> FloatMatrix:
    if normalize is not None:
        return to_unit_length(vectors, out=vectors) if normalize else vectors
    vectors, dimensions = processed(vectors, encoder.identity), encoder.identity.use.whiten
    return vectors if dimensions is None else whiten(vectors, vectors[rows], dimensions or None).astype(np.float32)


def _matrix(known: _Known, keys: Sequence[bytes], encoder: Encoder) -> FloatMatrix:
    """Moves the vectors of some keys into a matrix, one by one, so that memory holds them once."""
    matrix = np.empty((len(keys), len(known[keys[0]]) if keys else 0), dtype=np.float32)
    for row, key in enumerate(keys):
        vector = known.pop(key)
        if len(vector) != matrix.shape[1]:
            fewer, more = sorted((len(vector), matrix.shape[1]))
            raise UserError(f"{encoder.identity.name} returned vectors of {fewer} and of {more} dimensions.")
        matrix[row] = vector
    return matrix


@dataclass(frozen=True)
class _Source:
    """An encoder and its caches."""

    encoder: Encoder
    caches: dict[str, EmbeddingCache]
    folder: Path | None
    budget: int
    progress: Progress
    clock: "_Stopwatch"

    def fill(self, known: dict[str, _Known], sequences: dict[bytes, TokenSequence]) -> tuple[int, int, int]:
        """Adds the vectors of token sequences to the known ones of each pooling, from the cache or the encoder.

        Returns the numbers of encoded sequences, of their tokens, and of these with padding.
        """
        # The sequence of a new text may be cached: under another text, or by a run that was killed.
        for pooling, cache in self.caches.items():
            known[pooling] |= cache.vectors([key for key in sequences if key not in known[pooling]])
        work = [(key, ids) for key, ids in sequences.items() if not all(key in of for of in known.values())]
        self.clock.lap("tokenize")
        if not work:
            return 0, 0, 0
        encoder = self.encoder
        return self._derive(encoder, work, known) if isinstance(encoder, Tailed) else self._encode(work, known)

    def _derive(self, encoder: Tailed, work: Sequence[_Work], known: dict[str, _Known]) -> tuple[int, int, int]:
        """Maps vectors of the encoder's base, which may be cached."""
        require_own_pooling(encoder.identity, list(known))
        (pooling,), base = known, encoder.base
        caches = _caches(base, (pooling,), self.folder) if self.caches else {}
        plain: dict[str, _Known] = {pooling: {}}
        _, tokens, padded = replace(self, encoder=base, caches=caches).fill(plain, dict(work))
        keys = [key for key, _ in work]
        self._add(keys, {pooling: encoder.tail(_matrix(plain[pooling], keys, base))}, known)
        self._save(keys, known)
        return len(work), tokens, padded

    def _encode(self, work: Sequence[_Work], known: dict[str, _Known]) -> tuple[int, int, int]:
        self.encoder.prepare(weights=True)
        self.clock.lap("load")
        total, tokens, padded = sum(len(ids) for _, ids in work), 0, 0
        unsaved: list[bytes] = []
        saved_at = time.monotonic()
        stage = f"encoding {len(work):,} sentence{'s' if len(work) > 1 else ''}"
        for batch, matrices in _forward(self.encoder, work, tuple(known), self.budget):
            if not tokens:
                size = len(work) * sum(matrix[0].nbytes for matrix in matrices.values() if len(matrix))
                require_memory(size, f"the vectors of {len(work):,} sentences", "take fewer sentences at a time")
            keys = [key for key, _ in batch]
            self._add(keys, matrices, known)
            unsaved += keys
            tokens += sum(len(ids) for _, ids in batch)
            padded += len(batch) * max(len(ids) for _, ids in batch)
            if time.monotonic() - saved_at > _SAVE_EVERY_SECONDS:
                self._save(unsaved, known)
                unsaved, saved_at = [], time.monotonic()
            self.progress(stage, tokens, total)
        self._save(unsaved, known)
        return len(work), tokens, padded

    def _add(self, keys: Sequence[bytes], matrices: Mapping[str, FloatMatrix], known: dict[str, _Known]) -> None:
        name, use = self.encoder.identity.name, self.encoder.identity.use
        for pooling, matrix in matrices.items():
            if len(matrix) != len(keys):
                raise UserError(f"{name} returned {len(matrix)} vectors for {len(keys)} sentences.")
            if bad := int((~np.isfinite(matrix).all(axis=1)).sum()):
                advice = "Check what it computes" if use.computed_in == FP32 else "Use --precision fp32"
                raise UserError(f"{name} gives NaN or infinite values in {bad} of {len(keys)} vectors. {advice}.")
            known[pooling].update(zip(keys, matrix, strict=True))

    def _save(self, keys: Sequence[bytes], known: dict[str, _Known]) -> None:
        for pooling, cache in self.caches.items():
            cache.add_vectors({key: known[pooling][key] for key in keys})


def _forward(
    encoder: Encoder, work: Sequence[_Work], poolings: Sequence[str], budget: int
) -> Iterator[tuple[Sequence[_Work], dict[str, FloatMatrix]]]:
    """Yields batches of at most `budget` padded tokens with their vectors.

    Longest first, so that a batch that does not fit comes at once. The budget is then halved for it and all
    others.
    """
    order = sorted(work, key=lambda item: -len(item[1]))
    start = submitted = 0
    in_work: deque[tuple[list[_Work], _Result]] = deque()
    with _computing(encoder) as (most, compute):
        while start < len(order):
            while len(in_work) < most and submitted < len(order):
                longest = max(1, len(order[submitted][1]))
                batch = order[submitted : submitted + max(1, budget // longest)]
                in_work.append((batch, compute([sequence for _, sequence in batch], poolings)))
                submitted += len(batch)
            batch, vectors = in_work.popleft()
            try:
                matrices = vectors()
            except DeviceOutOfMemory as error:
                longest = max(1, len(batch[0][1]))
                if len(batch) == 1:
                    raise UserError(
                        f"a sentence of {longest} tokens does not fit in the device's memory. Use --max-length, "
                        "--precision bf16 or --device cpu."
                    ) from error
                budget = len(batch) * longest // 2
                # The batches after it are split again.
                in_work.clear()
                submitted = start
                continue
            yield batch, matrices
            start += len(batch)


@contextmanager
def _computing(
    encoder: Encoder,
) -> Iterator[tuple[int, Callable[[Sequence[TokenSequence], Sequence[str]], _Result]]]:
    """Yields how many batches to submit ahead, and a function that submits a batch and returns its `_Result`.

    An encoder without places computes a batch when its result is requested.
    """
    places: Sequence[Place] = getattr(encoder, "places", ())
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
            # One more than it computes waits for each place.
            yield 2 * len(places), lambda sequences, poolings: pool.submit(computed, sequences, poolings).result
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)


def _tokenize(encoder: Encoder, texts: Sequence[str]) -> tuple[dict[str, CachedText], dict[bytes, TokenSequence]]:
    if not texts:  # not even the tokenizer is loaded
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
    """Returns what is cached about those texts whose vectors are all cached, and these vectors."""
    about: dict[str, CachedText] = {}
    for cache in caches.values():  # usually the first one knows them all
        if unknown := [text for text in texts if text not in about]:
            about |= cache.texts(unknown)
    keys = list({row.sequence for row in about.values()})
    vectors: dict[str, _Known] = {pooling: {} for pooling in poolings}
    vectors |= {pooling: cache.vectors(keys) for pooling, cache in caches.items()}
    complete = set(keys).intersection(*vectors.values())
    return {text: row for text, row in about.items() if row.sequence in complete}, vectors


class _Stopwatch:
    """Adds up the seconds of alternating stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] += now - self._last
        self._last = now
