"""Similarities from other programs, plain or in MTEB's files, score as the vectors they came from."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_mteb_tasks import scored_by_mteb, write_predictions

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.scoring.kinds.sts import PairClassification, StsPairs

Data = Callable[..., StsData]
Encode = Callable[..., Any]
FIELDS = {"cosine": "cosine_scores", "manhattan": "manhattan_distances", "euclidean": "euclidean_distances"}


@pytest.mark.parametrize("ending", [".npy", ".txt"])
def test_saved_similarities_score_as_the_vectors_they_came_from(
    ending: str, toy_data: Data, hash_encode: Encode, tmp_path: Path
) -> None:
    pairs = toy_data("paired", seed=3, pairs=45).pairs
    labelled = replace(toy_data("paired"), pairs=pairs.assign(gold=(pairs["gold"] > 2.5).astype(float)))
    tasks = [PairClassification(labelled), StsPairs(toy_data("a")), StsPairs(toy_data("b", seed=1, pairs=45))]
    record = sb.evaluate(hash_encode, tasks)
    values = record.items["cosine"].to_numpy()
    path = tmp_path / f"mine{ending}"
    if ending == ".npy":
        np.save(path, values)
    else:
        path.write_text("".join(f"{value!r}\r\n" for value in values.tolist()) + "\n", encoding="utf-8")
    for order in (tasks, [*tasks[1:], tasks[0]]):
        given = sb.import_results(path, gold=order)
        by_task = {score.task: (score.value, score.interval) for score in given.scores}
        assert by_task == {score.task: (score.value, score.interval) for score in record.scores}
    assert sorted(given.items["given"]) == sorted(values)
    assert {given.protocol.similarity, *(signature.similarity for signature in given.signatures)} == {"given"}
    assert given.model.name == "mine"
    assert given.model.weights_sha256 is not None


def predicted(record: sb.RunRecord, task: str, split: str = "test") -> dict[str, list[float]]:
    """Return what MTEB would save for a task in a record."""
    rows = record.items[(record.items["task"] == task) & (record.items["split"] == split)]
    fields = {field: rows[kind].tolist() for kind, field in FIELDS.items()}
    return fields | {"similarity_scores": rows["cosine"].tolist()}


@pytest.fixture
def sets(toy_data: Data) -> list[StsData]:
    return [toy_data("STS12"), toy_data("STS-B", seed=1), toy_data("STS-B", seed=2, split="dev", pairs=40)]


@pytest.fixture
def record(sets: list[StsData], hash_encode: Encode) -> sb.RunRecord:
    return sb.evaluate(hash_encode, sets)


def test_predictions_score_as_the_vectors_they_came_from_in_every_analysis(
    sets: list[StsData], record: sb.RunRecord, tmp_path: Path
) -> None:
    folder = tmp_path / "predictions"
    write_predictions(folder, "STS12", test=predicted(record, "STS12"))
    stsb, dev = predicted(record, "STS-B"), predicted(record, "STS-B", "dev")
    write_predictions(folder, "STSBenchmark", test=stsb, validation=dev)
    write_predictions(folder, "Banking77Classification", test={"Level 0": [[0, 1]]})
    sb.import_results(folder, gold=sets, out=tmp_path / "run")
    read = sb.load_run(tmp_path / "run")
    assert [(part.value, part.interval) for part in read.scores] == [
        (part.value, part.interval) for part in record.scores
    ]
    for kind in FIELDS:
        assert read.items[kind].tolist() == record.items[kind].tolist()
    assert read.items["dot"].isna().all()
    assert (read.model.name, read.model.use.revision, read.model.kind) == ("owner/model", None, "predictions")
    assert (read.signatures[0].similarity, read.signatures[0].use.pooling) == ("cosine", "given")
    assert any("Banking77Classification (test)" in note for note in read.notes)
    assert (sb.compare(read, record).frame["difference"].abs() < 1e-12).all()
    bias = sb.length_bias([read, record], tasks=["STS12"], intervals=sb.Intervals(None)).frame
    ours, theirs = (bias[bias["model"] == name]["value"].to_numpy() for name in dict.fromkeys(bias["model"]))
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(sb.UserError, match="record of MTEB's predictions"):
        sb.spectrum(read, task="sample")


def test_gold_can_be_tasks_of_the_catalogue(benchmark_folder: Path, hash_encode: Encode, tmp_path: Path) -> None:
    folders = [benchmark_folder]
    measured = sb.evaluate(hash_encode, "STS13,STS-B:dev", data_dirs=folders)
    saved = tmp_path / "p"
    write_predictions(saved, "STS13", test=predicted(measured, "STS13"))
    write_predictions(saved, "STSBenchmark", validation=predicted(measured, "STS-B", "dev"))
    for gold in ("STS13,STS-B:dev", "STS-B:dev"):
        read = sb.import_results(saved, gold=gold, data_dirs=folders)
        values = {part.task: part.value for part in measured.scores}
        assert {part.task: part.value for part in read.scores} == {
            task: value for task, value in values.items() if task in gold
        }
    mean = sb.import_results(saved, gold="STS13", data_dirs=folders, aggregation="mean", metric="pearson")
    assert mean.scores[0].value == measured.scores[0].number("pearson", "mean").value
    with pytest.raises(sb.UserError, match=r"STS13 \(test\) and STSB"):
        sb.import_results(saved, gold="STS-B", data_dirs=folders)


def archive(path: Path) -> None:
    with path.open("wb") as stream:
        np.savez(stream, a=np.zeros(30))


def thirty(bad: float) -> list[float]:
    return [*np.linspace(0, 1, 12).tolist(), bad, *np.linspace(0, 1, 17).tolist()]


def with_meta(**scores: Any) -> bytes:
    content = {"default": {"test": scores}} if scores else {}
    return json.dumps({"mteb_model_meta": {"model_name": "m", "revision": "1"}} | content).encode()


MTEB_FILE = "STS12_predictions.json"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(("s.npy", np.linspace(0, 1, count), rf"has {count} similarities for 30 pairs") for count in (0, 29, 31)),
        ("s.npy", np.array(thirty(np.nan)), "number 13 of 30 is nan; give a finite number"),
        ("s.txt", "\n".join(map(str, thirty(np.inf))).encode(), "line 13: similarity 'inf'"),
        ("s.txt", b"0.5\nhalf\n", "line 2: similarity 'half' is not a finite number"),
        ("s.txt", b"", "s.txt is empty: give one similarity per line"),
        ("s.txt", b"\xff\xfe", "line 1: byte 0xff is not utf-8"),
        ("s.npy", b"", r"is not a \.npy file of numbers"),
        ("s.npy", np.zeros((30, 2)), "holds .* of shape .*: save one number per pair"),
        ("s.npy", np.array(["a"] * 30), "holds .* of shape"),
        ("s.npy", archive, "holds an archive"),
        ("s.npy", None, "there is no file"),
        (MTEB_FILE, b"", "is not valid JSON"),
        (MTEB_FILE, b"[]", "mteb_model_meta: it is missing"),
        (MTEB_FILE, with_meta(), "prediction"),
        (MTEB_FILE, with_meta(cosine_scores=[0.1, None]), r"cosine_scores\.1: "),
        (MTEB_FILE, with_meta(cosine_scores=[0.1, float("nan")]), r"cosine_scores\.1: "),
        (MTEB_FILE, with_meta(cosine_scores=[0.1, 7]), r"cosine_scores\.1: "),
        (MTEB_FILE, with_meta(cosine_scores=[0.1], manhattan_distances=[1, 2]), "numbers of similarities differ"),
        (MTEB_FILE, with_meta(cosine_scores=[0.1] * 29), r"has 29 predictions of STS12 \(test\), but"),
        (MTEB_FILE, with_meta(cosine_scores=[0.3] * 30), r"prediction 1 has the cosine 0\.3000: the order"),
    ],
)
def test_mistakes_in_a_file_are_named(
    name: str, content: Any, message: str, toy_data: Data, tmp_path: Path
) -> None:
    path, data = tmp_path / name, toy_data("STS12")
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, np.ndarray):
        np.save(path, content)
    elif content is not None:
        content(path)
    data.pairs.loc[0, "sentence2"] = data.pairs["sentence1"][0]
    with pytest.raises(sb.UserError, match=message) as caught:
        sb.import_results(path, gold=data)
    assert name in str(caught.value)


def test_a_folder_needs_predictions_of_one_model(tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match="TASK_predictions"):
        sb.import_results(tmp_path, gold="sample")
    write_predictions(tmp_path, "STS12", test={"cosine_scores": [0.1]})
    (tmp_path / "STS13_predictions.json").write_bytes(with_meta(cosine_scores=[0.1]))
    with pytest.raises(sb.UserError, match=r"several models \(STS12_pred.*, STS13_pred"):
        sb.import_results(tmp_path, gold="sample")


def test_predictions_that_mteb_saves_have_mtebs_own_scores(
    hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    data, saved = toy_data("STS12"), tmp_path / "predictions"
    theirs = scored_by_mteb(data, hash_encode, prediction_folder=saved)
    read = sb.import_results(saved, gold=data)
    assert (read.model.name, read.model.use.revision) == ("owner/ours", "1")
    assert read.scores[0].value == pytest.approx(theirs["cosine_spearman"], abs=1e-12)
    assert read.scores[0].number("pearson", "all").value == pytest.approx(theirs["cosine_pearson"], abs=1e-12)
    ours = sb.evaluate(hash_encode, data).items
    for kind in FIELDS:
        np.testing.assert_allclose(read.items[kind], ours[kind], atol=1e-6)
