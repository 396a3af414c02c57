"""What a command prints: one place prints it, and nothing in it drives a terminal, a spreadsheet or BibTeX."""

import ast
import errno
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli import output
from stsbench.cli.output import (
    Bars,
    Lines,
    ReaderLeftError,
    print_data,
    print_errors,
    print_lines,
    print_notes,
    progress_bars,
)
from stsbench.records.store import save_run

Stsbench = Callable[..., Any]

PACKAGE = Path(sb.__file__).parent

HOSTILE = "evil\x1b[2J\x9b31m\n@article{x,\r::error::\u202e"

DRIVES = "\x1b\x9b\x07\r\u202e\u2028"


def printing(path: Path) -> list[str]:
    """Returns the calls and imports of a file that can print."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="print")) | ast.Call(func=ast.Attribute(attr="echo" | "secho")):
                found.append(f"line {node.lineno} prints")
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"):
                found.append(f"line {node.lineno} uses sys.{node.attr}")
            case ast.ImportFrom(module="rich.console" | "rich.progress" | "rich"):
                found.append(f"line {node.lineno} imports {node.module}")
    return found


def test_one_file_prints() -> None:
    allowed = {
        PACKAGE / "cli" / "output.py",
        # Flushes what was printed before an interrupt ends the process.
        PACKAGE / "__main__.py",
        # Lays out tables on a rich console.
        PACKAGE / "render" / "formats.py",
        # Runs a user's SentEval script.
        PACKAGE / "compat" / "senteval" / "__main__.py",
        # Writes into the log of its job.
        PACKAGE / "sweeps" / "run_job.py",
    }
    assert all(printing(path) for path in allowed)
    offenders = {
        str(path.relative_to(PACKAGE)): found
        for path in PACKAGE.rglob("*.py")
        if path not in allowed and (found := printing(path))
    }
    assert offenders == {}, "print by the functions of stsbench.cli.output"


@pytest.mark.parametrize("show", [print_lines, print_notes, print_errors])
def test_a_line_for_readers_is_one_line_without_control_characters(
    show: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    show(HOSTILE, "second")
    shown = "".join(capsys.readouterr())
    assert len(shown.splitlines()) == 2
    assert not set(DRIVES) & set(shown)
    assert r"evil\x1b[2J\x9b31m @article{x, ::error::\u202e" in shown


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_csv_is_unchanged_in_a_file_and_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'model,score\r\n"a\x1b[2J",1'
    for stream, shown in ((io.StringIO(), f"{text}\n"), (Terminal(), 'model,score\n"a\\x1b[2J",1\n')):
        monkeypatch.setattr(sys, "stdout", stream)
        print_data(text)
        assert stream.getvalue() == shown


class Refusing(io.StringIO):
    """A stream that cannot be written."""

    def __init__(self, reason: int) -> None:
        super().__init__()
        self._reason = reason

    def flush(self) -> None:
        raise OSError(self._reason, os.strerror(self._reason))


def test_an_unwritable_output_is_an_error_and_a_reader_that_left_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Refusing(errno.ENOSPC))
    with pytest.raises(UserError, match=r"Cannot print .*No space left on device"):
        print_lines("a")
    monkeypatch.setattr(sys, "stdout", Refusing(errno.EPIPE))
    with pytest.raises(ReaderLeftError):
        print_data("a")
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UserError, match="standard output is closed"):
        print_lines("a")


@pytest.mark.parametrize("stream", [None, Refusing(errno.ENOSPC), Refusing(errno.EPIPE)])
def test_a_run_is_recorded_if_standard_error_cannot_be_written(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch, stream: Any
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    done = stsbench("run", "-m", "toys:words", "--tasks", "sample", "--no-intervals", "--out", "run")
    assert done.code == 0
    assert "sample" in done.out
    assert sb.load_run("run").scores


def test_bars_escape_control_characters_and_show_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    shown = io.StringIO()
    columns = (TextColumn("{task.description}", markup=False), TextColumn("{task.fields[about]}", markup=False))
    with Progress(*columns, console=Console(file=shown, force_terminal=False, width=200)) as progress:
        bars = Bars(progress)
        bars("[red]a\x1b[2J\n", 1, 2)
        bars.describe("[red]a\x1b[2J\n", "loss \x1b[2J")
    assert r"[red]a\x1b[2J" in shown.getvalue()
    assert r"loss \x1b[2J" in shown.getvalue()
    assert not Bars().are_shown
    Bars()("a", 1, 2)


@pytest.fixture
def hostile_run(hash_encode: Callable[..., Any], tmp_path: Path) -> Callable[[str], Path]:
    """Returns a function that saves a record of a model with this name."""

    def make(name: str) -> Path:
        record = sb.evaluate(hash_encode, "sample", intervals=sb.Intervals(None))
        model = record.model.model_copy(update={"name": name})
        save_run(record.model_copy(update={"model": model}).with_items(record.items), tmp_path / "run")
        return tmp_path / "run"

    return make


def test_no_name_leaves_the_comment_that_cite_writes(
    stsbench: Stsbench, hostile_run: Callable[[str], Path]
) -> None:
    run = hostile_run(HOSTILE)
    done = stsbench("cite", run)
    assert done.code == 0
    first = done.out.splitlines()[0]
    assert first.startswith(r"% evil\x1b[2J\x9b31m (at)article{x, ::error::\u202e: not known here")
    # BibTeX knows no comments: what stands outside of entries is one, and an @ begins an entry, behind a % too.
    outside = [line for line in done.out.splitlines() if line.startswith("%")]
    assert not any("@" in line for line in outside)
    assert not set(DRIVES) & set(done.out)
    assert HOSTILE in json.loads(stsbench("cite", run, "--json").out)


def test_no_name_drives_the_screen_of_a_command(stsbench: Stsbench, hostile_run: Callable[[str], Path]) -> None:
    run = hostile_run(HOSTILE)
    for arguments in (("show", run), ("show", run, "--markdown"), ("show", run, "--latex"), ("check", run)):
        done = stsbench(*arguments)
        assert not set(DRIVES) & set(done.out + done.err), arguments


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose one number is the time."""
    now = [0.0]
    monkeypatch.setattr(output, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_after_five_seconds_and_then_one_a_minute(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    for second in range(150):
        clock[0] = second
        lines("encoding", 10 * second, 3000)
    lines("scoring", 1, 10)
    lines("scoring", 10, 10)
    assert capsys.readouterr().err.splitlines() == [
        "encoding: 1 %, about 0:04:55 to go",
        "encoding: 21 %, about 0:03:55 to go",
        "encoding: 41 %, about 0:02:55 to go",
    ]


def test_a_stage_that_begins_again_or_has_no_end_is_reported(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bars() as progress:
        for second, stage, done, total in (
            (0.0, "encoding", 0, 100),
            (6.0, "encoding", 50, 100),
            (7.0, "encoding", 0, 100),
            (13.0, "encoding", 25, 100),
            (14.0, "tokenising", 0, 0),
            (20.0, "tokenising", 4000, 0),
            (21.0, "jobs", 0, 2),
            (27.0, "jobs", 0, 2),
        ):
            clock[0] = second
            progress.describe(stage, "minilm-1" if stage == "jobs" else "")
            progress(stage, done, total)
    assert capsys.readouterr().err.splitlines() == [
        "encoding: 50 %, about 0:00:06 to go",
        "encoding: 25 %, about 0:00:18 to go",
        "tokenising: 4,000",
        "jobs: 0 of 2 (minilm-1)",
    ]
    with progress_bars(quiet=True) as progress:
        for clock[0] in (0.0, 6.0):
            progress("encoding", int(clock[0]), 10)
    assert capsys.readouterr().err == ""
