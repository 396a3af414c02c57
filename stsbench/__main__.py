"""The process of the command line: `stsbench`, and `python -m stsbench`."""

import os
import signal
import sys
from contextlib import suppress
from typing import Any

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and a scheduler's request to end: exit codes 130 and 143


def main() -> None:
    """Run the command line; an interrupt ends it without a traceback at any time."""
    received: list[int] = []

    def interrupt(number: int, _frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for number in _INTERRUPTS:
        # `nohup` and background jobs ignore signals. Workers of torchrun must end at once on SIGTERM.
        is_worker = number == signal.SIGTERM and "WORLD_SIZE" in os.environ
        if signal.getsignal(number) is not signal.SIG_IGN and not is_worker:
            signal.signal(number, interrupt)
    try:
        from stsbench.cli.app import main as run

        run()
    except KeyboardInterrupt:
        pass
    except SystemExit:
        if not received:
            raise
    if received:
        # Exits without waiting for running threads.
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(128 + received[-1])


if __name__ == "__main__":
    main()
