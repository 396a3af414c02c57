"""The catalogue is complete, agrees with itself, and describes the files that everyone has."""

import pytest
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.words import plain_name
from stsbench.data.catalogue import (
    DataSet,
    data_set,
    data_sets,
    paper_tasks,
    source,
    sources,
    text_variant,
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


FAMILY = {
    "BIOSSES": {"raw": 100},
    "STS17": {"raw": 5346},
    "STS22": {"raw": 4028, "v2": 3958},
    "SemRel24": {"raw": 7498},
    "JSTS": {"raw": 1457},
    "KLUE-STS": {"raw": 519},
    "PAWS-X": {**dict.fromkeys(["zh", "de", "en", "es", "fr", "ja", "ko"], 4000), "senteval-cn": 53401},
    "ATEC": {"raw": 102477},
    "BQ": {"raw": 120000},
    "LCQMC": {"raw": 260068},
    "CNSD-STS-B": {"raw": 8050},
    "AFQMC": {"raw": 38650},
}


def test_every_benchmark_task_is_there():
    assert [entry.task for entry in ENTRIES if "sample" not in entry.task] == [*STS, *TRANSFER, *FAMILY]
    assert paper_tasks() == (*STS,)


@pytest.mark.parametrize(("task", "totals"), FAMILY.items())
def test_a_set_of_the_family_has_as_many_pairs_as_its_source_says(task, totals):
    texts = data_set(task).texts
    assert {text: sum(part.count for part in variant.parts) for text, variant in texts.items()} == totals


@pytest.mark.parametrize(("entry", "variant"), VARIANTS)
def test_what_was_not_read_here_is_marked_and_says_what_was_seen(entry, variant):
    read_here = source(variant.source).of_default_tasks
    assert (variant.assurance == "verified") == read_here == (not variant.note)
    if variant.assurance == "unverified":
        assert "Unverified" in variant.note


def test_the_sets_outside_the_default_groups_are_in_none_of_them():
    assert not set(FAMILY) & {task for group in GROUPS.values() for task in group}


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


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: data_set("STS21"), r"there is no task 'STS21': did you mean STS1\d\?"),
        (lambda: data_set("glue"), r"there is no task 'glue': choose one of STS12, STS13, "),
        (lambda: source("ftp"), r"there is no data source 'ftp': choose one of senteval, sts-raw, "),
        (lambda: text_variant(data_set("MR"), "raw"), r"MR has no text 'raw': choose one of senteval\."),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(ask, message):
    with pytest.raises(UserError, match=message):
        ask()


def test_an_unknown_key_in_an_entry_is_refused():
    fields = data_set("STS12").model_dump()
    DataSet.model_validate(fields)
    with pytest.raises(ValidationError, match="license"):
        DataSet.model_validate(fields | {"license": "misspelt"})


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
