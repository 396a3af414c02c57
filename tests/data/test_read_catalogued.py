"""Catalogued files are read exactly, and a wrong file is named with its line."""

import pandas as pd
import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts


def year_file(folder, kind, subset="MSRvid"):
    return folder / "downstream" / "STS" / "STS12-en-test" / f"STS.{kind}.{subset}.txt"


def expect(folder, message, task="STS12", **options):
    with pytest.raises(UserError, match=message):
        load_sts(task, data_dirs=[folder], **options)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("task", "sizes"),
    [("STS-B", {"train": 5749, "dev": 1500, "test": 1379}), ("SICK-R", {"train": 4500, "dev": 500, "test": 4927})],
)
def test_all_is_train_dev_and_test_in_this_order(shared, task, sizes):
    whole = load_sts(task, "all", data_dirs=[shared / "data"])
    assert whole.split == "all"
    assert whole.pairs.groupby("split", sort=False).size().to_dict() == sizes
    parts = [load_sts(task, split, data_dirs=[shared / "data"]) for split in sizes]
    pd.testing.assert_frame_equal(pd.concat([part.pairs for part in parts], ignore_index=True), whole.pairs)
    assert whole.files == tuple(file for part in parts for file in part.files)
    assert len({whole.sha256, *(part.sha256 for part in parts)}) == 4


@pytest.mark.shared
def test_sentences_are_the_files_own_text(senteval):
    lines = (senteval / "downstream/STS/STSBenchmark/sts-test.csv").read_bytes().split(b"\n")
    data = load_sts("stsb", data_dirs=[senteval])
    for row, line in zip(data.pairs.itertuples(), lines, strict=False):
        cells = line.decode().split("\t")
        assert (row.gold, row.sentence1, row.sentence2) == (float(cells[4]), cells[5].strip(), cells[6].strip())


def test_unscored_pairs_are_left_out_and_lines_keep_their_numbers(small_senteval):
    for kind in ("input", "gs"):
        path = year_file(small_senteval, kind)
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    data = load_sts("sts12", data_dirs=[small_senteval])
    video = data.pairs[data.pairs["subset"] == "MSRvid"]
    assert video["pair_id"].tolist() == ["MSRvid-1", "MSRvid-3"]
    assert video["gold"].tolist() == [4.5, 5.0]
    assert video["sentence2"].tolist() == ["the kettle whistles .", "it rained ."]


def test_characters_that_look_like_line_ends_stay_inside_a_sentence(small_senteval):
    odd = 'one\u2028two\x85three\x0bfour "five"'
    year_file(small_senteval, "input").write_text(f"{odd}\tsix\n" * 3, encoding="utf-8")
    pairs = load_sts("STS12", data_dirs=[small_senteval]).pairs
    assert set(pairs[pairs["subset"] == "MSRvid"]["sentence1"]) == {odd}


def test_a_file_with_other_counts_is_reported_with_both(small_senteval):
    data = load_sts("STS12", data_dirs=[small_senteval])
    assert data.status == "modified"
    assert (
        f"{year_file(small_senteval, 'gs')} is not the catalogued file: expected 750 lines, found 3."
        in data.problems
    )
    assert "STS12 MSRvid test: expected 750 items, found 2." in data.problems
    assert len(data.files) == 10
    assert all(file.sha256 != file.expected for file in data.files)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("gs", b"4.5\n\n", r"STS\.input\.MSRvid\.txt has 3 lines but .*STS\.gs\.MSRvid\.txt has 2"),
        ("gs", None, r"STS12 is incomplete in .*STS\.gs\.MSRvid\.txt is missing; put it there"),
        (
            "input",
            b"a\tb\na\tb\tc\nc\td\n",
            r"MSRvid\.txt, line 2: expected 2 tab-separated columns, found 3; fix",
        ),
        ("input", b"a\tb\nc\td\ncaf\xe9\te\n", r"line 3: byte 0xe9 is not utf-8; save the file as utf-8\."),
        ("input", b"", r"STS\.input\.MSRvid\.txt is empty: get it again"),
        *(
            (
                "gs",
                f"4.5\n\n{gold}\n".encode(),
                rf"gs\.MSRvid\.txt, line 3: gold score '{gold}' is not a number; fix",
            )
            for gold in ("four", "nan", "4,5")
        ),
        ("gs", b"4.5\n\n7\n", r"gs\.MSRvid\.txt, line 3: gold score 7 is not on the scale of STS12, 0 to 5"),
    ],
)
def test_a_broken_file_is_named_with_its_line(small_senteval, kind, content, message):
    path = year_file(small_senteval, kind)
    path.unlink() if content is None else path.write_bytes(content)
    expect(small_senteval, message)


def test_raw_rows_may_carry_notes_behind_the_sentences(tmp_path):
    (tmp_path / "STSBenchmark").mkdir()
    row = "main-forums\tsome\t2016\t0001\t3.5\tAn owl naps.\tAn owl sleeps."
    (tmp_path / "STSBenchmark" / "sts-test.csv").write_text(f"{row}\n{row}\tnote\tnote\n")
    pairs = load_sts("STS-B", text="raw", data_dirs=[tmp_path]).pairs
    assert pairs["sentence2"].tolist() == ["An owl sleeps."] * 2
    assert pairs["pair_id"].tolist() == ["test-1", "test-2"]
    assert set(pairs["subset"]) == {"STS-B"}
    (tmp_path / "STSBenchmark" / "sts-test.csv").write_text(f"{row}\tnote\n")
    expect(tmp_path, r"sts-test\.csv, line 1: expected 7 or 9 tab-separated columns, found 8", "STS-B", text="raw")


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
def test_a_broken_labelled_file_is_named_with_its_line(tmp_path, task, files, message):
    for name, text in files.items():
        write(tmp_path, f"{task}/{name}", text)
    with pytest.raises(UserError, match=message):
        load_labelled(task, [tmp_path])
