"""Triples for probes: your own file is read, or refused with file and line."""

from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.data.triples import COLUMNS, Triple, load_triples

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


HEAD = "kind\tsentence\tparaphrase\tchanged\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", f"{HEAD}typo\tA hat.\t \tA bat.\n", r"line 2: paraphrase is empty; fill it in"),
        ("a.tsv", f"{HEAD}\tA hat.\tA cap.\tA bat.\n", r"line 2: kind is empty; fill it in"),
        ("a.tsv", f"{HEAD}typo\tA hat.\tA aht.\tA hat.\n", r"line 2: two sentences are the same text"),
        ("a.tsv", f"{HEAD}typo\tA hat.\n", r"line 2: expected 4 columns \(kind, sentence, paraphrase, "),
        ("a.tsv", HEAD, r"a\.tsv has no triples: give one per line, with the columns kind, sentence, paraphrase"),
        (
            "a.csv",
            "kind,sentence,paraphrase,other\na,b,c,d\n",
            r"has no column 'changed', only 'kind', 'sentence'",
        ),
        (
            "a.jsonl",
            '{"kind": "a", "sentence": 3, "paraphrase": "b", "changed": "c"}\n',
            "sentence is 3, not text",
        ),
    ],
)
def test_a_mistake_names_file_and_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message) as failure:
        load_triples(tmp_path / name)
    assert len(failure.value.args) == 1


def test_an_unknown_kind_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    mine = written(tmp_path / "mine.tsv", ROWS)
    with pytest.raises(UserError, match=r"mine\.tsv has no triples of the kind 'tence': did you mean tense\?"):
        load_triples(mine, ["tence"])
    with pytest.raises(UserError, match=r"there is no file .*none\.tsv: give bundled or a file of triples"):
        load_triples(tmp_path / "none.tsv")
