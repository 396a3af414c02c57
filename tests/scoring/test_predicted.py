"""MTEB's predictions of retrieval and pairs, and TREC runs: MTEB's numbers by query, and all that follows."""

import csv
import sys
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import pytest
import small_mteb_tasks as island

import stsbench as sb
from stsbench.records.kinds import GIVEN, PAIR_CLASSIFICATION
from stsbench.scoring.recompute import require_recomputed
from stsbench.statistics.correlations import average_precision

Encode = Callable[[list[str]], Any]
ENCODERS = {"letters": island.by_letters, "words": island.by_words, "alike": island.by_first_word}
TREC = {
    "ndcg_at_10": "ndcg_cut_10",
    "nDCG@3": "ndcg_cut_3",
    "map_at_10": "map_cut_10",
    "recall@3": "recall_3",
    "precision_at_1": "P_1",
    "hit_rate_at_1": "success_1",
}


def of_items(record: sb.RunRecord) -> dict[str, float]:
    return dict(zip(record.items["item_id"], record.items["score"], strict=True))


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    """Return a file of the judgements as BEIR has them."""
    return island.write_beir(tmp_path / "IslandRetrieval") / "qrels" / "test.tsv"


@pytest.mark.parametrize("name", ENCODERS)
def test_each_query_has_mtebs_own_numbers_ties_among_them(name: str, qrels: Path, tmp_path: Path) -> None:
    task, saved = island.retrieval(drops=True), tmp_path / "saved"
    scores = island.evaluated(task, name, ENCODERS[name], saved)
    for metric, theirs in TREC.items():
        record = sb.import_results(saved, gold=qrels, metric=metric, identical_ids="drop")
        assert of_items(record) == pytest.approx(
            {query: numbers[theirs] for query, numbers in task.by_query.items()}, abs=1e-12
        )
        (score,) = record.scores
        # MTEB rounds the mean to five digits.
        assert round(score.value or 0, 5) == scores[score.statistic]
        assert (score.kind, score.split) == (GIVEN, "test")
        assert f"IslandRetrieval:test:all|{score.statistic}|given|text:user|" in record.signature
        # Neither pooling nor precision is known.
        assert "||given|-|stsbench:" in record.signature
    for cutoff in (1, 3, 10):
        reciprocal = sb.import_results(saved, gold=qrels, metric=f"mrr_at_{cutoff}", identical_ids="drop")
        assert reciprocal.scores[0].value == pytest.approx(scores[f"mrr_at_{cutoff}"], abs=1e-9)


def test_documents_with_their_querys_id_count_as_you_choose(qrels: Path, tmp_path: Path) -> None:
    saved, records = tmp_path / "saved", {}
    for choice, drops in (("keep", False), ("drop", True)):
        scores = island.evaluated(island.retrieval(drops=drops), "letters", island.by_letters, saved)
        records[choice] = sb.import_results(saved, gold=qrels, identical_ids=choice)
        assert round(records[choice].scores[0].value or 0, 5) == scores["ndcg_at_10"]
    assert records["keep"].signature != records["drop"].signature
    with pytest.raises(sb.UserError, match=r"1 of 10 queries .*\('d2'\)"):
        sb.import_results(saved, gold=qrels)


@pytest.mark.parametrize("name", ["letters", "words"])
def test_pairs_with_labels_become_pair_classification(name: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    scores = island.evaluated(island.pair_classification(), name, ENCODERS[name], saved)
    with (tmp_path / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *island.PAIRS])
    record = sb.import_results(saved, gold=tmp_path / "pairs.csv", out=tmp_path / "run")
    (score,) = record.scores
    assert (score.kind, score.statistic, score.items) == (PAIR_CLASSIFICATION, "ap", len(island.PAIRS))
    assert score.value == pytest.approx(scores["cosine_ap"], abs=1e-9)
    assert score.number("accuracy").value == pytest.approx(scores["cosine_accuracy"], abs=1e-9)
    assert score.interval is not None
    assert score.interval[0] < 0.9
    require_recomputed(sb.load_run(tmp_path / "run"))
    # MTEB saves these distances without a sign.
    for similarity in ("euclidean", "manhattan", "dot"):
        value = average_precision(*(record.items[column].to_numpy() for column in ("gold", similarity)))[0]
        assert value == pytest.approx(scores[f"{similarity}_ap"], abs=1e-9)


RANKING = {"q1": {"d1": 0.9, "d2": 0.8, "d3": 0.1}, "q2": {"d1": 0.5, "d2": 0.5}, "q3": {"d9": 1}}
JUDGED = "q1 0 d2 2\nq1 0 d3 1\nq2 0 d1 1\nq3 0 d1 1\n"


@pytest.fixture
def ranked(tmp_path: Path) -> tuple[Path, Path]:
    """Return a prediction file of retrieval, and qrels of TREC's."""
    pytest.importorskip("ir_measures", reason="needs ir-measures: pip install 'stsbench[retrieval]'")
    qrels = tmp_path / "small.qrels"
    qrels.write_text(JUDGED, encoding="utf-8")
    return island.write_predictions(tmp_path / "saved", "Small", test=RANKING), qrels


def test_ndcg_is_that_of_its_formula_and_single_precision_tells_no_near_scores_apart(
    ranked: tuple[Path, Path], tmp_path: Path
) -> None:
    items = of_items(sb.import_results(ranked[0], gold=ranked[1]))
    assert items["q1"] == pytest.approx((2 / log2(3) + 1 / log2(4)) / (2 + 1 / log2(3)), abs=1e-12)
    # Of two documents of one score the one with the later id comes first.
    assert items["q2"] == pytest.approx(1 / log2(3), abs=1e-12)
    assert items["q3"] == 0
    saved = island.write_predictions(
        tmp_path / "near", "Small", test=RANKING | {"q2": {"d1": 0.5 + 1e-12, "d2": 0.5}}
    )
    assert of_items(sb.import_results(saved, gold=ranked[1], metric="mrr@10"))["q2"] == 1.0
    assert of_items(sb.import_results(saved, gold=ranked[1]))["q2"] < 1.0
    assert of_items(sb.import_results(ranked[0], gold=ranked[1], metric="mrr@10"))["q2"] == 0.5
    assert of_items(sb.import_results(ranked[0], gold=ranked[1], metric="mrr@1"))["q2"] == 0.0


def test_a_run_of_trec_is_scored_as_the_same_predictions(ranked: tuple[Path, Path], tmp_path: Path) -> None:
    run = tmp_path / "bm25.run"
    lines = [
        f"{query} Q0 {document} 0 {score} my-bm25\n"
        for query, found in RANKING.items()
        for document, score in found.items()
    ]
    run.write_text("".join(lines), encoding="utf-8")
    record = sb.import_results(run, gold=ranked[1])
    assert of_items(record) == of_items(sb.import_results(*ranked[:1], gold=ranked[1]))
    assert (record.model.name, record.scores[0].task) == ("my-bm25", "small")
    # A query without a document found counts 0, one that nobody judged not at all.
    run.write_text("".join(lines[:-1]) + "q7 Q0 d1 0 1.0 my-bm25\n", encoding="utf-8")
    fewer = sb.import_results(run, gold=ranked[1])
    assert of_items(fewer) == of_items(record)
    assert sum("1 queries without re" in note for note in fewer.notes) == 2


@pytest.mark.parametrize(
    ("content", "gold", "options", "words"),
    [
        ([[0.1, 0.9], [0.4, 0.6]], "0\n1\n", {}, "no predictions that are scored by item: Small"),
        ({"q1": {"d1": float("nan")}}, "q1 0 d1 1\n", {}, "query 'q1': the score of 'd1' is nan"),
        (RANKING, None, {}, r"predictions of Small \(test\): name the gold data with --gold"),
        (RANKING, None, {"gold": "sample"}, r"--gold has no data for Small \(test\)"),
        (RANKING, None, {"identical_ids": "drop"}, "--identical-ids needs documents"),
        (RANKING, JUDGED, {"aggregation": "mean"}, "--aggregation needs pairs"),
        (RANKING, JUDGED, {"metric": "pearson"}, "--metric pearson needs pairs with scores"),
        (RANKING, JUDGED, {"metric": "ndcg"}, "unknown measure of retrieval; choose from ndcg_at_K"),
        (RANKING, JUDGED + "q8 0 d1 1\n", {}, r"1 of 4 queries of the qrels are missing from the other"),
        ("two splits", JUDGED, {}, r"is a single file, but .* Small \(test\) and Small \(dev"),
        ("without ir_measures", JUDGED, {}, r"pip install 'stsbench\[retrieval\]'"),
    ],
)
def test_mistakes_are_named_and_leave_no_record(
    content: Any, gold: str | None, options: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if content == "without ir_measures":
        monkeypatch.setitem(sys.modules, "ir_measures", None)
    splits = {"test": RANKING if isinstance(content, str) else content}
    splits |= {"dev": RANKING} if content == "two splits" else {}
    saved = island.write_predictions(tmp_path / "saved", "Small", **splits)
    if gold is not None:
        (tmp_path / "gold.txt").write_text(gold, encoding="utf-8")
        options = options | {"gold": tmp_path / "gold.txt"}
    with pytest.raises(sb.UserError, match=words):
        sb.import_results(saved, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
