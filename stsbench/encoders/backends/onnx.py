"""Layers by ONNX Runtime, in fp32."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stsbench.encoders.backends.program import Compute, Integers
from stsbench.encoders.protocol import TokenSequence

if TYPE_CHECKING:
    from torch import nn

FILE = "model.onnx"
PACKAGES = ("onnx", "onnxruntime")


def export(layers: "nn.Module", file: Path, _precision: str, _samples: Sequence[TokenSequence]) -> None:
    """Convert the layers and write them.

    Args:
        layers: of ids and mask to the states.
        file: to write.
    """
    import torch

    ids = torch.ones((2, 8), dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    with torch.inference_mode():
        names = [f"state{number}" for number in range(len(layers(ids, mask)))]
    sizes = {0: "rows", 1: "width"}
    torch.onnx.export(
        layers,
        (ids, mask),
        file,
        input_names=["input_ids", "attention_mask"],
        output_names=names,
        dynamic_axes={"input_ids": sizes, "attention_mask": sizes},
        dynamo=False,
    )


def load(file: Path, _precision: str) -> Compute:
    """Return what computes the states, with as many threads as torch has."""
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def compute(ids: Integers, mask: Integers) -> list[np.ndarray]:
        states: list[np.ndarray] = session.run(None, {"input_ids": ids, "attention_mask": mask})
        return states

    return compute
