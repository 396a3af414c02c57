"""The check finds inconsistent published numbers, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
if not (DOCS / "conflicts.py").is_file():
    pytest.skip("needs docs/", allow_module_level=True)

sys.path.insert(0, str(DOCS))
from conflicts import KINDS, Conflict, find_conflicts  # noqa: E402 - a script of the documentation

sys.path.remove(str(DOCS))
CONFLICTS = find_conflicts()


def of_kind(kind: str) -> list[Conflict]:
    return [conflict for conflict in CONFLICTS if conflict.kind == kind]


def test_the_known_conflicts_are_found_and_explained() -> None:
    averages = {(found.table, found.row): (found.printed, found.expected) for found in of_kind("average")}
    assert averages == {
        ("simcse-slides-sts", "sbert-base"): ("74.89", "74.860"),
        ("simcse-slides-transfer", "bert-base-avg"): ("84.94", "84.954"),
        ("mocose-acl2022-2", "bert-base-avg"): ("84.94", "84.954"),
        ("promptbert-sts", "promptbert-bert-base"): ("78.54", "78.523"),
        ("consert-sts", "consert-bert-large"): ("76.45", "76.444"),
    }
    (swapped,) = [found for found in of_kind("average") if found.table == "mocose-acl2022-2"]
    assert swapped.message.endswith("correct if MRPC were 69.45 instead of 69.54")
    prints = {(found.table, found.row): found for found in of_kind("prints")}
    assert set(prints) == {
        ("simcse-slides-sts", "bert-base-flow"),
        ("mocose-acl2022-1", "mocose-bert-base"),
        ("mocose-acl2022-5", "dropout-only"),
    }
    mocose = prints["mocose-acl2022-1", "mocose-bert-base"]
    assert (mocose.printed, mocose.expected) == ("77.27", "76.89, 77.04, 77.25, 77.30, 76.64")
    editions = {(found.row, found.column): (found.expected, found.printed) for found in of_kind("edition")}
    assert editions["unsup-simcse-bert-base", "Avg."] in {("74.54", "76.25"), ("84.67", "85.81")}
    models = ("bert-base", "roberta-base", "roberta-large")
    assert {name for name, _ in editions} == {f"unsup-simcse-{model}" for model in models}
    assert {(found.table, found.row) for found in of_kind("granularity") if found.column == "TREC"} == {
        ("simcse-slides-transfer", "is-bert-base"),
        ("mocose-acl2022-2", "mocose-bert-base"),
        ("mocose-acl2022-2", "mocose-bert-large"),
    }
    assert of_kind("difference") == of_kind("log") == []
    assert all(KINDS.values())


def test_the_page_on_conflicts_is_up_to_date() -> None:
    script = [sys.executable, str(DOCS / "conflicts_page.py")]
    printed = subprocess.run(script, check=True, capture_output=True, encoding="utf-8").stdout
    assert (DOCS / "published-conflicts.md").read_text(encoding="utf-8") == printed, (
        "run `python docs/conflicts_page.py > docs/published-conflicts.md`"
    )
