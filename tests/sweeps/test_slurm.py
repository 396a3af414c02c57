"""A real Slurm of one node, where Debian's packages are; submitit's own local executor wherever submitit is."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_experiments import contents, in_this_process

import stsbench as sb
from stsbench.sweeps import sweep as verb
from stsbench.sweeps.executors import SlurmArray
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.result import Sweep

pytest.importorskip("submitit", reason="needs submitit: pip install 'stsbench[slurm]'")

pytestmark = pytest.mark.slow

_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "scancel")

_CONFIGURATION = """
ClusterName=here
SlurmctldHost={host}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/controller/pid
SlurmdPidFile={folder}/node/pid
SlurmctldLogFile={folder}/controller/log
SlurmdLogFile={folder}/node/log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2
NodeName={host} CPUs={cores} RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start Slurm's daemons; return the configuration that their clients read."""
    missing = [name for name in _NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs slurm-wlm and munge, and to be root ({', '.join(missing) or 'not root'})")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("munge", "controller", "node"):
        (folder / name).mkdir(mode=0o700)
    (folder / "munge" / "key").write_bytes(os.urandom(1024))
    (folder / "munge" / "key").chmod(0o400)
    host, cores = socket.gethostname().partition(".")[0], os.cpu_count()
    file = folder / "slurm.conf"
    file.write_text(_CONFIGURATION.format(folder=folder, host=host, cores=cores, ports=free_ports(2)))
    environment = {**os.environ, "SLURM_CONF": str(file), "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={folder / 'munge' / name}" for option, name in names.items()]
    subprocess.run(["munged", "--force", *options], env=environment, check=True)
    try:
        for daemon in ("slurmctld", "slurmd"):
            subprocess.run([daemon], env=environment, check=True)
        for _ in range(60):
            listing = ["sinfo", "-h", "-o", "%T"]
            told = subprocess.run(listing, env=environment, capture_output=True, text=True, check=False)
            if told.stdout.strip() == "idle":
                break
            time.sleep(1)
        else:
            pytest.skip(f"Slurm did not come up: {told.stdout}{told.stderr}")
        yield file
    finally:
        for pid in ("node/pid", "controller/pid", "munge/pid"):
            if (folder / pid).is_file():
                os.kill(int((folder / pid).read_text()), signal.SIGTERM)


def run_on(cluster: str, asked: Experiment, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweep there, and compare with what comes of it in this process."""
    with in_this_process():
        sb.sweep(asked, folder / "alone")
    executor = SlurmArray(asked.slurm, asked.threads, cluster=cluster)
    monkeypatch.setattr(verb, "executor_of", lambda *_, **__: executor)
    result = sb.sweep(asked, folder / "there")
    assert isinstance(result, Sweep)
    assert [state.failure for state in result.jobs] == [None, None]
    assert contents(folder / "there") == contents(folder / "alone")


def test_an_array_job_on_a_real_slurm_comes_to_the_same(
    slurm: Path, experiment: Callable[..., Experiment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm))
    run_on("slurm", experiment(seeds=[1, 2], slurm={"time": 10, "array": 2}), tmp_path, monkeypatch)
    told = subprocess.run(["scontrol", "show", "jobs"], capture_output=True, text=True, check=True).stdout
    assert "ArrayTaskId=0" in told
    assert "TimeLimit=00:10:00" in told


def test_submitit_s_local_executor_comes_to_the_same(
    experiment: Callable[..., Experiment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_on("local", experiment(seeds=[1, 2]), tmp_path, monkeypatch)
