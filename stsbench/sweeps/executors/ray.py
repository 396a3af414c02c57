"""Jobs on a Ray cluster: a unit is a task with its CPUs and GPUs, and is started again if its worker is lost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stsbench.base.errors import UserError
from stsbench.sweeps.executors.executor import TICK_SECONDS, Ended, Work, mark_in, sees
from stsbench.sweeps.experiment import Ray
from stsbench.sweeps.folder import ExperimentFolder


@dataclass(frozen=True)
class RayCluster:
    """A cluster that runs, or a new one on this machine.

    Attributes:
        asked: what the experiment asks for.
        threads: CPUs of a job.
        workers: how many at once; None for as many as fit.
    """

    asked: Ray
    threads: int = 1
    workers: int | None = None

    def check(self, folder: ExperimentFolder) -> None:
        """Connect, and make sure that every node sees the experiment's folder.

        Raises:
            UserError: if Ray is not installed, no cluster answers, or a node does not see the folder.
        """
        ray = self._connected()
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
        ray = self._connected()
        memory = {} if self.asked.memory is None else {"memory": int(self.asked.memory * 1e9)}
        task = ray.remote(
            num_cpus=self.threads, num_gpus=self.asked.gpus, max_retries=self.asked.retries, **memory
        )(_run)
        waiting = list(reversed(work))
        most = self.workers or len(waiting)
        running: dict[Any, str] = {}
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    next_one = waiting.pop()
                    running[task.options(name=next_one.unit).remote(next_one)] = next_one.unit
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

    def _connected(self) -> Any:
        try:
            import ray
        except ImportError as error:
            raise UserError("--on ray needs the package ray: pip install 'stsbench[ray]'.") from error
        if not ray.is_initialized():
            try:
                ray.init(
                    address=self.asked.address,
                    configure_logging=False,
                    log_to_driver=False,
                    include_dashboard=None if self.asked.address else False,
                )
            except (ConnectionError, ValueError, RuntimeError) as error:
                where = self.asked.address or "on this machine"
                raise UserError(
                    f"no Ray cluster answers {where} ({str(error).splitlines()[0]}): start one with `ray start`."
                ) from error
        return ray


def _demand_room(ray: Any, threads: int, asked: Ray) -> None:
    """Refuse jobs that fit on no node: Ray would wait for one for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= threads and node.get("GPU", 0) >= asked.gpus for node in nodes):
        raise UserError(
            f"no node of the Ray cluster has {threads} CPUs and {asked.gpus:g} GPUs, which a job asks for: ask "
            "for less with `threads` or `ray`."
        )


def _run(work: Work) -> int:
    return work.run()
