"""Every kind of score: measured, saved, computed again from its items, and refused where a number is another."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import with_digest
from sklearn.metrics import average_precision_score
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.files import sha256_of
from stsbench.cli.app import app
from stsbench.data.tables import StsData
from stsbench.records.items import ITEMS
from stsbench.records.kinds import GIVEN, KINDS, PAIR_CLASSIFICATION, STS, SUPERVISED, TRANSFER
from stsbench.scoring.kinds import TASKS
from stsbench.scoring.kinds.pair_classification import PairClassification
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.recompute import differences, require_recomputed

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]


def labelled(data: StsData) -> StsData:
    """Return pairs that belong together where their scores are high."""
    return replace(data, pairs=data.pairs.assign(gold=(data.pairs["gold"] > 2.5).astype(float)))


@pytest.fixture
def folder(hash_encode: Encode, toy_data: Data, tmp_path: Path) -> Path:
    """Return a folder with a record of every kind that is made of sentences."""
    splits = [("train", "dev", "test")[number % 3] for number in range(60)]
    related = toy_data("related", pairs=60, split="all", seed=7)
    tasks = [
        toy_data(),
        "sample-questions",
        Relatedness(replace(related, pairs=related.pairs.assign(split=splits))),
        PairClassification(labelled(toy_data("paired", seed=3))),
    ]
    sb.evaluate(hash_encode, tasks, out=tmp_path / "run", classification=sb.Classification(kfold=3))
    return tmp_path / "run"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """Return a folder with a record of items that another tool scored."""
    rows = [f"nli,{item},{score},{item % 4}" for item, score in enumerate([1, 0, 1, 1, 0, 1, 0, 0, 1, 1])]
    (tmp_path / "items.csv").write_text("\n".join(["task,item,score,group", *rows]) + "\n", encoding="utf-8")
    sb.import_results(tmp_path / "items.csv", out=tmp_path / "given", model="theirs")
    return tmp_path / "given"


def test_the_class_that_a_kind_s_entry_names_is_of_that_kind() -> None:
    assert all(TASKS[name].kind == name for name in KINDS)


def test_every_kind_says_what_a_report_calls_its_tables() -> None:
    for kind in KINDS.values():
        assert kind.caption, kind.name
        assert bool(kind.below_caption) == bool(kind.below), kind.name


def test_the_numbers_of_every_kind_come_out_of_the_items_again(folder: Path, given: Path) -> None:
    kinds = set()
    for place in (folder, given):
        record = sb.load_run(place)
        assert list(differences(record)) == []
        assert require_recomputed(record) == ()
        for score in record.scores:
            kinds.add(score.kind)
            assert score.interval is not None
            assert score.value is not None
            assert score.interval[0] < score.value < score.interval[1]
    assert kinds == set(KINDS)


def spoiled(folder: Path, change: Callable[[pd.DataFrame, Any], Any]) -> str:
    """Return why a record is refused whose items another hand changed, which knew of hash and digest."""
    path = folder / "run.json"
    content, table = json.loads(path.read_text(encoding="utf-8")), pd.read_parquet(folder / ITEMS)
    change(table, content)
    table.to_parquet(folder / ITEMS, index=False)
    content["items_file"]["sha256"] = sha256_of(folder / ITEMS)
    path.write_text(json.dumps(with_digest(content)), encoding="utf-8")
    with pytest.raises(sb.UserError) as error:
        require_recomputed(sb.load_run(folder))
    return str(error.value)


def at(column: str, kind: str, change: Callable[[Any], Any]) -> Callable[[pd.DataFrame, Any], None]:
    """Return what changes a column in the last row of a kind."""

    def in_items(table: pd.DataFrame, _: Any) -> None:
        row = table.index[table["kind"] == kind][-1]
        table.loc[row, column] = change(table.loc[row, column])

    return in_items


def stated(kind: str, statistic: str) -> Callable[[pd.DataFrame, Any], None]:
    """Return what adds a little to every number of a statistic."""

    def in_record(_: pd.DataFrame, content: Any) -> None:
        (score,) = [score for score in content["scores"] if score["kind"] == kind]
        for number in score["numbers"]:
            number["value"] += 1e-6 * (number["statistic"] == statistic)

    return in_record


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (at("cosine", STS, lambda value: -value), "the spearman of toy by all is"),
        (stated(STS, "spearman"), "the spearman of toy by all is"),
        (at("correct", TRANSFER, lambda value: 1 - value), "the acc of sample-questions is"),
        (stated(TRANSFER, "acc"), "the acc of sample-questions is"),
        (stated(TRANSFER, "devacc"), "the devacc of sample-questions is"),
        (at("supervised", SUPERVISED, lambda value: value + 1), "the pearson of related:supervised is"),
        (stated(SUPERVISED, "mse"), "the mse of related:supervised is"),
        (at("gold", PAIR_CLASSIFICATION, lambda value: 1 - value), "the ap of paired is"),
        (stated(PAIR_CLASSIFICATION, "accuracy"), "the accuracy of paired is"),
    ],
)
def test_a_number_that_is_not_that_of_the_items_is_told(
    change: Callable[[pd.DataFrame, Any], None], sentence: str, folder: Path
) -> None:
    assert sentence in spoiled(folder, change)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (at("score", GIVEN, lambda value: value + 1), "the mean of nli is 0.6"),
        (at("score", GIVEN, lambda _: np.nan), "the mean of nli is 0.6"),
        (stated(GIVEN, "mean"), "the mean of nli is 0.600001"),
    ],
)
def test_so_is_one_of_given_items(change: Callable[[pd.DataFrame, Any], None], sentence: str, given: Path) -> None:
    assert sentence in spoiled(given, change)


def test_a_given_score_whose_square_is_no_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("task,item,score\nnli,a,1\nnli,b,1e308\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match=r"line 3: the score '1e308' is too large; divide all scores"):
        sb.import_results(tmp_path / "items.csv")


def write(path: Path, data: StsData) -> Path:
    rows = data.pairs[["sentence1", "sentence2", "gold"]].itertuples(index=False)
    path.write_text("".join(f"{a}\t{b}\t{gold:g}\n" for a, b, gold in rows), encoding="utf-8")
    return path


def test_own_pairs_with_labels_are_classified_by_average_precision(
    hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    path = write(tmp_path / "pairs.tsv", labelled(toy_data(pairs=60)))
    record = sb.evaluate(hash_encode, data=path, protocol=sb.protocol(metric="ap"), out=tmp_path / "run")
    (score,) = sb.load_run(tmp_path / "run").scores
    assert record.scores == (score,)
    assert score.signature.startswith("pairs:all:all|ap|cosine|text:user|")
    labels, similarity = record.items["gold"], record.items["cosine"]
    assert score.value == pytest.approx(average_precision_score(labels, similarity), abs=1e-12)
    accuracy = score.number("accuracy")
    assert accuracy is not None
    assert accuracy.value == max(((similarity >= limit) == (labels > 0)).mean() for limit in (*similarity, np.inf))
    assert accuracy.interval is not None


def test_the_command_classifies_own_pairs(toy_data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_words.py").write_text(
        "def encode(sentences):\n    return [[len(s), s.count('e'), s.count('a')] for s in sentences]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = write(tmp_path / "pairs.tsv", labelled(toy_data(pairs=60)))
    command = [
        "run",
        "--encoder-module",
        "own_words:encode",
        "--data",
        str(path),
        "--metric",
        "ap",
        "--out",
        "run",
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    (score,) = sb.load_run(tmp_path / "run").scores
    assert (score.kind, score.statistic, score.items) == (PAIR_CLASSIFICATION, "ap", 60)
    assert f"{100 * (score.value or 0):.2f}" in done.stdout


@pytest.mark.parametrize(
    ("gold", "sentence"),
    [
        (
            [0.0, 1.0, 2.0],
            "has the score 2: pairs are classified by the labels 0 and 1; measure their correlation",
        ),
        ([1.0, 1.0, 1.0], "has one label alone: pairs are classified where both 0 and 1 occur"),
    ],
)
def test_pairs_that_cannot_be_classified_are_refused(
    gold: list[float], sentence: str, hash_encode: Encode, toy_data: Data, tmp_path: Path
) -> None:
    data, by_ap = toy_data(pairs=3), sb.protocol(metric="ap")
    data = replace(data, pairs=data.pairs.assign(gold=gold))
    with pytest.raises(sb.UserError, match=sentence):
        sb.evaluate(hash_encode, data, protocol=by_ap, out=tmp_path / "run")
    # Of one score alone the reader of such files says so.
    in_a_file = sentence if len(set(gold)) > 1 else "has the score 1 for every pair"
    with pytest.raises(sb.UserError, match=in_a_file):
        sb.evaluate(hash_encode, data=write(tmp_path / "pairs.tsv", data), protocol=by_ap, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_pairs_with_labels_that_were_read_are_classified_too(hash_encode: Encode, toy_data: Data) -> None:
    record = sb.evaluate(hash_encode, labelled(toy_data()), protocol=sb.protocol(metric="ap"))
    assert [(score.kind, score.statistic) for score in record.scores] == [(PAIR_CLASSIFICATION, "ap")]
