"""Tables of triples and of judgements, and runs: read, or refused with file and line."""

import gzip
from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.data.corpus import COLUMNS, Triple, load_triples
from stsbench.data.qrels import read_qrels, read_run

ROWS = [
    ("tense", "It rains.", "Rain falls.", "It rained."),
    ("typo", "A cat.", "A cta.", "A car."),
    ("tense", "It snows.", "Snow falls.", "It snowed."),
]


def written(path: Path, rows: list[tuple[str, ...]], header: bool = True) -> Path:
    lines = ["\t".join(row) for row in ([COLUMNS] if header else []) + rows]
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


def test_your_file_is_read_with_and_without_a_header_and_grouped_by_kind(tmp_path: Path) -> None:
    named = load_triples(written(tmp_path / "mine.tsv", ROWS))
    assert (named.name, named.notes) == ("mine.tsv", ())
    assert named.rows == tuple(Triple(*ROWS[place]) for place in (0, 2, 1))
    bare = load_triples(written(tmp_path / "bare.tsv", ROWS, header=False))
    assert bare.rows == named.rows
    assert "bare.tsv has no header" in bare.notes[0]
    (tmp_path / "turned.csv").write_text(
        'Changed,note,Sentence,kind,PARAPHRASE\n"It rained.",x,It rains.,tense,Rain falls.\n', encoding="utf-8"
    )
    assert load_triples(tmp_path / "turned.csv").rows == named.rows[:1]
    kinds = [row.kind for row in load_triples(tmp_path / "mine.tsv", ["typo", "tense"]).rows]
    assert kinds == ["typo", "tense", "tense"]
    with pytest.raises(UserError, match=r"mine\.tsv .*'tence': did you mean tense"):
        load_triples(tmp_path / "mine.tsv", ["tence"])
    with pytest.raises(UserError, match=r"no file .*none\.tsv: give bundled"):
        load_triples(tmp_path / "none.tsv")


HEAD = "kind\tsentence\tparaphrase\tchanged\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", f"{HEAD}typo\tA hat.\t \tA bat.\n", r"line 2: paraphrase is empty; fill it in"),
        ("a.tsv", f"{HEAD}\tA hat.\tA cap.\tA bat.\n", r"line 2: kind is empty; fill it in"),
        ("a.tsv", f"{HEAD}typo\tA hat.\tA aht.\tA hat.\n", r"line 2: two sentences are the same text"),
        ("a.tsv", HEAD, r"a\.tsv has no triples: give one per line, with the columns kind, sentence, paraphrase"),
    ],
)
def test_a_mistake_names_file_and_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message) as failure:
        load_triples(tmp_path / name)
    assert len(failure.value.args) == 1


QRELS = {"q1": {"d1": 1, "d2": 0}, "2": {"d1": 2}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n2\td1\t2\n"),
        ("test.csv", "qid,docid,relevance\nq1,d1,1\nq1,d2,0\n2,d1,2.0\n"),
        ("dev.tsv", "q1\t0\td1\t1\nq1\t0\td2\t0\n2\t0\td1\t2\n"),
        ("test.jsonl", '{"query-id": "q1", "corpus-id": "d1", "score": 1}\n{"query-id": "q1", "corpus-id": "d2", '
         '"score": 0}\n{"query-id": 2, "corpus-id": "d1", "score": 2}\n'),
        ("robust.qrels", "q1 0 d1 1\nq1 0 d2 0\n\n2 0 d1 2\n2 0 d1 2\n"),
        ("qrels", "q1 0 d1 1\nq1\t0\td2   0\n2 0 d1 2\n"),
        ("test.qrels.gz", "q1 0 d1 1\nq1 0 d2 0\n2 0 d1 2\n"),
    ],
)  # fmt: skip
def test_qrels_are_the_same_however_they_are_written(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert read_qrels(tmp_path / name) == QRELS


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.qrels", "q1 0 d1 1\nq1 0 d1 0\n", "line 2: document 'd1' has two scores for query 'q1', 1 and 0"),
        ("a.qrels", "q1 0 d1\n", r"line 1: expected 4 columns \(query-id, iteration, .*, found 3"),
        ("a.qrels", "q1 0 d1 0.5\n", "line 1: score '0.5' is not a whole number"),
        ("a.qrels", "\n", "has no judgements: give one per line"),
        ("a.csv", "qid,docid,score\n,d,1\n", "line 2: qid is ''; give a name or a whole number"),
    ],
)
def test_what_is_no_qrels_is_told_with_its_line(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        read_qrels(tmp_path / name)


def test_a_run_has_its_scores_and_its_tag(tmp_path: Path) -> None:
    path = tmp_path / "bm25.run"
    path.write_text("q1 Q0 d1 1 12.5 bm25\nq1 Q0 d2 2 -3e-1 bm25\n", encoding="utf-8")
    assert read_run(path) == ({"q1": {"d1": 12.5, "d2": -0.3}}, "bm25")
    for text, sentence in (
        ("q1 Q0 d1 1 high bm25\n", "line 1: score 'high' is not a finite number"),
        ("q1 Q0 d1 1 1 bm25\nq1 Q0 d1 2 0.5 bm25\n", "line 2: document 'd1' has two scores"),
        ("q1 Q0 d1 1 1 bm25\nq2 Q0 d1 2 0.5 dense\n", r"runs of several systems \(bm25, dense\)"),
        ("", "is empty"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=sentence):
            read_run(path)
