"""The tables say what there is, where it was found, and what differs from the catalogue."""

import pytest

from stsbench.base.errors import UserError
from stsbench.data.overview import list_data, verify


def row(table, **values):
    for column, value in values.items():
        table = table[table[column] == value]
    (only,) = table.to_dict("records")
    return only


def test_the_catalogue_lists_every_task_and_text():
    table = list_data().frame
    stsb = row(table, task="STS-B", text="raw")
    assert (stsb["splits"], stsb["source"]) == ("train 5749, dev 1500, test 1379", "sts-raw")
    assert row(table, task="STS13", text="senteval")["subsets"] == "FNWN 189, headlines 750, OnWN 561"
    assert row(table, task="MR")["splits"] == "all 10662"
    assert row(table, task="sample")["found"].endswith("sample")
    assert table["licence"].str.len().gt(0).all()


def test_verifying_names_the_files_that_are_missing_or_differ_and_the_remedy(small_senteval):
    result = verify([small_senteval])
    assert not result.is_whole
    video = row(result.frame, text="senteval", file="STS/STS12-en-test/STS.gs.MSRvid.txt")
    assert (video["status"], video["expected_lines"], video["found_lines"]) == ("modified", 750, 3)
    assert video["found_sha256"] != video["expected_sha256"]
    assert video["folder"] == str(small_senteval / "downstream")
    absent = row(result.frame, file="MR/rt-polarity.pos")
    assert (absent["status"], absent["found_sha256"], absent["folder"]) == ("missing", "", "")
    assert set(result.frame.loc[result.frame["text"] == "sample", "status"]) == {"ok"}
    assert set(result.table()[0].frame["status"]) == {"modified"}
    senteval, raw = result.advice()
    first = small_senteval / "downstream/STS/STS12-en-test/STS.input.MSRpar.txt"
    assert senteval.startswith(f"senteval: 78 of 78 files are not the catalogued ones, the first is {first} (mod")
    assert "run `stsbench data get senteval`" in senteval
    assert raw.startswith("sts-raw: 51 of 51 files")


def test_sources_and_tasks_can_be_verified_alone_and_misspelt_ones_are_suggested(small_senteval):
    assert verify(what=["sample"]).is_whole
    assert verify(what=["sample"]).advice() == []
    rows = verify([small_senteval], what=["sts12"]).frame
    assert set(rows["task"]) == {"STS12"}
    assert set(rows["source"]) == {"senteval", "sts-raw"}
    with pytest.raises(UserError, match=r"no task or source 'sentevl' to verify: did you mean senteval\?"):
        verify(what=["sentevl"])


def test_readers_are_shown_whether_a_task_is_here(small_senteval):
    (table,) = list_data([small_senteval]).table()
    assert list(table.frame.columns) == ["task", "text", "kind", "splits", "files", "here"]
    assert row(table.frame, task="STS12", text="senteval")["here"] == "yes"
    full = list_data([small_senteval]).frame
    assert row(full, task="STS12", text="senteval")["found"] == str(small_senteval / "downstream")
    assert row(full, task="STS13", text="senteval")["found"] == ""
    assert verify().table() == ()
