"""Atomic writing: after an error, an interrupt or a kill, the old or the new file or folder is there."""

import errno
import itertools
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stsbench.base import machine
from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder, atomic_path, files_below, files_in, require_writable


def write_file(target: Path, text: str, error: BaseException | None = None) -> None:
    with atomic_path(target) as path:
        assert path.suffix == target.suffix
        path.write_text(text, encoding="utf-8")
        if error is not None:
            raise error


def write_folder(target: Path, text: str, error: BaseException | None = None) -> None:
    with atomic_folder(target) as building:
        (building / "below").mkdir()
        (building / "below" / "a.txt").write_text(text, encoding="utf-8")
        if error is not None:
            raise error


def content(target: Path) -> str:
    return (target / "below" / "a.txt" if target.is_dir() else target).read_text(encoding="utf-8")


def refuse(number: int) -> Callable[..., Any]:
    def call(*arguments: object) -> None:
        raise OSError(number, os.strerror(number), str(arguments[0]))

    return call


@pytest.mark.parametrize("write", [write_file, write_folder])
def test_after_an_error_or_a_full_disk_the_old_content_is_unchanged(
    write: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "place.x"
    write(target, "first")
    for error in (RuntimeError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            write(target, "second", error)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse(errno.ENOSPC))
        with pytest.raises(UserError, match=r"place\.x \(No space left on device\)"):
            write(target, "second")
    assert content(target) == "first"
    write(target, "third")
    assert content(target) == "third"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("step", range(12))
def test_an_interrupt_or_kill_at_any_step_loses_no_folder(tmp_path: Path, step: int, killed: bool) -> None:
    """The child replaces one of the system calls that exchange folders by an interrupt or its own end."""
    target = tmp_path / "folder"
    write_folder(target, "old")
    child = os.fork()
    if child == 0:
        calls = itertools.count()

        def stop() -> None:
            if killed:
                os._exit(1)
            raise KeyboardInterrupt

        def stopping(call: Callable[..., object]) -> Callable[..., object]:
            return lambda *args, **options: stop() if next(calls) == step else call(*args, **options)

        for name in ("fsync", "rename", "rmdir", "unlink"):
            setattr(os, name, stopping(getattr(os, name)))
        with suppress(BaseException):
            write_folder(target, "new")
        os._exit(0)
    os.waitpid(child, 0)
    left = [path.read_text(encoding="utf-8") for path in tmp_path.glob("**/a.txt")]
    assert "old" in left or content(target) == "new"
    assert killed or content(target) in {"old", "new"}
    with pytest.raises(RuntimeError):
        write_folder(target, "newer", RuntimeError())
    # The next writer has put the old folder back and deleted what was left.
    assert content(target) in {"old", "new"}
    assert not killed or list(tmp_path.iterdir()) == [target]


def test_two_writers_of_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with atomic_folder(target) as building:
        (building / "below").mkdir()
        (building / "below" / "a.txt").write_text("last", encoding="utf-8")
        write_folder(target, "first")
        assert content(target) == "first"
    assert content(target) == "last"
    assert list(tmp_path.iterdir()) == [target]


def test_what_cannot_be_written_is_an_error_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("", encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    for place, as_folder, words in (
        ("folder", False, "it is a folder; choose another file with --out"),
        ("pipe", False, "it is a pipe or device"),
        ("file", True, "it is a file; choose another folder with --out"),
        ("file/inside", True, "file is not a folder"),
    ):
        require_writable(tmp_path / "new" / "one", as_folder=as_folder)
        with pytest.raises(UserError, match=rf"cannot write .*{place}: .*{words}"):
            require_writable(tmp_path / place, "--out", as_folder=as_folder)
        with pytest.raises(UserError, match="cannot write"):
            (write_folder if as_folder else write_file)(tmp_path / place, "")
    assert sorted(tmp_path.iterdir()) == before


def test_the_folder_is_synced_after_a_file_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    are_folders = []
    monkeypatch.setattr(os, "fsync", lambda handle: are_folders.append(stat.S_ISDIR(os.fstat(handle).st_mode)))
    write_file(tmp_path / "a.txt", "")
    assert are_folders == [False, True]


def test_files_are_sorted_or_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.json", "a.json", ".hidden.json", "c.txt", "inside/d.json"):
        write_file(tmp_path / name, "")
    assert [path.name for path in files_in(tmp_path, "*.json", "a.*")] == [".hidden.json", "a.json", "b.json"]
    assert [path.name for path in files_below(tmp_path)] == [".hidden.json", "a.json", "b.json", "c.txt", "d.json"]
    monkeypatch.setattr(os, "listdir", refuse(errno.EIO))
    monkeypatch.setattr(os, "scandir", refuse(errno.EIO))
    with pytest.raises(UserError, match=r"cannot list .* \(Input/output error\)"):
        files_below(tmp_path)


def test_the_free_memory_is_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    machine.require_memory(10**18, "they", "do less")
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 2929688 kB\n")
    with pytest.raises(UserError, match=r"they take 3\.1 GB .* 3\.0 GB .*: do less"):
        machine.require_memory(3_100_000_000, "they", "do less")
