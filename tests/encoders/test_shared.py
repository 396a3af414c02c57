"""Vectors that several processes share are made in one go, whole or not at all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import FloatMatrix, Identity, Tokenized, TokenSequence
from stsbench.encoders.shared import shared_vectors
from stsbench.encoders.use import own_use

TEXTS = ["a cat", "a dog sleeps", "rain", "a cat"]


class Counting:
    """An encoder of two poolings whose numbers depend on how many sentences stand in a batch, as real ones' do."""

    notes, token_budget = (), 100

    def __init__(self) -> None:
        self.identity = Identity("counting", "transformer", own_use("avg"), weights_sha256="0" * 64)
        self.passes = 0
        self.fails = False

    def prepare(self, *, weights: bool) -> None:
        """Everything is there."""

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return a token for each letter."""
        return Tokenized([tuple(map(ord, text)) for text in texts], list(map(len, texts)), [False] * len(texts))

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return the sentence's length, and that of the batch."""
        self.passes += 1
        if self.fails:
            raise UserError("no")
        matrix = np.array([[len(sequence), len(sequences)] for sequence in sequences], dtype=np.float32)
        return {pooling: matrix + (pooling == "cls") for pooling in poolings}


def vectors(encoder: Any, place: Path, pooling: str = "avg") -> FloatMatrix:
    """Return what a cache folder holds of the texts."""
    found = embed(encoder, TEXTS, poolings=(pooling,), cache_folder=place)
    assert found.cost.encoded == 0
    return found.vectors[pooling][found.rows]


def test_texts_are_encoded_once_for_all_who_ask_and_for_all_poolings(tmp_path: Path) -> None:
    encoder = Counting()
    place = shared_vectors(encoder, TEXTS, tmp_path, poolings=("avg", "cls"))
    assert encoder.passes == 1
    assert shared_vectors(Counting(), TEXTS, tmp_path, poolings=("avg", "cls")) == place
    plain = embed(encoder, TEXTS, use_cache=False)
    assert vectors(encoder, place).tolist() == plain.vectors["avg"][plain.rows].tolist()
    assert (vectors(encoder, place, "cls") == vectors(encoder, place) + 1).all()
    assert shared_vectors(encoder, TEXTS[:2], tmp_path) != place


def test_what_was_begun_and_failed_leaves_nothing_that_would_change_the_next_one(tmp_path: Path) -> None:
    encoder = Counting()
    encoder.fails = True
    with pytest.raises(UserError, match="no"):
        shared_vectors(encoder, TEXTS, tmp_path)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
    encoder.fails = False
    assert vectors(encoder, shared_vectors(encoder, TEXTS, tmp_path))[0].tolist() == [5, 3]
