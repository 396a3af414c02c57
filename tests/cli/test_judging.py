"""`show`, `compare`, `rank`, `plan`, `best-of` and `check`: output, formats and exit codes."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.published.catalogue import row

Stsbench = Callable[..., Any]
ROW = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"
ROW_OF_MINILM = ("--against", "all-minilm-l6-v2")


@pytest.fixture
def runs(stsbench: Stsbench, on_sample: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Stsbench:
    """Measure two functions on the sample, and one of them by another metric."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    on_sample("a", "words")
    on_sample("b", "letters")
    on_sample("c", "letters", "--metric", "pearson")
    return stsbench


@pytest.mark.parametrize(
    ("line", "code", "keys"),
    [
        ("show a --json", 0, {"scores", "model", "protocol"}),
        ("compare a b --json", 0, {"a", "b", "rows", "sentence", "notes"}),
        ("rank a b --draws 100 --json", 0, {"simultaneous"}),
        ("plan a b --difference 20 --seed-spread 5 --json", 0, {"difference"}),
        ("best-of a b --number 50 --json", 0, {"number"}),
        ("check a --baseline b --margin 100 --json", 0, {"verdict", "cells", "against"}),
    ],
)
def test_json_is_one_document_and_csv_has_rows(runs: Stsbench, line: str, code: int, keys: set[str]) -> None:
    done = runs(*line.split())
    assert done.code == code, done.err
    assert keys <= set(json.loads(done.out))
    assert runs(*line.replace("--json", "--format json").split()).out == done.out
    rows = runs(*line.replace("--json", "--csv").split()).out.splitlines()
    assert len(rows) > 1
    assert "," in rows[0]
    for style, start in (("--markdown", "|"), ("--latex", r"\begin{tabular}")):
        assert runs(*line.replace("--json", style).split()).out.startswith(start)


def test_show_prints_what_run_printed(stsbench: Stsbench) -> None:
    measured = stsbench("run", "-m", "toys:words", "--tasks", "sample", "--out", "a")
    shown = stsbench("show", "a")
    assert (shown.code, shown.out) == (0, measured.out)
    assert "note: toys:words is a callable" in shown.err
    assert sb.RunRecord.model_validate_json(stsbench("show", "a", "--json").out) == sb.load_run("a")
    Path("a/items.parquet").unlink()
    assert stsbench("show", "a/run.json").out == shown.out


def test_several_records_are_shown_side_by_side(runs: Stsbench) -> None:
    done = runs("show", "a", "b", "--markdown")
    assert [line.split(" | ")[0] for line in done.out.splitlines()[2:]] == ["| toys:words", "| toys:letters"]
    subsets = runs("show", "a", "b", "--subsets", "--quiet").out
    assert re.search(r"^sample +everyday +spearman +36 ", subsets, re.MULTILINE)
    assert [entry["model"]["name"] for entry in json.loads(runs("show", "a", "b", "--json").out)] == [
        "toys:words",
        "toys:letters",
    ]
    Path("a/run.json").write_text("{", encoding="utf-8")
    assert runs("show", "b", "a").err.startswith("stsbench: a/run.json is not valid JSON")


def test_citations_are_bibtex_with_comments(stsbench: Stsbench, sts13: Path, pairs_file: Path) -> None:
    stsbench("run", "-m", "toys:words", "--tasks", "STS13", "--data-dir", sts13, "--out", "a")
    stsbench("run", "-m", "toys:words", "--data", pairs_file, "--out", "b")
    done = stsbench("cite", "a", "b")
    entries = re.findall(r"^@(\w+)\{([^,]+),$", done.out, re.MULTILINE)
    assert (done.code, entries) == (0, [("inproceedings", "agirre-etal-2013-sem")])
    outside = re.sub(r"^@.*?^\}", "", done.out, flags=re.MULTILINE | re.DOTALL)
    assert all(line.startswith("%") for line in outside.splitlines() if line)
    assert set(json.loads(stsbench("cite", "a", "b", "--json").out)) == {"toys:words", "STS13", "pairs"}


def test_two_runs_make_a_table_a_sentence_and_a_figure(runs: Stsbench) -> None:
    done = runs("compare", "a", "b", "--subsets", "--figure", "one.svg", "--figure-size", "page")
    assert done.code == 0, done.err
    assert done.out.startswith("A: toys:words\nB: toys:letters\n\ntask ")
    assert re.search(r"^sample +everyday ", done.out, re.MULTILINE)
    assert done.out.splitlines()[-1] == sb.compare("a", "b").sentence
    assert 'width="360pt"' in Path("one.svg").read_text(encoding="utf-8")
    runs("compare", "a", "b", "--figure", "two.svg", "--figure-size", "page")
    assert Path("one.svg").read_bytes() == Path("two.svg").read_bytes()
    markdown = runs("compare", "a", "b", "--markdown")
    assert markdown.err.startswith("A: toys:words\nB: toys:letters\n")
    assert runs("compare", "a", "b", "--markdown", "--quiet").err == ""


def test_the_method_of_intervals_is_a_choice_whatever_that_of_the_records_is(
    runs: Stsbench, on_sample: Callable[..., None]
) -> None:
    on_sample("d", "words", "--interval", "independent")
    on_sample("e", "letters", "--interval", "independent")
    by = {
        how: json.loads(runs("compare", *how.split(), "--json").out)["rows"][0]
        for how in ("a b", "d e", "a b --interval independent", "a d")
    }
    assert [row["interval"] for row in by.values()] == ["dyadic", "dyadic", "independent", "dyadic"]
    assert by["d e"] == by["a b"] != by["a b --interval independent"]


@pytest.mark.parametrize("how", ["--a a --b b", "--a=a --b=b", "--b b --a a"])
def test_methods_are_named_with_options(runs: Stsbench, how: str) -> None:
    done = runs("compare", *how.split())
    assert done.code == 0, done.err
    assert done.out.startswith("A: a\nB: b\n")


def test_all_runs_after_an_option_belong_to_it(stsbench: Stsbench, on_sample: Callable[..., None]) -> None:
    for number in (1, 2):
        on_sample(f"seeds/w{number}", "words")
        on_sample(f"seeds/l{number}", "letters")
    written = stsbench("compare", "--a", "seeds/w1", "seeds/w2", "--b", "seeds/l1", "seeds/l2", "--quiet")
    assert written.code == 0, written.err
    assert written.out.startswith("A: seeds/w\nB: seeds/l\n")
    mixed = ("--a=seeds/w1", "seeds/w2", "--b", "seeds/l1", "--b=seeds/l2", "--quiet")
    assert stsbench("compare", *mixed).out == written.out
    rows = json.loads(
        stsbench("compare", "--a", *(f"seeds/{name}" for name in ("w1", "w2", "l1", "l2")), "--json").out
    )["rows"]
    assert (rows[0]["a_runs"], rows[0]["p"]) == (4, None)


def test_rank_prints_groups_draws_and_leaves_experiments_out(runs: Stsbench) -> None:
    Path("tried").mkdir()
    Path("tried/experiment.yaml").write_text("name: tried\n")
    done = runs("rank", "a", "b", "tried", "--draws", "100", "--figure", "ranks.svg")
    assert done.code == 0, done.err
    assert {"rank", "model", "sample", "groups"} <= set(done.out.splitlines()[0].split())
    assert sb.rank(["a", "b"], draws=100).sentence in done.out
    assert Path("ranks.svg").stat().st_size > 1000
    assert "note: left out: tried is an experiment" in done.err
    assert runs("rank", "a", "b", "--draws", "100", "--simultaneous").err != done.err


def test_the_best_of_a_published_system_is_estimated(stsbench: Stsbench) -> None:
    best = stsbench("best-of", "unsup-simcse-bert-base")
    assert best.code == 0
    assert "76.25" in best.out.splitlines()[-1]


def write_table(path: Path, **off: float) -> Path:
    """Write MTEB's scores of all-MiniLM-L6-v2 as a table, some of them off by this many points."""
    scores = {cell.column: cell.score for cell in row(ROW).cells if cell.score is not None}
    names = {"STS-B": "STSBenchmark"}
    table = {names.get(task, task): (score + off.get(task, 0)) / 100 for task, score in scores.items()}
    path.write_text(json.dumps({"model": "minilm", "cosine_spearman": table}), encoding="utf-8")
    return path


@pytest.fixture
def tables(runs: Stsbench) -> Stsbench:
    write_table(Path("good.json"))
    write_table(Path("bad.json"), STS12=-1.0)
    return runs


@pytest.mark.parametrize(
    ("line", "code", "word"),
    [
        ("check good.json --against all-minilm-l6-v2 --tolerance 0.01", 0, "pass"),
        ("check good.json", 2, "no published row is known for minilm"),
        ("check bad.json --against all-minilm-l6-v2", 1, "STS12 -1.00"),
        ("check good.json --against unsup-simcse-bert-base", 2, "SICK-R: split is all, expected test"),
        (
            "check bad.json --against all-minilm-l6-v2",
            1,
            "Next: stsbench diagnose --model MODEL --claim row:",
        ),
        ("check good.json --baseline bad.json", 2, "was imported with its scores only"),
        ("check a", 2, "no published row is known for toys:words"),
        ("check a --baseline c", 2, "metric is pearson in one and spearman in the other"),
        ("check a --baseline a/run.json", 0, "0.3 points is the default margin"),
        ("check b --baseline b --margin 0.3", 0, "within margin"),
    ],
)
def test_a_check_ends_with_its_verdict(tables: Stsbench, line: str, code: int, word: str) -> None:
    done = tables(*line.split())
    assert (done.code, word in done.out + done.err) == (code, True), done.err


def test_too_few_pairs_for_a_margin_end_with_3(runs: Stsbench) -> None:
    worse, better = sorted(("a", "b"), key=lambda name: sb.load_run(name).scores[0].value or 0)
    loss = abs(sb.check(worse, baseline=better, margin=0.01).cells[0].difference or 0)
    unsure = runs("check", worse, "--baseline", better, "--margin", f"{loss + 0.01:.4f}", "--junit", "check.xml")
    assert unsure.code == 3
    assert ET.parse("check.xml")


def test_programs_and_services_read_the_verdict(tables: Stsbench) -> None:
    done = tables("check", "bad.json", *ROW_OF_MINILM, "--json")
    result = json.loads(done.out)
    assert (done.code, result["verdict"], result["against"]) == (1, "fail", [ROW])
    assert tables(
        "check", "bad.json", *ROW_OF_MINILM, "--junit", "reports/check.xml", "--markdown"
    ).out.startswith("| task |")
    (suite,) = ET.parse("reports/check.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("6", "1")


def test_an_imported_record_is_shown_checked_and_has_nothing_to_analyse(tables: Stsbench) -> None:
    done = tables("import", "good.json", "--out", "runs/theirs", "--model", "all-MiniLM-L6-v2")
    assert done.code == 0
    assert "all-MiniLM-L6-v2  72.37" in done.out
    assert tables("show", "runs/theirs").out == done.out
    assert tables("check", "runs/theirs", *ROW_OF_MINILM).code == 0
    for command in ("explain", "explain geometry", "length-bias"):
        tables_err = tables(*command.split(), "runs/theirs", "--json").err.strip().splitlines()
        assert len(tables_err) == 1
        assert "all-MiniLM-L6-v2 was imported" in tables_err[0]
