"""Seeded draws of pairs with replacement."""

import hashlib
import json

import numpy as np
from numpy.typing import NDArray


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return a random generator that depends on the seed and the names alone.

    Each subset of each task draws from a generator of its own, so neither the order of the tasks nor which
    others are scored changes a draw, and two models scored on one task get the same draws: their
    replicates are paired.

    Args:
        seed: any integer.
        names: what the draws are for, such as the task and the subset.

    Example:
        >>> first, second = generator(0, "STS16", "answer-answer"), generator(0, "STS16", "answer-answer")
        >>> bool(first.integers(1000) == second.integers(1000))
        True
    """
    # JSON keeps ("a", "bc") and ("ab", "c") apart; Python's own hash of strings changes with each process.
    digest = hashlib.sha256(json.dumps([seed, *names]).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def resample_counts(size: int, resamples: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw resamples of `size` pairs with replacement, each as how often it holds each pair.

    The draws come one resample after the other, so drawing 1000 at once or in blocks gives the same ones.

    Args:
        size: number of pairs n, which is also the size of each resample.
        resamples: number of resamples.
        rng: where the draws come from; it is advanced.

    Returns:
        (n, resamples) counts; each column is one resample and sums to n. A pair's counts lie side by side
        in memory, because all that follows runs down the pairs for a block of resamples together.

    Example:
        >>> counts = resample_counts(5, 3, generator(0, "STS16"))
        >>> counts.shape, counts.sum(axis=0).tolist()
        ((5, 3), [5, 5, 5])
    """
    cells = rng.integers(size, size=(resamples, size))
    cells *= resamples
    cells += np.arange(resamples)[:, np.newaxis]
    counts = np.bincount(cells.ravel(), minlength=size * resamples).reshape(size, resamples)
    return counts.astype(np.int32)
