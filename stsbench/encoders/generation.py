"""What the installed generation of Transformers and torch can do, told apart here alone.

A vector does not depend on it but for rounding: where a library cannot yet do something, the same is computed in
another way, or it is refused in a sentence.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.version import Version

from stsbench.base.errors import UserError


def has_attention_table() -> bool:
    """Return whether every encoder of Transformers takes its attention from a table that can be added to.

    From 5.0 on. Encoders then hand on to attention what they do not know themselves, and take a mask as attention
    does, of four dimensions. Before, BERT and its kin have a class for each way of computing attention.
    """
    return _transformers() >= Version("5.0")


def has_attention_without_padding() -> bool:
    """Return whether attention can be told where sequences begin that stand one behind the other, on a GPU."""
    return has_attention_table() and find_spec("torch.nn.attention.varlen") is not None


def require_named_weights_are_read(config: dict[str, Any], name: str) -> None:
    """Refuse a configuration that names its file of weights where Transformers would read another one.

    Args:
        config: what config.json says.
        name: the checkpoint's, for the message.
    """
    if config.get("transformers_weights") and _transformers() < Version("4.52"):
        raise UserError(
            f"the config.json of {name} names its file of weights, which Transformers {_transformers()} does not "
            "read: install Transformers 4.52 or newer."
        )


def can_leave_compiled() -> bool:
    """Return whether torch can run a compiled model as it was before, for a while."""
    return Version(version("torch")) >= Version("2.6")


def has_safe_pickles() -> bool:
    """Return whether torch reads pickled weights without running what is hidden in them (CVE-2025-32434)."""
    return Version(version("torch")) >= Version("2.6")


def require_pickles_are_safe(path: Path) -> None:
    """Refuse a pickled weight file where reading one can run code that is hidden in it."""
    if path.suffix != ".safetensors" and not has_safe_pickles():
        raise UserError(
            f"{path} is read with torch 2.6 or newer alone, as older ones can be made to run code in it (here is "
            f"torch {version('torch')}): give the checkpoint in safetensors, or install a newer torch."
        )


def require_torch_is_used() -> None:
    """Refuse a torch that Transformers leaves alone as too old: it would say that there is none."""
    from transformers.utils import is_torch_available

    if not is_torch_available():
        raise UserError(
            f"Transformers {_transformers()} does not work with torch {version('torch')}, which is too old for "
            "it: install a newer torch, or an older Transformers."
        )


def report_of_loading(model: Any, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Transformers says of loading weights, the missing ones by their names in the network.

    Before 5.0 it names those of some checkpoints as a network with a head around this one would.
    """
    missing = [name.removeprefix(f"{model.base_model_prefix}.") for name in report["missing_keys"]]
    return {**report, "missing_keys": missing}


@cache
def _transformers() -> Version:
    return Version(version("transformers"))
