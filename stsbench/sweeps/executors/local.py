"""Jobs on this machine: a pool of processes, each on a group of cores or a GPU of its own."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Thread

from stsbench.base.errors import UserError
from stsbench.sweeps.executors.executor import TICK_SECONDS, Ended, Work, end
from stsbench.sweeps.folder import ExperimentFolder


@dataclass(frozen=True)
class LocalPool:
    """A pool of processes.

    Attributes:
        workers: how many at once; None for as many as there are GPUs, or groups of cores.
        device: `auto`, `cpu`, `cuda` or `mps`.
        threads: of a job.
    """

    workers: int | None = None
    device: str = "auto"
    threads: int = 1

    def check(self, folder: ExperimentFolder) -> None:
        """Everything is here.

        Raises:
            UserError: if a GPU was asked for and there is none.
        """
        if self.device == "cuda" and not gpus():
            raise UserError("--device cuda: no GPU was found on this machine; use --device cpu.")

    @property
    def places(self) -> list[dict[str, str]]:
        """What to add to the environment of a process in each place of the pool."""
        devices = gpus() if self.device in {"auto", "cuda"} else []
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self.device == "cpu" else {}
        usual = len(devices) or max(1, cores() // self.threads)
        count = usual if self.workers is None else self.workers
        if not devices:
            return [hidden] * count
        return [{"CUDA_VISIBLE_DEVICES": devices[place % len(devices)]} for place in range(count)]

    def run(self, work: Sequence[Work], ended: Ended, idle: Callable[[], None]) -> None:
        """Run all of them, as many at once as there are places."""
        waiting, free = list(reversed(work)), list(reversed(self.places))
        running: dict[str, tuple[subprocess.Popen[bytes], dict[str, str]]] = {}
        codes: SimpleQueue[tuple[str, int]] = SimpleQueue()
        try:
            while waiting or running:
                while waiting and free:
                    next_one, place = waiting.pop(), free.pop()
                    process = replace(next_one, more=place).start()
                    running[next_one.unit] = process, place
                    Thread(target=_wait, args=(next_one.unit, process, codes), daemon=True).start()
                try:
                    unit, code = codes.get(timeout=TICK_SECONDS)
                except Empty:
                    idle()
                    continue
                process, place = running.pop(unit)
                end(process)
                free.append(place)
                ended(unit, code)
                idle()
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, _ in running.values():
                end(process)


def _wait(unit: str, process: "subprocess.Popen[bytes]", codes: "SimpleQueue[tuple[str, int]]") -> None:
    codes.put((unit, process.wait()))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> list[str]:
    """Return the GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` names them, without loading torch."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name for name in named.split(",") if name.strip() and name != "-1"]
    if shutil.which("nvidia-smi") is None:
        return []
    listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    count = sum(line.startswith("GPU ") for line in listing.stdout.splitlines())
    return list(map(str, range(count)))
