"""Results of SentEval and MTEB as records: nothing is made up, and a mistake in a file is an error."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.records.imports import NotResultsError
from stsbench.scoring.import_results import import_results

Write = Callable[..., Path]
Json = dict[str, Any]


def year(*, pooled: bool, wrap: Callable[[float], Any] = lambda value: [value, 0.01]) -> Json:
    """Return SentEval's entry of a year with two subsets; `pooled` as the SimCSE fork writes it."""
    entry: Json = {
        name: {"pearson": wrap(value), "spearman": wrap(value + 0.01), "nsamples": size}
        for name, value, size in (("one", 0.6, 30), ("two", 0.8, 10))
    }
    entry["all"] = {
        metric: ({"all": 0.72 + more} if pooled else {}) | {"mean": 0.70 + more, "wmean": 0.65 + more}
        for metric, more in (("pearson", 0.0), ("spearman", 0.01))
    }
    return entry


def edited(change: Callable[[Any], Any]) -> Json:
    entry = year(pooled=True)
    change(entry)
    return {"STS12": entry}


def mteb(task: str, spearman: float) -> Json:
    scores = {"cosine_pearson": 0.5, "cosine_spearman": spearman, "main_score": spearman, "hf_subset": "default"}
    return {"task_name": task, "mteb_version": "1.14.0", "scores": {"test": [scores]}}


REGRESSOR = {"devpearson": 0.8, "pearson": 0.7, "spearman": 0.69, "mse": 1.0, "yhat": [1.0], "ndev": 1, "ntest": 1}
TRANSFER = {"devacc": 81.25, "acc": 80.5, "ndev": 200, "ntest": 100}
SPLIT = {"pearson": [0.8, 0.0], "spearman": [0.81, 0.0], "nsamples": 7}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to(content: Any, name: str = "results.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return to


FORK = [
    {"STS12": year(pooled=True, wrap=wrap), "STSBenchmark": {"train": SPLIT, "test": SPLIT}}
    for wrap in (lambda value: [value, 0.01], lambda value: {"correlation": value}, lambda value: value)
]
OF_FORK = {"STS12:test:all|spearman|cosine": (0.73, 40), "STS-B:test:all|spearman|cosine": (0.81, 7)}
ORIGINAL = {"STS12": year(pooled=False), "STSBenchmark": REGRESSOR}
OF_TRANSFER = {"MR:all:-|acc|-": (0.805, 100), "MRPC:test:-|acc|-": (0.805, 100)}
TABLE = {"cosine_spearman": {"STS16": 0.78, "SICK-R": 0.77}}
OF_TABLE = {"STS16:test:all|spearman|cosine": (0.78, None), "SICK-R:all:all|spearman|cosine": (0.77, None)}
MEAN = {"aggregation": "mean", "metric": "pearson"}


@pytest.mark.parametrize(
    ("content", "choices", "protocol", "scores"),
    [
        *((content, {}, "simcse", OF_FORK) for content in FORK),
        (ORIGINAL, {}, "senteval", {"STS12:test:wmean|spearman|cosine": (0.66, 40)}),
        (ORIGINAL, MEAN, "senteval", {"STS12:test:mean|pearson|cosine": (0.70, 40)}),
        ({"MR": TRANSFER, "MRPC": TRANSFER, "Length": {"acc": 1.0}}, {}, "simcse", OF_TRANSFER),
        (mteb("STSBenchmark", 0.82), {}, "mteb", {"STS-B:test:all|spearman|cosine": (0.82, None)}),
        (mteb("SICK-R", 0.77), {"metric": "pearson"}, "mteb", {"SICK-R:all:all|pearson|cosine": (0.5, None)}),
        (TABLE, {}, "mteb", OF_TABLE),
    ],
)
def test_every_layout_is_read(
    content: Json, choices: Json, protocol: str, scores: dict[str, Any], write: Write
) -> None:
    run, text = import_results(write(content), **choices), "-" if protocol == "mteb" else "senteval"
    assert [part.signature for part in run.scores] == [
        f"{meaning}|text:{text}|data:-||-|-|stsbench:-" for meaning in scores
    ]
    assert [part.value for part in run.scores] == pytest.approx([value for value, _ in scores.values()])
    assert [part.items for part in run.scores] == [items for _, items in scores.values()]
    means = [sum(value for value, _ in scores.values()) / len(scores)] if len(scores) > 1 else []
    assert [average.value for average in run.averages] == pytest.approx(means)
    assert (run.protocol.name, run.model.name) == (protocol, "results")


def test_subsets_dev_scores_and_names_are_read_and_regressors_are_left_out(write: Write) -> None:
    run = import_results(write({"STS12": year(pooled=True), "STSBenchmark": REGRESSOR}))
    subsets = [(part.subset, part.value, part.items) for part in run.scores[0].subsets]
    assert subsets == [("one", 0.61, 30), ("two", 0.81, 10)]
    assert any("STSBenchmark was left out: it is the score of a trained regressor" in note for note in run.notes)
    transfer = import_results(write({"MRPC": TRANSFER | {"f1": 85.0}})).scores[0]
    numbers = [(number.statistic, number.value, number.items) for number in transfer.numbers]
    assert numbers == [("acc", 0.805, 100), ("devacc", 0.8125, 200), ("f1", 0.85, 100)]
    table = {"model": "a/b", "weights_sha256": "f" * 64, "cosine_spearman": {"STS16": 0.78}}
    named = import_results(write(table)).model
    assert (named.name, named.weights_sha256) == ("a/b", "f" * 64)


def test_a_folder_of_mteb_s_results_is_one_record(write: Write, tmp_path: Path) -> None:
    where = "results/owner__model/5c38ec7/"
    for name in ("STS12", "SICK-R", "Banking77Classification"):
        write(mteb(name, 0.6), f"{where}{name}.json")
    run = import_results(tmp_path / where)
    assert [part.task for part in run.scores] == ["SICK-R", "STS12"]
    assert run.model.name == "owner/model"
    assert any("Banking77Classification" in note for note in run.notes)
    write({"name": "them/theirs", "revision": "5c38ec7"}, where + "model_meta.json")
    named = import_results(tmp_path / where)
    assert (named.model.name, named.model.use.revision) == ("them/theirs", "5c38ec7")
    assert import_results(tmp_path / where, model="mine").model.name == "mine"


BROKEN = "is not as its program writes it"
NOT_RESULTS = "neither a run record nor a file of results"
SIZES = [0, 3.5, True, "many", math.inf]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((each, NOT_RESULTS) for each in ({}, [], {"Length": {}}, {"STS12": 3}, {"task_name": "Banking77"})),
        ({"STSBenchmark": REGRESSOR}, r"no score that can be imported: STSBenchmark was left out"),
        (edited(lambda entry: entry.pop("all")), BROKEN),
        (edited(lambda entry: entry["one"].pop("nsamples")), rf"{BROKEN} \(one\.nsamples: Field required"),
        (edited(lambda entry: entry["one"].update(pearson="high")), BROKEN),
        (edited(lambda entry: entry["all"]["spearman"].update(all=72.0)), BROKEN),
        *((edited(lambda entry, size=size: entry["one"].update(nsamples=size)), BROKEN) for size in SIZES),
        ({"MR": TRANSFER | {"acc": 105}}, BROKEN),
        ({"cosine_spearman": {"STS12": 0.6}, "weights_sha256": 5}, BROKEN),
        ("{", "is not valid JSON"),
        ('{"cosine_spearman": {"STS12": 0.6, "STS12": 0.7}}', "the name 'STS12' occurs twice"),
        (json.dumps(mteb("STS12", 0.625)).replace("0.625", "Infinity"), BROKEN),
    ],
)
def test_a_mistake_in_a_file_is_an_error(content: Any, message: str, write: Write) -> None:
    with pytest.raises(UserError, match=rf"results\.json .*{message}") as error:
        import_results(write(content))
    assert isinstance(error.value, NotResultsError) == (message == NOT_RESULTS or "no score" in message)
    assert "\n" not in str(error.value)


def test_a_mistake_in_a_folder_path_or_choice_is_an_error(write: Write, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, number in (("STS12", 0.6), ("again", 0.7)):
        write(mteb("STS12", number), f"twice/{name}.json")
    for name, task in (("a", "STS12"), ("b", "STS13")):
        write({"model": name, "cosine_spearman": {task: 0.5}}, f"models/{name}.json")
    write(mteb("STS12", 0.6), "named/STS12.json")
    write({"name": 3}, "named/model_meta.json")
    run = sb.import_results(write({"STS12": year(pooled=False)}), out=tmp_path / "run", model="one")
    assert sb.load_run(tmp_path / "run") == run
    assert not (tmp_path / "run" / "items.parquet").exists()
    with pytest.raises(UserError, match="was imported with its scores only"):
        _ = run.items
    for place, choices, message in (
        ("absent.json", {}, "there is no file"),
        ("empty", {}, "holds neither a run record nor MTEB's results"),
        ("twice", {}, r"has STS12 twice, again in again\.json: keep one|has STS12 twice"),
        ("models", {}, r"has results of several models \(a, b\)"),
        ("named", {}, r"model_meta\.json is not as its program writes it"),
        ("run", {}, "is the folder of a run record"),
        ("run/run.json", {}, "is a run record"),
        ("results.json", {"aggregation": "all"}, "no spearman of STS12 by the aggregation all: it has pearson by"),
        ("results.json", {"out": tmp_path / "run", "model": "two"}, "holds another measurement"),
    ):
        with pytest.raises(UserError, match=message):
            import_results(tmp_path / place, **choices)
