"""Calling Transformers and its relatives: their errors become one sentence, and they log nothing."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from stsbench.base.errors import UserError

_DAMAGED = re.compile(
    "weights_only|Unable to load weights from|ignore_mismatched_sizes|SafetensorError|Unpickling"
)


@contextmanager
def reporting_failures(what: str) -> Iterator[None]:
    """Turns any error of a library about a checkpoint's content into a UserError: "Cannot load X: ..."."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        # Panics of libraries written in Rust are not Exceptions.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(f"cannot {what}: {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """Returns the first line of a library's error, without advice to switch off protections."""
    kind, message = type(error).__name__, str(error).strip()
    if _DAMAGED.search(f"{kind} {message}"):
        return "its weight files are damaged or do not fit its config.json. Download the checkpoint again."
    first_line = message.partition("\n")[0].rstrip(" .:")
    if isinstance(error, OSError | ValueError | ImportError | RuntimeError) and first_line:
        return f"{first_line}."
    return f"its files have unexpected content ({kind}: {first_line}). Download the checkpoint again."


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences Transformers and the libraries around it: their logs, warnings and progress bars."""
    from transformers.utils import logging as of_transformers

    level, has_bars = logging.root.manager.disable, of_transformers.is_progress_bar_enabled()
    logging.disable(logging.ERROR)
    of_transformers.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        if has_bars:
            of_transformers.enable_progress_bar()
