"""Where jobs run: processes on this machine, tasks of a Ray cluster, an array job of Slurm.

Every executor starts a process of its own for each unit of work (`Work`).
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Literal, Protocol
from uuid import uuid4

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.base.machine import cores, ray_cluster, thread_limits
from stsbench.encoders.backends import DEVICE_OF_JOBS, resolve_device
from stsbench.sweeps.experiment import Ray, Slurm
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.run_job import PARENT

Ended = Callable[[str, int], None]
"""Called with a unit and the exit code of its process: negative for the number of a signal that ended it."""


TICK_SECONDS = 1.0
"""Seconds between two looks at which processes ended, and two calls of `idle`."""


class Executor(Protocol):
    """Runs units of work somewhere, each as a process of its own."""

    def check(self, folder: ExperimentFolder) -> None:
        """Make sure, before the first job, that work can run and that the machines it runs on see the folder."""

    def run(self, work: "Sequence[Work]", ended: Ended, idle: Callable[[], None]) -> None:
        """Run all of them, as many at once as there is room for, and call `idle` about once a second.

        Interrupted, it ends what was started here before it raises.
        """


@dataclass(frozen=True)
class Work:
    """The process of a unit, which computes with so many threads and writes its output into a log."""

    folder: Path
    unit: str
    threads: int
    log: Path
    data_dirs: tuple[Path, ...] = ()
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """The command line, with the Python of the machine that runs it."""
        return [sys.executable, "-m", "stsbench.sweeps.run_job", str(self.folder), self.unit]

    @property
    def environment(self) -> dict[str, str]:
        """The environment: ours, with the threads that the experiment names, wherever it runs."""
        threads = thread_limits(self.threads)
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
    """Put a file into an experiment's folder to test which machines see the folder; yield its path."""
    mark = folder.path / f".seen-{uuid4().hex}"
    mark.touch()
    try:
        yield str(mark)
    finally:
        mark.unlink(missing_ok=True)


def sees(mark: str) -> bool:
    """Return whether this machine sees a file."""
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


@dataclass(frozen=True)
class LocalPool:
    """A pool of processes: by default as many as there are GPUs, or groups of cores."""

    workers: int | None = None
    device: str = "auto"
    threads: int = 1

    def check(self, folder: ExperimentFolder) -> None:
        """Everything is here."""
        if self.device == "cuda" and not gpus():
            raise UserError("--device cuda: no GPU was found on this machine; use --device cpu.")
        if self.device not in {"auto", "cuda"}:
            resolve_device(self.device)

    @property
    def places(self) -> list[dict[str, str]]:
        """What to add to the environment of a process in each place of the pool."""
        devices = gpus() if self.device in {"auto", "cuda"} else []
        chosen = {} if self.device == "auto" else {DEVICE_OF_JOBS: self.device}
        if self.device == "cpu":
            chosen["CUDA_VISIBLE_DEVICES"] = ""
        usual = len(devices) or max(1, cores() // self.threads)
        count = usual if self.workers is None else self.workers
        if not devices:
            return [chosen] * count
        return [{**chosen, "CUDA_VISIBLE_DEVICES": devices[place % len(devices)]} for place in range(count)]

    def run(self, work: Sequence[Work], ended: Ended, idle: Callable[[], None]) -> None:
        """Run all of them, as many at once as there are places."""
        waiting, free = list(reversed(work)), list(reversed(self.places))
        running: dict[str, tuple[subprocess.Popen[bytes], dict[str, str]]] = {}
        codes: SimpleQueue[tuple[str, int]] = SimpleQueue()
        try:
            while waiting or running:
                while waiting and free:
                    item, place = waiting.pop(), free.pop()
                    process = replace(item, more=place).start()
                    running[item.unit] = process, place
                    Thread(target=_wait, args=(item.unit, process, codes), daemon=True).start()
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


@dataclass(frozen=True)
class RayCluster:
    """A cluster that runs, or a new one on this machine; `workers` run at once, or as many as fit."""

    asked: Ray
    threads: int = 1
    workers: int | None = None

    def check(self, folder: ExperimentFolder) -> None:
        """Connect, and make sure that every node sees the experiment's folder."""
        ray = ray_cluster(self.asked.address)
        with mark_in(folder) as mark:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            nodes = [node for node in ray.nodes() if node["Alive"]]
            look = ray.remote(num_cpus=0)(sees)
            seen = ray.get(
                [
                    look.options(
                        scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                    ).remote(mark)
                    for node in nodes
                ]
            )
        blind = [node["NodeManagerHostname"] for node, is_seen in zip(nodes, seen, strict=True) if not is_seen]
        if blind:
            raise UserError(
                f"{folder.path} is not to be seen on {', '.join(sorted(set(blind)))}: name a folder with --out "
                "that all nodes of the cluster share."
            )
        _demand_room(ray, self.threads, self.asked)

    def run(self, work: Sequence[Work], ended: Ended, idle: Callable[[], None]) -> None:
        """Run all of them as tasks."""
        ray = ray_cluster(self.asked.address)
        memory = {} if self.asked.memory is None else {"memory": int(self.asked.memory * 1e9)}
        task = ray.remote(
            num_cpus=self.threads, num_gpus=self.asked.gpus, max_retries=self.asked.retries, **memory
        )(_run_work)
        waiting = list(reversed(work))
        most = self.workers or len(waiting)
        running: dict[Any, str] = {}
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    item = waiting.pop()
                    running[task.options(name=item.unit).remote(item)] = item.unit
                ready, _ = ray.wait(list(running), timeout=TICK_SECONDS)
                for reference in ready:
                    unit = running.pop(reference)
                    try:
                        code = int(ray.get(reference))
                    except ray.exceptions.RayError:
                        # Lost more often than it may be started again.
                        code = -9
                    ended(unit, code)
                idle()
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


def _demand_room(ray: Any, threads: int, asked: Ray) -> None:
    """Refuse jobs that fit on no node: Ray would wait for one for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= threads and node.get("GPU", 0) >= asked.gpus for node in nodes):
        raise UserError(
            f"no node of the Ray cluster has {threads} CPUs and {asked.gpus:g} GPUs, which a job asks for: ask "
            "for less with `threads` or `ray`."
        )


def _run_work(work: Work) -> int:
    return work.run()


_PROBE_MINUTES = 5


@dataclass(frozen=True)
class SlurmArray:
    """An array job; `cluster` may be submitit's `local`, which starts processes on this machine instead."""

    asked: Slurm
    threads: int = 1
    workers: int | None = None
    cluster: Literal["slurm", "local"] = "slurm"

    def check(self, folder: ExperimentFolder) -> None:
        """Submit a tiny job that looks for the experiment's folder."""
        executor = self._executor(folder, _PROBE_MINUTES)
        with mark_in(folder) as mark:
            try:
                is_seen = executor.submit(sees, mark).result()
            except Exception as error:
                # submitit says by a dozen kinds that a job did not come back: most often because its own files,
                # which lie in the folder too, were not there.
                raise UserError(
                    f"a first, empty job on Slurm did not come back ({_first_line(error)}): name a folder with "
                    "--out that all nodes share, and check the experiment's `slurm`."
                ) from error
        if not is_seen:
            raise UserError(f"{folder.path} is not to be seen on Slurm's nodes: choose a shared one with --out.")

    def run(self, work: Sequence[Work], ended: Ended, idle: Callable[[], None]) -> None:
        """Run all of them as one array job."""
        if not work:
            return
        executor = self._executor(ExperimentFolder(work[0].folder), self.asked.time)
        running = dict(zip((item.unit for item in work), executor.map_array(_run, work), strict=True))
        try:
            while running:
                for unit, job in list(running.items()):
                    if not job.done():
                        continue
                    del running[unit]
                    try:
                        code = int(job.result())
                    except Exception:
                        # Cancelled, out of time or memory: Slurm's own word for it is the job's state.
                        code = _CODES.get(job.state.partition(" ")[0], 1)
                    ended(unit, code)
                idle()
                if running:
                    time.sleep(TICK_SECONDS)
        finally:
            for job in running.values():
                job.cancel()

    def _executor(self, folder: ExperimentFolder, minutes: int) -> Any:
        require("slurm", "--on slurm")
        import submitit

        asked = self.asked
        try:
            executor = submitit.AutoExecutor(folder=folder.path / "slurm" / "%j", cluster=self.cluster)
        except RuntimeError as error:
            raise UserError(f"Slurm is not here ({_first_line(error)}): start this where `sbatch` is.") from error
        executor.update_parameters(
            timeout_min=minutes,
            cpus_per_task=self.threads,
            gpus_per_node=asked.gpus,
            slurm_array_parallelism=self.workers or asked.array,
            slurm_setup=list(asked.setup),
            slurm_additional_parameters=asked.more,
            **({} if asked.memory is None else {"mem_gb": asked.memory}),
            **({} if asked.partition is None else {"slurm_partition": asked.partition}),
        )
        return executor


_CODES = {"OUT_OF_MEMORY": -9, "CANCELLED": -15, "TIMEOUT": -14}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class _Run:
    """Runs a unit; where Slurm takes the node away it is queued again, and goes on."""

    def __call__(self, work: Work) -> int:
        return work.run()

    def checkpoint(self, work: Work) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, work)


_run = _Run()
