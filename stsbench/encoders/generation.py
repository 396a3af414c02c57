"""What the installed versions of Transformers and torch can do.

Vectors do not depend on them except for rounding: what a library cannot do is computed differently, or refused.
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
    """Returns whether every encoder takes its attention from an extensible table (Transformers 5).

    Encoders then pass unknown arguments on to attention and accept masks of four dimensions. Before, BERT and
    similar models had one class per attention kernel.
    """
    return _transformers() >= Version("5.0")


def has_attention_without_padding() -> bool:
    """Returns whether attention accepts the boundaries of concatenated sequences, on a GPU."""
    return has_attention_table() and find_spec("torch.nn.attention.varlen") is not None


def require_named_weights_are_read(config: dict[str, Any], name: str) -> None:
    """Refuses a configuration that names its weight file if Transformers would read another one.

    Args:
        config: the content of config.json.
        name: the checkpoint's, for messages.
    """
    if config.get("transformers_weights") and _transformers() < Version("4.52"):
        raise UserError(
            f"the config.json of {name} names its weight file, which Transformers {_transformers()} ignores: "
            "install Transformers 4.52 or newer."
        )


def can_leave_compiled() -> bool:
    """Returns whether torch can run a compiled model without compilation for a while."""
    return Version(version("torch")) >= Version("2.6")


def has_safe_pickles() -> bool:
    """Returns whether torch reads pickled weights without running code in them (CVE-2025-32434)."""
    return Version(version("torch")) >= Version("2.6")


def require_pickles_are_safe(path: Path) -> None:
    """Refuses a pickled weight file if reading it can run code."""
    if path.suffix != ".safetensors" and not has_safe_pickles():
        raise UserError(
            f"{path} needs torch 2.6 or newer, because torch {version('torch')} can run code in it: use the "
            "checkpoint in safetensors, or install a newer torch."
        )


def require_torch_is_used() -> None:
    """Refuses a torch that is too old for Transformers, which would report that torch is missing."""
    from transformers.utils import is_torch_available

    if not is_torch_available():
        raise UserError(
            f"torch {version('torch')} is too old for Transformers {_transformers()}: install a newer torch, or "
            "an older Transformers."
        )


def report_of_loading(model: Any, report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Transformers' loading info, with missing weights by their names in the network.

    Before 5.0 some of them have the prefix of a network with a head.
    """
    missing = [name.removeprefix(f"{model.base_model_prefix}.") for name in report["missing_keys"]]
    return {**report, "missing_keys": missing}


@cache
def _transformers() -> Version:
    return Version(version("transformers"))
