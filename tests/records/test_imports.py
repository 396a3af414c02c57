"""Results of SentEval and MTEB as records: every layout they were written in, and nothing made up."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.records.imports import NotResultsError
from stsbench.scoring.evaluate import import_results

Write = Callable[[Any], Path]


def year(*, pooled: bool, wrap: Callable[[float], Any] = lambda value: [value, 0.01]) -> dict[str, Any]:
    """Return SentEval's entry of a year with two subsets."""
    entry: dict[str, Any] = {
        name: {"pearson": wrap(value), "spearman": wrap(value + 0.01), "nsamples": size}
        for name, value, size in (("one", 0.6, 30), ("two", 0.8, 10))
    }
    entry["all"] = {
        metric: ({"all": 0.72 + more} if pooled else {}) | {"mean": 0.70 + more, "wmean": 0.65 + more}
        for metric, more in (("pearson", 0.0), ("spearman", 0.01))
    }
    return entry


REGRESSOR = {"devpearson": 0.8, "pearson": 0.7, "spearman": 0.69, "mse": 1.0, "yhat": [1.0], "ndev": 1, "ntest": 1}


def split(value: float) -> dict[str, Any]:
    return {"pearson": [value, 0.0], "spearman": [value + 0.01, 0.0], "nsamples": 7}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to(content: Any, name: str = "results.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return to


@pytest.mark.parametrize("wrap", [lambda v: [v, 0.01], lambda v: {"correlation": v}, lambda v: v])
def test_the_forks_results_are_scored_over_all_pairs(wrap: Callable[[float], Any], write: Write) -> None:
    content = {
        "STS12": year(pooled=True, wrap=wrap),
        "STSBenchmark": {"train": split(0.9), "dev": split(0.85), "test": split(0.8), "all": {}},
    }
    run = import_results(write(content))
    assert run.signature.splitlines() == [
        "STS12:test:all|spearman|cosine|text:senteval|data:-||-|-|stsbench:-",
        "STS-B:test:all|spearman|cosine|text:senteval|data:-||-|-|stsbench:-",
    ]
    assert [part.value for part in run.scores] == pytest.approx([0.73, 0.81])
    assert [part.items for part in run.scores] == [40, 7]
    assert [(part.subset, part.items) for part in run.scores[0].subsets] == [("one", 30), ("two", 10)]
    assert [average.value for average in run.averages] == [pytest.approx(0.77)]
    assert run.protocol.name == "simcse"


def test_the_originals_results_are_the_weighted_mean_and_its_regressors_are_left_out(write: Write) -> None:
    run = import_results(write({"STS12": year(pooled=False), "STSBenchmark": REGRESSOR}))
    assert [(part.task, part.value) for part in run.scores] == [("STS12", pytest.approx(0.66))]
    assert run.protocol.aggregation == "wmean"
    assert run.protocol.name == "senteval"
    assert any("STSBenchmark was left out: it is the score of a trained regressor" in note for note in run.notes)
    assert not run.averages


def test_another_aggregation_and_metric_can_be_asked_for(write: Write) -> None:
    path = write({"STS12": year(pooled=False)})
    run = import_results(path, aggregation="mean", metric="pearson")
    assert run.scores[0].value == pytest.approx(0.70)
    assert "STS12:test:mean|pearson" in run.signature
    with pytest.raises(
        UserError, match=r"has no spearman of STS12 by the aggregation all: it has pearson by mean"
    ):
        import_results(path, aggregation="all")


def test_an_undefined_correlation_stays_undefined(write: Write) -> None:
    content = {"STS12": year(pooled=True), "STS13": year(pooled=True)}
    content["STS12"]["all"]["spearman"]["all"] = math.nan
    run = import_results(write(content))
    assert run.scores[0].value is None
    assert [average.value for average in run.averages] == [None]
    assert any("the spearman of STS12 is NaN there" in note for note in run.notes)


def test_the_transfer_tasks_come_along(write: Write) -> None:
    entry = {"devacc": 81.25, "acc": 80.5, "ndev": 100, "ntest": 100}
    run = import_results(write({"MR": entry, "MRPC": entry | {"f1": 85.0}, "Length": {"acc": 1.0}}))
    assert run.signature.splitlines() == [
        "MR:all:-|acc|-|text:senteval|data:-||-|-|stsbench:-",
        "MRPC:test:-|acc|-|text:senteval|data:-||-|-|stsbench:-",
    ]
    first, second = run.scores_of("transfer")
    assert [(number.statistic, number.value, number.items) for number in first.numbers] == [
        ("acc", 0.805, 100),
        ("devacc", 0.8125, 100),
    ]
    assert first.training is not None
    assert first.training.seed is None
    assert [number.value for number in second.numbers] == [0.805, 0.8125, 0.85]
    assert [(average.kind, average.value) for average in run.averages] == [("transfer", pytest.approx(0.805))]


def new_mteb(task: str, spearman: float) -> dict[str, Any]:
    scores = {"cosine_pearson": 0.5, "cosine_spearman": spearman, "main_score": spearman, "hf_subset": "default"}
    return {"task_name": task, "mteb_version": "1.14.0", "scores": {"test": [scores]}}


def old_mteb(task: str, spearman: float) -> dict[str, Any]:
    scores = {"cos_sim": {"pearson": 0.5, "spearman": spearman}, "evaluation_time": 1.5}
    return {"mteb_dataset_name": task, "mteb_version": "1.0.2", "dataset_revision": "abc", "test": scores}


@pytest.mark.parametrize("layout", [new_mteb, old_mteb])
def test_mtebs_file_of_a_task_is_read_in_either_layout(
    layout: Callable[[str, float], dict[str, Any]], write: Write
) -> None:
    run = import_results(write(layout("STSBenchmark", 0.82)))
    assert run.signature == "STS-B:test:all|spearman|cosine|text:-|data:-||-|-|stsbench:-"
    assert run.scores[0].value == 0.82
    assert run.scores[0].items is None
    assert import_results(write(layout("STSBenchmark", 0.82)), metric="pearson").scores[0].value == 0.5


def test_mtebs_sick_r_is_all_its_pairs(write: Write) -> None:
    assert import_results(write(new_mteb("SICK-R", 0.77))).signature.startswith("SICK-R:all:all|")


def test_a_folder_of_mtebs_is_one_record_and_says_what_was_left_out(write: Write, tmp_path: Path) -> None:
    where = "results/owner__model/5c38ec7/"
    write(new_mteb("STS12", 0.6), where + "STS12.json")
    write(old_mteb("SICK-R", 0.7), where + "SICK-R.json")
    write({"task_name": "Banking77Classification", "scores": {}}, where + "Banking77Classification.json")
    folder = tmp_path / where
    run = import_results(folder)
    assert [part.task for part in run.scores] == ["SICK-R", "STS12"]
    assert run.model.name == "owner/model"
    assert any("Banking77Classification" in note for note in run.notes)
    write({"name": "them/theirs", "revision": "5c38ec7"}, where + "model_meta.json")
    named = import_results(folder)
    assert (named.model.name, named.model.use.revision) == ("them/theirs", "5c38ec7")
    assert import_results(folder, model="mine").model.name == "mine"


def test_a_table_of_scores_is_read_with_the_model_it_names(write: Write) -> None:
    content = {"model": "a/b", "weights_sha256": "f" * 64, "cosine_spearman": {"STS16": 0.78, "SICK-R": 0.77}}
    run = import_results(write(content))
    assert (run.model.name, run.model.weights_sha256) == ("a/b", "f" * 64)
    assert [part.value for part in run.scores] == [0.78, 0.77]


def edited(change: Callable[[Any], Any]) -> dict[str, Any]:
    entry = year(pooled=True)
    change(entry)
    return {"STS12": entry}


TRANSFER = {"devacc": 81.25, "acc": 80.5, "ndev": 100, "ntest": 100}
SIZES = [0, -1, 3.5, True, "many", math.inf]
BROKEN = "is not as its program writes it"
NOT_RESULTS = "neither a run record nor a file of results"
TABLE = {"cosine_spearman": {"STS12": 0.7}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (content, NOT_RESULTS)
            for content in ({}, [], {"Length": {}}, {"STS12": 3}, {"task_name": "Banking77"})
        ),
        ({"STSBenchmark": REGRESSOR}, r"no score that can be imported: STSBenchmark was left out"),
        (edited(lambda entry: entry.pop("all")), BROKEN),
        (edited(lambda entry: entry["one"].pop("nsamples")), BROKEN),
        (edited(lambda entry: entry["one"].update(pearson="high")), BROKEN),
        (edited(lambda entry: entry["all"]["spearman"].update(all=72.0)), BROKEN),
        *((edited(lambda entry, size=size: entry["one"].update(nsamples=size)), BROKEN) for size in SIZES),
        *(({"MR": TRANSFER | {"ntest": size}}, BROKEN) for size in SIZES),
        ({"MR": TRANSFER | {"acc": 105}}, BROKEN),
        ({"cosine_spearman": {"STS12": 0.6}, "weights_sha256": 5}, BROKEN),
        (new_mteb("STS12", 0.6) | {"test": old_mteb("STS12", 0.7)["test"]}, "it holds the scores twice"),
        (new_mteb("STS12", 0.6) | TABLE, "the results of one task and tables of several"),
        ({"STS12": year(pooled=True)} | TABLE, "holds results of MTEB and of SentEval"),
    ],
)
def test_a_mistake_in_a_file_is_an_error(content: Any, message: str, write: Write) -> None:
    with pytest.raises(UserError, match=message) as error:
        import_results(write(content))
    assert isinstance(error.value, NotResultsError) == (message == NOT_RESULTS or "no score" in message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000 + "]" * 100_000, r"is not valid JSON \(it is nested"),
        ('{"cosine_spearman": {"STS12": 0.6, "STS12": 0.7}}', "the name 'STS12' occurs twice"),
        *(
            (json.dumps(content).replace(old, number), r"is not (valid JSON|as its program writes it) \(")
            for content, old in ((new_mteb("STS12", 0.625), "0.625"), ({"STS12": year(pooled=True)}, "0.73"))
            for number in ("1e999", "-1e999", "Infinity", "1" * 5000)
        ),
    ],
)
def test_what_is_not_json_or_a_number_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=rf"results\.json .*{message}"):
        import_results(tmp_path / "results.json")


def test_an_imported_record_is_saved_and_read_back_without_items(write: Write, tmp_path: Path) -> None:
    saved = sb.import_results(write({"STS12": year(pooled=True)}), out=tmp_path / "run", model="theirs")
    read = sb.load_run(tmp_path / "run")
    assert read == saved
    assert not (tmp_path / "run" / "items.parquet").exists()
    assert read.frame["score"].tolist()[0] == pytest.approx(73.0)
    with pytest.raises(UserError, match="theirs was imported with its scores only"):
        _ = read.items


def test_importing_does_not_overwrite_another_measurement(write: Write, tmp_path: Path) -> None:
    path = write({"STS12": year(pooled=True)})
    sb.import_results(path, out=tmp_path / "run", model="one")
    sb.import_results(path, out=tmp_path / "run", model="one")
    with pytest.raises(UserError, match="holds another measurement"):
        sb.import_results(path, out=tmp_path / "run", model="two")


def test_a_mistake_in_a_folder_or_path_is_an_error(write: Write, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name, number in (("STS12", 0.6), ("again", 0.7)):
        write(new_mteb("STS12", number), f"twice/{name}.json")
    for name, task in (("a", "STS12"), ("b", "STS13")):
        write({"model": name, "cosine_spearman": {task: 0.5}}, f"models/{name}.json")
    for number, meta in enumerate(([], {"name": 3}, {"revision": ["x"]})):
        write(new_mteb("STS12", 0.6), f"named{number}/STS12.json")
        write(meta, f"named{number}/model_meta.json")
    run = sb.import_results(write({"STS12": year(pooled=True)}), out=tmp_path / "run")
    assert sb.load_run(tmp_path / "run") == run
    for place, message in {
        "absent.json": "there is no file",
        "empty": "holds neither a run record nor MTEB's results",
        "pipe.json": "is a pipe or device, not a file",
        "twice": r"has STS12 in STS12\.json and in again\.json: keep one of them",
        "models": r"has results of several models \(a, b\)",
        **{f"named{number}": r"model_meta\.json is not as MTEB writes it" for number in range(3)},
        "run": "is the folder of a run record",
        "run/run.json": "is a run record",
    }.items():
        with pytest.raises(UserError, match=message):
            import_results(tmp_path / place)


def test_a_model_s_name_that_is_not_utf_8_is_stored_spelt_out(tmp_path: Path) -> None:
    scores = {"cosine_spearman": 0.5, "cosine_pearson": 0.6, "main_score": 0.5, "hf_subset": "default"}
    content = {
        "task_name": "STS13",
        "dataset_revision": "x",
        "mteb_version": "1.14.0",
        "scores": {"test": [scores]},
    }
    (tmp_path / "STS13.json").write_text(json.dumps(content), encoding="utf-8")
    record = import_results(tmp_path / "STS13.json", out=tmp_path / "run", model="half\udcff")
    assert sb.load_run(tmp_path / "run").model.name == record.model.name == r"half\udcff"
