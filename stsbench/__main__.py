"""The process around the command line: `stsbench`, and `python -m stsbench`.

From its first line on an interrupt is quiet, and so is the end of the process: no traceback of a half-done import,
no complaint of a stream that is closed. The command line itself, `stsbench.cli.app`, is imported under this roof.
"""

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import Any

_QUIETLY = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and the request to end that a system or a scheduler makes: 130 and 143 as shells count."""

_OBJECTS = 200_000
"""New objects after which Python looks for rubbish. By its own 700 that is a tenth of a short command, by 50,000
still 0.04 s: imports and tables make objects in great numbers, which stay."""


def main() -> None:
    """Run the command line as a process of its own."""
    with_streams()
    _on_signals(_end_at_once)
    gc.set_threshold(_OBJECTS)
    # An interrupt that meets a callback inside Python's machinery would be printed and lost: it comes again.
    sys.unraisablehook = _again
    from stsbench.cli.app import EXIT_INTERRUPTED
    from stsbench.cli.app import main as run

    received: list[int] = []

    def interrupt(number: int, _frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    code: Any = EXIT_INTERRUPTED
    try:
        _on_signals(interrupt)
        run()
        code = 0
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        # A second one, while the first was told.
        pass
    finally:
        _on_signals(_end_at_once)
    # What is not needed any more goes with the process: Python would look through all of it once more.
    gc.disable()
    if code == EXIT_INTERRUPTED and received:
        _end_interrupted(128 + received[-1])
    if _is_all_done():
        _end_quickly(0 if code is None else code)
    sys.exit(code)


def with_streams() -> None:
    """Open what the process was started without: else a file that is opened next would be taken for a stream.

    Standard error goes nowhere then. Writing to standard output fails, as it was closed, and is told.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _on_signals(handler: Any) -> None:
    for number in _QUIETLY:
        # What was started to ignore a signal (`nohup`, a job in the background) goes on ignoring it. A worker of
        # torchrun is ended by its parent, also while it waits for others: at once, as is the default.
        if signal.getsignal(number) is signal.SIG_IGN or (number == signal.SIGTERM and "WORLD_SIZE" in os.environ):
            continue
        signal.signal(number, handler)


def _end_at_once(number: int, _frame: Any) -> None:
    """End while nothing is open yet, or any more."""
    os._exit(128 + number)


def _end_interrupted(code: int) -> None:
    """End with the exit code of an interrupt, and wait for no thread.

    Python would end itself by the signal, with another code, if the interrupt met an `exec` in some library.
    """
    with suppress(Exception):
        atexit._run_exitfuncs()
        sys.stdout.flush()
    os._exit(code)


def _is_all_done() -> bool:
    """Return whether nothing in this process waits for the command line to end.

    A program may have called it, a thread may be at work; a debugger, a profiler or a measure of coverage has
    something to say at the end.
    """
    import threading

    is_ours = getattr(sys.modules["__main__"], "main", None) is main
    at_work = [thread for thread in threading.enumerate() if not thread.daemon]
    return is_ours and len(at_work) == 1 and sys.gettrace() is None and sys.getprofile() is None


def _end_quickly(code: Any) -> None:
    """End as Python does, but for its taking apart every module.

    That saves a quarter of a second of `stsbench compare`, and half a second where PyTorch was loaded.

    Where that is not to be (a stream that takes nothing more, a code that is no number) it returns.
    """
    if not isinstance(code, int):
        return
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def _again(lost: Any) -> None:
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    import threading

    # To the main thread, which may be asleep by then.
    later = threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    later.daemon = True
    later.start()


if __name__ == "__main__":
    main()
