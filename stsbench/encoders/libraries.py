"""Calling Transformers and its relatives: their errors become one sentence, and they print nothing."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stsbench.base.errors import UserError

_DAMAGED = ("weights_only", "Unable to load weights from")
_UNEXPECTED = "its files have unexpected content ({}). Download the checkpoint again."


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turns any error of a library about a checkpoint's content into a UserError: "Cannot load X: ..."."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"cannot {what}: {reason_of(error)}") from error
    except BaseException as error:
        # A library written in Rust fails so; it is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise UserError(f"cannot {what}: {_UNEXPECTED.format(error)}") from error


def reason_of(error: Exception) -> str:
    """Returns what a library says went wrong, without its advice to switch off the protection against pickles."""
    message = str(error)
    if "ignore_mismatched_sizes" in message:
        return "its weights do not have the sizes that its config.json gives. Download the checkpoint again."
    if type(error).__name__ in {"SafetensorError", "UnpicklingError"} or any(text in message for text in _DAMAGED):
        return "its weight file is damaged, or holds more than weights. Download the checkpoint again."
    if "TokenizersBackend" in message:
        return "its tokenizer was saved by Transformers 5. Install Transformers 5."
    if "CVE-" in message or "upgrade torch" in message:
        return (
            "Transformers reads pickled weights only with torch 2.6 or newer. Install it, or give the checkpoint "
            "as safetensors."
        )
    first_line = message.strip().partition("\n")[0].rstrip(" .:")
    if isinstance(error, LookupError | TypeError | AttributeError) or not first_line:
        return _UNEXPECTED.format(f"{type(error).__name__}: {first_line}".rstrip(": "))
    return f"{first_line}."


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences Transformers and the libraries below it, and restores them afterwards."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with nothing_printed():
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def nothing_printed() -> Iterator[None]:
    """Discards what libraries print past Python, as `tokenizers` does: it would end up in our JSON."""
    try:
        output = os.dup(1)
    except OSError:  # standard output is closed
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)


@contextmanager
def loading_reports() -> Iterator[list[tuple[Any, Mapping[str, Any]]]]:
    """Collects the networks that Transformers loads meanwhile, with its report of missing and unexpected weights.

    sentence-transformers does not ask for the report, so `from_pretrained` is replaced for the time being.
    """
    from transformers import PreTrainedModel

    reports: list[tuple[Any, Mapping[str, Any]]] = []
    original = PreTrainedModel.__dict__["from_pretrained"]

    def load(cls: type, *arguments: Any, **options: Any) -> Any:
        model, report = original.__func__(cls, *arguments, **options | {"output_loading_info": True})
        reports.append((model, report))
        return model

    PreTrainedModel.from_pretrained = classmethod(load)
    try:
        yield reports
    finally:
        PreTrainedModel.from_pretrained = original
