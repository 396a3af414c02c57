"""`stsbench diagnose`: what it prints where, what it writes, and how mistakes end."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import stsbench as sb

Stsbench = Callable[..., Any]


@pytest.fixture
def claim(toys: Any) -> str:
    """Return what Pearson's correlation gives for the toy encoder on the sample."""
    record = sb.evaluate(toys.words, "sample", protocol=sb.protocol(metric="pearson"))
    return f"{100 * (record.scores[0].value or 0):.2f}"


@pytest.fixture
def arguments(claim: str) -> tuple[str, ...]:
    return ("diagnose", "-m", "toys:words", "--tasks", "sample", "--claim", claim)


def test_the_verdict_comes_first_then_the_settings_then_what_to_know(
    stsbench: Stsbench, arguments: tuple[str, ...], claim: str
) -> None:
    done = stsbench(*arguments)
    assert done.code == 0, done.err
    verdict, blank, header, _, claimed, own, best, *rest = done.out.splitlines()
    assert verdict.startswith(f"Your {claim} on sample is what Pearson's correlation gives ({claim}); ")
    assert (blank, header.split()) == ("", ["setting", "changes", "sample", "off"])
    assert claimed.split() == ["claimed", "–", claim, "–"]
    assert own.split()[:3] == ["your", "setting", "0"]
    assert best.split()[:4] == ["metric", "pearson", "1", claim]
    assert "`stsbench run` gives it with `--tasks sample --metric pearson`." in rest
    assert "note: toys:words has no poolers" in done.err


def test_a_claim_that_nothing_gives_is_no_mistake(stsbench: Stsbench) -> None:
    done = stsbench("diagnose", "-m", "toys:words", "--tasks", "sample", "--claim", "99.99")
    assert done.code == 0
    assert "gives your 99.99 on sample." in done.out.splitlines()[0]
    assert done.out.startswith("None of ")


def test_the_machine_formats_are_whole_and_alone(stsbench: Stsbench, arguments: tuple[str, ...]) -> None:
    found = json.loads(stsbench(*arguments, "--json").out)
    assert found["explanations"][0]["changes"] == {"metric": "pearson"}
    assert found["explained"] is True
    rows = list(csv.DictReader(io.StringIO(stsbench(*arguments, "--csv").out)))
    assert [row["setting"] for row in rows] == ["claimed", "your setting", "metric pearson"]
    assert float(rows[2]["sample"]) == found["explanations"][0]["scores"]["sample"]
    for style, start in (("--markdown", "| setting | changes |"), ("--latex", r"\begin{tabular}")):
        done = stsbench(*arguments, style)
        assert done.out.startswith(start)
        assert "Pearson's correlation" in done.err


@pytest.mark.parametrize("folder", ["found", "no UTF-8 \udcff"])
def test_out_holds_the_grid_the_diagnosis_and_the_heat_map(
    stsbench: Stsbench, arguments: tuple[str, ...], folder: str
) -> None:
    done = stsbench(*arguments, "--out", folder, "--figure", "map.svg", "--quiet")
    assert done.code == 0, done.err
    assert done.err == ""
    found = Path(folder)
    assert sorted(path.name for path in found.iterdir()) == [
        "diagnosis.json",
        "grid.csv",
        "grid.parquet",
        "heatmap.png",
    ]
    table = pd.read_parquet(io.BytesIO((found / "grid.parquet").read_bytes()))
    assert (
        len(table)
        == len(pd.read_csv(found / "grid.csv"))
        == json.loads((found / "diagnosis.json").read_text(encoding="utf-8"))["settings"]
    )
    assert {"task", "split", "metric", "comparison", "score", "changes"} <= set(table.columns)
    assert "metric pearson" in Path("map.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--claim", "much", "-m", "toys:interrupted", "--tasks", "sample"), "cannot read 'much' in the claim"),
        (
            ("--claim", "50", "-m", "toys:interrupted", "-t", "sample", "--figure", "a.txt"),
            "end its name in one of",
        ),
        (("--claim", "50", "-m", "toys:words", "-t", "sample", "--tolerance", "0"), "give a positive number of"),
        (("--claim", "row:nobody", "-m", "toys:words"), "there is no published row 'nobody'"),
        (("--claim", "50", "-m", "toys:words", "-t", "sample", "--protocol", "no"), "unknown protocol 'no'"),
        (
            ("--claim", "50", "-m", "toys:words", "--vectors", "v.npy", "--sentences", "s.txt"),
            "cannot go together",
        ),
        (("--claim", "50", "-m", "toys:words", "--json", "--csv"), "cannot go together"),
    ],
)
def test_mistakes_end_in_one_sentence(stsbench: Stsbench, arguments: tuple[str, ...], message: str) -> None:
    stsbench("diagnose", *arguments).demand_one_sentence(message)


def test_help_has_examples(stsbench: Stsbench) -> None:
    assert "stsbench diagnose -m minilm --claim SICK-R=77.58" in stsbench("diagnose", "--help").out


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_the_command_it_prints_for_a_trained_regressor_gives_the_very_number(
    stsbench: Stsbench, tiny_bert: Path, benchmark_folder: Path, metric: str
) -> None:
    where = ("-m", str(tiny_bert), "--device", "cpu", "--data-dir", str(benchmark_folder))
    (trained,) = json.loads(stsbench("run", *where, "--tasks", "SICK-R:supervised", "--json").out)["scores"]
    (value,) = [number["value"] for number in trained["numbers"] if number["statistic"] == metric]
    claim = ("--claim", f"SICK-R={100 * value:.6f}%", "--tolerance", "0.00001", "--supervised")
    diagnosis = json.loads(stsbench("diagnose", *where, *claim, "--json").out)
    changes = {"metric": "pearson"} if metric == "pearson" else {}
    assert diagnosis["explanations"][0]["changes"] == changes | {"comparison": "supervised"}
    (options,) = (
        remark.partition("gives it with `")[2].removesuffix("`.")
        for remark in diagnosis["remarks"]
        if remark.startswith("`stsbench run` gives it")
    )
    score = diagnosis["explanations"][0]["scores"]["SICK-R"]
    printed = stsbench("run", *where, *options.split()).out
    in_full = printed if "csv" in options else stsbench("run", *where, *options.split(), "--csv").out
    rows = list(csv.DictReader(io.StringIO(in_full)))
    assert [float(row["score"]) for row in rows if row["metric"] == metric] == [score]
    assert metric == "spearman" or f"{score:.2f}" in printed.splitlines()[2].split()
