"""Jobs on Slurm, through submitit: the units are one array job."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stsbench.base.errors import UserError
from stsbench.sweeps.executors.executor import TICK_SECONDS, Ended, Work, mark_in, sees
from stsbench.sweeps.experiment import Slurm
from stsbench.sweeps.folder import ExperimentFolder

_PROBE_MINUTES = 5


@dataclass(frozen=True)
class SlurmArray:
    """An array job.

    Attributes:
        asked: what the experiment asks for.
        threads: CPUs of a job.
        workers: how many at once; None for what the experiment says.
        cluster: `slurm`, or submitit's `local`, which starts processes on this machine instead.
    """

    asked: Slurm
    threads: int = 1
    workers: int | None = None
    cluster: Literal["slurm", "local"] = "slurm"

    def check(self, folder: ExperimentFolder) -> None:
        """Submit a tiny job that looks for the experiment's folder.

        Raises:
            UserError: if submitit or Slurm is not there, or the job does not see the folder.
        """
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
        try:
            import submitit
        except ImportError as error:
            raise UserError("--on slurm needs the package submitit: pip install 'stsbench[slurm]'.") from error
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
