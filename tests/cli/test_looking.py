"""The analyses, `explain`, `diagnose`, `report`, `explore` and `board`: output, formats, pages."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import stsbench as sb
from stsbench.analysis import ANALYSES
from stsbench.analysis.geometry import Geometry
from stsbench.base.errors import UserError
from stsbench.cli.app import BEST_KNOWN

Stsbench = Callable[..., Any]

OPTIONS: dict[str, str] = dict.fromkeys(ANALYSES, "") | {
    "compress": "--draws 2",
    "hubness": "-k 5",
    "repetition-bias": "--queries 10 --seeds 2",
    "probes": "--kinds negation,typo",
    "retrieve": "--query bridge -k 2",
}
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
NO_INTERVALS = {"length-bias", "pair-kinds", "length-collapse", "dimensions", "stability"}


def typed(command: str) -> list[str]:
    return OPTIONS[command].split() + (["--no-intervals"] if command in NO_INTERVALS else [])


@pytest.fixture
def runs(stsbench: Stsbench, on_sample: Callable[..., None]) -> Stsbench:
    """Measure two functions on the sample."""
    on_sample("a", "words", "--no-intervals")
    on_sample("b", "letters", "--no-intervals")
    return stsbench


@pytest.mark.parametrize("command", ANALYSES)
def test_an_analysis_prints_tables_for_readers_and_its_rows_for_programs(command: str, runs: Stsbench) -> None:
    kind = {"spectrum": "svg", "density": "pdf"}.get(command, "png")
    done = runs("explain", command, "a", "b", *typed(command), "--figure", f"figures/out.{kind}")
    assert done.code == 0, done.err
    assert "toys:words" in done.out
    assert "toys:letters" in done.out
    assert Path(f"figures/out.{kind}").read_bytes().startswith(STARTS[kind])
    rows = json.loads(runs("explain", command, "a", "b", *typed(command), "--json").out)
    assert {row["model"] for row in rows} == {"toys:words", "toys:letters"}
    lines = list(csv.DictReader(io.StringIO(runs("explain", command, "a", "b", *typed(command), "--csv").out)))
    assert (len(lines), list(lines[0])) == (len(rows), list(rows[0]))
    assert "| --- |" in runs("explain", command, "a", *typed(command), "--markdown").out
    assert r"\toprule" in runs("explain", command, "a", *typed(command), "--format", "latex").out


@pytest.mark.parametrize("command", ANALYSES)
def test_a_model_needs_no_run(command: str, stsbench: Stsbench) -> None:
    done = stsbench(command, "--model", "toys:words", *typed(command))
    assert done.code == 0, done.err
    assert "toys:words" in done.out
    # The sample is used because no benchmark data is here, which is worth a note.
    assert ("SAMPLE" in done.err) == (command not in {"repetition-bias", "probes", "retrieve"})
    assert (f"is `stsbench explain {command}`" in done.err) == (command != BEST_KNOWN)


@pytest.mark.parametrize("command", ["length-bias", "repetition-bias"])
def test_published_rows_are_added(command: str, runs: Stsbench) -> None:
    assert "SimCSE-BERT-base (published)" in runs(command, "a", *typed(command), "--published").out


def test_options_reach_the_table(runs: Stsbench) -> None:
    line = "length-bias a --length characters --threshold 7 --bins 0,10 --no-intervals --json"
    rows = json.loads(runs(*line.split()).out)
    assert {row["group"] for row in rows} >= {"<= 7", "> 7", "0-9", "10+"}
    assert {row["unit"] for row in rows} == {"characters"}


def test_explain_prints_every_analysis_and_writes_a_page(runs: Stsbench) -> None:
    done = runs("explain", "a", "b", "--no-intervals", "--out", "page")
    assert done.code == 0, done.err
    assert "written to page/README.md" in done.err
    made = {path.name for path in Path("page").iterdir()}
    assert made == {"README.md", *(f"{name}.png" for name in ANALYSES), *(f"{name}.csv" for name in ANALYSES)}
    assert list(json.loads(runs("explain", "a", "--no-intervals", "--json").out)) == list(ANALYSES)


def test_explain_reports_what_was_not_possible_after_all_that_was(stsbench: Stsbench) -> None:
    Path("s.txt").write_text("\n".join(str(n / 252) for n in range(252)), encoding="utf-8")
    stsbench("import", "s.txt", "--gold", "sample", "--out", "s")
    done = stsbench("explain", "s", "--no-intervals", "--out", "page")
    assert done.code == 2
    assert "Spearman x 100 by length difference" in done.out
    assert "stsbench: geometry: " in done.err
    (line,) = [line for line in Path("page/README.md").read_text("utf-8").splitlines() if "geometry" in line]
    assert line.count("saved similarities cannot make any") == 1


def test_each_analysis_is_printed_as_soon_as_it_is_done(
    runs: Stsbench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def fail(*_subjects: object, **_options: object) -> None:
        printed.append(capsys.readouterr().out)
        raise UserError("it stops here.")

    monkeypatch.setattr(Geometry, "verb", staticmethod(fail))
    done = runs("explain", "a", "--no-intervals")
    assert (done.code, "geometry: it stops here" in done.err) == (2, True)
    assert "length difference" in printed[0]
    assert "Spectrum" in done.out


@pytest.fixture
def diagnosis(toys: Any) -> tuple[str, ...]:
    """Return a command that asks for what Pearson's correlation gives for the toy encoder on the sample."""
    record = sb.evaluate(toys.words, "sample", protocol=sb.protocol(metric="pearson"))
    claim = f"{100 * (record.scores[0].value or 0):.2f}"
    return ("diagnose", "-m", "toys:words", "--tasks", "sample", "--claim", claim)


def test_a_diagnosis_prints_verdict_settings_and_the_command(
    stsbench: Stsbench, diagnosis: tuple[str, ...]
) -> None:
    done = stsbench(*diagnosis, "--out", "found", "--figure", "map.svg")
    assert done.code == 0, done.err
    header, _, claimed, own, best, _, verdict, command = done.out.splitlines()
    assert f"Your {diagnosis[-1]} on sample comes from metric pearson" in verdict
    assert header.split() == ["setting", "changes", "sample", "off"]
    assert (claimed.split()[0], own.split()[:2]) == ("claimed", ["your", "setting"])
    assert best.split()[:4] == ["metric", "pearson", "1", diagnosis[-1]]
    assert "--tasks sample --metric pearson" in command
    assert {path.name for path in Path("found").iterdir()} == {
        "diagnosis.json",
        "grid.csv",
        "heatmap.png",
    }
    settings = json.loads(Path("found/diagnosis.json").read_text("utf-8"))["settings"]
    assert len(pd.read_csv("found/grid.csv")) == settings
    assert "metric pearson" in Path("map.svg").read_text(encoding="utf-8")


def test_a_diagnosis_for_programs_is_whole(stsbench: Stsbench, diagnosis: tuple[str, ...]) -> None:
    found = json.loads(stsbench(*diagnosis, "--json").out)
    assert (found["explained"], found["explanations"][0]["changes"]) == (True, {"metric": "pearson"})
    rows = list(csv.DictReader(io.StringIO(stsbench(*diagnosis, "--csv").out)))
    assert [row["setting"] for row in rows] == ["claimed", "your setting", "metric pearson"]
    assert stsbench(*diagnosis, "--markdown").out.startswith("| setting | changes |")
    nothing = stsbench("diagnose", "-m", "toys:words", "--tasks", "sample", "--claim", "99.99")
    assert (nothing.code, "None of " in nothing.out.splitlines()[-1]) == (0, True)


def test_the_command_that_diagnose_prints_gives_the_number(
    stsbench: Stsbench, tiny_bert: Path, benchmark_folder: Path
) -> None:
    where = ("-m", str(tiny_bert), "--device", "cpu", "--data-dir", str(benchmark_folder))
    use = ("--tasks", "SICK-R:all", "--metric", "pearson", "--pooling", "cls")
    rows = list(csv.DictReader(io.StringIO(stsbench("run", *where, *use, "--csv").out)))
    claim = ("--claim", f"SICK-R={float(rows[0]['score']):.6f}%", "--tolerance", "0.0001")
    found = json.loads(stsbench("diagnose", *where, *claim, "--json").out)
    options = found["sentence"].partition("gives it with `")[2].removesuffix("`.").split()
    again = list(csv.DictReader(io.StringIO(stsbench("run", *where, *options, "--csv").out)))
    assert float(again[0]["score"]) == pytest.approx(float(rows[0]["score"]), abs=1e-4)


def test_a_report_and_a_card_are_written(runs: Stsbench, tmp_path: Path) -> None:
    done = runs("report", "a", "--out", "deep/report", "--no-analyses", "--title", "Mine")
    assert (done.code, done.out, "written to deep/report/index.html" in done.err) == (0, "", True)
    assert "<title>Mine</title>" in Path("deep/report/index.html").read_text(encoding="utf-8")
    assert Path("deep/report/README.md").read_text(encoding="utf-8").startswith("# Mine\n")
    card = runs("report", "a", "--model-card")
    head = yaml.safe_load(card.out.split("---")[1])
    assert head["model-index"][0]["results"][0]["dataset"]["name"] == "sample"
    assert runs("report", "a", "--model-card", "--out", tmp_path / "card.md").code == 0
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == card.out


def test_pages_of_pairs_and_of_all_runs_are_written(runs: Stsbench) -> None:
    done = runs("explore", "a", "b", "--out", "pairs.html")
    assert (done.code, "do not publish it" in done.err) == (0, True)
    assert "Gain B over A" in Path("pairs.html").read_text()
    Path("broken").mkdir()
    Path("broken/run.json").write_text("{")
    done = runs("board", ".", "--out", "all.html")
    assert done.code == 0
    note, written = done.err.splitlines()
    assert note.startswith("note: left out: broken/run.json is not valid JSON")
    assert written == "written to all.html"
