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


def test_auto_takes_what_torch_finds(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto") == resolve_device("cuda") == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto") == resolve_device("mps") == "mps"


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_told(device, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UserError, match=f"device {device} is not available to torch .*. Use --device cpu"):
        resolve_device(device)


@pytest.mark.gpu
@pytest.mark.parametrize("pooling", ["cls", "avg", "avg_static_last", "max", "last"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_cuda_equals_the_processor(kind, pooling, cuda, tiny, sentences, vectors_of):
    folder = tiny(kind)
    there = vectors_of(load(folder, pooling=pooling, device="cuda"), sentences)
    np.testing.assert_allclose(
        there, vectors_of(load(folder, pooling=pooling, device="cpu"), sentences), atol=1e-3
    )
