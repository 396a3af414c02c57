"""Layers by OpenVINO: fp32 and bf16 as the checkpoint has them, int8 quantised by NNCF.

int8 is static: weights and activations have ranges that were found once, on calibration sentences. OpenVINO's own
default on a CPU is whatever it thinks fastest, which is not fp32: the precision is always set.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stsbench.encoders.backends.program import Compute, Integers
from stsbench.encoders.protocol import TokenSequence

if TYPE_CHECKING:
    from torch import nn

FILE = "model.xml"
PACKAGES = ("openvino", "nncf")

_HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32"}
"""What is computed in where the model says nothing; quantised layers say int8 themselves."""


def export(layers: "nn.Module", file: Path, precision: str, samples: Sequence[TokenSequence]) -> None:
    """Convert the layers and write them.

    Args:
        layers: of ids and mask to the states.
        file: to write.
        precision: `int8` quantises.
        samples: token ids of calibration sentences, for int8.
    """
    openvino = _quiet_openvino()
    import torch

    # Two rows of unlike length, so that the mask is part of what is traced.
    ids = torch.ones((2, 8), dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    model = openvino.convert_model(layers, example_input={"input_ids": ids, "attention_mask": mask})
    if precision == "int8":
        import nncf

        model = nncf.quantize(
            model,
            nncf.Dataset([_alone(sample) for sample in samples if len(sample)]),
            preset=nncf.QuantizationPreset.MIXED,
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(samples),
        )
    openvino.save_model(model, file, compress_to_fp16=False)


def load(file: Path, precision: str) -> Compute:
    """Return what computes the states, with as many threads as torch has."""
    openvino = _quiet_openvino()
    import torch

    model = openvino.Core().compile_model(
        file,
        "CPU",
        {"INFERENCE_PRECISION_HINT": _HINTS[precision], "INFERENCE_NUM_THREADS": torch.get_num_threads()},
    )

    def compute(ids: Integers, mask: Integers) -> list[np.ndarray]:
        states = model({"input_ids": ids, "attention_mask": mask})
        return [np.array(states[output], dtype=np.float32) for output in model.outputs]

    return compute


def _quiet_openvino() -> Any:
    """Import OpenVINO, which with NNCF reports its use to its makers unless the package for that is absent."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


def _alone(sample: TokenSequence) -> dict[str, Integers]:
    ids = np.array([sample], dtype=np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}
