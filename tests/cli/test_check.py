"""`stsbench check` and `stsbench import`: verdicts, exit codes, and what a CI service reads."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stsbench.published.catalogue import row

Stsbench = Callable[..., Any]

ROW = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"
MTEB_NAMES = {"STS-B": "STSBenchmark"}


@pytest.fixture(autouse=True)
def _not_on_github(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def write_table(path: Path, **off: float) -> Path:
    """Write MTEB's scores of all-MiniLM-L6-v2 as a table, some of them off by so many points."""
    scores = {cell.column: cell.score for cell in row(ROW).cells if cell.score is not None}
    table = {MTEB_NAMES.get(task, task): (score + off.get(task, 0)) / 100 for task, score in scores.items()}
    path.write_text(json.dumps({"model": "minilm", "cosine_spearman": table}), encoding="utf-8")
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_table(tmp_path / "good.json")


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return write_table(tmp_path / "bad.json", STS12=-1.0)


def test_a_pass_exits_with_0_and_says_so(stsbench: Stsbench, good: Path) -> None:
    done = stsbench("check", good, "--tolerance", "0.01")
    assert done.code == 0
    assert done.out.splitlines()[0].split() == ["task", "published", "measured", "difference", "verdict"]
    assert done.err.splitlines()[-1] == f"pass: minilm is within 0.01 of {ROW}: 6 of 6 scores."


def test_a_failure_exits_with_1_and_names_the_score(stsbench: Stsbench, bad: Path) -> None:
    done = stsbench("check", bad, "--against", "all-minilm-l6-v2", "--quiet")
    assert done.code == 1
    assert done.err == f"fail: minilm is not within 0.05 of {ROW}: 1 of 6 scores: STS12 -1.00.\n"
    assert done.out.splitlines()[2].split() == ["STS12", "72.37", "71.37", "-1.00", "fail"]


def test_what_does_not_compare_exits_with_2_and_names_the_field(stsbench: Stsbench, good: Path) -> None:
    done = stsbench("check", good, "--against", "unsup-simcse-bert-base", "--quiet")
    assert done.code == 2
    assert "SICK-R: split is all here and test there" in done.err
    assert "not comparable: split" in done.out


def test_a_mistake_exits_with_2_in_one_sentence(stsbench: Stsbench, good: Path) -> None:
    stsbench("check", good, "--against", "nothing").demand_one_sentence("there is no published row 'nothing'")
    stsbench("check", "absent").demand_one_sentence("no run record at absent")
    stsbench("check", good, "--max-drop", "1").demand_one_sentence("--max-drop goes with --baseline")
    gate = ("check", good, "--baseline", good)
    stsbench(*gate, "--against", "auto").demand_one_sentence("--against and --baseline cannot go together")
    stsbench(*gate, "--tolerance", "1").demand_one_sentence("--tolerance and --baseline cannot go together")
    stsbench("check", good, "--tolerance", "-1").demand_one_sentence("--tolerance -1.0: give a number")


def test_a_run_is_gated_against_its_predecessor(stsbench: Stsbench, good: Path, bad: Path) -> None:
    worse = stsbench("check", bad, "--baseline", good, "--max-drop", "0.3")
    assert worse.code == 1
    assert "fail: minilm is not at most 0.3 below the baseline minilm" in worse.err
    assert stsbench("check", bad, "--baseline", good, "--max-drop", "1.1").code == 0
    assert stsbench("check", good, "--baseline", bad).code == 0


def test_json_holds_the_verdict_and_every_cell(stsbench: Stsbench, bad: Path) -> None:
    done = stsbench("check", bad, "--json")
    told = json.loads(done.out)
    assert (done.code, told["verdict"], told["against"]) == (1, "fail", [ROW])
    assert {cell["name"]: cell["verdict"] for cell in told["cells"]}["STS12"] == "fail"
    assert told["cells"][0]["difference"] == pytest.approx(-1)
    assert stsbench("check", bad, "--format", "json").out == done.out


def test_junit_is_written_beside_the_table(stsbench: Stsbench, bad: Path) -> None:
    assert stsbench("check", bad, "--junit", "reports/check.xml", "--markdown").out.startswith("| task |")
    (suite,) = ET.parse("reports/check.xml").getroot()
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("6", "1")
    assert suite[0].attrib["name"] == f"{ROW} STS12"


def test_on_github_a_failure_is_annotated_and_the_summary_grows(
    stsbench: Stsbench, bad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "summary.md"
    page.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    lines = stsbench("check", bad).out.splitlines()
    assert "::error title=STS12%3A fail::STS12: 71.37, expected 72.37 (-1.00)" in lines
    assert any(line.startswith("::error title=stsbench check::fail: minilm") for line in lines)
    assert page.read_text(encoding="utf-8").startswith("before\n### stsbench check\n")
    assert "| STS12 | 72.37 | 71.37 | -1.00 | fail |" in page.read_text(encoding="utf-8")
    assert "::" not in stsbench("check", bad, "--no-github").out


def test_annotations_are_in_no_programs_way(stsbench: Stsbench, good: Path) -> None:
    done = stsbench("check", good, "--json", "--github")
    assert json.loads(done.out)["verdict"] == "pass"
    assert "::notice title=stsbench check::pass" in done.err


def test_import_makes_a_record_that_is_shown_and_checked(stsbench: Stsbench, good: Path) -> None:
    done = stsbench("import", good, "--out", "runs/theirs", "--model", "all-MiniLM-L6-v2")
    assert done.code == 0
    assert "all-MiniLM-L6-v2  72.37" in done.out
    assert "recorded in runs/theirs" in done.err
    assert stsbench("show", "runs/theirs").out == done.out
    assert stsbench("check", "runs/theirs").code == 0
    assert "note: text: the imported file does not say" in stsbench("check", "runs/theirs").err


def test_import_refuses_what_is_nobodys_results(stsbench: Stsbench, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    stsbench("import", tmp_path / "x.json", "--out", "runs/x").demand_one_sentence("neither a run record nor")
    stsbench("check", tmp_path / "x.json").demand_one_sentence("neither a run record nor")


def test_a_record_of_our_own_is_checked_by_its_folder(stsbench: Stsbench) -> None:
    for name, model in (("a", "words"), ("b", "letters")):
        assert stsbench("run", "-m", f"toys:{model}", "--tasks", "sample", "--out", name).code == 0
    assert stsbench("check", "a", "--baseline", "a/run.json").code == 0
    assert stsbench("check", "a").code == 2
    assert "no published row is known for toys:words" in stsbench("check", "a").err
    done = stsbench("check", "b", "--baseline", "a", "--max-drop", "0")
    assert done.code in {0, 1}
    assert "pooling: " not in done.err
