"""Retrieval on one's own data: MTEB's and ir-measures' numbers by query, mistakes in the files, judgements."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
import small_mteb_tasks as island
from typer.testing import CliRunner

import stsbench as sb
from stsbench.cli.app import app
from stsbench.data.qrels import RetrievalData, load_retrieval, texts_in
from stsbench.records.kinds import RETRIEVAL
from stsbench.scoring.kinds.retrieval import search
from stsbench.scoring.recompute import require_recomputed

TREC = {"score": "ndcg_cut_10", "recall_at_100": "recall_100", "map_at_100": "map_cut_100"}
MEASURES = ("mrr_at_10", "recall_at_100", "map_at_100")
PROMPTS = {"query": "query: ", "document": "passage: "}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return island.write_beir(tmp_path / "island")


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("name", ["prompts", "words", "alike"])
def test_every_query_has_mtebs_numbers_and_those_of_ir_measures(
    name: str, drops: bool, folder: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    """Relevance is graded; `alike` gives most documents the same vector; a query has the id of a document."""
    encode: Any = {"words": island.by_words, "alike": island.by_first_word}.get(name)
    theirs = encode
    if encode is None:
        encode = sb.load(tiny_bert, pooling="avg", prompts=tuple(PROMPTS.values()))
        sides = {side: sb.load(tiny_bert, pooling="avg", prompt=text) for side, text in PROMPTS.items()}
        theirs = {side: partial(sb.embed, of_side) for side, of_side in sides.items()}
    data = load_retrieval(folder, identical_ids="drop" if drops else "keep")
    record = sb.evaluate(encode, data)
    task = island.retrieval(drops=drops)
    scores = island.evaluated(task, name, theirs, tmp_path / "saved")
    items = record.items.set_index("item_id")
    for column, trec in TREC.items():
        expected = {query: numbers[trec] for query, numbers in task.by_query.items()}
        assert items[column].to_dict() == pytest.approx(expected, abs=1e-9)
    (score,) = record.scores
    assert (score.kind, score.statistic, score.items) == (RETRIEVAL, "ndcg_at_10", len(island.QUERIES))
    assert score.number("mrr_at_10").value == pytest.approx(scores["mrr_at_10"], abs=1e-9)
    retrieved = {query: json.loads(text) for query, text in items["retrieved"].items()}
    measures = {"score": "nDCG@10", "recall_at_100": "R@100", "map_at_100": "AP@100"}
    for column, measure in measures.items():
        results = ir_measures.iter_calc([ir_measures.parse_measure(measure)], island.QRELS, retrieved)
        expected = {result.query_id: result.value for result in results}
        assert items[column].to_dict() == pytest.approx(expected, abs=1e-9)
    assert ("d2" in retrieved["d2"]) is not drops
    assert ("|prompts:query%3A%20,passage%3A%20" in score.signature) is (name == "prompts")


@pytest.mark.parametrize("metric", ["recall_at_1", "mrr@3", "ndcg_at_120", "mrr_at_10"])
def test_another_measure_is_the_score(metric: str, folder: Path) -> None:
    data = load_retrieval(folder, identical_ids="keep")
    record = sb.evaluate(island.by_words, data, protocol=sb.protocol(metric=metric))
    (score,) = record.scores
    assert score.statistic == metric.replace("@", "_at_")
    assert list(record.frame["metric"]) == [*dict.fromkeys([score.statistic, *MEASURES])]
    assert f"|{score.statistic}|cosine|" in score.signature
    assert score.interval is not None


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_the_search_in_blocks_is_that_of_a_full_sort(similarity: str) -> None:
    rng = np.random.default_rng(5)
    documents = rng.integers(-2, 3, size=(900, 3)).astype(np.float32)  # many ties, and zero vectors
    queries = rng.integers(1, 5, size=(300, 3)).astype(np.float32)
    found = search(queries, (documents[start : start + 70] for start in range(0, 900, 70)), 40, similarity)
    lengths = np.linalg.norm(documents.astype(float), axis=1)
    scores = queries.astype(float) @ documents.T.astype(float)
    if similarity == "cosine":
        scores /= np.maximum(lengths, 1) * np.linalg.norm(queries.astype(float), axis=1)[:, None]
    scores[:, lengths == 0] = -np.inf
    expected = np.argsort(-scores.round(9), axis=1, kind="stable")[:, :40]
    assert found.rows.tolist() == expected.tolist()
    assert found.cosines == pytest.approx(np.take_along_axis(scores, expected, axis=1))


def test_documents_are_encoded_once_and_those_without_a_direction_are_not_found(
    folder: Path, tiny_bert: Path
) -> None:
    data = load_retrieval(folder, identical_ids="keep")
    first, second = (sb.evaluate(sb.load(tiny_bert, pooling="avg"), data) for _ in range(2))
    assert (first.encoding["encoded"], second.encoding["encoded"]) == (22, 0)
    assert first.scores == second.scores
    assert {"documents": 12, "queries": 10, "index_bytes": 12 * 32 * 4}.items() <= second.encoding.items()

    def encode(texts: list[str]) -> Any:
        return [
            [0.0, 0.0] if text in {island.QUERIES["q1"], island.CORPUS["d1"]} else [1.0, 2.0] for text in texts
        ]

    items = sb.evaluate(encode, data).items.set_index("item_id")
    assert items.loc["q1", "score"] == 0
    assert [len(json.loads(text)) for text in items["retrieved"][:2]] == [0, 11]


def test_the_time_of_a_search_is_without_that_of_reading_encoding_and_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = RetrievalData.blocks

    def slow_blocks(data: RetrievalData, size: int) -> Iterator[list[str]]:
        time.sleep(0.4)
        yield from blocks(data, size)

    def slow_encode(texts: list[str]) -> Any:
        time.sleep(0.4)
        return island.by_words(texts)

    monkeypatch.setattr(RetrievalData, "blocks", slow_blocks)
    steps: list[tuple[Any, ...]] = []
    tasks = ["sample-questions", load_retrieval(folder, identical_ids="keep")]
    record = sb.evaluate(slow_encode, tasks, progress=lambda *step: steps.append(step))
    assert record.encoding["search_microseconds"] < 400_000
    assert record.seconds["encode"] >= 0.8
    assert record.seconds["similarities"] >= 0.4
    assert [step for step in steps if step[0] == "training"] == [("training", 0, 1), ("training", 1, 1)]


QUERY, DOCUMENT = '{"_id": "q1", "text": "Who?"}', '{"_id": "d1", "text": "She."}'
JUDGED = "query-id\tcorpus-id\tscore\nq1\td1\t1\n"


@pytest.mark.parametrize(
    ("changed", "content", "words"),
    [
        ("corpus.jsonl", [DOCUMENT, '{"_id": "d2", "text":'], "corpus.jsonl, line 2: not valid JSON"),
        ("corpus.jsonl", [DOCUMENT, DOCUMENT], "corpus.jsonl, line 2: document 'd1'"),
        ("corpus.jsonl", [DOCUMENT, '{"_id": "d2", "text": " "}'], "corpus.jsonl, line 2: document 'd2'"),
        ("corpus.jsonl", ['{"_id": "d1", "title": "A"}'], "corpus.jsonl has no column 'text'"),
        ("queries.jsonl", [QUERY, QUERY], "queries.jsonl, line 2: query 'q1'"),
        ("queries.jsonl", ['{"_id": "q1", "text": ""}'], "queries.jsonl, line 1: query 'q1'"),
        ("queries.jsonl", ['{"_id": "d1", "text": "She."}', QUERY], None),
        ("qrels/test.tsv", [JUDGED, "q1\td9\t1"], "test.tsv, line 3: .* document 'd9'"),
        ("qrels/test.tsv", [JUDGED, "q7\td1\t1"], "test.tsv, line 3: .* query 'q7'"),
        ("qrels/test.tsv", [JUDGED.replace("1\n", "0\n")], "test.tsv has no relevant document"),
        ("qrels/test.tsv", None, "has no qrels"),
        ("qrels/dev.tsv", [JUDGED], None),
        ("queries.tsv", ["_id\ttext", "q1\tWho?"], r"has several queries \(queries.jsonl, queries.tsv\)"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_remedy(
    changed: str, content: list[str] | None, words: str | None, tmp_path: Path
) -> None:
    files = {"corpus.jsonl": [DOCUMENT], "queries.jsonl": [QUERY], "qrels/test.tsv": [JUDGED], changed: content}
    (tmp_path / "qrels").mkdir()
    for name, lines in files.items():
        if lines is not None:
            (tmp_path / name).write_text("\n".join(line.rstrip("\n") for line in lines) + "\n", encoding="utf-8")
    if words is None:
        assert list(load_retrieval(tmp_path).queries) == ["q1"]
        return
    with pytest.raises(sb.UserError, match=words):
        load_retrieval(tmp_path)


@pytest.mark.parametrize("first", ["with a title", "without a title"])
def test_only_some_documents_may_have_titles(first: str, tmp_path: Path) -> None:
    titled = '{"_id": "d2", "title": "Titled", "text": "He."}'
    lines = [titled, DOCUMENT] if first == "with a title" else [DOCUMENT, titled]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert dict(texts_in(tmp_path, "corpus")) == {"d1": "She.", "d2": "Titled He."}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "island"], "--identical-ids"),
        (["--corpus", "island/corpus.jsonl"], "--queries"),
        (["--data", "island", "--identical-ids", "keep", "--metric", "pearson"], "--metric"),
        (["--data", "island", "--identical-ids", "keep", "--similarity", "euclidean"], "cosine or dot"),
        (["--data", "island", "--identical-ids", "keep", "--whiten", "2"], "encoded in parts"),
        (["--tasks", "sample", "--metric", "recall_at_5"], "needs queries, but sample has pairs"),
    ],
)
def test_a_mistaken_run_ends_with_a_sentence(
    arguments: list[str], words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    done = CliRunner().invoke(app, ["run", "--encoder-module", "small_mteb_tasks:by_words", *arguments])
    assert isinstance(done.exception, sb.UserError), done.output
    assert words in str(done.exception)


def test_queries_without_relevant_documents_are_counted_and_three_tables_are_a_task(tmp_path: Path) -> None:
    qrels = {query: judged for query, judged in island.QRELS.items() if query != "d2"} | {"q1": {"d3": 0}}
    folder = island.write_beir(tmp_path / "island", qrels=qrels)
    data = load_retrieval(folder)
    assert data.notes == ("2 of 10 queries have no relevant document in test.tsv: left out.",)
    tables = {name: folder / f"{name}.jsonl" for name in ("corpus", "queries")}
    assert load_retrieval(**tables, qrels=folder / "qrels" / "test.tsv") == data
    assert data.notes[0] in sb.evaluate(island.by_words, data).notes


def test_runs_are_compared_ranked_planned_and_gated_by_query(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["by_letters", "by_words", "by_first_word"]
    modules = [part for name in names for part in ("--encoder-module", f"small_mteb_tasks:{name}")]
    runner = CliRunner()
    done = runner.invoke(app, ["run", *modules, "--data", "island", "--identical-ids", "drop"])
    assert done.exit_code == 0, done.output
    assert "of 12 documents" in done.stdout
    first_word, *runs = sorted(str(path) for path in Path("runs").iterdir())
    letters, words = (sb.load_run(path) for path in runs)
    require_recomputed(letters, words)
    (row,) = sb.compare(*runs).frame.to_dict("records")
    gains = 100 * (words.items["score"] - letters.items["score"]).to_numpy()
    assert row["difference"] == pytest.approx(gains.mean(), abs=1e-9)
    assert row["low"] < row["difference"] < row["high"]
    assert sb.rank(runs).rows["model"].tolist() == ["small_mteb_tasks:by_letters", "small_mteb_tasks:by_words"]
    for command in (["plan", *runs], ["compare", *runs, first_word]):
        assert runner.invoke(app, command).exit_code == 0
    explored = sb.explore([runs[1], first_word], data=["island"]).frame.set_index("item_id")
    assert explored.loc["q7", ["missed_a", "missed_b"]].tolist() == ["", f"d10: {island.CORPUS['d10']}"]
    assert explored["gain"].sum() == pytest.approx(100 * (0.28587 - 0.82823), abs=1e-3)
    assert sb.explore(runs[1], without_text=True).frame["missed_a"].tolist() == [*[""] * 9, "d2"]
    for margin, code in (("90", 0), ("0.1", 3)):
        assert runner.invoke(app, ["check", runs[1], "--baseline", runs[0], "--margin", margin]).exit_code == code
