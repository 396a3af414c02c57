"""What old scripts expect: calls that Transformers 5 removed, and a SentEval of their own.

Each replacement is reported once, as a warning of the logger `stsbench.compat.senteval`.
"""

import importlib.machinery
import logging
import sys
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

_LOG = logging.getLogger("stsbench.compat.senteval")
_warned: set[str] = set()


def warn_once(message: str) -> None:
    """Logs a warning, unless this process has logged it before."""
    if message not in _warned:
        _warned.add(message)
        _LOG.warning(message)


def warn_of_another_senteval() -> None:
    """Warns that the SentEval on `sys.path` is not used, if this package replaces it."""
    if "senteval" not in sys.modules:
        return
    installed = importlib.machinery.PathFinder.find_spec("senteval")
    # A folder without __init__.py, such as one of data, has no origin.
    if installed is not None and installed.origin and Path(installed.origin).is_file():
        warn_once(f"The SentEval in {Path(installed.origin).parent} is not used: stsbench replaces it.")


def supply_removed_calls() -> None:
    """Restores calls that Transformers 5 removed and these scripts use; existing ones are unchanged.

    - `tokenizer.batch_encode_plus` and `tokenizer.encode_plus` call `tokenizer(...)`.
    - `from_pretrained(load_in_8bit=..., load_in_4bit=...)` sets `quantization_config=BitsAndBytesConfig(...)`,
      or nothing if both are False.
    """
    with suppress(ModuleNotFoundError):  # a script may do without Transformers
        import transformers

        for name in ("batch_encode_plus", "encode_plus"):
            if not hasattr(transformers.PreTrainedTokenizerBase, name):
                setattr(transformers.PreTrainedTokenizerBase, name, _calling(name))
        load = transformers.PreTrainedModel.from_pretrained.__func__
        if int(transformers.__version__.split(".")[0]) >= 5 and load.__module__ != __name__:
            setattr(transformers.PreTrainedModel, "from_pretrained", classmethod(_with_bits(load)))  # noqa: B010


def _calling(name: str) -> Any:
    def call(self: Any, text: Any, *more: Any, **options: Any) -> Any:
        warn_once(f"Transformers 5 has no tokenizer.{name}: stsbench calls tokenizer(...) instead.")
        # The second argument of `batch_encode_plus` is `add_special_tokens`, that of `encode_plus` a second text.
        if name == "batch_encode_plus" and more:
            options["add_special_tokens"], more = more[0], ()
        return self(text, *more, **options)

    return call


def _with_bits(load: Any) -> Any:
    @wraps(load, assigned=("__name__", "__qualname__", "__doc__"))
    def from_pretrained(cls: Any, *arguments: Any, **options: Any) -> Any:
        import transformers

        bits = {name: options.pop(name) for name in ("load_in_8bit", "load_in_4bit") if name in options}
        if bits:
            warn_once("Transformers 5 has no load_in_8bit: stsbench uses BitsAndBytesConfig if it is True.")
        if any(bits.values()) and options.get("quantization_config") is None:
            options["quantization_config"] = transformers.BitsAndBytesConfig(**bits)
        return load(cls, *arguments, **options)

    return from_pretrained
