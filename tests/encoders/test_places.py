"""Batches that are shared over places give the vectors of one, to the last bit."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders.places import Gpu, placed
from stsbench.encoders.plan import embed

TEXT = "a small cat sat on the old mat by the door and the dog ran home over the green field"
WORDS = TEXT.split()
LINES = [" ".join(WORDS[number : number + 1 + number % 9]) for number in range(len(WORDS) - 9)] * 2


@pytest.fixture
def bert(tiny):
    return tiny("bert")


def vectors(encoder, **options):
    (matrix,) = embed(encoder, LINES, use_cache=False, token_budget=64, **options).vectors.values()
    return matrix


@pytest.mark.parametrize("use", [{}, {"template": "promptbert-denoised", "pooling": "auto"}, {"pooling": "cls"}])
def test_batches_are_computed_at_once_each_in_a_place_of_its_own_and_give_the_vectors_of_one(bert, use):
    together, most, busy = threading.Lock(), [], set()

    class Watched:
        def forward(self, encoder, sequences, poolings):
            with together:
                assert id(self) not in busy
                busy.add(id(self))
                most.append(len(busy))
            time.sleep(0.02)
            with together:
                busy.remove(id(self))
            return encoder.forward(sequences, poolings)

    encoder = sb.load(bert, **use)
    alone, identity = vectors(encoder), encoder.identity
    encoder.places = (Watched(), Watched())
    assert np.array_equal(vectors(encoder), alone)
    assert max(most) == 2
    assert encoder.identity == identity


def test_an_error_in_a_place_is_reported_and_nothing_hangs(bert):
    class Broken:
        def forward(self, encoder, sequences, poolings):
            raise UserError("the place is gone.")

    encoder = sb.load(bert)
    encoder.places = (Broken(),) * 4
    with pytest.raises(UserError, match="the place is gone"):
        vectors(encoder)


@pytest.fixture
def gpus(monkeypatch):
    """Let a machine have two GPUs, whose work the processor does; return which were entered."""
    entered = []

    @contextmanager
    def device(number):
        entered.append(number)
        yield

    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    return entered


def on_gpu(encoder):
    """Return an encoder that says it computes on a GPU, with a network that the processor computes."""
    moved = encoder.with_use(device="cuda")
    moved.__dict__["loaded"] = encoder
    return moved


def test_each_gpu_has_a_network_of_its_own_which_encoders_share_that_share_one(bert, gpus):
    encoder = sb.load(bert)
    there = Gpu(0), Gpu(1)
    encoder.places = there
    assert np.array_equal(vectors(encoder), vectors(sb.load(bert)))
    assert set(gpus) == {0, 1}
    prompted = encoder.with_use(prompt="say: ")
    assert np.array_equal(vectors(prompted), vectors(sb.load(bert, prompt="say: ")))
    networks = {id(gpu._here(each)._network) for gpu in there for each in (encoder, prompted)}
    assert len(networks) == 2
    assert id(encoder._network) not in networks


def test_what_is_not_there_is_refused(bert, gpus):
    encoder = on_gpu(sb.load(bert))
    for devices, numbers in (("all", [0, 1]), ("1", [1]), ("1, 0", [1, 0])):
        assert [gpu.number for gpu in placed(encoder, devices).places] == numbers
    for devices in ("0,1,2", "5", "0,0", "", "-1", "cuda:0"):
        with pytest.raises(UserError, match="expected distinct numbers from 0 to 1"):
            placed(encoder, devices)
    for other in (sb.load(bert, device="cpu"), sb.load(lambda texts: [[1.0] for _ in texts])):
        with pytest.raises(UserError, match=r"--devices needs a checkpoint .* leave it out"):
            placed(other, "all")


def test_sides_and_fitted_encoders_share_their_checkpoints_batches(bert, tmp_path, gpus):
    sided = sb.load(bert, prompts=("q: ", "d: "))
    shared = placed(type(sided)(tuple(map(on_gpu, sided.sides))), "all")
    for own, other in zip(sided.sides, shared.sides, strict=True):
        assert np.array_equal(vectors(other), vectors(own))
    (tmp_path / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    fitted = sb.fit("whitening", bert, sentences=tmp_path / "lines.txt", dimensions=4, out=tmp_path / "white")
    white = sb.load(fitted.folder)
    expected = vectors(white)
    white.base = on_gpu(white.base)
    assert np.array_equal(vectors(placed(white, "0,1")), expected)
    assert len(placed(white, "0,1").base.places) == 2
