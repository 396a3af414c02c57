"""Labelled data is read as SentEval reads it, and a wrong file is named with its line."""

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled

TOKENS_BY_SENTEVAL = {
    # How SentEval's own loaders take a line of these files apart.
    "MR": ("MR/rt-polarity.pos", "latin-1", lambda line: line.split()),
    "SST2": ("SST/binary/sentiment-train", "utf-8", lambda line: line.strip().split("\t")[0].split()),
    "SST5": ("SST/fine/sentiment-train", "utf-8", lambda line: line.strip().split(" ", 1)[1].split()),
    "TREC": (
        "TREC/train_5500.label",
        "latin-1",
        lambda line: line.strip().split(":", 1)[1].split(" ", 1)[1].split(),
    ),
}


def write(folder, name, text, encoding="utf-8"):
    path = folder / "downstream" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)


@pytest.mark.shared
@pytest.mark.parametrize("task", TOKENS_BY_SENTEVAL)
def test_sentences_have_the_tokens_that_senteval_reads(senteval, task):
    name, encoding, tokens = TOKENS_BY_SENTEVAL[task]
    lines = (senteval / "downstream" / name).read_bytes().decode(encoding).split("\n")[:-1]
    ours = load_labelled(task, [senteval]).items["sentence1"][: len(lines)]
    assert [text.split() for text in ours] == [tokens(line) for line in lines]


def test_objective_sentences_are_class_one_and_come_first(tmp_path):
    write(tmp_path, "SUBJ/subj.objective", "the bus leaves at six .\n")
    write(tmp_path, "SUBJ/subj.subjective", "a dreary bus ride .\nlovely .\n")
    data = load_labelled("subj", [tmp_path])
    assert data.items.drop(columns="sentence2").values.tolist() == [
        ["all", "1-1", 1, "the bus leaves at six ."],
        ["all", "0-1", 0, "a dreary bus ride ."],
        ["all", "0-2", 0, "lovely ."],
    ]
    assert data.status == "modified"
    assert "SUBJ all: expected 5000 items, found 1." in data.problems


def test_only_the_coarse_class_of_trec_counts(tmp_path):
    write(tmp_path, "TREC/train_5500.label", "NUM:dist How far is it ?\n")
    write(tmp_path, "TREC/TREC_10.label", "LOC:city Where is caf\xe9 Sol : here ?\n", "latin-1")
    items = load_labelled("TREC", [tmp_path]).items
    assert items["label"].tolist() == ["NUM", "LOC"]
    assert items["sentence1"].tolist() == ["How far is it ?", "Where is café Sol : here ?"]


@pytest.mark.parametrize(
    ("task", "files", "message"),
    [
        (
            "TREC",
            {"train_5500.label": "NUM:dist How far ?\nWHY:x Why ?\n", "TREC_10.label": "LOC:city Where ?\n"},
            r"train_5500\.label, line 2: 'WHY' is not a label of this task \(ABBR, DESC",
        ),
        (
            "SNLI",
            {
                f"{name}.{split}": "neutral\n" * lines
                for name, lines in {"s1": 2, "s2": 2, "labels": 3}.items()
                for split in ("dev", "test")
            },
            r"s1\.dev has 2 lines but .*labels\.dev has 3",
        ),
        ("STS-B", {}, r"STS-B has similarity scores, not labels: choose one of MR, CR, "),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path, task, files, message):
    for name, text in files.items():
        write(tmp_path, f"{task}/{name}", text)
    with pytest.raises(UserError, match=message):
        load_labelled(task, [tmp_path])
