"""The vectors of a diagnosis: all poolings from one forward pass, and sentences cut at other lengths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from stsbench.base.progress import Progress
from stsbench.base.words import listed
from stsbench.encoders.plan import Embeddings, EncodingCost, embed
from stsbench.encoders.poolers import POOLING_NAMES, NoHeadError
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.tokenizer import stated_limits
from stsbench.encoders.transformer import TransformerEncoder, recut
from stsbench.encoders.use import USUAL_LENGTHS

_CHECKPOINTS = {"transformer", "sentence-transformers"}
_SPECIAL_TOKENS = 8
"""At least as many as any tokenizer puts around a text."""


@dataclass(frozen=True)
class Cut:
    """The sentences cut at a maximum length; None for no limit.

    Attributes:
        max_length: in sub-words.
        rows: the row of each sentence in `Encoded.vectors`.
        changed: for each sentence whether it is cut elsewhere than by the encoder itself.
        truncated: for each sentence whether it is cut.
    """

    max_length: int | None
    rows: NDArray[np.int64]
    changed: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


@dataclass(frozen=True)
class Encoded:
    """The vectors of sentences by each pooling.

    Attributes:
        vectors: for each pooling an array of shape (sequences, dimensions), without a closing normalisation.
        cuts: the sentences at each maximum length, the encoder's own first.
        cost: what encoding took, over all lengths.
        notes: which poolings the encoder lacks.
        limits: by maximum length, a sentence on the checkpoint's files that state it.
    """

    vectors: dict[str, FloatMatrix]
    cuts: tuple[Cut, ...]
    cost: EncodingCost
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
    """Encodes texts with each pooling, and those that another maximum length changes with that one, too."""
    encode = partial(embed, normalize=False, use_cache=use_cache, progress=progress)
    whole, notes = _by_every_pooling(encoder, partial(encode, encoder, texts))
    limit, poolings = encoder.identity.use.max_length, tuple(whole.vectors)
    # A prompt is not part of a text's length; it has at most as many sub-words as bytes.
    most_around = _SPECIAL_TOKENS + len((encoder.identity.use.prompt or "").encode())
    own = Cut(limit, whole.rows, np.zeros(len(texts), dtype=bool), whole.truncated)
    parts, cuts, last = [whole], [own], own
    start = len(whole.vectors[poolings[0]])
    limits = _stated_limits(encoder)
    for length in sorted({*USUAL_LENGTHS, *limits} if lengths is None else lengths):
        shortened = None if length == limit else recut(encoder, length)
        if shortened is None:
            continue
        if limit is not None and length > limit:
            # What fits into a shorter limit is the same at this one.
            before, candidates = last, last.truncated
        else:
            before, candidates = own, whole.lengths + most_around > length
        places = np.flatnonzero(candidates)
        if not len(places):
            continue
        part = encode(shortened, [texts[place] for place in places.tolist()], poolings=poolings)
        rows, truncated = before.rows.copy(), np.zeros(len(texts), dtype=bool)
        rows[places], truncated[places] = start + part.rows, part.truncated
        changed = truncated | whole.truncated
        if not changed.any():
            continue
        last = Cut(length, rows, changed, truncated)
        parts.append(part)
        cuts.append(last)
        start += len(part.vectors[poolings[0]])
    return Encoded(
        vectors={name: np.concatenate([part.vectors[name] for part in parts]) for name in poolings},
        cuts=tuple(cuts),
        cost=reduce(add, (part.cost for part in parts)),
        notes=notes,
        limits=limits,
    )


def _stated_limits(encoder: Encoder) -> dict[int, str]:
    if not isinstance(encoder, TransformerEncoder):
        return {}
    return {
        length: f"{length} sub-words is the limit that {listed(files)} states. sentence-transformers, the "
        "tokenizer and the network each have their own."
        for length, files in stated_limits(encoder.checkpoint).items()
    }


def _by_every_pooling(encoder: Encoder, encode: Callable[..., Embeddings]) -> tuple[Embeddings, tuple[str, ...]]:
    """Returns the vectors by each pooling of the encoder, and notes on those that it lacks."""
    identity = encoder.identity
    if identity.kind not in _CHECKPOINTS:
        note = f"{identity.name} has no poolings or maximum lengths to choose from, so the grid is smaller."
        return encode(poolings=None), (note,)
    # Your own may be one that only some checkpoints have, such as a template's mask.
    poolings = tuple(dict.fromkeys((*POOLING_NAMES, identity.use.pooling)))
    try:
        return encode(poolings=poolings), ()
    except NoHeadError as error:  # raised at the first batch
        if identity.use.pooling == "cls":
            raise
        return encode(poolings=[name for name in poolings if name != "cls"]), (f"Not tried: {error}",)
