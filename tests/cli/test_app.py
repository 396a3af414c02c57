"""The command as a person meets it: help, version, completion, and how processes end."""

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
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

import stsbench as sb
from stsbench.cli.app import app

Stsbench = Callable[..., Any]

COMMANDS = [
    ("run",),
    ("show",),
    ("compare",),
    ("plan",),
    ("best-of",),
    ("rank",),
    ("check",),
    ("report",),
    ("import",),
    ("export",),
    ("train",),
    ("sweep",),
    ("reproduce",),
    ("fit", "whitening"),
    ("fit", "flow"),
    ("embed",),
    ("cite",),
    ("diagnose",),
    ("doctor",),
    ("explain",),
    ("explore",),
    ("board",),
    ("length-bias",),
    ("pair-kinds",),
    ("length-collapse",),
    ("geometry",),
    ("spectrum",),
    ("dimensions",),
    ("density",),
    ("evalrank",),
    ("compress",),
    ("ties",),
    ("hubness",),
    ("repetition-bias",),
    ("stability",),
    ("probes",),
    ("retrieve",),
    ("data", "list"),
    ("data", "get"),
    ("data", "verify"),
    ("data", "where"),
    ("data", "sharing"),
    ("data", "overlap"),
    ("data", "describe"),
    ("data", "nli-triplets"),
    ("cache", "info"),
    ("cache", "clear"),
    ("published", "list"),
    ("published", "show"),
    ("published", "row"),
]

ENCODERS = """
import pathlib, time

def lengths(sentences):
    return [[len(s), s.count("e"), 1.0] for s in sentences]

def slow(sentences):
    pathlib.Path("started").touch()
    time.sleep(60)
"""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_shows_an_example(command: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert "Example" in done.output
    assert f"stsbench {' '.join(command)}" in done.output
    assert CliRunner().invoke(app, [*command, "-h"], env={"COLUMNS": "200"}).output == done.output


def test_help_shows_what_stands_in_angle_brackets() -> None:
    help_ = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).output
    assert "runs/<model>-<pooling>-<tasks>" in help_


def test_the_list_above_is_all_commands() -> None:
    top: Any = get_command(app)
    found: set[tuple[str, ...]] = set()
    for name in top.list_commands(None):
        command = top.get_command(None, name)
        found |= {(name, inner) for inner in command.commands} if isinstance(command, TyperGroup) else {(name,)}
    assert found == set(COMMANDS)


@pytest.mark.parametrize("group", [(), ("data",), ("cache",), ("fit",)])
def test_no_command_at_all_prints_help(group: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, list(group))
    assert "Usage:" in done.output
    assert "Commands" in done.output


def test_help_loads_nothing_heavy() -> None:
    code = f"""
import sys
from stsbench.cli.app import app
for command in [(), *{COMMANDS}]:
    try:
        app([*command, "--help"])
    except SystemExit as end:
        assert not end.code, command
heavy = {{"torch", "numpy", "pandas", "scipy", "transformers", "pyarrow"}} & set(sys.modules)
print("heavy:", sorted(heavy))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_the_version_is_printed(stsbench: Stsbench) -> None:
    assert stsbench("--version") == (0, f"stsbench {sb.__version__}\n", "")


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Return a starter of real processes in an empty folder with a module of callables."""
    (tmp_path / "mine.py").write_text(ENCODERS, encoding="utf-8")

    def start(*arguments: str, **more: str) -> subprocess.Popen[str]:
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "COLUMNS": "80"} | more
        return subprocess.Popen(
            [sys.executable, "-m", "stsbench", *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell that starts the tests in the background has them ignore Ctrl-C, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )

    return start


def test_a_real_process_measures_and_prints_a_table_that_a_pipe_does_not_cut(process: Callable[..., Any]) -> None:
    started = process("run", "-m", "mine:lengths", "--json")
    out, err = started.communicate(timeout=60)
    assert started.returncode == 0, err
    assert json.loads(out)["command"] == "stsbench run -m mine:lengths --json"
    started = process("run", "-m", "mine:lengths", "-q", COLUMNS="20", PYTHONIOENCODING="ascii")
    out, err = started.communicate(timeout=60)
    assert started.returncode == 0, err
    assert "student-answers" in out.splitlines()[0]


def test_a_model_that_is_nowhere_is_told_offline(process: Callable[..., Any], tmp_path: Path) -> None:
    started = process("run", "-m", "nobody/no-such-model", "--tasks", "sample", HF_HOME=str(tmp_path / "hub"))
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (2, "")
    assert err.startswith("stsbench: no such model: nobody/no-such-model")
    assert len(err.splitlines()) == 1


def test_ctrl_c_while_encoding_ends_with_130_one_sentence_and_no_record(
    process: Callable[..., Any], tmp_path: Path
) -> None:
    started = process("run", "-m", "mine:slow", "--tasks", "sample")
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=30)
    assert (started.returncode, out) == (130, "")
    assert err == ("stsbench: interrupted: the same command goes on from what is in the cache.\n")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("style", ["--csv", "--json"])
def test_a_reader_that_leaves_ends_quietly_as_with_other_programs(process: Callable[..., Any], style: str) -> None:
    started = process("data", "list", style)
    started.stdout.close()
    err = started.stderr.read()
    assert (started.wait(timeout=60), err) == (141, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_made(process: Callable[..., Any], shell: str) -> None:
    started = process("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    out, err = started.communicate(timeout=60)
    assert started.returncode == 0, err
    assert "_STSBENCH_COMPLETE" in out or "_COMPLETE" in out
