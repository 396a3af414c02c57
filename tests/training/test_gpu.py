"""Recorded passes: the same numbers as plain ones, and when what is recorded; the same bits each time on a GPU."""

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.training import distributed
from stsbench.training.distributed import Graphs, deterministic


@pytest.fixture
def passes(assembled, monkeypatch):
    """Return a trainer without dropout that records, its recordings plain passes, and what it recorded."""
    recorded = []

    def record(module, embedded, mask):
        recorded.append((tuple(mask.shape), embedded.requires_grad))
        return module

    monkeypatch.setattr(distributed, "_record", record)

    def make(*overrides):
        trainer = assembled("dropout=0", *overrides)
        found = Graphs()
        for term in trainer.terms:
            object.__setattr__(term.forward, "graphs", found)
            object.__setattr__(term.forward, "at_once", 1)
        trainer.graphs = found
        return trainer, recorded

    return make


def test_a_padded_pass_gives_the_loss_of_a_plain_one(passes, assembled):
    plain, (trainer, _) = assembled("dropout=0"), passes()
    for step in range(5):
        assert trainer.step(step).loss.item() == pytest.approx(plain.step(step).loss.item(), abs=1e-5)


def test_a_shape_is_recorded_at_its_third_use_and_a_short_last_batch_never(passes):
    trainer, recorded = passes("optimiser.chunk=null", "corpus.max_length=8")
    shapes = []
    for step in range(5):
        trainer.step(step)
        shapes.append(len(recorded))
    assert shapes[:2] == [0, 0]
    assert shapes[2] > 0
    assert all(width % distributed.WIDTH == 0 for (_, width), _ in recorded)
    count = len(recorded)
    trainer.step(5)  # two rows are left of 42 in batches of 8
    assert len(recorded) == count


def test_each_pass_of_a_step_has_a_recording_of_its_own(passes):
    trainer, recorded = passes("optimiser.accumulate=2", "optimiser.epochs=2", "corpus.max_length=8")
    for step in range(5):
        trainer.step(step)
    assert len(recorded) >= 2
    assert len(trainer.graphs._recorded) == len(recorded)
    assert {key[-1] for key in trainer.graphs._recorded} >= {0, 1}


def test_an_operation_that_does_not_repeat_is_told():
    refusal = "cumsum_cuda_kernel does not have a deterministic implementation, but you set 'x'"
    with (
        pytest.raises(UserError, match=r"cumsum_cuda_kernel .* implementation: --set deterministic=false trains"),
        deterministic("cuda", wanted=True),
    ):
        raise RuntimeError(refusal)
    import torch

    assert not torch.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="cumsum"), deterministic("cuda", wanted=False):
        raise RuntimeError(refusal)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "parts",
    [
        ("precision=bf16",),
        ("precision=fp32", "negatives.queue.size=20"),
        ("precision=fp16", "objective.mlm.weight=0.1", "head=dense-tanh"),
        ("precision=bf16", "target.encodes=keys", "noise.adversarial={step: 1.0e-3, gradient: own}"),
    ],
)
def test_recorded_passes_equal_plain_ones_to_the_bit_and_repeat(parts, train, monkeypatch):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    from safetensors.numpy import load_file

    monkeypatch.setattr(distributed, "WIDTH", 16)
    found = []
    for number, first in enumerate((2, 2, 10**9)):
        monkeypatch.setattr(distributed, "_RECORDED_FROM", first)
        done = train(*parts, "optimiser.epochs=3", device="cuda", out=f"run{number}")
        found.append(load_file(done.folder / "model.safetensors"))
    for other in found[1:]:
        assert all(np.array_equal(found[0][name], other[name]) for name in found[0])
