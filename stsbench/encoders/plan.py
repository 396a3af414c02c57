"""The planner: encodes every distinct token sequence once, longest first, in batches of a token budget.

Texts that tokenise alike share a vector, one pass serves several poolings, cached vectors are reused, and a batch
that does not fit in memory is halved.
"""

import hashlib
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.base.progress import Progress, silent
from stsbench.encoders.cache import CachedText, Vectors, VectorStore
from stsbench.encoders.fitted import FittedEncoder, processed, whiten
from stsbench.encoders.fitted import normalize as to_unit_length
from stsbench.encoders.protocol import (
    DeviceOutOfMemory,
    Encoder,
    FloatMatrix,
    Tokenized,
    TokenSequence,
    require_own_pooling,
    require_unchanged,
)
from stsbench.encoders.use import FP32, UNKNOWN

_Work = tuple[bytes, TokenSequence]

# A killed run loses at most this much encoding.
_SAVE_EVERY_SECONDS = 5.0

# How many cached vectors of a server without a label are compared, and their largest relative distance. In bf16,
# batches of other sizes move MiniLM's by 0.0085, and deeper models' more; from fp32 to bf16 it is 0.0146.
_COMPARED, _TOLERANCE = 16, 0.03


@dataclass(frozen=True)
class EncodingCost:
    """What encoding took.

    Attributes:
        texts: distinct texts.
        sequences: distinct token sequences.
        encoded: sequences that went through the model; the others were cached.
        tokens: real tokens that went through the model (characters for a callable).
        padded_tokens: the same, with padding.
        seconds: `load` (files), `tokenize` (with reading the cache), `encode` (with writing the cache).
    """

    texts: int
    sequences: int
    encoded: int
    tokens: int
    padded_tokens: int
    seconds: Mapping[str, float]

    def __add__(self, other: "EncodingCost") -> "EncodingCost":
        """Returns the sum of two costs."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in vars(self) if name != "seconds"}
        seconds = {name: self.seconds[name] + other.seconds[name] for name in self.seconds}
        return EncodingCost(**counts, seconds=seconds)


@dataclass(frozen=True)
class Embeddings:
    """The vectors of some texts, one row per distinct token sequence.

    Attributes:
        rows: the row of each text, shape (texts,).
        vectors: for each pooling an array of shape (sequences, dimensions), float32.
        lengths: sub-words of each text, without special tokens; -1 if unknown.
        truncated: for each text, whether the model read only its beginning.
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
    progress: Progress = silent,
) -> Embeddings:
    """Encodes texts.

    Args:
        encoder: the model.
        texts: any number; equal ones are encoded once.
        poolings: all computed in one pass; by default the encoder's own.
        normalize: whether to scale vectors to unit length; None for all processing that the encoder's `Use` asks
            for (normalisation, dimensions, whitening on these texts). The cache holds unprocessed vectors.
        use_cache: whether to read and write the embedding cache, for encoders whose identity `is_cached`.
        progress: receives the number of encoded tokens.

    Raises:
        UserError: if vectors are not finite, a sentence does not fit in memory, or the encoder has two prompts.
    """
    poolings = tuple(dict.fromkeys(poolings or (encoder.identity.use.pooling,)))
    if isinstance(encoder, FittedEncoder):  # maps vectors of another encoder, maybe cached
        require_own_pooling(encoder.identity, poolings)
        plain = embed(encoder.base, texts, normalize=False, use_cache=use_cache, progress=progress)
        mapped = encoder.tail(*plain.vectors.values())
        _require_vectors(mapped, plain.cost.sequences, encoder)
        return replace(plain, vectors=dict.fromkeys(poolings, _processed(mapped, plain.rows, encoder, normalize)))
    seconds = {"tokenize": 0.0, "load": 0.0, "encode": 0.0}
    distinct = list(dict.fromkeys(texts))
    store = VectorStore(encoder.identity, poolings, use_cache=use_cache and encoder.identity.is_cached)
    with _timed(seconds, "tokenize"):
        new = store.recall(distinct)
    with _timed(seconds, "load"):
        if new:
            encoder.prepare(weights=True)
    with _timed(seconds, "tokenize"):
        tokenized = encoder.tokenize(new) if new else Tokenized([], [], [])  # not even the tokenizer is loaded
        keys = [_sequence_key(sequence) for sequence in tokenized.sequences]
        store.add_texts(dict(zip(new, map(CachedText, keys, tokenized.lengths, tokenized.truncated), strict=True)))
        _require_unchanged(encoder, store, distinct)
    sequences = dict(zip(keys, tokenized.sequences, strict=True))
    work = [(key, sequence) for key, sequence in sequences.items() if not store.has(key)]
    with _timed(seconds, "encode"):
        tokens, padded = _encode(encoder, work, store, progress)
        store.close()
    of_texts = [store.texts[text] for text in texts]
    row_of = {key: row for row, key in enumerate(dict.fromkeys(text.sequence for text in of_texts))}
    rows = np.array([row_of[text.sequence] for text in of_texts], dtype=np.int64)
    return Embeddings(
        rows=rows,
        vectors={
            pooling: _processed(_matrix(vectors, list(row_of), encoder), rows, encoder, normalize)
            for pooling, vectors in store.vectors.items()
        },
        lengths=np.array([text.length for text in of_texts], dtype=np.int64),
        truncated=np.array([text.truncated for text in of_texts], dtype=bool),
        cost=EncodingCost(len(distinct), len(row_of), len(work), tokens, padded, seconds),
    )


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[stage] += time.perf_counter() - start


def _processed(
    vectors: FloatMatrix, rows: NDArray[np.int64], encoder: Encoder, normalize: bool | None
) -> FloatMatrix:
    if normalize is not None:
        return to_unit_length(vectors, out=vectors) if normalize else vectors
    vectors, dimensions = processed(vectors, encoder.identity), encoder.identity.use.whiten
    return vectors if dimensions is None else whiten(vectors, vectors[rows], dimensions or None).astype(np.float32)


def _matrix(vectors: Vectors, keys: Sequence[bytes], encoder: Encoder) -> FloatMatrix:
    widths = sorted({len(vectors[key]) for key in keys})
    if len(widths) > 1:
        raise UserError(f"{encoder.identity.name} returned vectors of {widths[0]} and of {widths[-1]} dimensions.")
    return np.stack([vectors.pop(key) for key in keys]) if keys else np.empty((0, 0), dtype=np.float32)


def _encode(encoder: Encoder, work: Sequence[_Work], store: VectorStore, progress: Progress) -> tuple[int, int]:
    """Adds the vectors of new token sequences; returns the number of tokens, and of tokens with padding."""
    total, tokens, padded = sum(len(ids) for _, ids in work), 0, 0
    saved_at = time.monotonic()
    stage = f"encoding {len(work):,} sentence{'s' if len(work) > 1 else ''}"
    try:
        for batch, matrices in _forward(encoder, work, tuple(store.vectors)):
            if not tokens:
                size = len(work) * sum(matrix[0].nbytes for matrix in matrices.values() if len(matrix))
                require_memory(size, f"the vectors of {len(work):,} sentences", "take fewer sentences at a time")
            for matrix in matrices.values():
                _require_vectors(matrix, len(batch), encoder)
            store.add_vectors([key for key, _ in batch], matrices)
            tokens += sum(len(ids) for _, ids in batch)
            padded += len(batch) * max(len(ids) for _, ids in batch)
            if time.monotonic() - saved_at > _SAVE_EVERY_SECONDS:
                store.save()
                saved_at = time.monotonic()
            progress(stage, tokens, total)
    finally:  # also after an error or an interrupt
        store.save()
    return tokens, padded


def _require_unchanged(encoder: Encoder, store: VectorStore, texts: Sequence[str]) -> None:
    """Encodes some of the cached texts again if the model has no hash, as a server without a label."""
    identity, (vectors, *_) = encoder.identity, store.vectors.values()
    if identity.weights_sha256 is None and vectors:
        cached = [text for text in texts if store.texts[text].sequence in vectors]
        again = sorted(cached, key=len, reverse=True)[:: max(1, len(cached) // _COMPARED)][:_COMPARED]
        (now,) = encoder.forward(encoder.tokenize(again).sequences, (identity.use.pooling,)).values()
        before = np.stack([vectors[store.texts[text].sequence] for text in again])
        rows = [f"its vector of {text[:60]!r}" for text in again]
        advice = "Give it another --revision LABEL, or use --no-cache."
        require_unchanged(identity.name, before, now, rows, tolerance=_TOLERANCE, advice=advice)


def _require_vectors(matrix: FloatMatrix, rows: int, encoder: Encoder) -> None:
    name, use = encoder.identity.name, encoder.identity.use
    if len(matrix) != rows:
        raise UserError(f"{name} returned {len(matrix)} vectors for {rows} sentences.")
    if bad := int((~np.isfinite(matrix).all(axis=1)).sum()):
        advice = "Check what it computes" if use.computed_in in {FP32, UNKNOWN} else "Use --precision fp32"
        raise UserError(f"{name} gives NaN or infinite values in {bad} of {rows} vectors. {advice}.")


def _forward(
    encoder: Encoder, work: Sequence[_Work], poolings: Sequence[str]
) -> Iterator[tuple[Sequence[_Work], dict[str, FloatMatrix]]]:
    """Yields batches within the encoder's budget of padded tokens, with their vectors, longest first.

    If a batch does not fit in memory, the budget is halved for it and all others.
    """
    order = sorted(work, key=lambda item: -len(item[1]))
    start, budget = 0, encoder.token_budget
    while start < len(order):
        longest = max(1, len(order[start][1]))
        batch = order[start : start + max(1, budget // longest)]
        try:
            matrices = encoder.forward([sequence for _, sequence in batch], poolings)
        except DeviceOutOfMemory as error:
            if len(batch) == 1:
                raise UserError(
                    f"a sentence of {longest} tokens does not fit in the device's memory. Use --max-length, "
                    "--precision bf16 or --device cpu."
                ) from error
            budget = len(batch) * longest // 2
            continue
        yield batch, matrices
        start += len(batch)


def _sequence_key(sequence: TokenSequence) -> bytes:
    if isinstance(sequence, str):
        content = sequence.encode("utf-8", errors="surrogatepass")
    elif sequence and isinstance(sequence[0], int):
        content = array("q", sequence).tobytes()
    else:
        content = "\n".join(map(str, sequence)).encode("utf-8", errors="surrogatepass")
    return hashlib.sha256(content).digest()[:16]
