"""The catalogue agrees with itself and with the real files; `list` and `verify` show it."""

import pytest

from stsbench.base.errors import UserError
from stsbench.base.words import plain_name
from stsbench.data.catalogue import data_set, data_sets, paper_tasks, source, sources
from stsbench.data.describe import list_data, verify
from stsbench.scoring.tasks import GROUPS

STS = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
TRANSFER = ["MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC", "MRPC", "SICK-E", "SNLI"]
ENTRIES = list(data_sets().values())


def test_every_benchmark_task_is_there():
    tasks = [entry.task for entry in ENTRIES if "sample" not in entry.task]
    assert tasks[:17] == [*STS, *TRANSFER]
    assert paper_tasks() == (*STS,)
    assert not {*tasks[17:]} & {task for group in GROUPS.values() for task in group}


@pytest.mark.shared
def test_hashes_and_line_counts_are_those_of_the_real_files(shared):
    table = verify([shared / "data"]).frame
    real = table[table["text"] != "sample"]
    assert real[real["status"] != "ok"].empty
    assert set(real["task"]) == {*STS, *TRANSFER}


def test_no_two_tasks_share_a_name():
    names = [{plain_name(name) for name in (entry.task, *entry.aliases)} for entry in ENTRIES]
    assert sum(map(len, names)) == len(set().union(*names))
    usual = ["STSBenchmark", "sts_b", "SICKRelatedness", "sickentailment", "sst-2"]
    assert [data_set(name).task for name in usual] == ["STS-B", "STS-B", "SICK-R", "SICK-E", "SST2"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.task)
def test_an_entry_is_complete(entry):
    """The readers rely on these fields of an entry."""
    assert (entry.gold_range is None, entry.classes is None) in {(False, True), (True, False)}
    assert (entry.kind == "sts") == (entry.gold_range is not None)
    for words in (entry.title, entry.licence, entry.citation, entry.documentation, entry.address):
        assert words.strip()
    for variant in entry.texts.values():
        read_here = source(variant.source).of_default_tasks
        assert (variant.assurance == "verified") == read_here == (not variant.note)
        assert variant.assurance != "unverified" or "Unverified" in variant.note
        assert bool(variant.widths) == (variant.layout in {"table", "pairs-and-gold"})
        assert bool(variant.format) == (variant.layout == "named")
        columns = variant.columns
        if variant.layout in {"table", "named"}:
            assert (columns.pair is None) == (columns.sentence1 is not None)
            assert columns.value is not None or columns.raters
        assert variant.layout != "pairs-and-gold" or all(part.subset for part in variant.parts)
        assert variant.source in sources()
        paths = [(file.path, *part.only.values()) for part in variant.parts for file in part.files]
        assert len(paths) == len(set(paths))
        for part in variant.parts:
            for file in part.files:
                assert file.lines is None or part.count + variant.header <= file.lines
                assert not file.path.startswith(("/", ".."))


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
    video = row(result.frame, text="senteval", file="STS/STS12-en-test/STS.gs.MSRvid.txt")
    assert (video["status"], video["expected_lines"], video["found_lines"]) == ("modified", 750, 3)
    assert video["found_sha256"] != video["expected_sha256"]
    assert video["folder"] == str(small_senteval / "downstream")
    absent = row(result.frame, file="MR/rt-polarity.pos")
    assert (absent["status"], absent["found_sha256"], absent["folder"]) == ("missing", "", "")
    assert set(result.frame.loc[result.frame["text"] == "sample", "status"]) == {"ok"}
    assert set(result.table()[0].frame["status"]) == {"modified"}
    senteval, raw = result.advice
    assert senteval.startswith("senteval: 78 of 78 files are not the catalogued ones, the first is ")
    assert raw.startswith("sts-raw: 51 of 51 files")
    (table,) = list_data([small_senteval]).table()
    assert [row(table.frame, task=task, text="senteval")["here"] for task in ("STS12", "STS13")] == ["yes", "no"]


def test_sources_and_tasks_can_be_verified_alone_and_misspelt_ones_are_suggested(small_senteval):
    assert verify(what=["sample"]).advice == ()
    rows = verify([small_senteval], what=["sts12"]).frame
    assert set(rows["task"]) == {"STS12"}
    assert set(rows["source"]) == {"senteval", "sts-raw"}
    with pytest.raises(UserError, match=r"'sentevl' .*did you mean senteval"):
        verify(what=["sentevl"])
