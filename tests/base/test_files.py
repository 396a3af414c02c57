"""Atomic writing: the whole new file, or what was there."""

import errno
import hashlib
import itertools
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.base.files import (
    atomic_folder,
    atomic_path,
    files_below,
    files_in,
    remove_leftovers,
    require_new_file,
    require_new_folder,
    sha256_of,
)


def test_a_file_is_written_whole_with_its_missing_folders_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "file.txt"
    with atomic_path(target) as path:
        assert path.suffix == ".txt"
        assert path.parent == target.parent
        path.write_text("new", encoding="utf-8")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "new"
    assert list(target.parent.iterdir()) == [target]


def write_half(target: Path, error: BaseException | None = None) -> None:
    with atomic_path(target) as path:
        path.write_text("half", encoding="utf-8")
        if error is not None:
            raise error


def test_an_error_in_between_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old", encoding="utf-8")
    with pytest.raises(RuntimeError, match="in between"):
        write_half(target, RuntimeError("in between"))
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_ctrl_c_in_between_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        write_half(target, KeyboardInterrupt())
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_while_syncing_is_told_in_a_sentence_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old", encoding="utf-8")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*file\.txt \(No space left on device\): free some space"):
        write_half(target)
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_is_a_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="cannot write"), atomic_path(tmp_path / "file" / "target.txt"):
        pytest.fail("there is nothing to write to")


def test_permissions_follow_the_umask_which_is_never_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_umask = os.umask
    before = set_umask(0o027)
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("files of other threads would be open to everybody"))
    try:
        with atomic_path(tmp_path / "file.txt") as path:
            path.write_text("", encoding="utf-8")
        write_folder(tmp_path / "folder", "text")
    finally:
        set_umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"file.txt": 0o640, "folder": 0o750, "below": 0o750, "a.txt": 0o640}


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = [
        tmp_path / name for name in ("run.json", ".run.stsbench-x.txt", ".run-notes.json", ".runs.stsbench-x.json")
    ]
    for path in (*kept, tmp_path / ".run.stsbench-abc.json"):
        path.write_text("", encoding="utf-8")
    remove_leftovers(tmp_path / "run.json")
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_a_hash_is_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x00\xff" * 100_000)
    assert sha256_of(tmp_path / "file") == hashlib.sha256(b"\x00\xff" * 100_000).hexdigest()


def write_folder(target: Path, text: str, error: BaseException | None = None) -> None:
    with atomic_folder(target) as building:
        (building / "below").mkdir()
        (building / "below" / "a.txt").write_text(text, encoding="utf-8")
        if error is not None:
            raise error


def content(folder: Path) -> str:
    return (folder / "below" / "a.txt").read_text(encoding="utf-8")


def test_a_folder_is_whole_or_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for error in (RuntimeError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            write_folder(target, "first", error)
        assert list(tmp_path.iterdir()) == []
    write_folder(target, "first")
    with pytest.raises(RuntimeError):
        write_folder(target, "second", RuntimeError())
    assert content(target) == "first"
    write_folder(target, "third")
    assert content(target) == "third"
    assert list(tmp_path.iterdir()) == [target]


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


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a device"])
def test_nothing_but_a_file_is_written_over(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "a folder":
        target.mkdir()
    elif kind == "a pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(os.devnull)
    before = target.lstat()
    for write in (write_half, require_new_file):
        with pytest.raises(UserError, match=f"cannot write .*target: it is {kind}; name a file"):
            write(target)
    assert target.lstat().st_mode == before.st_mode
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_for_a_folder_may_be_new_and_is_no_file(tmp_path: Path) -> None:
    require_new_folder(tmp_path / "new" / "one")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place in ("file", "file/inside"):
        with pytest.raises(UserError, match="file is not a folder; choose another with --out"):
            require_new_folder(tmp_path / place, "--out")
    with pytest.raises(UserError, match="File name too long"):
        require_new_folder(tmp_path / ("x" * 300))


def test_a_folder_that_cannot_be_listed_is_told_and_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.json", "a.json", ".hidden.json", "c.txt", "inside/d.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "folder.json").mkdir()
    assert [path.name for path in files_in(tmp_path, "*.json", "a.*")] == [".hidden.json", "a.json", "b.json"]
    assert files_in(tmp_path / "absent", "*") == files_in(tmp_path / "c.txt", "*") == []
    assert [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path)] == [
        ".hidden.json",
        "a.json",
        "b.json",
        "c.txt",
        "inside/d.json",
    ]

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(tmp_path))

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    for find in (lambda: files_in(tmp_path, "*.json"), lambda: files_below(tmp_path)):
        with pytest.raises(UserError, match=r"cannot list .* \(Input/output error\): check its permissions"):
            find()
