"""The commands that explain a model: tables in every format, figures, runs and models, mistakes."""

import csv
import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from stsbench.analysis.geometry import GeometryCommand
from stsbench.base.errors import UserError

Stsbench = Callable[..., Any]

COMMANDS: dict[str, tuple[str, ...]] = {
    "length-bias": ("--no-intervals",),
    "pair-kinds": ("--no-intervals",),
    "length-collapse": ("--no-intervals",),
    "geometry": (),
    "spectrum": (),
    "dimensions": ("--no-intervals",),
    "density": (),
    "evalrank": (),
    "compress": ("--draws", "2"),
    "ties": (),
    "hubness": ("-k", "5"),
    "repetition-bias": ("--queries", "10", "--seeds", "2"),
    "stability": ("--no-intervals",),
    "probes": ("--kinds", "negation,typo"),
    "retrieve": ("--query", "The bridge is closed.", "-k", "2"),
}
PUBLISHED = {"length-bias", "repetition-bias"}
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def runs(stsbench: Stsbench, on_sample: Callable[..., None]) -> Stsbench:
    """Measure two functions on the sample."""
    on_sample("a", "words", "--no-intervals")
    on_sample("b", "letters", "--no-intervals")
    return stsbench


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_tables_for_readers_and_the_tidy_table_for_programs(command: str, runs: Stsbench) -> None:
    done = runs(command, "a", "b", *COMMANDS[command])
    assert done.code == 0, done.err
    assert "toys:words" in done.out
    assert "toys:letters" in done.out
    assert "─" in done.out
    rows = json.loads(runs(command, "a", "b", *COMMANDS[command], "--json").out)
    assert {row["model"] for row in rows} == {"toys:words", "toys:letters"}
    lines = list(csv.DictReader(StringIO(runs(command, "a", "b", *COMMANDS[command], "--csv").out)))
    assert len(lines) == len(rows)
    assert list(lines[0]) == list(rows[0])
    assert "| --- |" in runs(command, "a", *COMMANDS[command], "--markdown").out
    latex = runs(command, "a", *COMMANDS[command], "--latex").out
    assert latex == runs(command, "a", *COMMANDS[command], "--format", "latex").out
    assert r"\toprule" in latex
    assert r"\caption{" in latex


@pytest.mark.parametrize(
    ("command", "kind"), [*((command, "png") for command in COMMANDS), ("spectrum", "svg"), ("density", "pdf")]
)
def test_a_command_draws_into_any_of_the_formats(command: str, kind: str, runs: Stsbench) -> None:
    done = runs(command, "a", "b", *COMMANDS[command], "--figure", f"figures/out.{kind}")
    assert f"drawn in figures/out.{kind}" in done.err
    assert Path(f"figures/out.{kind}").read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_model_needs_no_run(command: str, stsbench: Stsbench) -> None:
    done = stsbench(command, "--model", "toys:words", *COMMANDS[command])
    assert done.code == 0, done.err
    assert "toys:words" in done.out
    # Said where nobody asked for the sample, as no benchmark data is here.
    assert ("SAMPLE" in done.err) == (command not in {"repetition-bias", "probes", "retrieve"})
    assert "SAMPLE" not in stsbench(command, "--model", "toys:words", *COMMANDS[command], "--quiet").err


@pytest.mark.parametrize("command", [*COMMANDS, "explain"])
def test_a_folder_without_a_run_is_told(command: str, stsbench: Stsbench) -> None:
    done = stsbench(command, "nowhere", *COMMANDS.get(command, ()))
    done.demand_one_sentence(
        "no run record at nowhere: `stsbench run --out nowhere` makes one; a model goes to --model"
    )


@pytest.mark.parametrize("command", sorted(PUBLISHED))
def test_published_rows_are_beside(command: str, runs: Stsbench) -> None:
    assert "SimCSE-BERT-base (published)" in runs(command, "a", *COMMANDS[command], "--published").out


def test_options_of_length_reach_the_table(runs: Stsbench) -> None:
    done = runs(
        "length-bias",
        "a",
        "--length",
        "characters",
        "--threshold",
        "7",
        "--bins",
        "0,10",
        "--no-intervals",
        "--json",
    )
    rows = json.loads(done.out)
    assert {row["group"] for row in rows} >= {"<= 7", "> 7", "0-9", "10+"}
    assert {row["unit"] for row in rows} == {"characters"}
    assert {row["measure"] for row in rows} >= {"spearman", "slope", "design contrast"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("length-bias", "a", "--length", "letters"), "unknown length unit 'letters'"),
        (("length-bias", "a", "--bins", "0,x"), "--bins 0,x: give where each bin begins"),
        (("length-bias", "a", "--length", "subwords"), "lengths in subwords are unknown"),
        (("length-bias", "a", "--tasks", "STS16"), r"has no STS16 \(it has sample\)"),
        (("density", "a", "--buckets", "0"), "--buckets 0: give a number from 1"),
        (("density", "a", "--task", "SICK-R"), r"has no SICK-R \(it has sample\)"),
        (("length-collapse", "a", "--length", "letters"), "unknown length unit 'letters'"),
        (("length-collapse", "a", "--length", "subwords"), "lengths in subwords are unknown"),
        (("length-collapse", "a", "--bins", "3,8"), "bins 3,8: give where each begins, from 0 and rising"),
        (
            ("dimensions", "a", "--top", "1,1000"),
            r"--top 1000: vectors of toys:words have \d+ dimensions, and one",
        ),
        (("dimensions", "a", "--top", "0"), "--top 0: give numbers of dimensions from 1"),
        (("dimensions", "a", "--tasks", "STS16"), r"has no STS16 \(it has sample\)"),
        (("hubness", "a", "-k", "503"), "503 neighbours: sample has 504 distinct sentences that .*, and 505 are"),
        (("hubness", "a", "-k", "0"), "give a number from 1"),
        (("geometry", "a", "--task", "STS-B"), "STS-B"),
        (("geometry", "a", "--task", "MR"), "MR has labels"),
        (("geometry", "--path", "."), "has no checkpoints in it"),
        (("repetition-bias", "a", "--overlap", "many"), "--overlap many: give the smallest and largest"),
        (
            ("repetition-bias", "a", "--queries", "5000"),
            r"of the 400 sentences of the corpus \d+ have a candidate",
        ),
        (("repetition-bias", "a", "--tokens", "subwords"), "toys:words has no tokeniser"),
        (("repetition-bias", "a", "--corpus", "none.txt"), "none.txt"),
        (("compress", "a", "--sizes", "half"), "--sizes half: give numbers of dimensions, such as 256,128,64"),
        (("compress", "a", "--sizes", "999"), r"--sizes 999: the vectors of toys:words have \d+ dimensions"),
        (("compress", "a", "--margin", "0"), "a margin of 0 points: give more than 0"),
        (("compress", "a", "--tasks", "STS16"), r"has no STS16 \(it has sample\)"),
        (("ties", "a", "--tasks", "STS16"), r"has no STS16 \(it has sample\)"),
        (("probes", "a", "--kinds", "tence"), "bundled has no triples of the kind 'tence': did you mean tense?"),
        (("probes", "a", "--triples", "none.tsv"), "there is no file none.tsv"),
        (("retrieve", "a"), "there is no query"),
        (("retrieve", "a", "--query", "x", "--search", "fast"), "unknown search 'fast'"),
        (
            ("spectrum", "a", "--figure", "out.gif"),
            r"cannot write a figure to out.gif: end its name in one of \.png",
        ),
        (("spectrum", "a", "--json", "--csv"), "choose one output format"),
        (
            ("explain", "a", "--out", "page", "--figure-format", "gif"),
            "figures as 'gif': choose one of png, svg, pdf",
        ),
        (("explain", "a", "--format", "gif"), "--format 'gif': choose one of table, json, csv, markdown, latex"),
        (("geometry", "a", "--pooling", "cls"), "--pooling.* is for models that are"),
        (("explain", "a", "--max-length", "64"), "--max-length.* is for models that are"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_told_in_one_sentence(arguments: tuple[str, ...], message: str, stsbench: Stsbench) -> None:
    assert stsbench("run", "-m", "toys:words", "--tasks", "sample", "--out", "a", "--no-intervals").code == 0
    done = stsbench(*arguments)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.strip().splitlines()[-1:]
    assert line.startswith("stsbench: ")
    assert re.search(message, line), line


def test_explain_prints_all_of_it_and_writes_a_page(runs: Stsbench) -> None:
    done = runs("explain", "a", "b", "--out", "page", "--figure", "all.png")
    assert done.code == 0, done.err
    for caption in (
        "Spearman x 100 by length difference",
        "Alignment and uniformity on sample",
        "Spectrum of the normalised",
        "Cosine by gold score on sample",
        "Mean cosine of unrelated sentences",
        "Spearman x 100 by how vectors are compared",
        "Hubness: how often a sentence",
        "EvalRank x 100 on sample",
        "The smallest vectors that are no worse by 0.5 points",
        "Spearman x 100, sample, and over all ways of breaking ties",
        "before and after repeating shared words in sample",
        "Mean cosine x 100 to a paraphrase",
        "Nearest to:",
    ):
        assert caption in done.out
    assert "written to page/README.md" in done.err
    names = tuple(COMMANDS)
    made = {path.name for path in Path("page").iterdir()}
    assert made == {"README.md", *(f"{name}.png" for name in names), *(f"{name}.csv" for name in names)}
    assert {path.name for path in Path().glob("all-*.png")} == {f"all-{name}.png" for name in names}
    # As in version 0.1, where `--format` was that of the figures.
    drawn = runs("explain", "a", "--no-intervals", "--out", "drawn", "--format", "svg", "--json")
    assert list(json.loads(drawn.out)) == list(names)
    assert {path.suffix for path in Path("drawn").iterdir()} == {".md", ".csv", ".svg"}


@pytest.mark.parametrize("style", [(), ("--csv",), ("--json",)])
@pytest.mark.parametrize("command", ["explain", "geometry", "length-bias"])
def test_an_imported_record_is_told_in_one_sentence(
    command: str, style: tuple[str, ...], stsbench: Stsbench, tmp_path: Path
) -> None:
    scores = {"all": 0.7, "mean": 0.7, "wmean": 0.7}
    subset = {"pearson": [0.7, 0.0], "spearman": [0.7, 0.0], "nsamples": 30}
    year = {"one": subset, "all": {"pearson": scores, "spearman": scores}}
    (tmp_path / "results.json").write_text(json.dumps({"STS12": year}), encoding="utf-8")
    imported = stsbench("import", tmp_path / "results.json", "--model", "someone/model", "--out", "imported")
    assert imported.code == 0, imported.err
    done = stsbench(command, "imported", *style)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.strip().splitlines()
    assert line.startswith(
        "stsbench: someone/model was imported, with scores alone: there are no pairs and no vect"
    )


def test_explain_tells_what_was_not_possible_after_all_that_was(stsbench: Stsbench, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("\n".join(str(n / 252) for n in range(252)), encoding="utf-8")
    stsbench("run", "--similarities", tmp_path / "s.txt", "--tasks", "sample", "--out", "s", "--no-intervals")
    done = stsbench("explain", "s", "--no-intervals", "--out", "page")
    assert done.code == 2
    assert "Spearman x 100 by length difference" in done.out
    assert "stsbench: geometry: " in done.err
    assert "stsbench: density: the run of s holds similarities that were given" in done.err
    page = Path("page/README.md").read_text(encoding="utf-8")
    (geometry,) = [line for line in page.splitlines() if "geometry" in line]
    assert geometry.startswith("- not possible: length-collapse, geometry, spectrum, ")
    assert geometry.count("saved similarities cannot make any") == 1, "a reason stands once"


def test_each_analysis_is_printed_when_it_is_done(
    runs: Stsbench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def fail(*_subjects: object, **_options: object) -> None:
        printed.append(capsys.readouterr().out)
        raise UserError("it stops here.")

    monkeypatch.setattr(GeometryCommand, "verb", staticmethod(fail))
    done = runs("explain", "a")
    assert done.code == 2
    assert "geometry: it stops here" in done.err
    assert "Pairs by length difference" in printed[0]
    assert "Spectrum" in done.out
    assert "Pairs by length difference" not in done.out
