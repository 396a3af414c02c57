"""The catalogue is complete, agrees with itself, and describes the files that everyone has."""

import pytest

from stsbench.base.words import plain_name
from stsbench.data.catalogue import (
    data_set,
    data_sets,
    paper_tasks,
    source,
    sources,
)
from stsbench.data.overview import verify
from stsbench.scoring.tasks import GROUPS

STS = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
TRANSFER = ["MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC", "MRPC", "SICK-E", "SNLI"]
ENTRIES = list(data_sets().values())
VARIANTS = [
    pytest.param(entry, variant, id=f"{entry.task}-{text}")
    for entry in ENTRIES
    for text, variant in entry.texts.items()
]


FAMILY = ["BIOSSES", "STS17", "STS22", "SemRel24", "JSTS", "KLUE-STS", "PAWS-X", "ATEC", "BQ", "LCQMC"]
FAMILY += ["CNSD-STS-B", "AFQMC"]


def test_every_benchmark_task_is_there():
    assert [entry.task for entry in ENTRIES if "sample" not in entry.task] == [*STS, *TRANSFER, *FAMILY]
    assert paper_tasks() == (*STS,)
    assert not set(FAMILY) & {task for group in GROUPS.values() for task in group}


@pytest.mark.parametrize(("entry", "variant"), VARIANTS)
def test_what_was_not_read_here_is_marked_and_says_what_was_seen(entry, variant):
    read_here = source(variant.source).of_default_tasks
    assert (variant.assurance == "verified") == read_here == (not variant.note)
    if variant.assurance == "unverified":
        assert "Unverified" in variant.note


@pytest.mark.shared
def test_hashes_and_line_counts_are_those_of_the_real_files(shared):
    table = verify([shared / "data"]).frame
    real = table[table["text"] != "sample"]
    assert real[real["status"] != "ok"].empty
    assert set(real["task"]) == {*STS, *TRANSFER}


def test_a_task_is_found_under_its_usual_names():
    names = ["STSBenchmark", "sts_b", "SICKRelatedness", "sickentailment", "sst-2"]
    assert [data_set(name).task for name in names] == ["STS-B", "STS-B", "SICK-R", "SICK-E", "SST2"]


def test_no_two_tasks_share_a_name():
    names = [{plain_name(name) for name in (entry.task, *entry.aliases)} for entry in ENTRIES]
    assert sum(map(len, names)) == len(set().union(*names))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.task)
def test_an_entry_is_complete(entry):
    """The readers rely on these fields of an entry."""
    assert (entry.gold_range is None, entry.classes is None) in {(False, True), (True, False)}
    assert (entry.kind == "sts") == (entry.gold_range is not None)
    for words in (entry.title, entry.licence, entry.citation, entry.documentation, entry.address):
        assert words.strip()
    for variant in entry.texts.values():
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
