"""MTEB's predictions of retrieval, classification and pairs: its own numbers by item, and all that follows."""

import csv
import json
import sys
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_mteb_tasks as island
from typer.testing import CliRunner

import stsbench as sb
from stsbench.cli.app import app
from stsbench.records.kinds import GIVEN, PAIR_CLASSIFICATION, STS
from stsbench.scoring.recompute import require_recomputed
from stsbench.statistics.precision import average_precision

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


def qrels_file(path: Path) -> Path:
    """Write the judgements as BEIR has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        f"{query}\t{document}\t{value}\n" for query, of in island.QRELS.items() for document, value in of.items()
    ]
    path.write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
    return path


def predictions(folder: Path, task: str, name: str = "owner/model", **splits: Any) -> Path:
    """Write a file as MTEB does; `splits` are what it holds of each split."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{task}_predictions.json"
    meta = {"mteb_model_meta": {"model_name": name, "revision": "no_revision_available"}}
    path.write_text(json.dumps(meta | {"default": splits}), encoding="utf-8")
    return path


def of_items(record: sb.RunRecord) -> dict[str, float]:
    return dict(zip(record.items["item_id"], record.items["score"], strict=True))


@pytest.mark.parametrize("name", ENCODERS)
def test_each_query_has_mtebs_own_numbers_ties_among_them(name: str, tmp_path: Path) -> None:
    task = island.retrieval(ignore_identical_ids=True)
    scores = island.evaluated(task, name, ENCODERS[name], tmp_path)
    for metric, theirs in TREC.items():
        record = sb.import_results(tmp_path, gold=task, metric=metric)
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
        reciprocal = sb.import_results(tmp_path, gold=task, metric=f"mrr_at_{cutoff}")
        assert reciprocal.scores[0].value == pytest.approx(scores[f"mrr_at_{cutoff}"], abs=1e-9)


CANDIDATES = {
    query: list(island.CORPUS)[place : place + 5] for place, query in enumerate(island.QUERIES) if query != "q9"
}


@pytest.mark.parametrize(
    ("make", "measure"),
    [
        (lambda: island.retrieval(main_score="map_at_1000"), "map_at_1000"),
        (lambda: island.retrieval(skip_first_result=True), "ndcg_at_10"),
        (lambda: island.retrieval("IslandReranking", "map_at_1000", CANDIDATES), "map_at_1000"),
    ],
    ids=["headline", "skips the first document", "reranking"],
)
def test_mteb_defines_headline_skipped_documents_and_candidates(
    make: Callable[[], Any], measure: str, tmp_path: Path
) -> None:
    task = make()
    scores = island.evaluated(task, "words", island.by_words, tmp_path)
    record = sb.import_results(tmp_path, gold=task)
    assert record.scores[0].statistic == measure
    assert round(record.scores[0].value or 0, 5) == scores[measure] == scores["main_score"]
    if getattr(task, "skip_first_result", False):
        assert sb.import_results(tmp_path, gold=island.retrieval()).signature != record.signature
    if "Reranking" in task.metadata.name:
        assert of_items(record) == pytest.approx({q: of["map_cut_1000"] for q, of in task.by_query.items()})
        assert of_items(record)["q9"] == 0.0  # a query without candidates


def test_a_headline_that_is_not_computed_per_query_is_an_error(tmp_path: Path) -> None:
    island.evaluated(island.retrieval(), "words", island.by_words, tmp_path)
    with pytest.raises(sb.UserError, match="headline measure, p-MRR, is not computed per query"):
        sb.import_results(tmp_path, gold=island.retrieval(main_score="p-MRR"))


def test_two_retrieval_runs_are_imported_compared_ranked_and_gated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    qrels_file(tmp_path / "island" / "qrels" / "test.tsv")
    by_query = {}
    for name in ("letters", "words"):
        task = island.retrieval(ignore_identical_ids=True)
        island.evaluated(task, name, ENCODERS[name], tmp_path / name)
        by_query[name] = np.array([numbers["ndcg_cut_10"] for numbers in task.by_query.values()])
    runner = CliRunner()
    for name, ndcg in by_query.items():
        done = runner.invoke(
            app, ["import", name, "--gold", "island", "--identical-ids", "drop", "--out", f"runs/{name}"]
        )
        assert done.exit_code == 0, done.output
        assert f"{100 * ndcg.mean():.2f}" in done.stdout
        require_recomputed(sb.load_run(f"runs/{name}"))
    (row,) = sb.compare("runs/letters", "runs/words").frame.to_dict("records")
    assert row["a"] == pytest.approx(100 * by_query["letters"].mean(), abs=1e-9)
    assert row["difference"] == pytest.approx(100 * (by_query["words"] - by_query["letters"]).mean(), abs=1e-9)
    assert row["low"] < row["difference"] < row["high"]
    ranking = sb.rank(["runs/words", "runs/letters"])
    assert [row.model for row in ranking.tasks[0].rows] == ["owner/letters", "owner/words"]
    gate = ["check", "runs/words", "--baseline", "runs/letters", "--margin"]
    assert runner.invoke(app, [*gate, "90"]).exit_code == 0
    assert runner.invoke(app, [*gate, "0.1"]).exit_code == 3


def test_documents_with_their_querys_id_count_as_the_person_or_the_task_says(tmp_path: Path) -> None:
    qrels = qrels_file(tmp_path / "qrels.tsv")
    saved, values, signatures = tmp_path / "saved", {}, {}
    for choice, drops in (("keep", False), ("drop", True)):
        task = island.retrieval(ignore_identical_ids=drops)
        scores = island.evaluated(task, "letters", island.by_letters, saved)
        for gold, options in ((qrels, {"identical_ids": choice}), (task, {})):
            record = sb.import_results(saved, gold=gold, **options)
            assert round(record.scores[0].value or 0, 5) == scores["ndcg_at_10"]
            signatures.setdefault(choice, set()).add(record.signature)
        values[choice] = record.scores[0].value
    assert values["keep"] != values["drop"]
    assert len(signatures["keep"]) == len(signatures["drop"]) == 1
    assert signatures["keep"] != signatures["drop"]
    with pytest.raises(sb.UserError, match=r"1 of 10 queries retrieve a document with their own id \('d2'\)"):
        sb.import_results(saved, gold=qrels)
    with pytest.raises(sb.UserError, match="mteb's IslandRetrieval has --identical-ids drop"):
        sb.import_results(saved, gold=task, identical_ids="keep")


def test_a_measure_does_not_compare_with_another(tmp_path: Path) -> None:
    task = island.retrieval()
    island.evaluated(task, "letters", island.by_letters, tmp_path)
    ndcg, reciprocal = (sb.import_results(tmp_path, gold=task, metric=name) for name in ("ndcg@10", "mrr@10"))
    with pytest.raises(sb.UserError, match="metric is ndcg_at_10 in one and mrr_at_10 in the other"):
        sb.compare(ndcg, reciprocal.model_copy(update={"model": ndcg.model.model_copy(update={"name": "other"})}))


def test_a_classified_item_has_the_share_of_experiments_that_put_it_right(tmp_path: Path) -> None:
    records, task = {}, island.classification()
    for name in ("letters", "words"):
        scores = island.evaluated(task, name, ENCODERS[name], tmp_path / name)
        record = records[name] = sb.import_results(tmp_path / name, gold=task)
        (score,) = record.scores
        assert score.statistic == "accuracy"
        assert score.value == pytest.approx(scores["accuracy"], abs=1e-9)
        assert score.items == len(task.dataset["test"])
        assert {round(5 * value, 9) % 1 for value in of_items(record).values()} == {0.0}
        labels = tmp_path / "labels.txt"
        labels.write_text("".join(f"{label}\n" for label in task.dataset["test"]["label"]), encoding="utf-8")
        assert sb.import_results(tmp_path / name, gold=labels).signature == record.signature
    assert sb.compare(records["letters"], records["words"]).frame["difference"].notna().all()
    crossed = island.classification(is_cross_validation=True)
    with pytest.raises(sb.UserError, match="is cross-validated"):
        sb.import_results(tmp_path / "words", gold=crossed)


def test_pairs_with_labels_become_pair_classification(tmp_path: Path) -> None:
    task = island.pair_classification()
    scores = island.evaluated(task, "words", island.by_words, tmp_path / "words")
    record = sb.import_results(tmp_path / "words", gold=task, out=tmp_path / "run")
    (score,) = record.scores
    assert (score.kind, score.statistic, score.items) == (PAIR_CLASSIFICATION, "ap", len(island.PAIRS))
    assert score.value == pytest.approx(scores["cosine_ap"], abs=1e-9)
    assert score.number("accuracy").value == pytest.approx(scores["cosine_accuracy"], abs=1e-9)
    require_recomputed(sb.load_run(tmp_path / "run"))
    pairs = tmp_path / "pairs.csv"
    with pairs.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *island.PAIRS])
    assert sb.import_results(tmp_path / "words", gold=pairs).signature == record.signature
    # MTEB saves these distances without a sign.
    for similarity in ("euclidean", "manhattan", "dot"):
        value = average_precision(*(record.items[name].to_numpy() for name in ("gold", similarity)))
        assert value == pytest.approx(scores[f"{similarity}_ap"], abs=1e-9)


def test_where_cosine_is_the_best_similarity_it_is_mtebs_max_ap_even_where_that_is_1(tmp_path: Path) -> None:
    task = island.pair_classification()
    scores = island.evaluated(task, "letters", island.by_letters, tmp_path)
    (score,) = sb.import_results(tmp_path, gold=task).scores
    assert scores["max_ap"] == scores["cosine_ap"] == 1.0
    assert score.value == pytest.approx(scores["max_ap"], abs=1e-9)
    assert score.interval is not None
    assert score.interval[0] < 0.9


def test_a_folder_of_several_tasks_is_scored_by_a_folder_of_gold(tmp_path: Path) -> None:
    tasks = [island.retrieval(ignore_identical_ids=True), island.classification(), island.pair_classification()]
    for task in tasks:
        island.evaluated(task, "words", island.by_words, tmp_path / "words")
    predictions(tmp_path / "words", "IslandClusters", "owner/words", test={"Level 0": [[0, 1]]})
    gold = tmp_path / "gold"
    qrels_file(gold / "IslandRetrieval" / "qrels" / "test.tsv")
    tasks[1].load_data()
    labels = tasks[1].dataset["test"]["label"]
    (gold / "IslandClassification.csv").write_text("label\n" + "".join(f"{label}\n" for label in labels))
    rows = [json.dumps(dict(zip(("sentence1", "sentence2", "label"), pair, strict=True))) for pair in island.PAIRS]
    (gold / "IslandPairs.jsonl").write_text("\n".join(rows))
    path = tmp_path / "words" / "IslandClusters_predictions.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"mteb_model_meta": {"model_name": "owner/words", "revision": "1"}}))
    by_files = sb.import_results(tmp_path / "words", gold=gold, identical_ids="drop")
    by_tasks = sb.import_results(tmp_path / "words", gold=tasks)
    assert by_files.signature == by_tasks.signature
    assert [score.value for score in by_files.scores] == [score.value for score in by_tasks.scores]
    assert [score.statistic for score in by_files.scores] == ["ap", "accuracy", "ndcg_at_10"]
    assert any("not scored by item): IslandClusters (test)" in note for note in by_files.notes)
    shown = str(by_files.table())
    assert all(name in shown for name in ("IslandPairs", "IslandClassification", "IslandRetrieval", "Avg. given"))
    (gold / "IslandClassification.csv").unlink()
    fewer = sb.import_results(tmp_path / "words", gold=gold, identical_ids="drop")
    assert any("without gold data): IslandClassification" in note for note in fewer.notes)


def test_mtebs_own_data_are_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mteb = pytest.importorskip("mteb", reason="needs mteb: pip install mteb")
    task = island.retrieval()
    island.evaluated(task, "words", island.by_words, tmp_path)
    fresh = {"IslandRetrieval": island.retrieval()}
    monkeypatch.setattr(mteb, "get_task", fresh.__getitem__)
    record = sb.import_results(tmp_path, gold="mteb")
    assert record.signature == sb.import_results(tmp_path, gold=task).signature
    fresh.clear()
    with pytest.raises(sb.UserError, match="mteb has no task IslandRetrieval"):
        sb.import_results(tmp_path, gold="mteb")


def test_what_keeps_mtebs_data_from_being_read_is_told_in_a_sentence(tmp_path: Path) -> None:
    task = island.retrieval()
    island.evaluated(task, "words", island.by_words, tmp_path)

    class Unreachable:
        metadata = task.metadata
        dataset = None
        data_loaded = False

        def load_data(self) -> None:
            raise ConnectionError("no network")

    with pytest.raises(sb.UserError, match=r"cannot read .*ConnectionError: no network.: load it with mteb"):
        sb.import_results(tmp_path, gold=Unreachable())


RANKING = {"q1": {"d1": 0.9, "d2": 0.8, "d3": 0.1}, "q2": {"d1": 0.5, "d2": 0.5}, "q3": {"d9": 1}}
JUDGED = "q1 0 d2 2\nq1 0 d3 1\nq2 0 d1 1\nq3 0 d1 1\n"


@pytest.fixture
def ranked(tmp_path: Path) -> tuple[Path, Path]:
    """Return a prediction file of retrieval, and qrels of TREC's."""
    pytest.importorskip("ir_measures", reason="needs ir-measures: pip install 'stsbench[retrieval]'")
    qrels = tmp_path / "small.qrels"
    qrels.write_text(JUDGED, encoding="utf-8")
    return predictions(tmp_path / "saved", "Small", test=RANKING), qrels


def test_ndcg_is_that_of_its_formula(ranked: tuple[Path, Path]) -> None:
    saved, qrels = ranked
    items = of_items(sb.import_results(saved, gold=qrels))
    assert items["q1"] == pytest.approx((2 / log2(3) + 1 / log2(4)) / (2 + 1 / log2(3)), abs=1e-12)
    # Of two documents of one score the one with the later id comes first.
    assert items["q2"] == pytest.approx(1 / log2(3), abs=1e-12)
    assert items["q3"] == 0


@pytest.mark.parametrize("name", ["ids.tsv", "ids.jsonl"])
def test_spaces_in_ids_count_in_qrels_as_in_predictions(tmp_path: Path, name: str) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="needs ir-measures: pip install 'stsbench[retrieval]'")
    texts = {
        "ids.tsv": "query-id\tcorpus-id\tscore\nq1 \td1 \t1\nq1 \td1\t0\n",
        "ids.jsonl": "".join(
            f'{{"query-id": "q1 ", "corpus-id": "{document}", "score": {score}}}\n'
            for document, score in (("d1 ", 1), ("d1", 0))
        ),
    }
    (tmp_path / name).write_text(texts[name], encoding="utf-8")
    ranking = {"q1 ": {"d1 ": 0.9, "d1": 0.5}}
    saved = predictions(tmp_path / "saved", "Small", test=ranking)
    (expected,) = ir_measures.nDCG.__matmul__(10).iter_calc({"q1 ": {"d1 ": 1, "d1": 0}}, ranking)
    assert of_items(sb.import_results(saved, gold=tmp_path / name)) == {"q1 ": expected.value} == {"q1 ": 1.0}


def test_scores_that_single_precision_does_not_tell_apart_are_no_tie_of_the_reciprocal_rank(
    ranked: tuple[Path, Path], tmp_path: Path
) -> None:
    saved = predictions(tmp_path / "near", "Small", test=RANKING | {"q2": {"d1": 0.5 + 1e-12, "d2": 0.5}})
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
    assert any("1 queries without results count as 0" in note for note in fewer.notes)
    assert any("1 queries without relevant documents" in note for note in fewer.notes)


def test_pairs_with_scores_become_an_sts_task(toy_data: Callable[..., Any], tmp_path: Path) -> None:
    pairs = toy_data("mine", pairs=40).pairs
    pairs[["sentence1", "sentence2", "gold"]].to_csv(tmp_path / "mine.csv", index=False)
    cosines = np.linspace(-1, 1, 40).tolist()
    # A sentence is like itself.
    same = (pairs["sentence1"] == pairs["sentence2"]).tolist()
    cosines = [1.0 if alike else value for alike, value in zip(same, cosines, strict=True)]
    distances = (np.array(cosines) - 1).tolist()
    saved = predictions(
        tmp_path / "saved",
        "Mine",
        test={"cosine_scores": cosines, "manhattan_distances": distances, "euclidean_distances": distances},
    )
    record = sb.import_results(saved, gold=tmp_path / "mine.csv", metric="pearson")
    (score,) = record.scores
    assert (score.kind, score.statistic) == (STS, "pearson")
    assert score.value == pytest.approx(np.corrcoef(cosines, pairs["gold"])[0, 1])
    with pytest.raises(sb.UserError, match=r"--metric ndcg@10 needs queries"):
        sb.import_results(saved, gold=tmp_path / "mine.csv", metric="ndcg@10")


CLASSES = [["joy", "joy", "fear"], ["joy", "fear", "fear"]]


def a_folder_of_two(tmp_path: Path) -> Path:
    predictions(tmp_path / "saved", "Small", test=RANKING)
    return predictions(tmp_path / "saved", "Moods", test=CLASSES).parent


@pytest.mark.parametrize(
    ("content", "gold", "options", "words"),
    [
        (CLASSES, "joy\nfear\n", {}, "experiment 1 of 2 has 3 predictions, but there are 2 labels"),
        (CLASSES, "0\n1\n1\n", {}, r"no predicted label \(fear, joy\) is among the gold labels \(0, 1\)"),
        (CLASSES, "joy\n\nfear\n", {}, "line 2: label is ''; give a name or a whole number"),
        ([[0.1, 0.9], [0.4, 0.6]], "0\n1\n", {}, "no predictions that are scored by item: Moods"),
        ({"q1": {"d1": float("nan")}}, "q1 0 d1 1\n", {}, "query 'q1': the score of 'd1' is nan"),
        (CLASSES, None, {}, r"predictions of Moods \(test\): name the gold data"),
        (None, None, {}, r"predictions of Moods \(test\) and Small \(test\): name the gold data with --gold"),
        (None, None, {"gold": "."}, r"--gold has no data for Moods \(test\) and Small \(test\)"),
        (None, "q1 0 d1 1\n", {}, "is a single file, but there are predictions of several tasks"),
        (None, None, {"identical_ids": "drop"}, "--identical-ids needs documents"),
        (RANKING, JUDGED + "q8 0 d1 1\n", {}, r"1 of 4 queries of the qrels are missing from the other"),
        (RANKING, JUDGED[:-2] + "0\n", {}, r"1 of 3 queries of the predictions are missing .* \('q3'\)"),
        ("without ir_measures", JUDGED, {}, r"pip install 'stsbench\[retrieval\]'"),
    ],
)
def test_mistakes_are_named_and_leave_no_record(
    content: Any,
    gold: str | None,
    options: dict[str, Any],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content == "without ir_measures":
        monkeypatch.setitem(sys.modules, "ir_measures", None)
        content = RANKING
    saved = (
        a_folder_of_two(tmp_path) if content is None else predictions(tmp_path / "saved", "Moods", test=content)
    )
    if gold is not None:
        (tmp_path / "gold.txt").write_text(gold, encoding="utf-8")
        options = {"gold": tmp_path / "gold.txt"}
    with pytest.raises(sb.UserError, match=words):
        sb.import_results(saved, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_each_subset_and_split_is_a_score_of_its_own(tmp_path: Path) -> None:
    path = predictions(tmp_path / "saved", "Moods", test=CLASSES, validation=[["fear"], ["joy"]])
    content = json.loads(path.read_text(encoding="utf-8"))
    parts = {"de": content["default"], "fr": {"test": CLASSES[:1]}}
    path.write_text(json.dumps({"mteb_model_meta": content["mteb_model_meta"]} | parts), encoding="utf-8")
    for place, labels in (("de/test", "joy joy joy"), ("de/validation", "joy"), ("fr/test", "joy joy fear")):
        file = tmp_path / "gold" / "Moods" / f"{place}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{label}\n" for label in labels.split()), encoding="utf-8")
    record = sb.import_results(path, gold=tmp_path / "gold")
    values = {(score.task, score.split): score.value for score in record.scores}
    assert values == {
        ("Moods (de)", "test"): pytest.approx(0.5),
        ("Moods (de)", "validation"): 0.5,
        ("Moods (fr)", "test"): 1.0,
    }


def test_a_score_of_a_measure_stays_between_0_and_1(tmp_path: Path) -> None:
    saved = predictions(tmp_path / "saved", "Moods", test=[["a"] * 17 + ["b"] * 3, ["a"] * 20])
    (tmp_path / "gold.txt").write_text("a\n" * 20, encoding="utf-8")
    (score,) = sb.import_results(saved, gold=tmp_path / "gold.txt").scores
    assert score.value == pytest.approx(0.925)
    assert score.interval is not None
    low, high = score.interval
    assert 0.5 < low < 0.925 < high < 1
    # The plain interval of a mean goes on as far above as below.
    assert 0.925 + (0.925 - low) > 1
