"""What counts as an encoder."""

import pytest

from stsbench.encoders.load import load
from stsbench.encoders.protocol import Encoder, Tokenized


class Costly:
    """An encoder whose properties must not be evaluated without need."""

    token_budget = 1

    @property
    def identity(self):
        pytest.fail("identity was evaluated: for a checkpoint, that hashes the weights")

    @property
    def notes(self):
        pytest.fail("notes was evaluated")

    def prepare(self, *, weights): ...

    def tokenize(self, texts):
        return Tokenized([], [], [])

    def forward(self, sequences, poolings):
        return {}


def test_asking_whether_something_is_an_encoder_evaluates_nothing(tiny):
    assert isinstance(Costly(), Encoder)
    encoder = load(tiny())
    assert isinstance(encoder, Encoder)
    assert "identity" not in vars(encoder), "the weights were hashed"
