"""A real Ray cluster of two nodes on this machine: a worker lost in the middle of a job changes nothing."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_experiments import contents, in_this_process

import stsbench as sb
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.result import Sweep

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'stsbench[ray]'")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of a cluster of two nodes with a core each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()


def workers_of(unit: str) -> list[int]:
    """Return the processes that started the process of a unit."""
    parents = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                arguments = (folder / "cmdline").read_bytes().split(b"\0")
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if b"stsbench.sweeps.run_job" in arguments and unit.encode() in arguments:
                parents.append(parent)
    return parents


def test_a_worker_that_is_lost_in_the_middle_of_a_job_changes_nothing(
    address: str, experiment: Callable[..., Experiment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    asked = experiment(seeds=[1, 2], set={"corpus.rows": 16, "optimiser.epochs": 4})
    with in_this_process():
        sb.sweep(asked, tmp_path / "alone")
    folder, killed = ExperimentFolder(tmp_path / "ray"), set()

    def watch(_stage: str, _done: int, _total: int) -> None:
        for state in (folder.path / "work").glob("*/training/state.pt"):
            unit = state.parents[1].name
            for process in workers_of(unit) if not killed else ():
                os.kill(process, signal.SIGKILL)
                killed.add(unit)

    class Progress:
        def __call__(self, stage: str, done: int, total: int) -> None:
            watch(stage, done, total)

    result = sb.sweep(asked, folder.path, on="ray", progress=Progress())
    assert isinstance(result, Sweep)
    assert len(killed) == 1
    assert "resumed after step" in folder.log(killed.pop()).read_text()
    assert result.is_complete
    assert contents(folder.path) == contents(tmp_path / "alone")
