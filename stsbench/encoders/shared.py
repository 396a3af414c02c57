"""Vectors that several processes need: encoded in one call by the first of them, with the same bits for all."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from stsbench.base.files import atomic_folder, writing
from stsbench.base.progress import Progress, silent
from stsbench.encoders.cache import EmbeddingCache, text_key
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder


def shared_vectors(
    encoder: Encoder,
    texts: Sequence[str],
    folder: Path,
    *,
    poolings: Sequence[str] = (),
    progress: Progress = silent,
) -> Path:
    """Returns a cache folder for `embed` with the vectors of texts that several processes need.

    The first process encodes all texts in one call, the others wait. Nothing is kept after an interruption, so
    that every process gets the same bits: resuming would form other batches. `folder` is shared by the processes.
    """
    poolings = tuple(dict.fromkeys(poolings or (encoder.identity.use.pooling,)))
    digest = hashlib.sha256()
    for pooling in poolings:
        digest.update(EmbeddingCache(encoder.identity, pooling, folder).path.stem.encode())
    for text in texts:
        digest.update(text_key(text))
    place = folder / digest.hexdigest()[:16]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{place.name}.lock"):
        if not place.is_dir():
            with atomic_folder(place) as building:
                embed(encoder, texts, poolings=poolings, normalize=False, cache_folder=building, progress=progress)
    return place
