"""Records on disk: what was saved comes back, and what is broken is told in a sentence."""

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet
import pytest

from stsbench import RunRecord, UserError, load_run
from stsbench.records.items import ITEMS
from stsbench.records.record import RECORD
from stsbench.records.store import Measurement, held_by, require_free, save_run

Maker = Callable[..., RunRecord]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_record_and_its_items_come_back_also_from_another_place(make_record: Maker, tmp_path: Path) -> None:
    record = make_record()
    saved = save_run(record, tmp_path / "run")
    loaded = load_run(str(tmp_path / "run"))
    assert loaded == saved == load_run(tmp_path / "run" / RECORD)
    assert loaded.model_copy(update={"items_file": None}) == record
    pd.testing.assert_frame_equal(loaded.items, record.items, check_dtype=False, check_exact=True)
    pd.testing.assert_frame_equal(loaded.frame, record.frame)
    assert names(tmp_path / "run") == [".lock", ITEMS, RECORD]
    modes = {stat.S_IMODE((tmp_path / "run" / name).stat().st_mode) for name in (ITEMS, RECORD)}
    assert len(modes) == 1
    (tmp_path / "run").rename(tmp_path / "moved")
    assert len(load_run(tmp_path / "moved").items) == 60


def test_saving_again_replaces_record_and_items_together_and_says_so(make_record: Maker, tmp_path: Path) -> None:
    record = make_record(0)
    assert not save_run(record, tmp_path).replaced
    assert save_run(record, tmp_path).replaced
    new = save_run(make_record(1), tmp_path, overwrite=True)
    assert not new.replaced
    assert load_run(tmp_path) == new
    assert len(load_run(tmp_path).items) == 60
    assert names(tmp_path) == [".lock", ITEMS, RECORD]


def test_a_missing_record_is_an_error_with_the_name_that_is_likely_meant(
    make_record: Maker, tmp_path: Path
) -> None:
    save_run(make_record(), tmp_path / "baseline")
    (tmp_path / "baselyne-notes").mkdir()
    for name in ("basline", "Baseline2"):
        with pytest.raises(UserError, match=r"no run record at .*: did you mean .*/baseline\? `stsbench run"):
            load_run(tmp_path / name)
    with pytest.raises(UserError, match=r"no run record at .*/elsewhere: `stsbench run"):
        load_run(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 100_000, b'{"schema_version": 6, "scores": [', b"\xff\xfe", b"null", b"[]", b'"x"', b"{}"],
)
def test_damaged_json_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / RECORD).write_bytes(content)
    with pytest.raises(UserError, match=r"run\.json is not (valid JSON|a run record).*measure again\.$"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"schema_version": 7}, r"has schema version 7, and this stsbench reads version 6: update stsbench\."),
        ({"schema_version": 5}, r"has schema version 5, .*: measure again\."),
        ({"schema_version": None}, "names no schema version"),
        ({"schema_version": "1"}, "names no schema version"),
        ({"surprise": 1}, "surprise"),
        ({"model": {"owner": "x"}}, r"model\."),
        ({"scores": []}, "scores"),
        ({"scores.0.signature": "none"}, r"scores\.0\.signature"),
        ({"scores.0.kind": "none"}, r"scores\.0\.kind"),
        ({"scores.0.numbers": []}, r"scores\.0\.numbers"),
        ({"scores.0.data.status": "fine"}, r"scores\.0\.data\.status"),
        ({"notes": ["edited"]}, "edited after it was written"),
        ({"digest": None}, "edited after it was written"),
    ],
)
def test_another_layout_or_content_is_an_error_that_names_the_field(
    change: dict[str, Any], where: str, make_record: Maker, tmp_path: Path
) -> None:
    save_run(make_record(), tmp_path)
    content = json.loads((tmp_path / RECORD).read_text(encoding="utf-8"))
    for path, value in change.items():
        *keys, last = path.split(".")
        place = content
        for key in keys:
            place = place[int(key) if key.isdecimal() else key]
        place[last] = value
    (tmp_path / RECORD).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=rf"run\.json .*{where}"):
        load_run(tmp_path)


def test_a_missing_table_or_that_of_another_run_is_an_error_when_it_is_read(
    make_record: Maker, tmp_path: Path
) -> None:
    for number in (0, 1):
        save_run(make_record(number), tmp_path / f"{number}")
    (tmp_path / "0" / ITEMS).replace(tmp_path / "1" / ITEMS)
    for name, why in (("0", "is missing: copy it beside run.json"), ("1", "is not the table that run.json")):
        with pytest.raises(UserError, match=re.escape(f"{ITEMS} {why}")):
            _ = load_run(tmp_path / name).items
    with pytest.raises(UserError, match="has no items table"):
        _ = RunRecord.model_validate_json(make_record().model_dump_json()).items


def test_another_measurement_is_not_overwritten_unasked(make_record: Maker, tmp_path: Path) -> None:
    old, new = make_record(0), make_record(1)
    save_run(old, tmp_path)
    with pytest.raises(UserError, match=r"holds another measurement .*choose another folder with --out"):
        require_free(tmp_path, Measurement.of(new))
    require_free(tmp_path, Measurement.of(new), overwrite=True)
    require_free(tmp_path, Measurement.of(old))
    other = old.model.model_copy(update={"weights_sha256": "0" * 64})
    assert "another measurement" in (held_by(tmp_path, replace(Measurement.of(old), model=other)) or "")


def test_a_record_that_cannot_be_read_is_not_overwritten_unasked(make_record: Maker, tmp_path: Path) -> None:
    record = make_record()
    (tmp_path / RECORD).write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"holds a record that cannot be read: .*--overwrite"):
        require_free(tmp_path, Measurement.of(record))
    require_free(tmp_path, Measurement.of(record), overwrite=True)
    with pytest.raises(UserError, match="holds a record that cannot be read"):
        save_run(record, tmp_path)
    save_run(record, tmp_path, overwrite=True)
    assert len(load_run(tmp_path).items) == 60


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(
    make_record: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = make_record()
    (tmp_path / "file").write_text("", encoding="utf-8")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(UserError, match="is not a folder"):
            require_free(folder, Measurement.of(record))
    # The administrator may write anywhere, so the system's answer is put in its mouth.
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path)
    with pytest.raises(UserError, match="no permission; choose another folder"):
        require_free(tmp_path / "new" / "run", Measurement.of(record))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("step", ["table", "sync table", "record", "sync record", "interrupt"])
@pytest.mark.parametrize("old", [True, False])
def test_a_full_disk_leaves_the_old_record_and_no_temporary_files(
    step: str, old: bool, make_record: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = save_run(make_record(0), tmp_path) if old else None
    new = make_record(1)

    def full(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt if step == "interrupt" else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    synced = iter(range(10))
    sync, number = os.fsync, 0 if step == "sync table" else 2
    if step == "table":
        monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    elif step in {"record", "interrupt"}:
        monkeypatch.setattr(Path, "write_text", full)
    else:
        # The table is synced first, then its folder, then the record.
        monkeypatch.setattr(os, "fsync", lambda handle: full() if next(synced) == number else sync(handle))
    with pytest.raises((UserError, KeyboardInterrupt), match=r"^$|\(No space left on device\): free some space"):
        save_run(new, tmp_path, overwrite=True)
    monkeypatch.undo()
    assert names(tmp_path) == ([".lock", ITEMS, RECORD] if old else [".lock"])
    if before is not None:
        assert load_run(tmp_path) == before
        assert len(load_run(tmp_path).items) == 60


def test_ctrl_c_just_after_the_commit_leaves_the_new_record_with_its_items(
    make_record: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_run(make_record(0), tmp_path)
    new = make_record(1)
    replace = Path.replace

    def then_interrupted(self: Path, target: Path) -> Path:
        done = replace(self, target)
        if target.name == RECORD:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Path, "replace", then_interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_run(new, tmp_path, overwrite=True)
    assert load_run(tmp_path).signature == new.signature
    pd.testing.assert_frame_equal(load_run(tmp_path).items, new.items, check_dtype=False)
    assert names(tmp_path) == [".lock", ITEMS, RECORD]


def test_a_disk_that_does_not_give_the_record_just_after_the_commit_costs_no_items(
    make_record: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, replace, read = make_record(0), Path.replace, Path.read_bytes
    broken: list[bool] = []

    def then_broken(self: Path, target: Path) -> Path:
        broken.extend([True] if target.name == RECORD else [])
        return replace(self, target)

    def of_a_broken_disk(self: Path) -> bytes:
        if broken and self.name == RECORD:
            raise OSError(errno.EIO, "Input/output error")
        return read(self)

    monkeypatch.setattr(Path, "replace", then_broken)
    monkeypatch.setattr(Path, "read_bytes", of_a_broken_disk)
    with pytest.raises(UserError, match=r"cannot read .*run.json \(Input/output error\)"):
        save_run(record, tmp_path)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(load_run(tmp_path).items, record.items, check_dtype=False)


def test_a_reader_finds_the_table_that_is_moved_while_it_looks(
    make_record: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_run(make_record(), tmp_path)
    staged = tmp_path / "items.next.parquet"
    (tmp_path / ITEMS).rename(staged)
    read_bytes = Path.read_bytes

    def moved_meanwhile(path: Path) -> bytes:
        if path == staged and staged.exists():
            staged.rename(tmp_path / ITEMS)
        return read_bytes(path)

    record = load_run(tmp_path)
    monkeypatch.setattr(Path, "read_bytes", moved_meanwhile)
    assert len(record.items) == 60


def test_a_table_that_is_exchanged_once_its_bytes_were_read_is_not_read(
    make_record: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = save_run(make_record(), tmp_path / "ours")
    other = make_record()
    other = other.with_items(other.items.assign(gold=1.0))
    save_run(other, tmp_path / "other")
    bytes_of = Path.read_bytes

    def exchanged_meanwhile(path: Path) -> bytes:
        content = bytes_of(path)
        (tmp_path / "other" / ITEMS).replace(path)
        return content

    read = load_run(tmp_path / "ours")
    monkeypatch.setattr(Path, "read_bytes", exchanged_meanwhile)
    assert read.items["gold"].tolist() == record.items["gold"].tolist()
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"is not the table that run\.json was computed from"):
        _ = read.items


@pytest.mark.parametrize("name", [RECORD, ITEMS])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_where_a_record_is_to_be_is_told_before_the_work(
    name: str, make: Callable[[Path], None], tmp_path: Path, make_record: Maker
) -> None:
    make(tmp_path / name)
    record = make_record()
    with pytest.raises(UserError, match="it is not a file; move it away"):
        require_free(tmp_path, Measurement.of(record))


def test_a_record_is_not_saved_over_a_pipe_nor_waited_for(tmp_path: Path, make_record: Maker) -> None:
    os.mkfifo(tmp_path / RECORD)
    with pytest.raises(UserError, match="it is a pipe"):
        save_run(make_record(), tmp_path)
    assert names(tmp_path) == [".lock", RECORD]
