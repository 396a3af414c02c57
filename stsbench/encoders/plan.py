"""The planner: encodes every distinct token sequence once, longest first, in batches of a token budget.

Texts that tokenise alike share a vector, one pass serves several poolings, cached vectors are reused, and a batch
that does not fit in memory is halved.
"""

import hashlib
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.base.progress import Progress, silent
from stsbench.encoders.cache import CachedText, EmbeddingCache, max_cache_bytes, touch_and_trim
from stsbench.encoders.fitted import normalize as to_unit_length
from stsbench.encoders.fitted import processed, whiten
from stsbench.encoders.protocol import (
    DeviceOutOfMemory,
    Encoder,
    FloatMatrix,
    Tokenized,
    TokenSequence,
    require_own_pooling,
)
from stsbench.encoders.use import FP32, UNKNOWN

_Known = dict[bytes, NDArray[np.float32]]
"""Cached vectors by the key of their token sequence."""
_Work = tuple[bytes, TokenSequence]

# A killed run loses at most this much encoding.
_SAVE_EVERY_SECONDS = 5.0

# How many cached vectors of a server without a label are compared, the longest text's first, and their largest
# relative distance: in bf16, batches of other sizes moved MiniLM's by 0.006.
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
        UserError: if vectors are not finite, a sentence does not fit in memory, or the encoder has a prompt for
            each side of a pair.
    """
    poolings = tuple(dict.fromkeys(poolings or (encoder.identity.use.pooling,)))
    if hasattr(encoder, "tail") and hasattr(encoder, "base"):  # maps vectors of another encoder, maybe cached
        require_own_pooling(encoder.identity, poolings)
        plain = embed(encoder.base, texts, normalize=False, use_cache=use_cache, progress=progress)
        vectors: FloatMatrix = encoder.tail(*plain.vectors.values())
        _require_vectors(vectors, plain.cost.sequences, encoder)
        vectors = _processed(vectors, plain.rows, encoder, normalize)
        return replace(plain, vectors=dict.fromkeys(poolings, vectors))
    identity, cache_size = encoder.identity, max_cache_bytes()
    is_cached = use_cache and identity.is_cached
    caches = [EmbeddingCache(identity, pooling) for pooling in poolings if is_cached]
    marks = [time.perf_counter()]
    distinct = list(dict.fromkeys(texts))
    about: dict[str, CachedText] = {}
    for cache in caches:
        about |= cache.texts([text for text in distinct if text not in about])
    keys = list({text.sequence for text in about.values()})
    known: list[_Known] = [cache.vectors(keys) for cache in caches] or [{} for _ in poolings]
    new = [text for text in distinct if text not in about or not all(about[text].sequence in of for of in known)]
    marks.append(time.perf_counter())
    if new:
        encoder.prepare(weights=True)
    marks.append(time.perf_counter())
    tokenized = encoder.tokenize(new) if new else Tokenized([], [], [])  # not even the tokenizer is loaded
    keys = [_sequence_key(sequence) for sequence in tokenized.sequences]
    about_new = dict(zip(new, map(CachedText, keys, tokenized.lengths, tokenized.truncated), strict=True))
    about |= about_new
    # The sequence of a new text may be cached: under another text, or by a run that was killed.
    for cache, of in zip(caches, known, strict=False):
        of.update(cache.vectors([key for key in dict.fromkeys(keys) if key not in of]))
    if caches and identity.weights_sha256 is None:
        cached = {text: vector for text in distinct if (vector := known[0].get(about[text].sequence)) is not None}
        _require_unchanged(encoder, cached)
    sequences = dict(zip(keys, tokenized.sequences, strict=True))
    work = [(key, ids) for key, ids in sequences.items() if not all(key in of for of in known)]
    marks.append(time.perf_counter())
    by_pooling = dict(zip(poolings, known, strict=True))
    tokens, padded = _encode(encoder, work, by_pooling, caches, progress)
    for cache in caches:
        cache.add_texts(about_new)
        touch_and_trim(cache.path, cache_size)
    recall, load, tokenize, encode = np.diff([*marks, time.perf_counter()]).tolist()

    row_of = {key: row for row, key in enumerate(dict.fromkeys(about[text].sequence for text in distinct))}
    of_texts = [about[text] for text in texts]
    rows = np.array([row_of[text.sequence] for text in of_texts], dtype=np.int64)
    seconds = {"tokenize": recall + tokenize, "load": load, "encode": encode}
    return Embeddings(
        rows=rows,
        vectors={
            pooling: _processed(_matrix(of, list(row_of), encoder), rows, encoder, normalize)
            for pooling, of in by_pooling.items()
        },
        lengths=np.array([text.length for text in of_texts], dtype=np.int64),
        truncated=np.array([text.truncated for text in of_texts], dtype=bool),
        cost=EncodingCost(len(distinct), len(row_of), len(work), tokens, padded, seconds),
    )


def _processed(
    vectors: FloatMatrix, rows: NDArray[np.int64], encoder: Encoder, normalize: bool | None
) -> FloatMatrix:
    if normalize is not None:
        return to_unit_length(vectors, out=vectors) if normalize else vectors
    vectors, dimensions = processed(vectors, encoder.identity), encoder.identity.use.whiten
    return vectors if dimensions is None else whiten(vectors, vectors[rows], dimensions or None).astype(np.float32)


def _matrix(known: _Known, keys: Sequence[bytes], encoder: Encoder) -> FloatMatrix:
    widths = sorted({len(known[key]) for key in keys})
    if len(widths) > 1:
        raise UserError(f"{encoder.identity.name} returned vectors of {widths[0]} and of {widths[-1]} dimensions.")
    return np.stack([known.pop(key) for key in keys]) if keys else np.empty((0, 0), dtype=np.float32)


def _encode(
    encoder: Encoder,
    work: Sequence[_Work],
    known: dict[str, _Known],
    caches: Sequence[EmbeddingCache],
    progress: Progress,
) -> tuple[int, int]:
    """Adds the vectors of new token sequences to the known ones and to the caches.

    Returns the number of tokens, and of tokens with padding.
    """
    total, tokens, padded = sum(len(ids) for _, ids in work), 0, 0
    unsaved: list[bytes] = []
    saved_at = time.monotonic()
    stage = f"encoding {len(work):,} sentence{'s' if len(work) > 1 else ''}"

    def save() -> None:
        for cache, of in zip(caches, known.values(), strict=False):
            cache.add_vectors({key: of[key] for key in unsaved})

    try:
        for batch, matrices in _forward(encoder, work, tuple(known)):
            if not tokens:
                size = len(work) * sum(matrix[0].nbytes for matrix in matrices.values() if len(matrix))
                require_memory(size, f"the vectors of {len(work):,} sentences", "take fewer sentences at a time")
            keys = [key for key, _ in batch]
            for pooling, matrix in matrices.items():
                _require_vectors(matrix, len(keys), encoder)
                known[pooling].update(zip(keys, matrix, strict=True))
            unsaved += keys
            tokens += sum(len(ids) for _, ids in batch)
            padded += len(batch) * max(len(ids) for _, ids in batch)
            if time.monotonic() - saved_at > _SAVE_EVERY_SECONDS:
                save()
                unsaved, saved_at = [], time.monotonic()
            progress(stage, tokens, total)
    finally:  # also after an error or an interrupt
        save()
    return tokens, padded


def _require_unchanged(encoder: Encoder, cached: Mapping[str, NDArray[np.float32]]) -> None:
    """Encodes some of the cached texts again; raises if their vectors differ, because the server has changed."""
    texts = sorted(cached, key=len, reverse=True)[:: max(1, len(cached) // _COMPARED)][:_COMPARED]
    if not texts:
        return
    (now,) = encoder.forward(encoder.tokenize(texts).sequences, (encoder.identity.use.pooling,)).values()
    for text, vector in zip(texts, now, strict=True):
        before = cached[text]
        if len(vector) != len(before) or np.linalg.norm(vector - before) > _TOLERANCE * np.linalg.norm(before):
            raise UserError(
                f"{encoder.identity.name} has changed: its vector of {text[:60]!r} is not the cached one. Give it "
                "another --revision LABEL, or use --no-cache."
            )


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
