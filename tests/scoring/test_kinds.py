"""Every kind of score: measured, saved, computed again from its items, and refused where a number is another."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import small_mteb_tasks as island
from sklearn.metrics import average_precision_score

import stsbench as sb
from stsbench.base.files import sha256_of
from stsbench.data.qrels import load_retrieval
from stsbench.data.tables import StsData
from stsbench.records.kinds import GIVEN, ITEMS, KINDS, PAIR_CLASSIFICATION, RETRIEVAL, STS, TRANSFER
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.kinds.sts import PairClassification
from stsbench.scoring.recompute import differences, require_recomputed
from stsbench.scoring.settings import Classification

Encode = Callable[[list[str]], Any]
Data = Callable[..., StsData]


def labelled(data: StsData) -> StsData:
    """Return pairs that belong together where their scores are high."""
    return replace(data, pairs=data.pairs.assign(gold=(data.pairs["gold"] > 2.5).astype(float)))


@pytest.fixture(scope="module")
def measured(
    hash_encode: Encode, toy_data: Data, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return the folder of a record with a kind: of all kinds with sentences, or of given items."""
    place = tmp_path_factory.mktemp("kinds")
    splits = [("train", "dev", "test")[number % 3] for number in range(60)]
    related = toy_data("related", pairs=60, split="all", seed=7)
    tasks = [
        toy_data(),
        "sample-questions",
        Relatedness(replace(related, pairs=related.pairs.assign(split=splits))),
        PairClassification(labelled(toy_data("paired", seed=3))),
        load_retrieval(island.write_beir(place / "island"), identical_ids="drop"),
    ]
    sb.evaluate(hash_encode, tasks, out=place / "run", classification=Classification(kfold=3))
    rows = [f"nli,{item},{score},{item % 4}" for item, score in enumerate([1, 0, 1, 1, 0, 1, 0, 0, 1, 1])]
    (place / "items.csv").write_text("\n".join(["task,item,score,group", *rows]) + "\n", encoding="utf-8")
    sb.import_results(place / "items.csv", out=place / GIVEN, model="theirs")
    return lambda kind: place / (GIVEN if kind == GIVEN else "run")


def test_the_numbers_of_every_kind_follow_from_the_items(measured: Callable[[str], Path]) -> None:
    kinds = set()
    for kind in (STS, GIVEN):
        record = sb.load_run(measured(kind))
        assert list(differences(record)) == []
        assert require_recomputed(record) == ()
        for score in record.scores:
            kinds.add(score.kind)
            assert score.interval is not None
            assert score.interval[0] < score.value < score.interval[1]
    assert kinds == set(KINDS)


Change = Callable[[pd.DataFrame, Any, str], None]


def item(column: str, change: Callable[[Any], Any]) -> Change:
    """Change a column in the last row of a kind."""

    def in_items(table: pd.DataFrame, _: Any, kind: str) -> None:
        row = table.index[table["kind"] == kind][-1]
        table.loc[row, column] = change(table.loc[row, column])

    return in_items


def number(statistic: str) -> Change:
    """Add a little to every number of a statistic."""

    def in_record(_: pd.DataFrame, content: Any, kind: str) -> None:
        (score,) = [score for score in content["scores"] if score["kind"] == kind]
        for part in score["numbers"]:
            part["value"] += 1e-6 * (part["statistic"] == statistic)

    return in_record


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (STS, number("spearman"), "the spearman of toy by all is"),
        (TRANSFER, number("devacc"), "the devacc of sample-questions is"),
        (PAIR_CLASSIFICATION, item("gold", lambda value: 1 - value), "the ap of paired is"),
        (PAIR_CLASSIFICATION, number("accuracy"), "the accuracy of paired is"),
        (RETRIEVAL, item("score", lambda value: value / 2), "the ndcg_at_10 of island is"),
        (RETRIEVAL, number("mrr_at_10"), "the mrr_at_10 of island is"),
        (GIVEN, item("score", lambda value: value + 1), "the mean of nli is 0.6"),
        (GIVEN, item("score", lambda _: np.nan), "the mean of nli is 0.6"),
        (GIVEN, number("mean"), "the mean of nli is 0.600001"),
    ],
)
def test_a_number_that_differs_from_the_items_is_an_error(
    kind: str, change: Change, words: str, measured: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(measured(kind), tmp_path / "run")
    path = folder / "run.json"
    content, table = json.loads(path.read_text(encoding="utf-8")), pd.read_parquet(folder / ITEMS)
    change(table, content, kind)
    table.to_parquet(folder / ITEMS, index=False)
    # Whoever changed the items has updated their hash, too.
    content["items_file"]["sha256"] = sha256_of(folder / ITEMS)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(sb.UserError, match=words):
        require_recomputed(sb.load_run(folder))


def test_a_given_score_whose_square_is_no_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("task,item,score\nnli,a,1\nnli,b,1e308\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match="line 3: score '1e308'"):
        sb.import_results(tmp_path / "items.csv")


def test_pairs_with_labels_are_classified_by_average_precision(hash_encode: Encode, toy_data: Data) -> None:
    record = sb.evaluate(hash_encode, labelled(toy_data(pairs=60)), protocol=sb.protocol(metric="ap"))
    (score,) = record.scores
    assert score.signature.startswith("toy:test:all|ap|cosine|text:toy|")
    labels, similarity = record.items["gold"], record.items["cosine"]
    assert score.value == pytest.approx(average_precision_score(labels, similarity), abs=1e-12)
    accuracy = score.number("accuracy")
    assert accuracy is not None
    assert accuracy.value == max(((similarity >= limit) == (labels > 0)).mean() for limit in (*similarity, np.inf))
    assert accuracy.interval is not None


@pytest.mark.parametrize(("gold", "words"), [([0, 1, 2], "has the score 2, but"), ([1, 1, 1], "only one label")])
def test_pairs_that_cannot_be_classified_are_refused(
    gold: list[float], words: str, hash_encode: Encode, toy_data: Data
) -> None:
    data = toy_data(pairs=3)
    labels = replace(data, pairs=data.pairs.assign(gold=np.array(gold, dtype=float)))
    with pytest.raises(sb.UserError, match=words):
        sb.evaluate(hash_encode, labels, protocol=sb.protocol(metric="ap"))
