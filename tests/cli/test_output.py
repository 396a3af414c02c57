"""What a command prints: nothing in it drives a terminal, a spreadsheet or BibTeX; progress in a log."""

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
    ReaderLeftError,
    print_data,
    print_errors,
    print_lines,
    print_notes,
    progress_bars,
)
from stsbench.records.store import save_run

Stsbench = Callable[..., Any]
HOSTILE = "evil\x1b[2J\x9b31m\n@article{x,\r::error::\u202e"
DRIVES = set("\x1b\x9b\x07\r\u202e\u2028")


def test_a_line_for_readers_is_one_line_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    for show in (print_lines, print_notes, print_errors):
        show(HOSTILE, "second")
        shown = "".join(capsys.readouterr())
        assert (len(shown.splitlines()), DRIVES & set(shown)) == (2, set())
        assert r"evil\x1b[2J\x9b31m @article{x, ::error::\u202e" in shown


def test_csv_is_unchanged_in_a_file_and_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'model,score\r\n"a\x1b[2J",1'
    for is_terminal, shown in ((False, f"{text}\n"), (True, 'model,score\n"a\\x1b[2J",1\n')):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda is_terminal=is_terminal: is_terminal)
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


@pytest.mark.parametrize(
    ("stream", "error", "words"),
    [
        (Refusing(errno.ENOSPC), UserError, r"Cannot print .*No space left on device"),
        (Refusing(errno.EPIPE), ReaderLeftError, ""),
        (None, UserError, "standard output is closed"),
    ],
)
def test_an_output_that_cannot_be_written(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch, stream: Any, error: type[Exception], words: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        with pytest.raises(error, match=words):
            print_lines("a")
    # A run is recorded whatever happens to standard error.
    monkeypatch.setattr(sys, "stderr", stream)
    assert stsbench("run", "-m", "toys:words", "--tasks", "sample", "--no-intervals", "--out", "run").code == 0
    assert sb.load_run("run").scores


def test_bars_escape_control_characters_and_show_markup() -> None:
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


def test_a_hostile_name_drives_neither_the_screen_nor_bibtex(
    stsbench: Stsbench, hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    record, run = sb.evaluate(hash_encode, "sample", intervals=sb.Intervals(None)), tmp_path / "run"
    model = record.model.model_copy(update={"name": HOSTILE})
    save_run(record.model_copy(update={"model": model}).with_items(record.items), run)
    for arguments in (("show", run), ("show", run, "--markdown"), ("show", run, "--latex"), ("check", run)):
        done = stsbench(*arguments)
        assert not DRIVES & set(done.out + done.err), arguments
    done = stsbench("cite", run)
    assert done.out.startswith(r"% evil\x1b[2J\x9b31m (at)article{x, ::error::\u202e: not known here")
    # BibTeX reads an @ outside of entries as the start of one, behind a % too.
    assert not any("@" in line for line in done.out.splitlines() if line.startswith("%"))
    assert not DRIVES & set(done.out)
    assert HOSTILE in json.loads(stsbench("cite", run, "--json").out)


def test_a_log_gets_a_line_after_five_seconds_and_then_one_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(output, "monotonic", lambda: now[0])
    steps = [(float(second), "encoding", 10 * second, 3000) for second in range(70)]
    # A stage that begins again, one without an end, and one without progress.
    steps += [(100.0, "encoding", 0, 100), (106.0, "encoding", 25, 100), (107.0, "tokenising", 0, 0)]
    steps += [(113.0, "tokenising", 4000, 0), (114.0, "jobs", 0, 2), (120.0, "jobs", 0, 2)]
    for quiet in (False, True):
        with progress_bars(quiet=quiet) as progress:
            for now[0], stage, done, total in steps:
                progress.describe(stage, "minilm-1" if stage == "jobs" else "")
                progress(stage, done, total)
    assert capsys.readouterr().err.splitlines() == [
        "encoding: 1 %, about 0:04:55 to go",
        "encoding: 21 %, about 0:03:55 to go",
        "encoding: 25 %, about 0:00:18 to go",
        "tokenising: 4,000",
        "jobs: 0 of 2 (minilm-1)",
    ]
