"""The vectors of a diagnosis: all poolers from one forward pass, and sentences cut at other lengths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress
from stsbench.base.words import listed
from stsbench.diagnosis.choices import MAX_LENGTH, POOLING, tried_values
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.poolers import NoHeadError
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.tokenizer import stated_limits
from stsbench.encoders.transformer import TransformerEncoder, recut

_COUNTS = ("texts", "sequences", "encoded", "tokens", "padded_tokens")
_CHECKPOINTS = {"transformer", "sentence-transformers"}
_SPECIAL_TOKENS = 8
"""At least as many as any tokenizer puts around a text."""


@dataclass(frozen=True)
class Cut:
    """The sentences cut at one maximum length, or None for no limit.

    Attributes:
        rows: for each sentence its row in `Encoded.vectors`.
        changed: for each sentence whether it is cut elsewhere than by the encoder itself.
    """

    max_length: int | None
    rows: NDArray[np.int64]
    changed: NDArray[np.bool_]


@dataclass(frozen=True)
class Encoded:
    """The vectors of some sentences by every pooler.

    Attributes:
        vectors: for each pooling an array of shape (sequences, dimensions), without a closing normalisation.
        cuts: the encoder's own maximum length first.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens, over all lengths.
        seconds: what it took, by stage.
        notes: which poolers could not be had.
        limits: by maximum length, which files of the checkpoint end a text there, as a sentence.
    """

    vectors: dict[str, FloatMatrix]
    cuts: tuple[Cut, ...]
    encoding: dict[str, int]
    seconds: dict[str, float]
    notes: tuple[str, ...]
    limits: Mapping[int, str] = field(default_factory=dict)


def encode_all(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    lengths: Sequence[int] | None,
    use_cache: bool,
    progress: Progress,
) -> Encoded:
    """Encode texts with every pooler, and those that are longer than other maximum lengths with these too."""
    encode = partial(embed, normalize=False, use_cache=use_cache, progress=progress)
    whole, notes = _by_every_pooler(encoder, partial(encode, encoder, texts))
    limit, poolings = encoder.identity.use.max_length, tuple(whole.vectors)
    # A prompt is no part of a text's length; it has at most as many sub-words as bytes.
    most_around = _SPECIAL_TOKENS + len((encoder.identity.use.prompt or "").encode())
    parts, cuts = [whole], [Cut(limit, whole.rows, np.zeros(len(texts), dtype=bool))]
    start = len(whole.vectors[poolings[0]])
    stated = _stated_limits(encoder)
    for length in sorted({*tried_values(MAX_LENGTH), *stated}) if lengths is None else lengths:
        shortened = None if length == limit else recut(encoder, length)
        # Only what is longer than the shorter of the two limits can differ.
        shorter = length if limit is None else min(length, limit)
        longer = np.flatnonzero(whole.lengths + most_around > shorter)
        if shortened is None or not len(longer):
            continue
        part = encode(shortened, [texts[place] for place in longer.tolist()], poolings=poolings)
        differs = part.truncated | whole.truncated[longer]
        if not differs.any():
            continue
        rows, changed = whole.rows.copy(), np.zeros(len(texts), dtype=bool)
        # All of them: a sentence that just fits may be the sequence that another was cut to.
        rows[longer] = start + part.rows
        changed[longer[differs]] = True
        parts.append(part)
        cuts.append(Cut(length, rows, changed))
        start += len(part.vectors[poolings[0]])
    return Encoded(
        vectors={name: np.concatenate([part.vectors[name] for part in parts]) for name in poolings},
        cuts=tuple(cuts),
        encoding={name: sum(getattr(part.cost, name) for part in parts) for name in _COUNTS},
        seconds={stage: sum(part.cost.seconds[stage] for part in parts) for stage in whole.cost.seconds},
        notes=notes,
        limits=stated,
    )


def _stated_limits(encoder: Encoder) -> dict[int, str]:
    """Return what the files of a checkpoint say of the lengths at which they end a text, by length."""
    if not isinstance(encoder, TransformerEncoder):
        return {}
    return {
        length: f"{length} sub-words is what {listed(files)} says: sentence-transformers ends a text at its own "
        "file's number, a tokenizer that is asked to truncate at its own, and the network at its positions."
        for length, files in stated_limits(encoder.checkpoint).items()
    }


def _by_every_pooler(encoder: Encoder, encode: Callable[..., Embeddings]) -> tuple[Embeddings, tuple[str, ...]]:
    """Return the vectors by every pooling that the encoder has, and which it lacks."""
    identity = encoder.identity
    if identity.kind not in _CHECKPOINTS:
        note = f"{identity.name} has no poolers or maximum lengths to choose from: the grid is the smaller for it."
        return encode(poolings=None), (note,)
    # The person's own may be none of those that every checkpoint has, as a template's mask.
    poolings = tuple(dict.fromkeys((*tried_values(POOLING), identity.use.pooling)))
    try:
        return encode(poolings=poolings), ()
    except NoHeadError as error:  # told at the first batch
        if identity.use.pooling == "cls":
            raise
        return encode(poolings=[name for name in poolings if name != "cls"]), (f"Not tried: {error}",)
