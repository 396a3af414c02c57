"""What a script written years ago expects around it: calls that Transformers 5 removed, and a SentEval of its own.

Each thing that is put in place, or not taken, is said once, as a warning of the logger `stsbench.compat.senteval`,
which stands on standard error unless the script sends its log elsewhere.
"""

import importlib.machinery
import logging
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_LOG = logging.getLogger("stsbench.compat.senteval")
_said: set[str] = set()

Mend = Callable[[ModuleType], None]


def say_once(sentence: str) -> None:
    """Say something about the script's surroundings, if it was not said in this process before."""
    if sentence not in _said:
        _said.add(sentence)
        _LOG.warning(sentence)


def tell_of_another_senteval() -> None:
    """Say that the SentEval which `sys.path` leads to is not used, where this package stands in for it."""
    if "senteval" not in sys.modules:
        return
    installed = importlib.machinery.PathFinder.find_spec("senteval")
    # A folder without __init__.py, of data perhaps, has no origin and would not be SentEval.
    if installed is not None and installed.origin and Path(installed.origin).is_file():
        say_once(f"The SentEval in {Path(installed.origin).parent} is not used: stsbench answers in its place.")


def supply_removed_calls() -> None:
    """Give Transformers back what its version 5 removed and these scripts call; whatever exists stays as it is.

    - `tokenizer.batch_encode_plus` and `tokenizer.encode_plus` are `tokenizer(...)`.
    - `from_pretrained(load_in_8bit=..., load_in_4bit=...)` is `quantization_config=BitsAndBytesConfig(...)`, or
      nothing where both are False.

    What is not imported yet gets them when it is: a script without Transformers does not wait for it.
    """
    mends: dict[str, Mend] = {
        "transformers.tokenization_utils_base": _mend_tokenizers,
        "transformers.modeling_utils": _mend_models,
    }
    for name, mend in mends.items():
        if name in sys.modules:
            mend(sys.modules[name])
    waiting = {name: mend for name, mend in mends.items() if name not in sys.modules}
    if waiting:
        sys.meta_path.insert(0, _AfterImport(waiting))


class _AfterImport(MetaPathFinder):
    """Does something to modules as soon as they have been imported."""

    def __init__(self, mends: dict[str, Mend]) -> None:
        self.mends = mends

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        mend = self.mends.pop(fullname, None)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target) if mend else None
        if mend is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_mend(module: ModuleType) -> None:
            execute(module)
            mend(module)

        setattr(spec.loader, "exec_module", execute_and_mend)  # noqa: B010 (of this loader, not of its class)
        return spec


def _mend_tokenizers(module: ModuleType) -> None:
    tokenizers = module.PreTrainedTokenizerBase
    for name, call in (("batch_encode_plus", _batch_encode_plus), ("encode_plus", _encode_plus)):
        if not hasattr(tokenizers, name):
            setattr(tokenizers, name, call)


def _batch_encode_plus(
    self: Any, batch_text_or_text_pairs: Any, add_special_tokens: bool = True, **options: Any
) -> Any:
    say_once("Transformers 5 has no tokenizer.batch_encode_plus: stsbench answers it with tokenizer(...).")
    return self(batch_text_or_text_pairs, add_special_tokens=add_special_tokens, **options)


def _encode_plus(
    self: Any, text: Any, text_pair: Any = None, add_special_tokens: bool = True, **options: Any
) -> Any:
    say_once("Transformers 5 has no tokenizer.encode_plus: stsbench answers it with tokenizer(...).")
    return self(text, text_pair, add_special_tokens=add_special_tokens, **options)


def _mend_models(module: ModuleType) -> None:
    import transformers

    if int(transformers.__version__.split(".")[0]) < 5:
        return
    load = module.PreTrainedModel.from_pretrained.__func__
    if load.__module__ == __name__:
        return

    @wraps(load, assigned=("__name__", "__qualname__", "__doc__"))
    def from_pretrained(cls: Any, *arguments: Any, **options: Any) -> Any:
        bits = {name: options.pop(name) for name in ("load_in_8bit", "load_in_4bit") if name in options}
        if bits:
            say_once(
                "Transformers 5 knows no load_in_8bit: stsbench says it with BitsAndBytesConfig where it is True."
            )
        if any(bits.values()) and options.get("quantization_config") is None:
            options["quantization_config"] = transformers.BitsAndBytesConfig(**bits)
        return load(cls, *arguments, **options)

    module.PreTrainedModel.from_pretrained = classmethod(from_pretrained)
