"""The pool of processes: as many at once as there is room for, each with its threads, none left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.backends import DEVICE_OF_JOBS, resolve_device
from stsbench.sweeps import sweep as executors
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.sweep import LocalPool, Work, _reason, gpus, run_all

_SPAN = """
import os, sys, time
start = time.time()
time.sleep(0.3)
print(start, time.time(), os.environ["OMP_NUM_THREADS"], os.environ.get("CUDA_VISIBLE_DEVICES"))
"""


@dataclass(frozen=True)
class Script(Work):
    """A process that does as a few lines of Python say."""

    code: str = ""

    @property
    def arguments(self) -> list[str]:
        """Return the command line."""
        return [sys.executable, "-I", "-S", "-c", self.code]


@pytest.fixture
def scripts(tmp_path: Path) -> Callable[..., list[Work]]:
    """Return a maker of work."""

    def make(*codes: str, threads: int = 1) -> list[Work]:
        return [
            Script(tmp_path, str(number), threads, tmp_path / f"{number}.txt", (), {}, code)
            for number, code in enumerate(codes)
        ]

    return make


def spans(work: list[Work]) -> list[tuple[float, float]]:
    """Return when each began and ended."""
    lines = [item.log.read_text().split() for item in work]
    return [(float(line[0]), float(line[1])) for line in lines]


@pytest.mark.parametrize("workers", [1, 2])
def test_so_many_run_at_once_and_no_more(workers: int, scripts: Callable[..., list[Work]]) -> None:
    work, ended = scripts(*[_SPAN] * 4), []
    run_all(LocalPool(workers), work, lambda unit, code: ended.append((unit, code)), lambda _: None)
    assert sorted(ended) == [(str(number), 0) for number in range(4)]
    moments = sorted(moment for span in spans(work) for moment in span)
    at_once = [sum(start <= moment < end for start, end in spans(work)) for moment in moments]
    assert max(at_once) == workers


def test_a_pool_has_a_place_for_each_group_of_cores_or_gpu(
    scripts: Callable[..., list[Work]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "cores", lambda: 8)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus() == []
    assert [LocalPool(threads=threads).places for threads in (3, 16)] == [2, 1]
    assert LocalPool(5, threads=3).places == 5
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert LocalPool(3).free[::-1] == [{"CUDA_VISIBLE_DEVICES": name} for name in ("2", "5", "2")]
    on_cpu = {"CUDA_VISIBLE_DEVICES": "", DEVICE_OF_JOBS: "cpu"}
    assert LocalPool(device="cpu", threads=4).free == [on_cpu] * 2
    assert LocalPool(1, device="mps").free == [{DEVICE_OF_JOBS: "mps"}]
    (item,) = scripts(_SPAN, threads=3)
    run_all(LocalPool(1), [item], lambda *_: None, lambda _: None)
    assert item.log.read_text().split()[2:] == ["3", "2"]


def test_the_device_reaches_the_jobs(scripts: Callable[..., list[Work]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    for asked in ("cpu", "mps"):
        (item,) = scripts(f"import os; print(os.environ[{DEVICE_OF_JOBS!r}])")
        run_all(LocalPool(1, device=asked), [item], lambda *_: None, lambda _: None)
        monkeypatch.setenv(DEVICE_OF_JOBS, item.log.read_text().strip())
        assert resolve_device("auto") == asked
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        LocalPool(device="gpu")


def test_how_a_process_ended_is_told_and_the_rest_goes_on(
    scripts: Callable[..., list[Work]], tmp_path: Path
) -> None:
    work, ended = scripts("import os; os.kill(os.getpid(), 9)", "print('a reason'); raise SystemExit(3)", ""), {}
    run_all(LocalPool(1), work, ended.__setitem__, lambda _: None)
    assert ended == {"0": -9, "1": 3, "2": 0}
    folder = ExperimentFolder(tmp_path / "x")
    folder.log("1").parent.mkdir(parents=True)
    work[1].log.rename(folder.log("1"))
    assert _reason(folder, "0", -9).startswith("killed by the system (signal 9), most likely for memory")
    assert _reason(folder, "1", 3) == "ended with exit code 3: a reason"
    assert _reason(folder, "1", -15) == "ended by signal 15"


def is_running(process: int) -> bool:
    """Return whether there is such a process, which is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


_WAIT = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def test_an_interrupt_ends_what_was_started(scripts: Callable[..., list[Work]]) -> None:
    work = scripts(_WAIT, _WAIT, _WAIT)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(LocalPool(2), work, lambda *_: None, interrupt)
    started = [int(item.log.read_text()) for item in work if item.log.exists() and item.log.read_text()]
    assert len(started) <= 2
    assert not any(map(is_running, started))
    assert not work[2].log.exists()


def test_a_job_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    child = (
        "import os; from stsbench.sweeps import run_job; print(os.getpid(), flush=True); "
        "run_job._end_with_parent()"
    )
    options = "stdin=subprocess.PIPE, start_new_session=True"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}], {options}).wait()"
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    started = int(process.stdout.readline())
    assert is_running(started)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):
        if not is_running(started):
            break
        time.sleep(0.1)
    assert not is_running(started)
