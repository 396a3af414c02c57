"""Vectors that several processes need: whoever comes first encodes all of the texts, the others read them.

The embedding cache keeps what an interrupted run has encoded, and who goes on puts the rest into other batches:
the last bits of its vectors differ from those of a run that was left alone. Here the vectors of a set of texts
come from one call, and are there whole or not at all: the same bits, whoever made them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from stsbench.base.files import atomic_folder, told_as_unwritable
from stsbench.base.progress import Progress, silent
from stsbench.encoders.cache import EmbeddingCache, text_key
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder

_DIGITS = 16


def shared_vectors(
    encoder: Encoder,
    texts: Sequence[str],
    folder: Path,
    *,
    poolings: Sequence[str] = (),
    progress: Progress = silent,
) -> Path:
    """Return a cache folder that holds the vectors of some texts; it is made if it is not there.

    Args:
        encoder: what encodes; it has a weight hash.
        texts: any number, in an order that is always the same.
        folder: what the processes share; a set of texts has a folder of its own in it.
        poolings: the poolings wanted, all from one pass; the encoder's own by default.
        progress: told of the real tokens done.

    Returns:
        What `embed` takes as `cache_folder`.

    Raises:
        UserError: if the encoder fails, or the folder cannot be written.
    """
    wanted = tuple(dict.fromkeys(poolings or (encoder.identity.use.pooling,)))
    digest = hashlib.sha256()
    for pooling in wanted:
        digest.update(EmbeddingCache(encoder.identity, pooling, folder).path.stem.encode())
    for text in texts:
        digest.update(text_key(text))
    place = folder / digest.hexdigest()[:_DIGITS]
    with told_as_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    # Of several that come at once the others wait: that takes them no longer than to encode it themselves.
    with FileLock(folder / f".{place.name}.lock"):
        if not place.is_dir():
            with atomic_folder(place) as building:
                embed(encoder, texts, poolings=wanted, normalize=False, cache_folder=building, progress=progress)
    return place
