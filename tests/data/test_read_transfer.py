"""Labelled data is read as SentEval reads it, and a wrong file is named with its line."""

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled

COLUMNS = ["split", "item_id", "label", "sentence1", "sentence2"]
LABELS = {
    "MR": {1: 5331, 0: 5331},
    "CR": {1: 2407, 0: 1368},
    "SUBJ": {1: 5000, 0: 5000},
    "MPQA": {1: 3312, 0: 7294},
    "SST2": {1: 38922, 0: 31120},
    "SST5": {0: 1510, 1: 3140, 2: 2242, 3: 3111, 4: 1852},
    "TREC": {"ABBR": 95, "DESC": 1300, "ENTY": 1344, "HUM": 1288, "LOC": 916, "NUM": 1009},
    "MRPC": {1: 3900, 0: 1901},
    "SICK-E": {"CONTRADICTION": 1459, "NEUTRAL": 5611, "ENTAILMENT": 2857},
    "SNLI": {"entailment": 6697, "neutral": 6454, "contradiction": 6515},
}
PAIRED = {"MRPC", "SICK-E", "SNLI"}
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
@pytest.mark.parametrize("task", LABELS)
def test_a_task_has_the_known_items_and_labels(senteval, task):
    data = load_labelled(task, [senteval])
    assert (data.status, data.problems) == ("verified", ())
    assert list(data.items.columns) == COLUMNS
    assert data.items["label"].value_counts().to_dict() == LABELS[task]
    assert list(data.classes) == list(sorted(LABELS[task]) if isinstance(data.classes[0], int) else LABELS[task])
    assert data.items["item_id"].is_unique
    assert data.items["sentence2"].notna().all() == (task in PAIRED)
    assert data.items["sentence2"].isna().all() == (task not in PAIRED)


@pytest.mark.shared
@pytest.mark.parametrize("task", TOKENS_BY_SENTEVAL)
def test_sentences_have_the_tokens_that_senteval_reads(senteval, task):
    name, encoding, tokens = TOKENS_BY_SENTEVAL[task]
    lines = (senteval / "downstream" / name).read_bytes().decode(encoding).split("\n")[:-1]
    ours = load_labelled(task, [senteval]).items["sentence1"][: len(lines)]
    assert [text.split() for text in ours] == [tokens(line) for line in lines]


@pytest.mark.shared
def test_the_few_empty_sentences_are_kept(senteval):
    empty = {
        task: int((load_labelled(task, [senteval]).items["sentence1"] == "").sum())
        for task in ("MR", "CR", "SUBJ", "MPQA")
    }
    assert empty == {"MR": 0, "CR": 4, "SUBJ": 0, "MPQA": 3}


@pytest.mark.shared
def test_mrpc_is_read_without_its_header_and_mark(senteval):
    items = load_labelled("MRPC", [senteval]).items
    assert items["split"].value_counts().to_dict() == {"train": 4076, "test": 1725}
    assert not items["sentence1"].str.contains("\ufeff|#1 String").any()


@pytest.mark.shared
def test_a_byte_beyond_ascii_in_trec_is_read_as_latin1(senteval):
    items = load_labelled("TREC", [senteval]).items
    (strange,) = items.loc[~items["sentence1"].map(str.isascii), "item_id"]
    assert strange == "train-66"


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


def test_a_label_that_the_task_does_not_have_is_named(tmp_path):
    write(tmp_path, "TREC/train_5500.label", "NUM:dist How far is it ?\nWHY:x Why ?\n")
    write(tmp_path, "TREC/TREC_10.label", "LOC:city Where ?\n")
    with pytest.raises(
        UserError, match=r"train_5500\.label, line 2: 'WHY' is not a label of this task \(ABBR, DESC"
    ):
        load_labelled("TREC", [tmp_path])


def test_parallel_files_of_unequal_length_are_named(tmp_path):
    for name, lines in {"s1": 2, "s2": 2, "labels": 3}.items():
        for split in ("dev", "test"):
            write(tmp_path, f"SNLI/{name}.{split}", "neutral\n" * lines)
    with pytest.raises(UserError, match=r"s1\.dev has 2 lines but .*labels\.dev has 3"):
        load_labelled("SNLI", [tmp_path])


def test_a_row_with_a_wrong_number_of_columns_is_named(tmp_path):
    for split in ("train", "test"):
        write(tmp_path, f"MRPC/msr_paraphrase_{split}.txt", "Quality\ta\tb\tc\td\n1\t2\t3\tan owl\n")
    with pytest.raises(
        UserError, match=r"msr_paraphrase_train\.txt, line 2: expected 5 tab-separated columns, found 4"
    ):
        load_labelled("MRPC", [tmp_path])


def test_a_task_with_scores_is_refused():
    with pytest.raises(UserError, match=r"STS-B has similarity scores, not labels: choose one of MR, CR, "):
        load_labelled("STS-B")
