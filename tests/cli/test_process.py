"""The process around the command line: interrupts, closed and full outputs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

ENCODERS = """
import atexit, pathlib, threading, time

def lengths(sentences):
    return [[len(s), s.count("e"), 1.0] for s in sentences]

def sleeping(sentences):
    pathlib.Path("started").touch()
    time.sleep(60)

def leaving(sentences):
    atexit.register(pathlib.Path("left").touch)
    threading.Timer(0.5, pathlib.Path("late").touch).start()
    return lengths(sentences)
"""

# Every process imports it: it interrupts the process at the import of a module.
HOOK = """
import os, signal, sys

class Fault:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("FAULT_AT"):
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Fault())
"""

RUN = ("run", "-m", "mine:lengths", "--tasks", "sample", "--no-intervals", "-q")
INTERRUPTED = "stsbench: interrupted: the same command resumes from the cache.\n"


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Return a starter of processes in a folder with a module of encoders; `prepare` runs in the child."""
    (tmp_path / "mine.py").write_text(ENCODERS, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(HOOK, encoding="utf-8")

    def start(
        *arguments: str, prepare: Callable[[], object] = lambda: None, out: Any = subprocess.PIPE, **more: str
    ) -> subprocess.Popen[str]:
        def before() -> None:
            # A shell that starts the tests in the background makes them and their children ignore Ctrl-C.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            prepare()

        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, "-m", "stsbench", *arguments],
            cwd=tmp_path,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": path, "COLUMNS": "80"} | more,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,  # noqa: PLW1509
        )

    return start


def ended(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = started.communicate(timeout=120)
    return started.returncode, out or "", err


def test_a_table_in_a_pipe_is_not_cut_and_threads_and_exit_functions_finish(
    process: Callable[..., Any], tmp_path: Path
) -> None:
    arguments = ("run", "-m", "mine:leaving", "--tasks", "sample", "-q")
    code, out, err = ended(process(*arguments, COLUMNS="20", PYTHONIOENCODING="ascii"))
    assert code == 0, err
    assert "student-answers" in out.splitlines()[0]
    assert (tmp_path / "left").exists()
    assert (tmp_path / "late").exists()
    code, out, err = ended(process("show", "runs/mine_leaving-own-sample", "--json"))
    assert json.loads(out)["command"] == "stsbench " + " ".join(arguments)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_encoding_leaves_one_sentence_and_no_record(
    process: Callable[..., Any], tmp_path: Path, number: int, code: int
) -> None:
    started = process("run", "-m", "mine:sleeping", "--tasks", "sample", "-q")
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(number)
    returned, out, err = ended(started)
    assert (returned, out, err.lstrip("\n")) == (code, "", INTERRUPTED)
    assert not (tmp_path / "runs").exists()


def test_an_interrupt_during_an_import_is_quiet_unless_it_is_ignored(
    process: Callable[..., Any], tmp_path: Path
) -> None:
    for module in ("typer", "stsbench.records.store"):
        code, out, err = ended(process(*RUN, FAULT_AT=module))
        assert (code, out) == (130, "")
        assert err.lstrip("\n") in {"", INTERRUPTED}
        assert not (tmp_path / "runs").exists()
    ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    code, _, err = ended(process(*RUN, prepare=ignore, FAULT_AT="pyarrow"))
    assert code == 0, err
    assert sb.load_run(tmp_path / "runs" / "mine_lengths-own-sample").scores


@pytest.mark.parametrize("arguments", ["data list --csv", "run --help"])
def test_a_reader_that_leaves_ends_the_command_quietly(process: Callable[..., Any], arguments: str) -> None:
    started = process(*arguments.split())
    started.stdout.close()
    err = started.stderr.read()
    assert (started.wait(timeout=60), err) == (141, "")


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("{} data list >&-", 2, "standard output is closed"),
        ("{} data list >/dev/full", 2, "stsbench: Cannot print (No space left on device)"),
        ("SOURCE_DATE_EPOCH= {} data list -q", 0, ""),
        ("mkdir gone; cd gone; rmdir ../gone; {} rank a b --figure a.svg", 2, "cannot write a.svg"),
    ],
)
def test_a_closed_or_full_output_an_empty_date_and_a_deleted_folder(
    tmp_path: Path, script: str, code: int, words: str
) -> None:
    command = script.format(f"{sys.executable} -m stsbench")
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, int(code != 0)), done.stderr
    assert words in done.stderr
