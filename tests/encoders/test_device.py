"""Devices: what is there, and that an accelerator computes what the processor does."""

import sys

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders import backends as devices
from stsbench.encoders.backends import resolve_device
from stsbench.encoders.load import load


@pytest.fixture
def cuda():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch


def test_auto_without_a_driver_does_not_load_torch(monkeypatch):
    monkeypatch.setattr(devices, "_may_have_accelerator", lambda: False)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert resolve_device("auto") == "cpu"


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_auto_takes_what_torch_finds_and_a_device_that_is_missing_is_refused(name, monkeypatch):
    import torch

    for device, module in (("cuda", torch.cuda), ("mps", torch.backends.mps)):
        monkeypatch.setattr(module, "is_available", lambda device=device: device == name)
    assert resolve_device("auto") == resolve_device(name) == name
    other = {"cuda": "mps", "mps": "cuda"}[name]
    with pytest.raises(UserError, match=f"device {other} is not available to torch .*. Use --device cpu"):
        resolve_device(other)


@pytest.mark.gpu
@pytest.mark.parametrize("pooling", ["cls", "avg", "avg_static_last", "max", "last"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_cuda_equals_the_processor(kind, pooling, cuda, tiny, sentences, vectors_of):
    folder = tiny(kind)
    there = vectors_of(load(folder, pooling=pooling, device="cuda"), sentences)
    np.testing.assert_allclose(
        there, vectors_of(load(folder, pooling=pooling, device="cpu"), sentences), atol=1e-3
    )
