"""Catalogued files are read exactly, and a wrong file is named with its line."""

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts


def year_file(folder, kind, subset="MSRvid"):
    return folder / "downstream" / "STS" / "STS12-en-test" / f"STS.{kind}.{subset}.txt"


def expect(folder, message, task="STS12", **options):
    with pytest.raises(UserError, match=message):
        load_sts(task, data_dirs=[folder], **options)


def test_unscored_pairs_are_left_out_and_lines_keep_their_numbers(small_senteval):
    for kind in ("input", "gs"):
        path = year_file(small_senteval, kind)
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    data = load_sts("sts12", data_dirs=[small_senteval])
    video = data.pairs[data.pairs["subset"] == "MSRvid"]
    assert video["pair_id"].tolist() == ["MSRvid-1", "MSRvid-3"]
    assert video["gold"].tolist() == [4.5, 5.0]
    assert video["sentence2"].tolist() == ["the kettle whistles .", "it rained ."]


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
        ("input", b"a\tb\na\tb\tc\nc\td\n", r"\.txt, line 2: expected 2 tab-separated columns, found 3; fix"),
        ("input", b"a\tb\nc\td\ncaf\xe9\te\n", r"line 3: byte 0xe9 is not utf-8; save the file as utf-8\."),
        ("input", b"", r"STS\.input\.MSRvid\.txt is empty: get it again"),
        *(
            ("gs", b"4.5\n\n%s\n" % gold, "line 3: gold score '.*' is not a num")
            for gold in (b"four", b"nan", b"4,5")
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


def write(folder, name, text, encoding="utf-8"):
    path = folder / "downstream" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)


def test_only_the_coarse_class_of_trec_counts(tmp_path):
    write(tmp_path, "TREC/train_5500.label", "NUM:dist How far is it ?\n")
    write(tmp_path, "TREC/TREC_10.label", "LOC:city Where is caf\xe9 Sol : here ?\n", "latin-1")
    items = load_labelled("TREC", [tmp_path]).items
    assert items["label"].tolist() == ["NUM", "LOC"]
    assert items["sentence1"].tolist() == ["How far is it ?", "Where is café Sol : here ?"]


TREC = {"train_5500.label": "NUM:dist How far ?\nWHY:x Why ?\n", "TREC_10.label": "LOC:city Where ?\n"}
LINES = {"s1": 2, "s2": 2, "labels": 3}
SNLI = {f"{name}.{split}": "neutral\n" * LINES[name] for name in LINES for split in ("dev", "test")}


@pytest.mark.parametrize(
    ("task", "files", "message"),
    [
        ("TREC", TREC, r"train_5500\.label, line 2: 'WHY' is not a label of this task \(ABBR, DESC"),
        ("SNLI", SNLI, r"s1\.dev has 2 lines but .*labels\.dev has 3"),
        ("STS-B", {}, r"STS-B has similarity scores, not labels: choose one of MR, CR, "),
    ],
)
def test_a_broken_labelled_file_is_named_with_its_line(tmp_path, task, files, message):
    for name, text in files.items():
        write(tmp_path, f"{task}/{name}", text)
    with pytest.raises(UserError, match=message):
        load_labelled(task, [tmp_path])
