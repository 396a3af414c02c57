"""The process around the command line: streams that are closed or full, and interrupts at any moment."""

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
import atexit, os, pathlib, signal, threading, time

def lengths(sentences):
    return [[len(s), s.count("e"), 1.0] for s in sentences]

class Trap:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def trapped(sentences):
    # An exception that is raised here is printed as ignored, and lost.
    Trap()
    time.sleep(60)

def sleeping(sentences):
    pathlib.Path("started").touch()
    time.sleep(60)

def at_exit(sentences):
    atexit.register(pathlib.Path("left").touch)
    return lengths(sentences)

def in_a_thread(sentences):
    threading.Timer(0.5, pathlib.Path("left").touch).start()
    return lengths(sentences)
"""

# Imported by every process with its folder on the path: it is interrupted when a certain module is looked for.
HOOK = """
import os, signal, sys

class Fault:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("FAULT_AT"):
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Fault())
"""

INTERRUPTED = "stsbench: interrupted: the same command goes on from what is in the cache.\n"

RUN = ("run", "-m", "mine:lengths", "--tasks", "sample", "--no-intervals", "-q")


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Return a starter of real processes in a folder with a module of callables; `prepare` runs in the child."""
    (tmp_path / "mine.py").write_text(ENCODERS, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(HOOK, encoding="utf-8")

    def start(
        *arguments: str, prepare: Callable[[], object] = lambda: None, out: Any = subprocess.PIPE, **more: str
    ) -> subprocess.Popen[str]:
        def before() -> None:
            # A shell that starts the tests in the background has them ignore Ctrl-C, and children inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            prepare()

        return subprocess.Popen(
            [sys.executable, "-m", "stsbench", *arguments],
            cwd=tmp_path,
            env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(tmp_path)} | more,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,  # noqa: PLW1509
        )

    return start


def ended(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = started.communicate(timeout=60)
    return started.returncode, out or "", err


def recorded(tmp_path: Path) -> bool:
    return bool(sb.load_run(tmp_path / "runs" / "mine_lengths-own-sample").scores)


def test_a_run_without_standard_error_is_recorded(process: Callable[..., Any], tmp_path: Path) -> None:
    code, out, _ = ended(process(*RUN, prepare=lambda: os.close(2)))
    assert code == 0
    assert "mine:lengths" in out
    assert recorded(tmp_path)


def test_a_run_without_any_stream_is_recorded_and_no_success(process: Callable[..., Any], tmp_path: Path) -> None:
    code, *_ = ended(process(*RUN, prepare=lambda: os.closerange(0, 3)))
    assert code == 2
    assert recorded(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
def test_a_full_device_is_told_and_the_run_is_recorded(process: Callable[..., Any], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        code, _, err = ended(process(*RUN, out=full))
    assert code == 2
    assert err.startswith("stsbench: cannot print (No space left on device)")
    assert len(err.splitlines()) == 1
    assert recorded(tmp_path)


@pytest.mark.parametrize(
    ("module", "told"),
    [
        # Before anything is open, nothing has to be said.
        ("typer", ""),
        ("stsbench.cli.app", ""),
        ("stsbench.scoring.command", INTERRUPTED),
        ("numpy", INTERRUPTED),
        ("numpy._core.multiarray", INTERRUPTED),
        ("stsbench.records.store", INTERRUPTED),
    ],
)
def test_an_interrupt_while_something_is_imported_is_quiet_and_ends_with_130(
    process: Callable[..., Any], tmp_path: Path, module: str, told: str
) -> None:
    assert ended(process(*RUN, FAULT_AT=module)) == (130, "", told)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "torch",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("torch._C", "torch.nn", "torch.utils.data")),
        "transformers",
    ],
)
def test_an_interrupt_while_torch_is_imported_is_quiet_and_ends_with_130(
    process: Callable[..., Any], module: str
) -> None:
    assert ended(process("run", "-m", "minilm", "--tasks", "sample", "-q", FAULT_AT=module)) == (
        130,
        "",
        INTERRUPTED,
    )


def test_an_interrupt_that_python_would_print_and_forget_comes_again(process: Callable[..., Any]) -> None:
    code, out, err = ended(process("run", "-m", "mine:trapped", "--tasks", "sample", "-q"))
    assert (code, out) == (130, "")
    assert err == INTERRUPTED


def test_a_request_to_end_leaves_nothing_half_done_and_ends_with_143(
    process: Callable[..., Any], tmp_path: Path
) -> None:
    started = process("run", "-m", "mine:sleeping", "--tasks", "sample", "-q")
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    started.send_signal(signal.SIGTERM)
    assert ended(started) == (143, "", INTERRUPTED)
    assert not (tmp_path / "runs").exists()


def test_who_ignores_interrupts_goes_on(process: Callable[..., Any], tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    code, *_ = ended(process(*RUN, prepare=ignore, FAULT_AT="pyarrow"))
    assert code == 0
    assert recorded(tmp_path)


def test_help_whose_reader_left_ends_as_other_programs_do(process: Callable[..., Any]) -> None:
    started = process("run", "--help")
    started.stdout.close()
    err = started.stderr.read()
    assert (started.wait(timeout=60), err) == (141, "")


@pytest.mark.parametrize("work", ["at_exit", "in_a_thread"])
def test_the_end_waits_for_exit_functions_and_threads(
    work: str, process: Callable[..., Any], tmp_path: Path
) -> None:
    ended = process("run", "-m", f"mine:{work}", "--tasks", "sample", "--no-intervals", "--out", "run")
    ended.communicate(timeout=120)
    assert ended.returncode == 0
    assert (tmp_path / "left").exists()


def test_a_program_that_calls_the_command_line_goes_on_after_it() -> None:
    program = """
import sys
from stsbench.__main__ import main as command_line

sys.argv = ["stsbench", "--version"]
try:
    command_line()
except SystemExit as end:
    print("goes on after", end.code)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("goes on after 0\n")
