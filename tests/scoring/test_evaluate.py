"""`evaluate` from Python: its arguments, its record, its mistakes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.tables import StsData, load_pairs

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]


def test_tasks_are_names_data_your_own_file_or_several_of_them(
    hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    for tasks, names in ((toy_data(), ["toy"]), ([toy_data(), "sample"], ["toy", "sample"])):
        assert [task.task for task in sb.evaluate(hash_encode, tasks).scores] == names
    path = tmp_path / "own.csv"
    rows = [("a b", "a c", 1), ("b d", "b d", 5), ("x y", "z y", 2), ("q r", "r q", 4)]
    lines = [f"{a},{b},{gold},{'ood' if gold > 2 else 'id'}" for a, b, gold in rows]
    path.write_text("\n".join(["s1,s2,gold,domain", *lines]), encoding="utf-8")
    sb.evaluate(hash_encode, load_pairs(path, subset_column="domain"), out=tmp_path / "run")
    record = sb.load_run(tmp_path / "run")
    (task,) = record.scores
    assert (task.task, task.split, task.text, task.data.status) == ("own", "all", "user", "user")
    assert [subset.subset for subset in task.subsets] == ["id", "ood"]
    assert record.items["item_id"].tolist() == ["2", "3", "4", "5"]
    assert sb.evaluate(hash_encode, data=path).items["cosine"].tolist() == record.items["cosine"].tolist()


def test_the_record_describes_the_measurement(hash_encode: Encode, toy_data: Data, tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []
    record = sb.evaluate(
        hash_encode,
        [toy_data("a"), toy_data("b", pairs=60)],
        out=tmp_path / "run",
        progress=lambda *stage: progress.append(stage),
    )
    assert (record.schema_version, record.stsbench) == (6, sb.__version__)
    assert (record.model.kind, record.model.name.rpartition(":")[2]) == ("function", "encode_by_hash")
    assert set(record.seconds) == {"data", "hash", "load", "tokenize", "encode", "similarities", "score"}
    assert len(record.items) == 90
    assert record.signature.splitlines() == [task.signature for task in record.scores]
    assert any("callable" in note for note in record.notes)
    table = record.frame
    assert table["task"].tolist() == ["a", "a", "a", "b", "b", "b", "Avg."]
    assert table["subset"].tolist() == ["", "first", "second"] * 2 + [""]
    assert table["items"].tolist() == [30, 10, 20, 60, 20, 40, 90]
    assert progress[-1] == ("scoring", 2, 2)
    assert any(stage.startswith("encoding ") and done == total > 0 for stage, done, total in progress)

    text = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=pytest.fail)["scores"][0]["task"] == "a"


def test_whitening_uses_the_sentences_of_each_task_and_notes_dimensions_without_variance(
    hash_encode: Encode, toy_data: Data
) -> None:
    def narrow(sentences: list[str]) -> np.ndarray:
        vectors = np.asarray(hash_encode(sentences))
        return np.concatenate([vectors, vectors[:, :2]], axis=1)

    tasks = [toy_data("a"), toy_data("b", seed=1)]
    both, alone = (sb.evaluate(sb.load(narrow, whiten=0), some) for some in (tasks, tasks[1]))
    np.testing.assert_allclose(both.items["cosine"][30:], alone.items["cosine"], atol=1e-9)
    width = np.asarray(hash_encode(["x"])).shape[1]
    kept = f"whitening kept the {width} of {width + 2} dimensions with any variance."
    assert [note for note in both.notes if "whitening kept" in note] == [f"{task}: {kept}" for task in ("a", "b")]
    with pytest.raises(sb.UserError, match=rf"60 sentences of a .* {width} of {width + 2}"):
        sb.evaluate(sb.load(narrow, whiten=width + 1), tasks)
