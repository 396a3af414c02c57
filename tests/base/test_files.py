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

from stsbench.base.errors import UserError, by_interrupt
from stsbench.base.files import (
    atomic_folder,
    atomic_path,
    cache_dir,
    files_below,
    files_in,
    remove_leftovers,
    require_new_file,
    require_new_folder,
)


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


@pytest.mark.parametrize("write", [write_file, write_folder])
def test_it_is_whole_or_as_it_was(
    write: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "place.x"
    write(target, "first")
    for error in (RuntimeError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            write(target, "second", error)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse(errno.ENOSPC))
        with pytest.raises(UserError, match=r"cannot write .*place\.x \(No space left on device\): free"):
            write(target, "second")
    assert content(target) == "first"
    write(target, "third")
    assert content(target) == "third"
    assert list(target.parent.iterdir()) == [target]


def refuse(number: int) -> Callable[..., Any]:
    def call(*arguments: object) -> None:
        raise OSError(number, os.strerror(number), str(arguments[0]))

    return call


def test_permissions_follow_the_umask_which_is_never_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_umask = os.umask
    before = set_umask(0o027)
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("files of other threads would be open to everybody"))
    try:
        write_file(tmp_path / "file.txt", "")
        write_folder(tmp_path / "folder", "text")
    finally:
        set_umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"file.txt": 0o640, "folder": 0o750, "below": 0o750, "a.txt": 0o640}


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = [tmp_path / name for name in ("run.json", ".run.stsbench-x.txt", ".runs.stsbench-x.json")]
    for path in (*kept, tmp_path / ".run.stsbench-abc.json"):
        path.write_text("", encoding="utf-8")
    remove_leftovers(tmp_path / "run.json")
    assert sorted(tmp_path.iterdir()) == sorted(kept)


_STEPS = ("fsync", "rename", "rmdir", "unlink")


def stop_at(step: int, stop: Callable[[], None], patch: Callable[[str, Callable[..., object]], None]) -> None:
    """Call `stop` in place of the call number `step` of the system calls that exchange folders."""
    calls = itertools.count()

    def stopping(call: Callable[..., object]) -> Callable[..., object]:
        return lambda *args, **options: stop() if next(calls) == step else call(*args, **options)

    for name in _STEPS:
        patch(name, stopping(getattr(os, name)))


@pytest.mark.parametrize("step", range(12))
def test_an_interrupt_at_any_step_leaves_the_old_or_the_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    target = tmp_path / "folder"
    write_folder(target, "old")

    def stop() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        stop_at(step, stop, lambda name, call: patch.setattr(os, name, call))
        with suppress(KeyboardInterrupt):
            write_folder(target, "new")
    assert content(target) in {"old", "new"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.parametrize("step", range(12))
def test_a_kill_at_any_step_loses_no_folder_and_the_next_writer_puts_it_back(tmp_path: Path, step: int) -> None:
    target = tmp_path / "folder"
    write_folder(target, "old")
    child = os.fork()
    if child == 0:
        stop_at(step, lambda: os._exit(1), lambda name, call: setattr(os, name, call))
        write_folder(target, "new")
        os._exit(0)
    os.waitpid(child, 0)
    left = [path.read_text(encoding="utf-8") for path in tmp_path.glob("**/a.txt")]
    assert "old" in left or content(target) == "new"
    with pytest.raises(RuntimeError):
        write_folder(target, "newer", RuntimeError())
    assert content(target) in {"old", "new"}
    assert list(tmp_path.iterdir()) == [target]


def test_two_writers_of_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with atomic_folder(target) as building:
        (building / "below").mkdir()
        (building / "below" / "a.txt").write_text("last", encoding="utf-8")
        write_folder(target, "first")
        assert content(target) == "first"
    assert content(target) == "last"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Path.mkdir, "a folder"),
        (os.mkfifo, "a pipe"),
        (lambda path: path.symlink_to(os.devnull), "a device"),
    ],
)
def test_only_a_file_is_written_over(tmp_path: Path, make: Callable[[Path], Any], kind: str) -> None:
    target = tmp_path / "target"
    make(target)
    before = target.lstat()
    for write in (lambda path: write_file(path, ""), require_new_file):
        with pytest.raises(UserError, match=f"cannot write .*target: it is {kind}; name a file"):
            write(target)
    assert target.lstat().st_mode == before.st_mode


def test_a_place_for_a_folder_may_be_new_and_is_no_file(tmp_path: Path) -> None:
    require_new_folder(tmp_path / "new" / "one")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place, what in (
        ("file", "file is not a folder"),
        ("file/inside", "not a folder"),
        ("x" * 300, "too long"),
    ):
        with pytest.raises(UserError, match=what):
            require_new_folder(tmp_path / place, "--out")


def test_files_are_listed_sorted_and_a_folder_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.json", "a.json", ".hidden.json", "c.txt", "inside/d.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert [path.name for path in files_in(tmp_path, "*.json", "a.*")] == [".hidden.json", "a.json", "b.json"]
    assert files_in(tmp_path / "absent", "*") == files_in(tmp_path / "c.txt", "*") == []
    assert [path.name for path in files_below(tmp_path)] == [".hidden.json", "a.json", "b.json", "c.txt", "d.json"]
    monkeypatch.setattr(os, "listdir", refuse(errno.EIO))
    monkeypatch.setattr(os, "scandir", refuse(errno.EIO))
    for find in (lambda: files_in(tmp_path, "*.json"), lambda: files_below(tmp_path)):
        with pytest.raises(UserError, match=r"cannot list .* \(Input/output error\)"):
            find()


@pytest.mark.parametrize("value", ["~/somewhere", None, ""])
def test_the_cache_is_where_the_variable_says_or_the_platforms_own(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STSBENCH_CACHE", raising=False)
    if value is not None:
        monkeypatch.setenv("STSBENCH_CACHE", value)
    assert cache_dir() == Path.home() / "somewhere" if value else cache_dir().name == "stsbench"


def test_an_interrupt_is_found_among_causes() -> None:
    error, cause, own = ImportError(), ValueError(), ValueError()
    error.__cause__, cause.__cause__, own.__cause__ = cause, KeyboardInterrupt(), own
    assert by_interrupt(error)
    assert not by_interrupt(own)
