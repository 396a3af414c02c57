"""What an executor is, and the process that every one of them starts for a unit of work."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.run_job import PARENT

_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""What the libraries that compute for us read when they are loaded."""

Ended = Callable[[str, int], None]
"""Called with a unit and the exit code of its process: negative for the number of a signal that ended it."""


TICK_SECONDS = 1.0
"""How often an executor looks what has ended, and calls `idle`."""


class Executor(Protocol):
    """Runs units of work somewhere, each as a process of its own."""

    def check(self, folder: ExperimentFolder) -> None:
        """Make sure, before the first job, that work can be run and the folder is seen where it runs.

        Raises:
            UserError: if a package is not installed, or the folder is not there.
        """

    def run(self, work: "Sequence[Work]", ended: Ended, idle: Callable[[], None]) -> None:
        """Run all of them, as many at once as there is room for.

        Args:
            work: what to run.
            ended: told of each that ended.
            idle: called about once a second, to show how far it is.

        Raises:
            KeyboardInterrupt: after what was started here has ended.
        """


@dataclass(frozen=True)
class Work:
    """The process of a unit.

    Attributes:
        folder: of the experiment, absolute.
        unit: its hash.
        threads: that it computes with.
        log: where its output goes.
        data_dirs: folders of data, absolute.
    """

    folder: Path
    unit: str
    threads: int
    log: Path
    data_dirs: tuple[Path, ...] = ()
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """The command line, with the Python of where it is asked for."""
        return [sys.executable, "-m", "stsbench.sweeps.run_job", str(self.folder), self.unit]

    @property
    def environment(self) -> dict[str, str]:
        """The environment: ours, with the threads that the experiment names, wherever it runs."""
        threads = dict.fromkeys(_THREADS, str(self.threads))
        data = os.pathsep.join([*map(str, self.data_dirs), *filter(None, [os.environ.get("STSBENCH_DATA")])])
        named = {"STSBENCH_DATA": data} if self.data_dirs else {}
        quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        return {**os.environ, **threads, **named, **quiet, PARENT: "1", **self.more}

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the process. It ends when we do, and no signal that is sent to us from a keyboard reaches it."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            return subprocess.Popen(
                self.arguments,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self) -> int:
        """Start the process and wait for it; return its exit code."""
        process = self.start()
        try:
            return process.wait()
        finally:
            end(process)


@contextmanager
def mark_in(folder: ExperimentFolder) -> Iterator[str]:
    """Put a file into an experiment's folder for as long as it takes to see who sees it; yield its path."""
    mark = folder.path / f".seen-{uuid4().hex}"
    mark.touch()
    try:
        yield str(mark)
    finally:
        mark.unlink(missing_ok=True)


def sees(mark: str) -> bool:
    """Return whether a file is to be seen from where this is called."""
    return Path(mark).is_file()


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process, at once if it does not by itself. What it leaves half-done is gone on with later."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdin is not None:
        process.stdin.close()
