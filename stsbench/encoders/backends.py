"""Programs that compute a checkpoint's layers faster than torch on a CPU: OpenVINO and ONNX Runtime.

A back end replaces the layers only: pooling, heads, tail, tokenizer and planner stay. The exporters of
sentence-transformers and optimum return the last layer only, and optimum does not support Transformers 5, so the
export is here. OpenVINO's int8 (NNCF) is static: ranges of weights and activations are found once, on calibration
sentences, so that a vector does not depend on its batch.
"""

import hashlib
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.extras import PACKAGES
from stsbench.base.files import atomic_folder
from stsbench.data.benchmarks import load_sample, sample_sentences
from stsbench.encoders.cache import compiled_dir
from stsbench.encoders.libraries import quiet_transformers
from stsbench.encoders.network import Network
from stsbench.encoders.protocol import TokenSequence

if TYPE_CHECKING:
    from torch import Tensor, nn

CALIBRATION_SENTENCES = 256
_CALIBRATION_SEED = 0

_HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32"}
"""OpenVINO's hint for layers that are not quantised; its default on a CPU is not fp32."""

_Integers = NDArray[np.int64]
_Compute = Callable[[_Integers, _Integers], list[NDArray[np.float32]]]
"""Maps token ids and mask, shape (rows, width), to all hidden states, (rows, width, dimensions)."""


class Calibration(NamedTuple):
    """The sentences that int8 is calibrated on, in order, and four hexadecimal digits of their hash."""

    sentences: tuple[str, ...]
    digest: str


@cache
def calibration() -> Calibration:
    """Draws bundled sentences, none of them in the sample's pairs, so that calibration sees no test data."""
    pairs = load_sample().pairs
    scored = {*pairs["sentence1"], *pairs["sentence2"]}
    texts = [text for text in sample_sentences() if text not in scored]
    drawn = np.random.default_rng(_CALIBRATION_SEED).permutation(len(texts))[:CALIBRATION_SENTENCES]
    chosen = tuple(texts[row] for row in drawn)
    return Calibration(chosen, hashlib.sha256("\n".join(chosen).encode()).hexdigest()[:4])


@dataclass(frozen=True)
class CompiledModel:
    """Replaces the torch model in a `Network`, and keeps its configuration and pooler."""

    name: str
    compute: _Compute
    known_tokens: int
    config: Any = None
    pooler: "Callable[[Tensor], Tensor] | None" = None

    def __call__(
        self, input_ids: "Tensor", attention_mask: "Tensor | None" = None, **others: Any
    ) -> SimpleNamespace:
        """Returns the states as Transformers names them; refuses inputs that the compiled layers do not read."""
        import torch

        if more := sorted(name for name, value in others.items() if isinstance(value, torch.Tensor)):
            raise UserError(f"{self.name}: {', '.join(more)} is not supported by back ends: leave out --backend.")
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = tuple(torch.from_numpy(state) for state in self.compute(input_ids.numpy(), mask.numpy()))
        pooled = None if self.pooler is None else self.pooler(states[-1])
        return SimpleNamespace(last_hidden_state=states[-1], hidden_states=states, pooler_output=pooled)

    def forward(self, input_ids: "Tensor", attention_mask: "Tensor | None" = None) -> SimpleNamespace:
        """Returns the states; its parameters show that positions cannot be given."""
        return self(input_ids, attention_mask)

    def get_input_embeddings(self) -> SimpleNamespace:
        """Returns the number of token embeddings, as in Transformers."""
        return SimpleNamespace(num_embeddings=self.known_tokens)


def compiled(
    network: Network,
    backend: str,
    precision: str,
    about: Sequence[str | None],
    *,
    samples: Sequence[TokenSequence] = (),
) -> Network:
    """Returns a network whose layers a back end computes; the compiled file is kept in the cache folder.

    Args:
        network: as torch loaded it, in fp32, on the CPU.
        backend: one of `BACKENDS`, which is installed.
        precision: one of those that the back end has.
        about: hashes of weights and configuration.
        samples: for int8, the token ids of the calibration sentences.
    """
    program = _PROGRAMS[backend]
    versions = [f"{package} {version(package)}" for package in PACKAGES[backend].values()]
    described = json.dumps([backend, precision, versions, list(about), list(samples)])
    folder = compiled_dir() / hashlib.sha256(described.encode()).hexdigest()[:32]
    if not (folder / program.file).is_file():
        try:
            with atomic_folder(folder) as being_made, _quiet():
                program.export(_layers_of(network.model), being_made / program.file, precision, samples)
        except UserError:
            raise
        except Exception as error:  # exporters raise many types for unsupported architectures
            reason = (str(error).strip().splitlines() or ["no reason given"])[0][:200]
            raise UserError(
                f"{backend} cannot compile {network.name} ({type(error).__name__}: {reason}): leave out --backend."
            ) from error
    model = CompiledModel(
        name=network.name,
        compute=program.load(folder / program.file, precision),
        known_tokens=network.model.get_input_embeddings().num_embeddings,
        config=network.model.config,
        pooler=getattr(network.model, "pooler", None),
    )
    return replace(network, model=model)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences exporters: their progress would end up in our output."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), quiet_transformers():
        warnings.simplefilter("ignore")
        yield


def _layers_of(model: Any) -> "nn.Module":
    """Returns a module with plain tensors as inputs and outputs."""
    from torch import nn

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: "Tensor", attention_mask: "Tensor") -> "tuple[Tensor, ...]":
            states = self.model(
                input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True, return_dict=True
            )
            return tuple(states.hidden_states)

    return Layers().eval()


def _example() -> "tuple[Tensor, Tensor]":
    """Returns ids and mask of two rows of different lengths, so that the mask is traced."""
    import torch

    ids = torch.ones((2, 8), dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return ids, mask


def _export_openvino(layers: "nn.Module", file: Path, precision: str, samples: Sequence[TokenSequence]) -> None:
    openvino = _quiet_openvino()
    ids, mask = _example()
    model = openvino.convert_model(layers, example_input={"input_ids": ids, "attention_mask": mask})
    if precision == "int8":
        import nncf

        rows = [np.array([sample], dtype=np.int64) for sample in samples if len(sample)]
        model = nncf.quantize(
            model,
            nncf.Dataset([{"input_ids": row, "attention_mask": np.ones_like(row)} for row in rows]),
            preset=nncf.QuantizationPreset.MIXED,
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(samples),
        )
    openvino.save_model(model, file, compress_to_fp16=False)


def _load_openvino(file: Path, precision: str) -> _Compute:
    openvino = _quiet_openvino()
    import torch

    model = openvino.Core().compile_model(
        file,
        "CPU",
        {"INFERENCE_PRECISION_HINT": _HINTS[precision], "INFERENCE_NUM_THREADS": torch.get_num_threads()},
    )

    def compute(ids: _Integers, mask: _Integers) -> list[np.ndarray]:
        states = model({"input_ids": ids, "attention_mask": mask})
        return [np.array(states[output], dtype=np.float32) for output in model.outputs]

    return compute


def _quiet_openvino() -> Any:
    """Imports OpenVINO without its telemetry."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


def _export_onnx(layers: "nn.Module", file: Path, _precision: str, _samples: Sequence[TokenSequence]) -> None:
    import torch

    ids, mask = _example()
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


def _load_onnx(file: Path, _precision: str) -> _Compute:
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def compute(ids: _Integers, mask: _Integers) -> list[np.ndarray]:
        states: list[np.ndarray] = session.run(None, {"input_ids": ids, "attention_mask": mask})
        return states

    return compute


class _Program(NamedTuple):
    """The file name of compiled layers, and the functions that write and load them, given the precision."""

    file: str
    export: Callable[["nn.Module", Path, str, Sequence[TokenSequence]], None]
    load: Callable[[Path, str], _Compute]


_PROGRAMS = {
    "openvino": _Program("model.xml", _export_openvino, _load_openvino),
    "onnx": _Program("model.onnx", _export_onnx, _load_onnx),
}
