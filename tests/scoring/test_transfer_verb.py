"""Transfer and supervised tasks in a run: their scores, record and tables, on the sample and on toy pairs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_labelled
from stsbench.data.tables import StsData
from stsbench.encoders.callables import CallableEncoder, from_function
from stsbench.records.scores import Scores
from stsbench.records.signature import Signature
from stsbench.records.store import load_run
from stsbench.scoring.kinds.classification import classify
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.settings import Intervals

Encode = Callable[[list[str]], Any]
FEW = Intervals()


@pytest.fixture(scope="module")
def vectors() -> Encode:
    """Return an encoder that tells a good deal apart: hashed words."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashed = HashingVectorizer(n_features=64, norm=None)
    return lambda sentences: hashed.transform(sentences).toarray()


@pytest.fixture(scope="module")
def record(vectors: Encode, tmp_path_factory: pytest.TempPathFactory) -> sb.RunRecord:
    return sb.evaluate(
        vectors,
        "sample,sample-products,sample-questions,sample-paraphrases,sample-sentiment",
        out=tmp_path_factory.mktemp("run"),
    )


def test_each_task_scores_as_it_does_alone(record: sb.RunRecord, vectors: Encode) -> None:
    for part in record.scores_of("transfer"):
        data = load_labelled(part.task, text="sample")
        sides = [np.array(vectors(list(data.items["sentence1"])))]
        if data.items["sentence2"].notna().all():
            sides.append(np.array(vectors(list(data.items["sentence2"]))))
        alone = classify(data, *sides)
        by_statistic = {number.statistic: 100 * (number.value or 0) for number in part.numbers}
        expected = {"acc": alone.acc, "devacc": alone.devacc, "f1": alone.f1}
        assert by_statistic == pytest.approx(
            {name: value for name, value in expected.items() if value is not None}
        )
        assert part.training == alone.training
        own = record.items[record.items["task"] == part.task]
        assert own["prediction"].tolist() == alone.table["prediction"].tolist()


def test_the_order_of_the_tasks_does_not_matter(record: sb.RunRecord, vectors: Encode) -> None:
    again = sb.evaluate(vectors, "sample-sentiment,sample-paraphrases,sample-questions,sample,sample-products")
    assert {score.task: score for score in again.scores} == {score.task: score for score in record.scores}
    assert again.averages[0].value == record.averages[0].value


def test_what_is_saved_is_what_is_read(record: sb.RunRecord) -> None:
    assert record.folder is not None
    read = load_run(record.folder)
    assert read == record
    pd.testing.assert_frame_equal(read.items, record.items, check_dtype=False)
    assert set(read.items["task"]) == {
        "sample",
        "sample-products",
        "sample-questions",
        "sample-paraphrases",
        "sample-sentiment",
    }
    tested = read.items[(read.items["task"] == "sample-questions") & (read.items["split"] == "test")]
    trec = next(score for score in read.scores if score.task == "sample-questions")
    assert len(tested) == trec.items
    assert tested["correct"].mean() == pytest.approx(trec.value, abs=5e-5)


def test_signatures_name_design_and_classifier(record: sb.RunRecord) -> None:
    protocols = {
        part.task: Signature.parse(part.signature).protocol.split("|data")[0]
        for part in record.scores_of("transfer")
    }
    assert protocols == {
        "sample-products": "sample-products:all:nested10|acc|logreg|text:sample",
        "sample-questions": "sample-questions:test:kfold10|acc|logreg|text:sample",
        "sample-paraphrases": "sample-paraphrases:test:kfold10|acc|logreg|text:sample",
        "sample-sentiment": "sample-sentiment:test:split|acc|logreg|text:sample",
    }
    assert record.signature.splitlines()[0] == record.scores[0].signature
    assert len(record.signatures) == 5


def test_tables_keep_the_two_kinds_apart(record: sb.RunRecord) -> None:
    sts, transfer = Scores([record]).table()
    assert "sample-products" not in sts.frame
    assert list(transfer.frame) == [
        "model",
        "sample-products",
        "sample-questions",
        "sample-paraphrases",
        "sample-sentiment",
        "Avg. transfer",
    ]
    assert transfer.frame["model"].tolist()[1:] == ["  2.5 %", "  97.5 %", "  devacc"]
    scores = transfer.frame.iloc[0]
    assert scores["Avg. transfer"] == pytest.approx(
        scores[["sample-products", "sample-questions", "sample-paraphrases", "sample-sentiment"]].mean()
    )
    low, high = transfer.frame["Avg. transfer"][1:3]
    assert low < scores["Avg. transfer"] < high
    assert any("F1 of sample-paraphrases" in line for line in Scores([record]).remarks)
    long = Scores([record]).frame
    trec = long[long["task"] == "sample-questions"]
    assert trec["metric"].tolist() == ["acc", "devacc"]
    assert set(trec["aggregation"]) == {"kfold10"}
    assert long[long["task"] == "Avg. transfer"]["aggregation"].item() == ""


def test_means_of_different_tasks_do_not_stand_under_one_name(record: sb.RunRecord, vectors: Encode) -> None:
    other = sb.evaluate(vectors, "sample-products,sample-questions", intervals=FEW)
    assert "Avg. transfer" not in Scores([record, other]).table()[-1].frame


def test_a_record_of_other_tasks_takes_the_folder_over(vectors: Encode, tmp_path: Path) -> None:
    sb.evaluate(vectors, "sample", out=tmp_path, intervals=FEW)
    record = sb.evaluate(vectors, "sample-products", out=tmp_path, intervals=FEW, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "items.parquet", "run.json"]
    assert not record.averages
    assert set(load_run(tmp_path).items["kind"]) == {"transfer"}
    with pytest.raises(sb.UserError, match=r"the run of .* has no STS task, .* measure with --tasks"):
        load_run(tmp_path).compared_pairs()


def dots(run: sb.RunRecord) -> list[float]:
    """Return the dot products of the compared pairs."""
    return run.compared_pairs()["dot"].tolist()


def test_the_closing_normalisation_is_for_similarities_alone_unless_asked_for(vectors: Encode) -> None:
    plain = from_function(vectors)
    normal = CallableEncoder(plain.encode, replace(plain.identity, normalizes=True))
    tasks = ["sample", load_labelled("sample-products", text="sample")]
    bare, own = (sb.evaluate(encoder, tasks, intervals=FEW) for encoder in (plain, normal))
    assert own.scores_of("transfer") == bare.scores_of("transfer")
    assert "|norm|" in own.scores[0].signature
    assert "|norm|" not in own.scores_of("transfer")[0].signature
    lengths = {name: run.items["dot"].abs().max() for name, run in (("bare", bare), ("own", own))}
    assert lengths["own"] <= 1 + 1e-6 < lengths["bare"]

    forced = sb.evaluate(sb.load(vectors, normalize=True), tasks, intervals=FEW)
    assert "|norm|" in forced.scores_of("transfer")[0].signature
    assert forced.scores_of("transfer")[0].value != bare.scores_of("transfer")[0].value
    assert dots(forced) == dots(own)
    unscaled = replace(normal.identity, use=replace(normal.identity.use, normalize=False))
    dropped = sb.evaluate(CallableEncoder(plain.encode, unscaled), tasks, intervals=FEW)
    assert dots(dropped) == dots(bare)


def test_the_net_is_a_classifier_and_its_seed_counts(vectors: Encode) -> None:
    def run(seed: int) -> sb.RunRecord:
        return sb.evaluate(
            vectors,
            "sample-questions",
            intervals=FEW,
            classification=sb.Classification(classifier="mlp-adam", kfold=2, seed=seed),
        )

    one, again, other = run(1), run(1), run(2)
    assert one.scores == again.scores
    assert one.scores[0].training is not None
    assert one.scores[0].training.grid == (1e-5, 1e-4, 1e-3, 1e-2)
    assert Signature.parse(one.scores_of("transfer")[0].signature).similarity == "mlp-adam"
    assert other.scores_of("transfer")[0] != one.scores_of("transfer")[0]


def test_a_trained_regressor_is_another_measurement(hash_encode: Encode, toy_data: Callable[..., StsData]) -> None:
    splits = [toy_data(pairs=40, seed=seed, split=split) for seed, split in enumerate(("train", "dev", "test"))]
    pairs = pd.concat([part.pairs for part in splits], ignore_index=True)
    data = replace(splits[0], task="STS-B", split="all", pairs=pairs)
    record = sb.evaluate(hash_encode, [Relatedness(data), splits[2]], intervals=FEW)
    (part,) = record.scores_of("supervised")
    assert {number.statistic: number.items for number in part.numbers} == dict.fromkeys(
        ("pearson", "spearman", "mse", "dev"), 40
    )
    assert Signature.parse(part.signature).similarity == "supervised"
    tested = record.items[record.items["kind"] == "supervised"]
    assert len(tested) == 40
    assert tested["supervised"].between(1, 5).all()
    assert tested["supervised"].corr(tested["gold"]) == pytest.approx(part.value)
    assert [list(table.frame)[1:] for table in Scores([record]).table()] == [
        ["toy", "first", "second"],
        ["STS-B:supervised"],
    ]
    assert record.frame["task"].tolist()[-2:] == ["STS-B:supervised"] * 2
