"""The planner: batches within the budget, longest first, smaller where memory is short."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_models import vectors_of

from stsbench.base.errors import UserError
from stsbench.encoders.fitted import FittedEncoder
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import DeviceOutOfMemory, Encoder, Identity, Tokenized
from stsbench.encoders.use import own_use

TEXTS = ["x" * length for length in (3, 9, 1, 4, 4, 7, 2, 5)]


class Recorder:
    """Encodes a text as its length, and notes the batches; runs out of memory above `room` padded tokens."""

    def __init__(self, room=10**9, weights=None, budget=20):
        self.identity = Identity("recorder", "transformer", own_use("avg"), weights_sha256=weights)
        self.notes: tuple[str, ...] = ()
        self.token_budget = budget
        self.room = room
        self.batches: list[list[int]] = []

    def prepare(self, *, weights):
        """Nothing to load."""

    def tokenize(self, texts):
        return Tokenized(
            [tuple(range(len(text))) for text in texts], [len(text) for text in texts], [False] * len(texts)
        )

    def forward(self, sequences, poolings):
        lengths = [len(sequence) for sequence in sequences]
        if max(lengths) * len(lengths) > self.room:
            raise DeviceOutOfMemory
        self.batches.append(lengths)
        return {pooling: np.array([[length, 1] for length in lengths], np.float32) for pooling in poolings}


class Doubled(FittedEncoder):
    """A map that doubles the vectors of another encoder."""

    def __init__(self, base):
        self.base = base
        self.identity = replace(base.identity, weights_sha256=f"{base.identity.weights_sha256} doubled")

    def tail(self, vectors):
        return 2 * vectors


def test_a_map_is_applied_to_the_vectors_that_the_cache_has_of_its_model():
    plain = Recorder(weights="a")
    tailed = Doubled(Doubled(plain))
    embed(plain, TEXTS[:4])
    plain.batches.clear()
    for new in ([7, 5, 2], []):
        embeddings = embed(tailed, TEXTS)
        assert embeddings.vectors["avg"][embeddings.rows, 0].tolist() == [4 * len(text) for text in TEXTS]
        assert [length for batch in plain.batches for length in batch] == new
        assert (embeddings.cost.encoded, embeddings.cost.tokens) == (len(new), sum(new))
        plain.batches.clear()
    once = embed(tailed.base, TEXTS)
    assert once.vectors["avg"][once.rows, 0].tolist() == [2 * len(text) for text in TEXTS]
    assert not plain.batches
    with pytest.raises(UserError, match=r"no pooling 'max'.*'avg'"):
        embed(tailed, TEXTS, poolings=["max"])


def test_batches_keep_to_the_budget_longest_first():
    encoder = Recorder()
    assert isinstance(encoder, Encoder)
    found = embed(encoder, TEXTS)
    assert [length for batch in encoder.batches for length in batch] == [9, 7, 5, 4, 3, 2, 1]
    assert all(max(batch) * len(batch) <= 20 for batch in encoder.batches)
    assert found.vectors["avg"][found.rows, 0].tolist() == [len(text) for text in TEXTS]
    assert found.cost.tokens == 9 + 7 + 5 + 4 + 3 + 2 + 1
    assert found.cost.padded_tokens == sum(max(batch) * len(batch) for batch in encoder.batches)
    alone = Recorder(budget=1)
    embed(alone, TEXTS)
    assert alone.batches == [[9], [7], [5], [4], [3], [2], [1]], "longer texts than the budget are batches alone"


def test_out_of_memory_halves_the_budget_for_all_that_follow():
    encoder = Recorder(room=9, budget=64)
    texts = [*TEXTS, *(f"{'x' * n}" for n in (6, 8))]
    found = embed(encoder, texts)
    assert found.vectors["avg"][found.rows, 0].tolist() == [len(text) for text in texts]
    assert all(max(batch) * len(batch) <= 9 for batch in encoder.batches)
    assert max(len(batch) for batch in encoder.batches) > 1


def test_out_of_memory_in_torch_is_met_by_smaller_batches(tiny, sentences, monkeypatch):
    import torch

    encoder = load(tiny(), pooling="avg")
    expected = vectors_of(encoder, sentences)
    forward, sizes = encoder.network.model.forward, []

    def short_of_memory(input_ids, **options):
        if input_ids.numel() > 47:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        sizes.append(input_ids.numel())
        return forward(input_ids=input_ids, **options)

    monkeypatch.setattr(encoder.network.model, "forward", short_of_memory)
    np.testing.assert_allclose(vectors_of(encoder, sentences), expected, atol=1e-5)
    assert len(sizes) > 1
    with pytest.raises(UserError, match="entence of 48 tokens does not fit") as told:
        vectors_of(encoder, ["the dog and the cat " * 40])
    assert "\n" not in str(told.value)

    def broken(**_):
        raise RuntimeError("an assertion of ours")

    monkeypatch.setattr(encoder.network.model, "forward", broken)
    with pytest.raises(UserError, match=r"cannot encode with .*: an assertion of ours"):
        vectors_of(encoder, ["a cat"])


def test_what_does_not_fit_in_memory_is_refused_with_the_first_batch(monkeypatch):
    encoder = Recorder()
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: 55)
    with pytest.raises(UserError, match=r"vectors of 7 sentences .* GB"):
        embed(encoder, TEXTS)
    assert len(encoder.batches) == 1
    monkeypatch.setattr("stsbench.base.machine.available_bytes", lambda: 56)
    assert embed(encoder, TEXTS).vectors["avg"].nbytes == 56
