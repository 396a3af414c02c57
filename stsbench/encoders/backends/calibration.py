"""The sentences that int8 is calibrated on: what they make the layers give sets the ranges that are kept.

They come with stsbench and are in no benchmark and none of the sample's pairs, so a calibrated model has seen
nothing of a test.
"""

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np

from stsbench.data.benchmarks import load_sample, sample_sentences

SENTENCES = 256
SEED = 0


@dataclass(frozen=True)
class Calibration:
    """Sentences, and how they were chosen.

    Attributes:
        sentences: in the order in which they are shown to the model.
        digest: four hexadecimal digits that stand for them.
    """

    sentences: tuple[str, ...]
    digest: str


@cache
def calibration() -> Calibration:
    """Return `SENTENCES` of the bundled sentences, drawn with `SEED`."""
    pairs = load_sample().pairs
    scored = {*pairs["sentence1"], *pairs["sentence2"]}
    texts = [text for text in sample_sentences() if text not in scored]
    drawn = np.random.default_rng(SEED).permutation(len(texts))[:SENTENCES]
    chosen = tuple(texts[row] for row in drawn)
    digest = hashlib.sha256("\n".join(chosen).encode()).hexdigest()[:4]
    return Calibration(chosen, digest)
