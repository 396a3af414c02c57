"""Records on disk: what was saved can be read, and damage is reported in one sentence."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import with_values

from stsbench import RunRecord, UserError, evaluate, load_run
from stsbench.data.tables import StsData
from stsbench.records.kinds import ITEMS
from stsbench.records.parts import Training
from stsbench.records.record import RECORD
from stsbench.records.store import Measurement, held_by, require_free, save_run

Maker = Callable[..., RunRecord]


@pytest.fixture
def make_record(hash_encode: Callable[..., Any], toy_data: Callable[..., StsData]) -> Callable[..., RunRecord]:
    """Return a maker of records; another seed is another measurement."""

    def make(seed: int = 0) -> RunRecord:
        return evaluate(hash_encode, [toy_data(seed=seed), toy_data("other", seed=seed + 100)])

    return make


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_record_and_its_items_can_be_read_also_in_another_place(make_record: Maker, tmp_path: Path) -> None:
    record = make_record()
    saved = save_run(record, tmp_path / "run")
    loaded = load_run(str(tmp_path / "run"))
    assert loaded == saved == load_run(tmp_path / "run" / RECORD)
    assert loaded.model_copy(update={"items_file": None}) == record
    pd.testing.assert_frame_equal(loaded.frame, record.frame)
    assert names(tmp_path / "run") == [".lock", ITEMS, RECORD]
    assert len({stat.S_IMODE((tmp_path / "run" / name).stat().st_mode) for name in (ITEMS, RECORD)}) == 1
    (tmp_path / "run").rename(tmp_path / "moved")
    again = load_run(tmp_path / "moved").items
    pd.testing.assert_frame_equal(again, record.items, check_exact=True, check_dtype=False)
    assert {str(again[name].dtype) for name in ("sentence_a", "folded_b")} == {"uint64"}
    assert (again["words_a"].dtype, again["zero"].dtype) == (np.int64, bool)


def test_saving_again_replaces_record_and_items_together(make_record: Maker, tmp_path: Path) -> None:
    record = make_record(0)
    assert [save_run(record, tmp_path).replaced for _ in range(2)] == [False, True]
    new = save_run(make_record(1), tmp_path, overwrite=True)
    assert not new.replaced
    assert load_run(tmp_path) == new
    assert len(load_run(tmp_path).items) == 60
    # A record without items leaves no table of another record.
    imported = record.model_copy(update={"model": record.model.model_copy(update={"kind": "imported"})})
    save_run(imported, tmp_path, overwrite=True)
    assert names(tmp_path) == [".lock", RECORD]


def test_a_missing_record_is_reported_with_the_closest_name(make_record: Maker, tmp_path: Path) -> None:
    save_run(make_record(), tmp_path / "baseline")
    for name in ("basline", "Baseline2"):
        with pytest.raises(UserError, match=r"did you mean .*/baseline\?"):
            load_run(tmp_path / name)
    with pytest.raises(UserError, match="/elsewhere: `stsbench run"):
        load_run(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        *(
            ("", content, r"is not (valid JSON|a run record).*(measure|save the record) again\.$")
            for content in ("", "[" * 100_000, '{"schema_version": 6, "scores": [', "null", "{}")
        ),
        ("schema_version", 7, r"has schema version 7, and this stsbench reads version 6: update stsbench\."),
        ("schema_version", 5, r"has schema version 5, .*: measure again\."),
        ("schema_version", "1", "has no schema version"),
        ("model", {"owner": "x"}, r"model\."),
        ("scores", [], "scores"),
        ("scores.0.signature", "none", r"scores\.0\.signature"),
        ("scores.0.kind", "none", r"scores\.0\.kind"),
        ("scores.0.numbers", [], r"scores\.0\.numbers"),
    ],
)
def test_damage_or_another_layout_is_an_error_that_names_the_field(
    place: str, value: Any, message: str, make_record: Maker, tmp_path: Path
) -> None:
    save_run(make_record(), tmp_path)
    content = part = json.loads((tmp_path / RECORD).read_text(encoding="utf-8"))
    *keys, last = place.split(".")
    for key in keys:
        part = part[int(key) if key.isdecimal() else key]
    part[last] = value
    (tmp_path / RECORD).write_text(json.dumps(content) if place else value, encoding="utf-8")
    with pytest.raises(UserError, match=rf"run\.json .*{message}"):
        load_run(tmp_path)


def test_items_that_are_missing_changed_or_of_another_run_are_an_error(make_record: Maker, tmp_path: Path) -> None:
    record = make_record()
    save_run(record, tmp_path)
    load_run(tmp_path).items.loc[0, "gold"] = 9.0  # a copy
    pd.testing.assert_frame_equal(load_run(tmp_path).items, record.items, check_dtype=False)
    place = tmp_path / ITEMS
    stamp, content = place.stat(), bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    save_run(make_record(1), tmp_path / "other")
    for other in (bytes(content), (tmp_path / "other" / ITEMS).read_bytes()):
        place.write_bytes(other)
        os.utime(place, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        with pytest.raises(UserError, match=r"parquet is not the table that run\.json"):
            _ = load_run(tmp_path).items
    place.unlink()
    with pytest.raises(UserError, match="parquet is missing: copy it"):
        _ = load_run(tmp_path).items
    with pytest.raises(UserError, match="has no items table"):
        _ = RunRecord.model_validate_json(record.model_dump_json()).items


def test_only_the_same_measurement_is_replaced_without_asking(make_record: Maker, tmp_path: Path) -> None:
    old, new = make_record(0), make_record(1)
    save_run(old, tmp_path)
    with pytest.raises(UserError, match=r"another measurement .*--out"):
        require_free(tmp_path, Measurement.of(new))
    require_free(tmp_path, Measurement.of(new), overwrite=True)
    require_free(tmp_path, Measurement.of(old))
    own = Measurement.of(old)
    for other in (
        own._replace(model=old.model.model_copy(update={"weights_sha256": "0" * 64})),
        own._replace(protocol=old.protocol.model_copy(update={"level": 0.9})),
        own._replace(tasks=tuple((*task[:2], 1) for task in own.tasks)),
    ):
        assert "another measurement" in (held_by(tmp_path, other) or "")
    training = Training(method="logreg", design="kfold", seed=7)
    trained = old.model_copy(update={"scores": (old.scores[0].model_copy(update={"training": training}),)})
    assert Measurement.of(trained).tasks[0][2] == 7
    # A function has no hash, so its scores are compared, too.
    with pytest.raises(UserError, match="other results of"):
        save_run(with_values(old, 0.5), tmp_path)
    (tmp_path / RECORD).write_text("{", encoding="utf-8")
    record = make_record()
    with pytest.raises(UserError, match=r"cannot be read: .*--overwrite"):
        require_free(tmp_path, Measurement.of(record))
    require_free(tmp_path, Measurement.of(record), overwrite=True)
    with pytest.raises(UserError, match="cannot be read"):
        save_run(record, tmp_path)
    save_run(record, tmp_path, overwrite=True)
    assert len(load_run(tmp_path).items) == 60
