"""MTEB's prediction files: the scores that the vectors give, in every analysis; and what is none of MTEB's."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mteb_task import scored_by_mteb

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.scoring.evaluate import import_results

Data = Callable[..., StsData]
Stsbench = Callable[..., Any]
FIELDS = {"cosine": "cosine_scores", "manhattan": "manhattan_distances", "euclidean": "euclidean_distances"}


def write(folder: Path, name: str, **splits: Any) -> Path:
    """Write a file as MTEB does; `splits` are what it holds of each split."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}_predictions.json"
    meta = {"mteb_model_meta": {"model_name": "owner/model", "revision": "no_revision_available"}}
    path.write_text(json.dumps(meta | {"default": splits}), encoding="utf-8")
    return path


def predicted(record: sb.RunRecord, task: str, split: str = "test") -> dict[str, list[float]]:
    """Return what MTEB would save of a task, of which we have the record."""
    rows = record.items[(record.items["task"] == task) & (record.items["split"] == split)]
    fields = {field: rows[kind].tolist() for kind, field in FIELDS.items()}
    return fields | {"similarity_scores": rows["cosine"].tolist()}


@pytest.fixture
def sets(toy_data: Data) -> list[StsData]:
    return [toy_data("STS12"), toy_data("STS-B", seed=1), toy_data("STS-B", seed=2, split="dev", pairs=40)]


@pytest.fixture
def record(sets: list[StsData], hash_encode: Callable[..., Any]) -> sb.RunRecord:
    return sb.evaluate(hash_encode, sets)


@pytest.fixture
def folder(record: sb.RunRecord, tmp_path: Path) -> Path:
    """Return a folder of the predictions of three splits, and of a task that is none of ours."""
    made = tmp_path / "predictions"
    write(made, "STS12", test=predicted(record, "STS12"))
    write(made, "STSBenchmark", test=predicted(record, "STS-B"), validation=predicted(record, "STS-B", "dev"))
    write(made, "Banking77Classification", test=[{"predictions": [1, 2]}])
    return made


def test_predictions_score_as_the_vectors_that_they_came_from(
    folder: Path, sets: list[StsData], record: sb.RunRecord
) -> None:
    read = sb.evaluate_similarities(folder, sets)
    assert [part.value for part in read.scores] == [part.value for part in record.scores]
    assert [part.interval for part in read.scores] == [part.interval for part in record.scores]
    for kind in FIELDS:
        assert read.items[kind].tolist() == record.items[kind].tolist()
    assert read.items["dot"].isna().all()
    assert (read.model.name, read.model.use.revision, read.model.kind) == ("owner/model", None, "predictions")
    assert read.signatures[0].similarity == "cosine"
    assert read.signatures[0].use.pooling == "given"
    assert any("Banking77Classification_predictions.json" in note for note in read.notes)
    assert any("nothing in the file confirms that" in note for note in read.notes)
    euclidean = sb.evaluate_similarities(folder, sets, protocol=sb.protocol(similarity="euclidean"))
    assert euclidean.scores[0].value != read.scores[0].value


def test_a_record_of_predictions_is_read_back_compared_and_analysed(
    folder: Path, sets: list[StsData], record: sb.RunRecord, tmp_path: Path
) -> None:
    sb.evaluate_similarities(folder, sets, out=tmp_path / "run")
    read = sb.load_run(tmp_path / "run")
    difference = sb.compare(read, record).frame
    assert (difference["difference"].abs() < 1e-12).all()
    bias = sb.length_bias([read, record], tasks=["STS12"], intervals=sb.Intervals(None)).frame
    ours, theirs = (bias[bias["model"] == name]["value"].to_numpy() for name in dict.fromkeys(bias["model"]))
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(sb.UserError, match="the record of MTEB's predictions cannot make any"):
        sb.spectrum(read, task="sample")
    exported = sb.export_results(read, tmp_path)
    back = import_results(exported.folder)
    assert [number.aggregation for number in back.scores[0].numbers] == ["all", "all"]
    for number in back.scores[0].numbers:
        of_ours = record.scores[0].number(number.statistic, "all")
        assert of_ours is not None
        assert number.value == pytest.approx(of_ours.value)
    # What MTEB's own score says of the order of the pairs.
    assert sb.check(read, baseline=exported.folder).passed
    for file in folder.glob("STS*.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        for values in content["default"].values():
            values["cosine_scores"].sort()
        file.write_text(json.dumps(content), encoding="utf-8")
    assert not sb.check(sb.evaluate_similarities(folder, sets), baseline=exported.folder).passed


def test_the_tasks_are_those_of_the_files_unless_others_are_named(
    benchmark_folder: Path, hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    measured = sb.evaluate(hash_encode, "STS13,STS-B:dev", data_dirs=[benchmark_folder])
    write(tmp_path / "p", "STS13", test=predicted(measured, "STS13"))
    write(tmp_path / "p", "STSBenchmark", validation=predicted(measured, "STS-B", "dev"))
    read = sb.evaluate_similarities(tmp_path / "p", data_dirs=[benchmark_folder])
    assert [(part.task, part.split) for part in read.scores] == [("STS13", "test"), ("STS-B", "dev")]
    assert [part.value for part in read.scores] == [part.value for part in measured.scores]
    one = sb.evaluate_similarities(tmp_path / "p", "STS-B:dev", data_dirs=[benchmark_folder])
    assert one.scores[0].value == measured.scores[1].value
    with pytest.raises(
        sb.UserError,
        match=r"has no predictions of STS-B, split test; it has STS13 \(test\) and STSBenchmark \(validation\)",
    ):
        sb.evaluate_similarities(tmp_path / "p", "STS-B", data_dirs=[benchmark_folder])
    with pytest.raises(sb.UserError, match="none can be left out"):
        sb.evaluate_similarities(
            tmp_path / "p", "STS13", data_dirs=[benchmark_folder], view=sb.PairView(overlap=True)
        )


def test_predictions_of_a_task_that_nobody_catalogued_take_the_gold_of_a_file(tmp_path: Path) -> None:
    pairs = tmp_path / "biosses.tsv"
    pairs.write_text("a b\tb a\t1\nc d\te f\t0\ng\tg\t4\n", encoding="utf-8")
    file = write(tmp_path, "BIOSSES-own", test={"cosine_scores": [0.5, 0.1, 1.0]})
    read = sb.evaluate_similarities(file, data=pairs)
    assert read.scores[0].value == pytest.approx(1)
    assert any("its 1 pairs of identical sentences have cosine 1" in note for note in read.notes)
    with pytest.raises(sb.UserError, match="not in the catalogue: give the pairs"):
        sb.evaluate_similarities(file)
    with pytest.raises(sb.UserError, match="has no similarity 'dot': choose from cosine"):
        sb.evaluate_similarities(file, data=pairs, protocol=sb.protocol(similarity="dot"))


def test_pairs_in_another_order_are_found_by_a_sentence_that_is_not_alike_to_itself(
    toy_data: Data, record: sb.RunRecord, tmp_path: Path
) -> None:
    data = toy_data("STS12")
    same = data.pairs.assign(sentence2=[data.pairs["sentence1"].iloc[0], *data.pairs["sentence2"].iloc[1:]])
    values = predicted(record, "STS12")
    values["cosine_scores"][0] = 0.3
    file = write(tmp_path, "STS12", test=values)
    with pytest.raises(
        sb.UserError,
        match=r"has the same sentence twice, but prediction 1 has the cosine 0\.3000: the order differs",
    ):
        sb.evaluate_similarities(file, [replace(data, pairs=same)])
    with pytest.raises(sb.UserError, match=r"has 30 predictions of STS12 \(test\), but STS12, split test, has 29"):
        sb.evaluate_similarities(file, [replace(data, pairs=data.pairs.iloc[:29])])


META = '"mteb_model_meta": {"model_name": "m", "revision": "1"}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not valid JSON"),
        ("[]", "mteb_model_meta: it is missing"),
        ("{}", "mteb_model_meta: it is missing"),
        ('{"mteb_model_meta": {"model_name": 1}}', "mteb_model_meta: model_name: "),
        (f"{{{META}}}", "holds no prediction of an STS task"),
        (
            f'{{{META}, "default": {{"test": {{"cosine_scores": 1}}}}}}',
            "default, test, cosine_scores: Input should be a valid list",
        ),
        (
            f'{{{META}, "default": {{"test": {{"cosine_scores": [0.1, null]}}}}}}',
            r"cosine_scores\.1: ",
        ),
        (f'{{{META}, "default": {{"test": {{"cosine_scores": [0.1, NaN]}}}}}}', r"cosine_scores\.1: "),
        (
            f'{{{META}, "default": {{"test": {{"cosine_scores": [0.1, 7]}}}}}}',
            r"cosine_scores\.1: ",
        ),
        (
            f'{{{META}, "default": {{"test": {{"cosine_scores": [0.1], "manhattan_distances": [1, 2]}}}}}}',
            r"the numbers of similarities differ \(1 cosine and 2 manhattan\)",
        ),
    ],
)
def test_a_file_that_mteb_did_not_write_is_told_with_its_place(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "STS12_predictions.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(sb.UserError, match=f"STS12_predictions.json.*{message}"):
        sb.evaluate_similarities(path)


def test_a_folder_without_predictions_or_of_two_models_is_told(tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match="holds no prediction file of MTEB's: they are called TASK_predictions"):
        sb.evaluate_similarities(tmp_path)
    write(tmp_path, "STS12", test={"cosine_scores": [0.1]})
    other = write(tmp_path, "STS13", test={"cosine_scores": [0.1]})
    other.write_text(other.read_text(encoding="utf-8").replace("owner/model", "owner/other"), encoding="utf-8")
    with pytest.raises(sb.UserError, match=r"predictions of several models \(STS12_pred.*, STS13_pred"):
        sb.evaluate_similarities(tmp_path)


def test_what_mteb_saves_of_our_encoder_is_read_to_its_own_scores(
    hash_encode: Callable[..., Any], toy_data: Data, tmp_path: Path
) -> None:
    data = toy_data("STS12")
    saved = tmp_path / "predictions"
    theirs = scored_by_mteb(data, hash_encode, prediction_folder=saved)
    read = sb.evaluate_similarities(saved, data)
    assert (read.model.name, read.model.use.revision) == ("owner/ours", "1")
    assert read.scores[0].value == pytest.approx(theirs["cosine_spearman"], abs=1e-12)
    assert read.scores[0].number("pearson", "all").value == pytest.approx(theirs["cosine_pearson"], abs=1e-12)
    ours = sb.evaluate(hash_encode, data).items
    for kind in FIELDS:
        np.testing.assert_allclose(read.items[kind], ours[kind], atol=1e-6)
