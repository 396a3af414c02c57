"""The check finds inconsistent published numbers, and nothing else."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stsbench.published.catalogue import tables
from stsbench.published.schema import PublishedTable

DOCS = Path(__file__).resolve().parents[2] / "docs"
if not (DOCS / "conflicts.py").is_file():
    pytest.skip("needs docs/", allow_module_level=True)

sys.path.insert(0, str(DOCS))
from conflicts import KINDS, Conflict, find_conflicts  # noqa: E402 - a script of the documentation

sys.path.remove(str(DOCS))
CONFLICTS = find_conflicts()


def changed(name: str, change: Callable[[dict[str, Any]], None]) -> list[PublishedTable]:
    """Return all tables, one of them changed."""
    entry = tables()[name].model_dump()
    change(entry)
    return [PublishedTable.model_validate(entry) if table.name == name else table for table in tables().values()]


def row_of(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return next(found for found in entry["rows"] if found["name"] == name)


def put(entry: dict[str, Any], name: str, column: int, raw: str) -> None:
    found = row_of(entry, name)
    found["cells"] = (*found["cells"][:column], raw, *found["cells"][column + 1 :])


def new(given: list[PublishedTable]) -> list[Conflict]:
    known = set(CONFLICTS)
    return [conflict for conflict in find_conflicts(given) if conflict not in known]


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


@pytest.mark.parametrize(
    ("table", "row", "column", "raw", "kinds"),
    [
        # MoCoSE prints the cell, too.
        ("esimcse-coling2022-3", "ct-bert-base", 1, "78.80", {"average", "prints"}),
        ("esimcse-arxiv-v1-5", "esimcse-bert-base", 8, "+2.20", {"difference"}),
        ("esimcse-coling2022-8", "simcse", 2, "+0.86", {"difference"}),
        ("esimcse-coling2022-9", "dup_rate-0.08", 0, "83.6", {"prints"}),
        # Another print, rounded.
        ("simcse-slides-overview", "is-bert-base", 0, "66.6", set()),
        ("simcse-slides-overview", "is-bert-base", 0, "66.7", {"difference", "prints"}),
        ("esimcse-coling2022-4", "esimcse-bert-base", 0, "84.95", {"log", "difference", "prints"}),
        ("simcse-slides-transfer", "sbert-base", 5, "89.61", {"granularity"}),
    ],
)
def test_a_wrong_cell_is_found(table: str, row: str, column: int, raw: str, kinds: set[str]) -> None:
    found = new(changed(table, lambda entry: put(entry, row, column, raw)))
    assert {conflict.kind for conflict in found} == kinds
    assert not kinds or row in {conflict.row for conflict in found}


def test_a_head_that_names_another_data_set_is_found() -> None:
    def rename(entry: dict[str, Any]) -> None:
        entry["columns"][0]["label"] = "SICK12"

    assert [conflict.kind for conflict in new(changed("mocose-acl2022-1", rename))] == ["header"]


def test_the_page_on_conflicts_is_up_to_date() -> None:
    script = [sys.executable, str(DOCS / "conflicts_page.py")]
    printed = subprocess.run(script, check=True, capture_output=True, encoding="utf-8").stdout
    assert (DOCS / "published-conflicts.md").read_text(encoding="utf-8") == printed, (
        "run `python docs/conflicts_page.py > docs/published-conflicts.md`"
    )
