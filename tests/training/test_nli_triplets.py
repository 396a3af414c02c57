"""Triplets pair each premise's entailed sentences with its contradicting ones."""

import csv

import pytest

import stsbench as sb
from stsbench.data.corpus import write_nli_triplets

ROWS = [
    ("p1", "e1", "entailment"),
    ("p1", "c1", "contradiction"),
    ("p2", "e2", "entailment"),
    ("p1", "n1", "neutral"),
    ("p1", "e3", "entailment"),
    ("p1", "c2", "contradiction"),
    ("p1", "c3", "contradiction"),
    ("p1", "e1", "entailment"),
    ("p3", "n3", "neutral"),
    ('p,4 "x"', "e4", "entailment"),
    ('p,4 "x"', "c4", "contradiction"),
]


@pytest.fixture
def folder(tmp_path):
    for place, name in enumerate(("s1", "s2", "labels")):
        (tmp_path / f"{name}.dev").write_text("".join(f"{row[place]}\n" for row in ROWS), encoding="utf-8")
    return tmp_path


def test_triplets_are_made_in_the_order_of_the_files(folder):
    counts = write_nli_triplets([folder], folder / "out.csv", "dev")
    with (folder / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = [tuple(row) for row in csv.reader(stream)]
    assert rows == [
        ("sent0", "sent1", "hard_neg"),
        ("p1", "e1", "c1"),
        ("p1", "e3", "c2"),
        ('p,4 "x"', "e4", "c4"),
    ]
    assert (counts.pairs, counts.premises, counts.triplets, counts.without) == (11, 4, 3, 2)


def test_training_reads_them(folder):
    from stsbench.data.corpus import read_rows

    write_nli_triplets([folder], folder / "out.csv", "dev")
    assert next(row for _, row in read_rows(folder / "out.csv", 3)) == ("p1", "e1", "c1")


def test_what_is_missing_or_broken_is_told(folder):
    with pytest.raises(sb.UserError, match=r"there is no .*s1.train: splits there: dev"):
        write_nli_triplets([folder], folder / "out.csv")
    (folder / "labels.dev").write_text("entailment\n" * 10 + "maybe\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match=r"labels.dev, line 11: 'maybe' is not a label"):
        write_nli_triplets([folder], folder / "out.csv", "dev")
    (folder / "labels.dev").write_text("entailment\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match="must match line by line"):
        write_nli_triplets([folder], folder / "out.csv", "dev")
    assert not (folder / "out.csv").exists()


@pytest.mark.shared
def test_snli_dev_gives_triplets(senteval, tmp_path):
    counts = write_nli_triplets([senteval / "downstream/SNLI"], tmp_path / "out.csv", "dev")
    assert counts.pairs == 9842
    assert counts.triplets + counts.without >= counts.premises
