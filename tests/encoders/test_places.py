"""Batches that are shared over places give the vectors of one, to the last bit."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders import places
from stsbench.encoders.places import Cores, Gpu, placed
from stsbench.encoders.plan import embed

TEXT = "a small cat sat on the old mat by the door and the dog ran home over the green field"
WORDS = TEXT.split()
LINES = [" ".join(WORDS[number : number + 1 + number % 9]) for number in range(len(WORDS) - 9)] * 2


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(places, "cores", lambda: 4)


@pytest.fixture
def bert(tiny):
    return tiny("bert")


def vectors(encoder, **options):
    (matrix,) = embed(encoder, LINES, use_cache=False, token_budget=64, **options).vectors.values()
    return matrix


@pytest.mark.parametrize("devices", ["all", "0,1", "3"])
@pytest.mark.parametrize("use", [{}, {"template": "promptbert-denoised", "pooling": "auto"}, {"pooling": "cls"}])
def test_groups_of_cores_give_the_vectors_of_one(bert, devices, use):
    alone = sb.load(bert, **use)
    before = torch.get_num_threads()
    shared = placed(alone, devices)
    group = {"all": Cores(1), "0,1": Cores(2), "3": Cores(4)}[devices]
    assert shared.places == (group,) * {"all": 4, "0,1": 2, "3": 1}[devices]
    given = vectors(shared)
    assert torch.get_num_threads() == before
    assert np.array_equal(given, vectors(replace(alone, places=(group,))))
    # Another number of threads may round otherwise.
    np.testing.assert_allclose(given, vectors(alone), atol=1e-6)
    assert shared.identity == alone.identity


def test_batches_are_computed_at_once_each_in_a_place_of_its_own(bert):
    together, most, busy = threading.Lock(), [], set()

    class Watched(Cores):
        def forward(self, encoder, sequences, poolings):
            with together:
                assert id(self) not in busy
                busy.add(id(self))
                most.append(len(busy))
            time.sleep(0.02)
            with together:
                busy.remove(id(self))
            return encoder.forward(sequences, poolings)

    encoder = placed(sb.load(bert), "0,1")
    encoder.places = (Watched(1), Watched(1))
    assert np.array_equal(vectors(encoder), vectors(sb.load(bert)))
    assert max(most) == 2


def test_an_error_in_a_place_is_reported_and_nothing_hangs(bert):
    class Broken:
        def forward(self, encoder, sequences, poolings):
            raise UserError("the place is gone.")

    encoder = placed(sb.load(bert), "all")
    encoder.places = (Broken(),) * 4
    with pytest.raises(UserError, match="the place is gone"):
        vectors(encoder)


def test_each_gpu_has_a_network_of_its_own_which_encoders_share_that_share_one(bert, monkeypatch):
    entered = []

    @contextmanager
    def device(number):
        entered.append(number)
        yield

    monkeypatch.setattr(torch.cuda, "device", device)
    encoder = sb.load(bert)
    there = Gpu(0), Gpu(1)
    encoder.places = there
    assert np.array_equal(vectors(encoder), vectors(sb.load(bert)))
    assert set(entered) == {0, 1}
    prompted = encoder.with_use(prompt="say: ")
    assert np.array_equal(vectors(prompted), vectors(sb.load(bert, prompt="say: ")))
    networks = {id(gpu._here(each)._network) for gpu in there for each in (encoder, prompted)}
    assert len(networks) == 2
    assert id(encoder._network) not in networks


def test_what_is_not_there_is_refused(bert, monkeypatch):
    encoder = sb.load(bert)
    for devices in ("0,1,2,3,4", "5", "0,4", "0,0", "", "-1", "cuda:0"):
        with pytest.raises(UserError, match="expected distinct numbers from 0 to 3"):
            placed(encoder, devices)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [gpu.number for gpu in places._local("all", "cuda")] == [0, 1]
    assert [gpu.number for gpu in places._local("1", "cuda")] == [1]
    for devices, device in (("0,2", "cuda"), ("0", "mps")):
        with pytest.raises(UserError, match="--devices"):
            places._local(devices, device)
    with pytest.raises(UserError, match=r"--devices needs a checkpoint .* leave it out"):
        placed(sb.load(lambda texts: [[1.0] for _ in texts]), "all")


def test_sides_and_fitted_encoders_share_their_checkpoints_batches(bert, tmp_path):
    folder = bert
    sided = {"prompts": ("q: ", "d: ")}
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{a}\t{b}\t{len(b) % 5}\n" for a, b in pairwise(LINES)))
    alone, shared = (
        sb.evaluate(model, data=data, use_cache=False)
        for model in (sb.load(folder, **sided), placed(sb.load(folder, **sided), "all"))
    )
    assert shared.items["cosine"].tolist() == alone.items["cosine"].tolist()
    (tmp_path / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    fitted = sb.fit("whitening", folder, sentences=tmp_path / "lines.txt", dimensions=4, out=tmp_path / "white")
    white = sb.load(fitted.folder)
    assert np.array_equal(vectors(placed(white, "0,1")), vectors(white))
    assert len(placed(white, "0,1").base.places) == 2
