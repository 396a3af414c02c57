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


def test_five_printed_averages_are_not_the_mean_of_their_cells() -> None:
    found = {
        (conflict.table, conflict.row): (conflict.printed, conflict.expected)
        for conflict in CONFLICTS
        if conflict.kind == "average"
    }
    assert found == {
        ("simcse-slides-sts", "sbert-base"): ("74.89", "74.860"),
        ("simcse-slides-transfer", "bert-base-avg"): ("84.94", "84.954"),
        ("mocose-acl2022-2", "bert-base-avg"): ("84.94", "84.954"),
        ("promptbert-sts", "promptbert-bert-base"): ("78.54", "78.523"),
        ("consert-sts", "consert-bert-large"): ("76.45", "76.444"),
    }


def test_two_swapped_digits_that_would_mend_an_average_are_named() -> None:
    (found,) = [
        conflict for conflict in CONFLICTS if conflict.kind == "average" and conflict.table == "mocose-acl2022-2"
    ]
    assert found.message.endswith("correct if MRPC were 69.45 instead of 69.54")


def test_all_printed_differences_are_differences_and_all_logs_agree() -> None:
    assert [conflict for conflict in CONFLICTS if conflict.kind in {"difference", "log"}] == []


def test_the_two_rows_of_bert_flow_and_the_seven_defaults_of_mocose_are_listed() -> None:
    found = [conflict for conflict in CONFLICTS if conflict.kind == "prints"]
    assert {(conflict.table, conflict.row) for conflict in found} == {
        ("simcse-slides-sts", "bert-base-flow"),
        ("mocose-acl2022-1", "mocose-bert-base"),
        ("mocose-acl2022-5", "dropout-only"),
    }
    (mocose,) = [conflict for conflict in found if conflict.row == "mocose-bert-base"]
    assert (mocose.printed, mocose.expected) == ("77.27", "76.89, 77.04, 77.25, 77.30, 76.64")


def test_a_preprint_s_value_is_a_finding_of_its_own_kind() -> None:
    found = {
        (conflict.row, conflict.column): (conflict.expected, conflict.printed)
        for conflict in CONFLICTS
        if conflict.kind == "edition"
    }
    assert found["unsup-simcse-bert-base", "Avg."] in {("74.54", "76.25"), ("84.67", "85.81")}
    assert {name for name, _ in found} == {
        f"unsup-simcse-{m}" for m in ("bert-base", "roberta-base", "roberta-large")
    }


def test_trec_accuracies_that_are_no_share_of_500_are_listed() -> None:
    found = {
        (conflict.table, conflict.row)
        for conflict in CONFLICTS
        if conflict.kind == "granularity" and conflict.column == "TREC"
    }
    assert found == {
        ("simcse-slides-transfer", "is-bert-base"),
        ("mocose-acl2022-2", "mocose-bert-base"),
        ("mocose-acl2022-2", "mocose-bert-large"),
    }


def test_a_wrong_cell_is_found_by_its_row_s_average() -> None:
    found = new(changed("esimcse-coling2022-3", lambda entry: put(entry, "ct-bert-base", 1, "78.80")))
    kinds = {(conflict.kind, conflict.row, conflict.column) for conflict in found}
    assert ("average", "ct-bert-base", "Avg.") in kinds
    # MoCoSE prints the cell, too.
    assert ("prints", "ct-bert-base", "STS13") in kinds


def test_a_wrong_difference_is_found() -> None:
    found = new(changed("esimcse-arxiv-v1-5", lambda entry: put(entry, "esimcse-bert-base", 8, "+2.20")))
    assert [(conflict.kind, conflict.printed, conflict.expected) for conflict in found] == [
        ("difference", "2.20", "+2.02")
    ]


def test_a_wrong_difference_within_a_row_is_found() -> None:
    found = new(changed("esimcse-coling2022-8", lambda entry: put(entry, "simcse", 2, "+0.86")))
    assert [(conflict.kind, conflict.expected) for conflict in found] == [("difference", "+0.68")]


def test_a_print_that_differs_from_another_paper_s_is_found() -> None:
    found = new(changed("esimcse-coling2022-9", lambda entry: put(entry, "dup_rate-0.08", 0, "83.6")))
    assert [(conflict.kind, conflict.column) for conflict in found] == [("prints", "STS-B")]


def test_a_print_that_is_another_one_rounded_is_no_finding() -> None:
    assert not new(changed("simcse-slides-overview", lambda entry: put(entry, "is-bert-base", 0, "66.6")))
    assert new(changed("simcse-slides-overview", lambda entry: put(entry, "is-bert-base", 0, "66.7")))


def test_a_value_that_the_training_log_does_not_have_is_found() -> None:
    found = new(changed("esimcse-coling2022-4", lambda entry: put(entry, "esimcse-bert-base", 0, "84.95")))
    assert {conflict.kind for conflict in found} >= {"log", "difference"}


def test_an_accuracy_that_no_count_of_right_answers_gives_is_found() -> None:
    found = new(changed("simcse-slides-transfer", lambda entry: put(entry, "sbert-base", 5, "89.61")))
    assert ("granularity", "sbert-base", "TREC") in {
        (conflict.kind, conflict.row, conflict.column) for conflict in found
    }


def test_a_head_that_names_another_data_set_is_found() -> None:
    def rename(entry: dict[str, Any]) -> None:
        entry["columns"][0]["label"] = "SICK12"

    assert [conflict.kind for conflict in new(changed("mocose-acl2022-1", rename))] == ["header"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_explained(kind: str) -> None:
    assert KINDS[kind]  # type: ignore[index]


def test_the_page_on_conflicts_is_up_to_date() -> None:
    script = [sys.executable, str(DOCS / "conflicts_page.py")]
    printed = subprocess.run(script, check=True, capture_output=True, encoding="utf-8").stdout
    assert (DOCS / "published-conflicts.md").read_text(encoding="utf-8") == printed, (
        "run `python docs/conflicts_page.py > docs/published-conflicts.md`"
    )
