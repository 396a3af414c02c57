"""Atomic writing: the whole new file, or what was there."""

import errno
import hashlib
import os
import stat
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
    replaced_folder,
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


def test_a_file_gets_the_permissions_that_the_person_s_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "file.txt") as path:
            path.write_text("", encoding="utf-8")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o640


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = [
        tmp_path / name for name in ("run.json", ".run.stsbench-x.txt", ".run-notes.json", ".runs.stsbench-x.json")
    ]
    for path in (*kept, tmp_path / ".run.stsbench-abc.json"):
        path.write_text("", encoding="utf-8")
    remove_leftovers(tmp_path / "run.json")
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_a_replaced_folder_is_the_new_one_or_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for content in ("first", "second"):
        with replaced_folder(target) as new:
            new.mkdir()
            (new / "file").write_text(content, encoding="utf-8")
    with suppress(KeyboardInterrupt), replaced_folder(target) as new:
        new.mkdir()
        raise KeyboardInterrupt
    assert (target / "file").read_text(encoding="utf-8") == "second"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_was_taken_away_when_its_writer_was_killed_comes_back(tmp_path: Path) -> None:
    target, workshop = tmp_path / "folder", tmp_path / ".folder.stsbench"
    (workshop / "old").mkdir(parents=True)
    (workshop / "new").mkdir()
    (workshop / "old" / "file").write_text("old", encoding="utf-8")
    with suppress(KeyboardInterrupt), replaced_folder(target) as new:
        assert not new.exists()
        raise KeyboardInterrupt
    assert (target / "file").read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_writer_left_that_was_killed_after_the_exchange_is_in_nobodys_way(tmp_path: Path) -> None:
    target, old = tmp_path / "folder", tmp_path / ".folder.stsbench" / "old"
    for folder in (target, old):
        folder.mkdir(parents=True)
        (folder / "file").write_text("before", encoding="utf-8")
    with replaced_folder(target) as new:
        new.mkdir()
        (new / "file").write_text("after", encoding="utf-8")
    assert (target / "file").read_text(encoding="utf-8") == "after"
    assert list(tmp_path.iterdir()) == [target]


def test_a_hash_is_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x00\xff" * 100_000)
    assert sha256_of(tmp_path / "file") == hashlib.sha256(b"\x00\xff" * 100_000).hexdigest()


def test_a_folder_is_whole_or_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def fill(text: str, *, fails: bool = False) -> None:
        with atomic_folder(target) as building:
            (building / "below").mkdir()
            (building / "below" / "a.txt").write_text(text, encoding="utf-8")
            if fails:
                raise RuntimeError

    with pytest.raises(RuntimeError):
        fill("first", fails=True)
    assert list(tmp_path.iterdir()) == []
    fill("first")
    with pytest.raises(RuntimeError):
        fill("second", fails=True)
    assert (target / "below" / "a.txt").read_text(encoding="utf-8") == "first"
    fill("third")
    assert (target / "below" / "a.txt").read_text(encoding="utf-8") == "third"
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
