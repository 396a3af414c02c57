"""What a weight file holds: tensors, read without running code, and which of them no sentence vector depends on.

A network takes from a weight file what it has a place for. What is left over may be a head that training needed
and measuring does not; or it is a sign that these are not the weights of this configuration, and the score would
be of another network. So what is known to be harmless stands in one table, with the reason, and is told; anything
else is refused when the weights are loaded.
"""

import pickletools
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.generation import require_pickles_are_safe

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Harmless:
    """Tensors that a network has no place for and whose absence changes no sentence vector.

    Attributes:
        names: a pattern of their whole names.
        what: what they are, for a note; "" for what is not worth one.
        reason: why they change nothing.
        model_types: the architectures of which this holds; all if empty.
    """

    names: str
    what: str
    reason: str
    model_types: frozenset[str] = frozenset()


HARMLESS = (
    Harmless(r"(.*\.)?position_ids", "", "they count 0, 1, 2, ..., which the network does itself"),
    Harmless(r"(.*\.)?embeddings\.token_type_ids", "", "they are zeros, which the network makes itself"),
    Harmless(
        r"(.*\.)?(attn|attention|self_attn)\.(masked_)?bias", "", "the causal mask, which the network makes itself"
    ),
    Harmless(
        r"(.*\.)?rotary_emb\.(inv_freq|cos_cached|sin_cached)", "", "rotary angles, which the network makes itself"
    ),
    Harmless(r"mlp\.dense\.(weight|bias)", "", "SimCSE's head: pooling `cls` reads it, other poolings do without"),
    Harmless(
        r"cls\.(predictions|seq_relationship)\..*"
        r"|lm_head\..*"
        r"|vocab_(transform|layer_norm|projector)\..*"
        r"|predictions\..*"
        r"|(lm|mask)_predictions\..*"
        r"|(generator|discriminator)_(predictions|lm_head)\..*"
        r"|(head\.(dense|norm)|decoder)\.(weight|bias)",
        "a language model's head",
        "it reads the last layer, after which pooling begins",
    ),
    Harmless(
        r"((pre_)?classifier|score|sop_classifier|qa_outputs|logits_proj)\..*",
        "a classifier",
        "it reads the last layer, after which pooling begins",
    ),
    Harmless(
        r"(mlp|projector|projection_head|predictor)\.(?!dense\.(weight|bias)$).*",
        "a training objective's projection",
        "it stands between the vector and the training loss",
    ),
    Harmless(
        r"(generator|discriminator)\..*",
        "a second network of the training objective",
        "it stands beside the encoder",
    ),
    Harmless(
        r"(.*\.)?pooler\..*",
        "a pooler",
        "the network has none, and pooling `cls` is refused without one",
        frozenset({"deberta", "deberta-v2", "distilbert", "electra", "modernbert"}),
    ),
)
"""The one list of what may be left over. Whatever else is, is refused."""

_FLOATS = {"F64", "F32", "F16", "BF16"}


def harmless(name: str, model_type: str) -> Harmless | None:
    """Return what a tensor that the network has no place for is known as; None if it is not known.

    >>> harmless("lm_head.dense.weight", "roberta").what
    "a language model's head"
    >>> harmless("encoder.layer.12.output.dense.weight", "bert") is None
    True
    """
    for entry in HARMLESS:
        if re.fullmatch(entry.names, name) and (not entry.model_types or model_type in entry.model_types):
            return entry
    return None


def notes_on_unread(name: str, files: Iterable[Path], model_type: str) -> tuple[str, ...]:
    """Return a note on what weight files hold beside the encoder, as far as it is known to be harmless.

    It is read from the files' lists of names, without torch: what a record says must not depend on whether the
    weights had to be loaded or the vectors were cached.
    """
    entries = [harmless(tensor, model_type) for file in files for tensor in tensor_names(file)]
    counts = Counter(entry for entry in entries if entry is not None and entry.what)
    if not counts:
        return ()
    parts = "; ".join(
        f"{entry.what} ({count} {'tensor' if count == 1 else 'tensors'}: {entry.reason})"
        for entry, count in counts.items()
    )
    return (f"{name} also holds {parts}: left out of its sentence vectors.",)


def refuse_unlike(name: str, model_type: str, loading: Mapping[str, Collection[str]]) -> None:
    """Refuse weights that are not those of the network that Transformers loaded them into, as its report says."""
    # A pooler is refused where it is asked for.
    if missing := [tensor for tensor in loading["missing_keys"] if not tensor.startswith("pooler.")]:
        raise UserError(
            f"{name} lacks the weights of {_first_of(missing)}: they would be random. "
            "Give a checkpoint of this architecture."
        )
    if unknown := [tensor for tensor in loading["unexpected_keys"] if harmless(tensor, model_type) is None]:
        raise UserError(
            f"{name} holds weights that the network of its config.json has no place for, {_first_of(unknown)}: "
            "they would be left out in silence. Give the config.json that they were trained with."
        )


def require_floats(files: Iterable[Path], model_type: str) -> None:
    """Refuse weight files with a weight of whole numbers, which would be taken for the weights themselves."""
    for file in files:
        for tensor, (kind, _) in described(file).items():
            if kind not in _FLOATS and harmless(tensor, model_type) is None:
                raise UserError(
                    f"{file} holds {tensor} as {kind}, where weights are floating-point numbers: fetch it again, "
                    "or give the checkpoint before it was quantised."
                )


def require_memory_for(checkpoint: Checkpoint, precision: str, device: str) -> None:
    """Refuse weights that will not fit, before they are read."""
    numbers = sum(_count(file) for file in checkpoint.weight_files())
    needed = numbers * (4 if precision == "fp32" else 2)
    smaller = "--precision bf16, " if precision == "fp32" else ""
    what = f"the weights of {checkpoint.name} in {precision}"
    if device != "cuda":
        require_memory(needed, what, f"use {smaller}a smaller model or a machine with more memory")
        return
    import torch

    free, _ = torch.cuda.mem_get_info()
    if needed > free:
        raise UserError(
            f"{what} take {needed / 1e9:,.1f} GB of memory, of which {free / 1e9:,.1f} GB are free on {device}: "
            f"use {smaller}a smaller model or --device cpu."
        )


def _count(path: Path) -> int:
    """Return how many numbers a weight file holds; of a pickled one, as many as it has room for in fp32."""
    if path.suffix != ".safetensors":
        return path.stat().st_size // 4
    return sum(prod(tensor.shape) for tensor in _header(path).values())


def read_weights(path: Path, device: str = "cpu") -> "dict[str, Tensor]":
    """Return the tensors of a weight file without executing anything that is in it.

    On the device `meta`, a file that torch saved gives names, shapes and kinds alone.
    """
    import torch
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        require_pickles_are_safe(path)
        content = torch.load(path, map_location=device, weights_only=True)
    except UserError:
        raise
    except Exception as error:  # the libraries raise a dozen kinds for what is one thing to the person
        raise UserError(
            f"{path} is damaged, or holds more than weights ({type(error).__name__}): fetch it again."
        ) from error
    if not isinstance(content, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in content.values()):
        raise UserError(f"{path} holds something else than named tensors: fetch it again.")
    return {str(tensor): value for tensor, value in content.items()}


def read_arrays(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return some tensors of a weight file as NumPy's arrays, for which a safetensors file takes no torch.

    Numbers in bfloat16, which NumPy does not have, come as float32, which holds each of them exactly.
    """
    if path.suffix != ".safetensors":
        tensors = {name: tensor for name, tensor in read_weights(path).items() if name in names}
        return {
            name: (tensor.float() if tensor.is_floating_point() else tensor).numpy()
            for name, tensor in tensors.items()
        }
    from safetensors import SafetensorError, deserialize, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in sorted({*names} & {*file.keys()})}
            arrays = {name: file.get_tensor(name) for name, kind in kinds.items() if kind != "BF16"}
        if len(arrays) < len(kinds):
            for name, tensor in deserialize(path.read_bytes()):  # type: ignore[no-untyped-call]
                if kinds.get(name) == "BF16":
                    # It is the first half of a float32.
                    halves = np.frombuffer(tensor["data"], dtype="<u2").astype(np.uint32) << 16
                    arrays[name] = halves.view(np.float32).reshape(tensor["shape"])
    except (
        SafetensorError,
        OSError,
        TypeError,
        AttributeError,
    ) as error:  # the last two of kinds that NumPy lacks
        raise UserError(
            f"{path} is damaged, or holds numbers of a kind that is not read here ({type(error).__name__}): "
            "fetch it again."
        ) from error
    return arrays


def tensor_names(path: Path) -> set[str]:
    """Return the names of a weight file's tensors, of a pickled one with other strings; none if it is damaged."""
    if path.suffix == ".safetensors":
        return set(_header(path))
    try:
        if not zipfile.is_zipfile(path):
            with path.open("rb") as stream:
                # As torch wrote before version 1.6: a magic number, two settings, then the tensors.
                return set().union(*(_strings(stream) for _ in range(4)))
        with zipfile.ZipFile(path) as archive:
            member = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            with archive.open(member) as stream:
                return _strings(stream)
    except Exception:  # whatever it is, loading will tell; here only names are wanted
        return set()


def _strings(stream: IO[bytes]) -> set[str]:
    # The operations of a pickle are listed, not carried out.
    return {value for _, value, _ in pickletools.genops(stream) if isinstance(value, str)}


class Described(NamedTuple):
    """The kind of a tensor's numbers, as safetensors names it, and the tensor's shape."""

    kind: str
    shape: Sequence[int]


def described(path: Path) -> dict[str, Described]:
    """Return what a weight file says of its tensors; nothing of a damaged safetensors file, as loading tells that.

    Of a pickled file every kind of floating-point number counts as F32.
    """
    if path.suffix == ".safetensors":
        return _header(path)
    # On no device: what kind of numbers they are is known without reading them.
    return {
        tensor: Described(
            "F32" if value.is_floating_point() else str(value.dtype).removeprefix("torch."), tuple(value.shape)
        )
        for tensor, value in read_weights(path, device="meta").items()
    }


def _header(path: Path) -> dict[str, Described]:
    """Return what a safetensors file says of its tensors; nothing of a damaged one, as loading tells that."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_slice(name) for name in sorted(file.keys())}
            return {name: Described(tensor.get_dtype(), tensor.get_shape()) for name, tensor in tensors.items()}
    except (OSError, SafetensorError):
        return {}


def _first_of(names: Collection[str]) -> str:
    others = len(names) - 1
    return min(names) + (f" and {others} more" if others else "")
