"""Where and how a checkpoint is computed: devices, precisions, attention, and OpenVINO instead of torch.

OpenVINO replaces the layers only: pooling, heads, tail, tokenizer and planner stay. sentence-transformers and
optimum export the last layer only, so OpenVINO's and NNCF's exporters are called here. int8 is static: ranges of
numbers are found once, on calibration sentences, so that a vector does not depend on its batch.
"""

import ctypes
import hashlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import MODELS, PACKAGES, UserError, missing, require
from stsbench.base.files import atomic_folder, cache_dir, fingerprint
from stsbench.base.words import suggestion
from stsbench.data.benchmarks import load_sample
from stsbench.data.corpus import load_corpus
from stsbench.encoders.checkpoint import Checkpoint, quiet_transformers
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.protocol import TokenSequence
from stsbench.encoders.use import ATTENTIONS, BIDIRECTIONAL, MASKS, PRECISIONS, TORCH, Use, option_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stsbench.encoders.network import Network

DEVICES = ("auto", "cpu", "cuda", "mps")

DEVICE_OF_JOBS = "STSBENCH_DEVICE"
"""The environment variable by which a sweep passes its `--device` to the processes of its jobs."""

BACKENDS = {TORCH: tuple(PRECISIONS), "openvino": ("fp32", "bf16", "int8")}
"""The precisions of each program. In the missing ones, a vector would depend on its batch."""

CALIBRATION_SENTENCES = 256

_FILE = "model.xml"

_HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32"}
"""OpenVINO's hint for layers that are not quantised; its default on a CPU is not fp32."""

_Integers = NDArray[np.int64]
_Compute = Callable[[_Integers, _Integers], list[NDArray[np.float32]]]
"""Maps token ids and mask, shape (rows, width), to all hidden states, (rows, width, dimensions)."""


def require_combination(use: Use) -> None:
    """Raises a UserError for an unknown or incompatible back end, precision, attention kernel or mask."""
    backend, precision, device = use.backend, use.precision, use.device
    for name, known in (("attention", ATTENTIONS), ("attention_mask", MASKS)):
        value = getattr(use, name)
        if value not in {AUTO, *known}:
            raise UserError(f"unknown {option_of(name)} {value!r}: {suggestion(value, [AUTO, *known])}")
        if value != AUTO and backend != TORCH:
            raise UserError(f"{option_of(name)} needs torch: leave it out, or leave out --backend {backend}.")
    if backend not in BACKENDS:
        raise UserError(f"unknown back end {backend!r}: {suggestion(backend, BACKENDS)}")
    if precision not in BACKENDS[backend]:
        raise UserError(f"{backend} has no precision {precision!r}. Use {', '.join(BACKENDS[backend])}.")
    if backend != TORCH:
        if device not in {"auto", "cpu"}:
            raise UserError(f"--backend {backend} computes on the CPU. Leave out --device {device}.")
        require(backend, f"--backend {backend}")


def resolve_device(device: str) -> str:
    """Returns `cpu`, `cuda` or `mps`; `auto` becomes the fastest available device, or in a sweep's job the
    sweep's.

    Without an accelerator's driver the answer is `cpu` without importing torch, which a cached run does not need.
    """
    if device == "auto":
        device = os.environ.get(DEVICE_OF_JOBS, device)
    if device not in DEVICES:
        raise UserError(f"unknown device {device!r}: {suggestion(device, DEVICES)}")
    if device == "cpu" or (device == "auto" and (not _may_have_accelerator() or missing(MODELS))):
        return "cpu"
    require(MODELS, f"device {device}")
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next((name for name in available if available[name]), "cpu")
    if not available[device]:
        raise UserError(f"device {device} is not available to torch {torch.__version__}. Use --device cpu.")
    return device


def _may_have_accelerator() -> bool:
    if "torch" in sys.modules or sys.platform != "linux":
        return True
    try:
        ctypes.CDLL("libcuda.so.1")  # NVIDIA's driver
    except OSError:
        return Path("/dev/kfd").exists()  # AMD's
    return True


@cache
def calibration() -> tuple[tuple[str, ...], str]:
    """Returns the sentences that int8 is calibrated on, and four hexadecimal digits of their hash.

    They are bundled sentences that the sample's pairs do not contain, so calibration uses no test data.
    """
    pairs = load_sample().pairs
    scored = {*pairs["sentence1"], *pairs["sentence2"]}
    texts = [text for text in load_corpus("sample") if text not in scored]
    drawn = np.random.default_rng(0).permutation(len(texts))[:CALIBRATION_SENTENCES]
    chosen = tuple(texts[row] for row in drawn)
    return chosen, hashlib.sha256("\n".join(chosen).encode()).hexdigest()[:4]


@dataclass(frozen=True)
class CompiledModel:
    """Replaces the torch model in a `Network`, and keeps its configuration, pooler and number of tokens.

    It takes no positions, so the network refuses templates that need them.
    """

    compute: _Compute
    known_tokens: int
    config: Any = None
    pooler: "Callable[[Tensor], Tensor] | None" = None

    def forward(self, input_ids: "Tensor", attention_mask: "Tensor | None" = None, **_options: Any) -> Any:
        """Returns the states as Transformers names them."""
        import torch

        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = tuple(torch.from_numpy(state) for state in self.compute(input_ids.numpy(), mask.numpy()))
        pooled = None if self.pooler is None else self.pooler(states[-1])
        return SimpleNamespace(last_hidden_state=states[-1], hidden_states=states, pooler_output=pooled)

    __call__ = forward

    def get_input_embeddings(self) -> Any:
        """Returns the number of token embeddings, as in Transformers."""
        return SimpleNamespace(num_embeddings=self.known_tokens)


def compiled(
    network: "Network", use: Use, about: Sequence[str | None], samples: Sequence[TokenSequence] = ()
) -> "Network":
    """Returns a network whose layers a back end computes; the compiled file is kept in the cache folder.

    Args:
        network: as torch loaded it, in fp32, on the CPU.
        use: its back end, which is installed, and precision.
        about: hashes of weights and configuration.
        samples: for int8, the token ids of the calibration sentences.
    """
    backend, precision = use.backend, use.precision
    versions = [f"{package} {version(package)}" for package in PACKAGES[backend].values()]
    folder = (
        cache_dir() / "compiled" / fingerprint([backend, precision, versions, list(about), list(samples)])[:32]
    )
    if not folder.is_dir():
        try:
            with atomic_folder(folder) as being_made, redirect_stdout(io.StringIO()), quiet_transformers():
                _export(_layers_of(network.model), being_made / _FILE, precision, samples)
        except Exception as error:  # exporters raise many types for unsupported architectures
            reason = (str(error).strip().splitlines() or ["no reason given"])[0][:200]
            raise UserError(f"{backend} cannot compile {network.name} ({reason}). Leave out --backend.") from error
    model = CompiledModel(
        compute=_load(folder / _FILE, precision),
        known_tokens=network.model.get_input_embeddings().num_embeddings,
        config=network.model.config,
        pooler=getattr(network.model, "pooler", None),
    )
    return replace(network, model=model)


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


def _export(layers: "nn.Module", file: Path, precision: str, samples: Sequence[TokenSequence]) -> None:
    openvino = _quiet_openvino()
    import torch

    # Two rows of different lengths, so that the mask is traced.
    ids, mask = torch.ones((2, 8), dtype=torch.long), torch.ones((2, 8), dtype=torch.long)
    mask[1, 5:] = 0
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


def _load(file: Path, precision: str) -> _Compute:
    openvino = _quiet_openvino()
    import torch

    hints = {"INFERENCE_PRECISION_HINT": _HINTS[precision], "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    model = openvino.Core().compile_model(file, "CPU", hints)

    def compute(ids: _Integers, mask: _Integers) -> list[np.ndarray]:
        states = model({"input_ids": ids, "attention_mask": mask})
        return [np.array(states[output], dtype=np.float32) for output in model.outputs]

    return compute


def _quiet_openvino() -> Any:
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


def other_masks(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Returns the attention masks to try for a decoder (both if its files set one); none for an encoder."""
    from transformers.models.auto import modeling_auto

    config = checkpoint.json("config.json")
    if not (config.get("is_decoder") or config.get("auto_map")):
        kind = config.get("model_type")
        # The first mapping also lists encoders that can be used as decoders; the second has no language models.
        generates = kind in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        if not generates or kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
            return ()
    sets_mask = any(
        config.get(name) is not None for name in ("auto_map", "is_causal", "use_bidirectional_attention")
    )
    return MASKS if sets_mask else (BIDIRECTIONAL,)
