"""`stsbench report`: what it writes, what it prints, and how mistakes end."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

Stsbench = Callable[..., Any]


@pytest.fixture
def run(on_sample: Callable[..., None], toys: ModuleType, tmp_path: Path) -> Path:
    out = tmp_path / "run"
    on_sample(out, "words")
    return out


def test_a_report_is_written_where_it_is_told(stsbench: Stsbench, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "report"
    done = stsbench("report", run, "--out", out, "--no-analyses", "--title", "Mine")
    assert done.code == 0
    assert done.out == ""
    assert f"written to {out / 'index.html'}" in done.err
    assert "<title>Mine</title>" in (out / "index.html").read_text(encoding="utf-8")
    assert (out / "README.md").read_text(encoding="utf-8").startswith("# Mine\n")


def test_a_model_card_is_printed_or_written(stsbench: Stsbench, run: Path, tmp_path: Path) -> None:
    printed = stsbench("report", run, "--model-card")
    assert printed.code == 0
    head = yaml.safe_load(printed.out.split("---")[1])
    assert head["model-index"][0]["results"][0]["dataset"]["name"] == "sample"
    card = tmp_path / "README.md"
    assert stsbench("report", run, "--model-card", "--out", card).code == 0
    assert card.read_text(encoding="utf-8") == printed.out


def test_a_badge_is_printed_or_written(stsbench: Stsbench, run: Path, tmp_path: Path) -> None:
    printed = stsbench("report", run, "--badge", "--against", "unsup-simcse-bert-base")
    assert printed.code == 0
    assert ET.fromstring(printed.out).tag.endswith("svg")
    drawn = tmp_path / "check.svg"
    assert stsbench("report", run, "--badge", "--against", "unsup-simcse-bert-base", "--out", drawn).code == 0
    assert drawn.read_text(encoding="utf-8") == printed.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model-card", "--badge"], "cannot go together"),
        (["--badge"], "no published row is known"),
        (["--paper", "bert"], "there is no paper 'bert'"),
        (["--against", "nothing"], "there is no published row"),
        (["--model-card", "--out", "."], "is a folder"),
    ],
)
def test_a_mistake_ends_in_one_sentence(
    arguments: list[str], told: str, stsbench: Stsbench, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = stsbench("report", run, *arguments)
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
