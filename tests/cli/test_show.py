"""`stsbench show` and `stsbench cite`: records again."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

Stsbench = Callable[..., Any]


@pytest.fixture
def runs(stsbench: Stsbench, on_sample: Callable[..., None]) -> Stsbench:
    """Measure two functions on the sample, and one of them by another metric."""
    on_sample("a", "words")
    on_sample("b", "letters")
    on_sample("c", "letters", "--metric", "pearson")
    return stsbench


def test_a_record_is_printed_as_it_was_when_it_was_measured(stsbench: Stsbench) -> None:
    measured = stsbench("run", "-m", "toys:words", "--tasks", "sample", "--out", "a")
    shown = stsbench("show", "a")
    assert shown.code == 0
    assert shown.out == measured.out
    assert stsbench("show", "a/run.json").out == shown.out
    assert "note: toys:words is a callable" in shown.err


def test_several_records_stand_side_by_side(runs: Stsbench) -> None:
    done = runs("show", "a", "b", "--markdown")
    assert [line.split(" | ")[0] for line in done.out.splitlines()[2:]] == ["| toys:words", "| toys:letters"]
    subsets = runs("show", "a", "b", "--subsets", "--quiet").out
    assert re.search(r"^task +subset +metric +items +toys:words +toys:letters$", subsets, re.MULTILINE)
    assert re.search(r"^sample +everyday +spearman +36 ", subsets, re.MULTILINE)


def test_records_that_do_not_compare_are_refused_by_the_field(runs: Stsbench) -> None:
    done = runs("show", "a", "c")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "stsbench: toys:words and toys:letters do not compare on sample: metric is spearman in one and pearson in "
        "the other: show them one by one.\n"
    )


def test_json_is_the_record_or_a_list_of_them(runs: Stsbench) -> None:
    assert sb.RunRecord.model_validate_json(runs("show", "a", "--json").out) == sb.load_run("a")
    assert [entry["model"]["name"] for entry in json.loads(runs("show", "a", "b", "--json").out)] == [
        "toys:words",
        "toys:letters",
    ]


def test_csv_holds_all_models(runs: Stsbench) -> None:
    lines = runs("show", "a", "b", "--csv").out.splitlines()
    assert lines[0].startswith("model,task,subset,metric,items,score,low,high,signature")
    assert len(lines) == 1 + 2 * 8


def test_the_pair_table_is_not_needed_to_show(runs: Stsbench) -> None:
    Path("a/items.parquet").unlink()
    assert runs("show", "a").code == 0


def test_a_record_that_is_not_there_or_damaged_is_told_in_a_sentence(runs: Stsbench) -> None:
    assert runs("show", "nowhere").err.startswith("stsbench: no run record at nowhere")
    Path("a/run.json").write_text("{", encoding="utf-8")
    done = runs("show", "b", "a")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("stsbench: a/run.json is not valid JSON")


def test_citations_are_bibtex_with_comments(stsbench: Stsbench, sts13: Path, pairs_file: Path) -> None:
    stsbench("run", "-m", "toys:words", "--tasks", "STS13", "--data-dir", sts13, "--out", "a")
    stsbench("run", "-m", "toys:words", "--data", pairs_file, "--out", "b")
    done = stsbench("cite", "a", "b")
    assert done.code == 0
    entries = re.findall(r"^@(\w+)\{([^,]+),$", done.out, re.MULTILINE)
    assert entries == [("inproceedings", "agirre-etal-2013-sem")]
    assert done.out.count("{") == done.out.count("}")
    assert "% toys:words: not known here: see its model card." in done.out.splitlines()
    assert "% pairs: a file of your own." in done.out.splitlines()
    outside = re.sub(r"^@.*?^\}", "", done.out, flags=re.MULTILINE | re.DOTALL)
    assert all(line.startswith("%") for line in outside.splitlines() if line)
    assert set(json.loads(stsbench("cite", "a", "b", "--json").out)) == {"toys:words", "STS13", "pairs"}


def test_how_to_load_a_model_is_refused_where_only_records_are_named(runs: Stsbench) -> None:
    done = runs("geometry", "a", "--pooling", "cls")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("stsbench: --pooling is for models that are to be loaded")
    assert len(done.err.splitlines()) == 1
