"""The check finds what does not add up, and finds nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stsbench.published.catalogue import row, rows, tables
from stsbench.published.conflicts import KINDS, Conflict, find_conflicts, other_prints
from stsbench.published.conflicts_page import conflicts_page
from stsbench.published.schema import PublishedTable

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


def test_our_own_entries_hold_together() -> None:
    assert [conflict for conflict in CONFLICTS if conflict.kind == "entry"] == []


def test_five_printed_averages_are_not_the_mean_of_their_cells() -> None:
    found = {(one.table, one.row): (one.printed, one.expected) for one in CONFLICTS if one.kind == "average"}
    assert found == {
        ("simcse-slides-sts", "sbert-base"): ("74.89", "74.860"),
        ("simcse-slides-transfer", "bert-base-avg"): ("84.94", "84.954"),
        ("mocose-acl2022-2", "bert-base-avg"): ("84.94", "84.954"),
        ("promptbert-sts", "promptbert-bert-base"): ("78.54", "78.523"),
        ("consert-sts", "consert-bert-large"): ("76.45", "76.444"),
    }


def test_two_swapped_digits_that_would_mend_an_average_are_named() -> None:
    (found,) = [one for one in CONFLICTS if one.kind == "average" and one.table == "mocose-acl2022-2"]
    assert found.message.endswith("it would be right if MRPC were 69.45 instead of 69.54")


def test_all_printed_differences_are_differences_and_all_logs_agree() -> None:
    assert [one for one in CONFLICTS if one.kind in {"difference", "log"}] == []


def test_the_two_rows_of_bert_flow_and_the_seven_defaults_of_mocose_are_listed() -> None:
    found = [one for one in CONFLICTS if one.kind == "prints"]
    assert {(one.table, one.row) for one in found} == {
        ("simcse-slides-sts", "bert-base-flow"),
        ("mocose-acl2022-1", "mocose-bert-base"),
        ("mocose-acl2022-5", "dropout-only"),
    }
    (mocose,) = [one for one in found if one.row == "mocose-bert-base"]
    assert (mocose.printed, mocose.expected) == ("77.27", "76.89, 77.04, 77.25, 77.30, 76.64")


def test_a_preprint_s_value_is_a_finding_of_its_own_kind() -> None:
    found = {(one.row, one.column): (one.expected, one.printed) for one in CONFLICTS if one.kind == "edition"}
    assert found["unsup-simcse-bert-base", "Avg."] in {("74.54", "76.25"), ("84.67", "85.81")}
    assert {name for name, _ in found} == {
        f"unsup-simcse-{m}" for m in ("bert-base", "roberta-base", "roberta-large")
    }


def test_trec_accuracies_that_are_no_share_of_500_are_listed() -> None:
    found = {(one.table, one.row) for one in CONFLICTS if one.kind == "granularity" and one.column == "TREC"}
    assert found == {
        ("simcse-slides-transfer", "is-bert-base"),
        ("mocose-acl2022-2", "mocose-bert-base"),
        ("mocose-acl2022-2", "mocose-bert-large"),
    }


def test_a_wrong_cell_is_found_by_its_row_s_average() -> None:
    found = new(changed("esimcse-coling2022-3", lambda entry: put(entry, "ct-bert-base", 1, "78.80")))
    kinds = {(one.kind, one.row, one.column) for one in found}
    assert ("average", "ct-bert-base", "Avg.") in kinds
    # MoCoSE prints the cell too, and restores its own from this one.
    assert ("prints", "ct-bert-base", "STS13") in kinds


def test_a_wrong_difference_is_found() -> None:
    found = new(changed("esimcse-arxiv-v1-5", lambda entry: put(entry, "esimcse-bert-base", 8, "(+2.20)")))
    assert [(one.kind, one.printed, one.expected) for one in found] == [("difference", "2.20", "+2.02")]


def test_a_wrong_difference_within_a_row_is_found() -> None:
    found = new(changed("esimcse-coling2022-8", lambda entry: put(entry, "simcse", 2, "(+0.86)")))
    assert [(one.kind, one.expected) for one in found] == [("difference", "+0.68")]


def test_a_print_that_differs_from_another_paper_s_is_found() -> None:
    found = new(changed("esimcse-coling2022-9", lambda entry: put(entry, "dup_rate-0.08", 0, "83.6")))
    assert [(one.kind, one.column) for one in found] == [("prints", "STS-B")]


def test_a_print_that_is_another_one_rounded_is_no_finding() -> None:
    assert not new(changed("simcse-slides-overview", lambda entry: put(entry, "is-bert-base", 0, "66.6")))
    assert new(changed("simcse-slides-overview", lambda entry: put(entry, "is-bert-base", 0, "66.7")))


def test_a_value_that_the_training_log_does_not_have_is_found() -> None:
    found = new(changed("esimcse-coling2022-4", lambda entry: put(entry, "esimcse-bert-base", 0, "84.95")))
    assert {one.kind for one in found} >= {"log", "difference"}


def test_an_accuracy_that_no_count_of_right_answers_gives_is_found() -> None:
    found = new(changed("simcse-slides-transfer", lambda entry: put(entry, "sbert-base", 5, "89.61")))
    assert ("granularity", "sbert-base", "TREC") in {(one.kind, one.row, one.column) for one in found}


def test_a_head_that_names_another_data_set_is_found() -> None:
    def rename(entry: dict[str, Any]) -> None:
        entry["columns"][0]["label"] = "SICK12"

    assert [one.kind for one in new(changed("mocose-acl2022-1", rename))] == ["header"]


def test_a_restored_value_whose_evidence_does_not_hold_is_a_mistake_of_ours() -> None:
    def misread(entry: dict[str, Any]) -> None:
        row_of(entry, "mocose-bert-large")["restored"][0]["value"] = "75.40"

    found = new(changed("mocose-acl2022-1", misread))
    assert {one.kind for one in found} == {"average", "entry"}


def test_a_row_of_an_unknown_system_is_a_mistake_of_ours() -> None:
    def misname(entry: dict[str, Any]) -> None:
        row_of(entry, "declutr-roberta-base")["system"] = "declutter"

    assert "entry" in {one.kind for one in new(changed("mocose-acl2022-1", misname))}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_explained(kind: str) -> None:
    assert KINDS[kind]  # type: ignore[index]


def test_other_prints_of_a_cell_are_linked() -> None:
    cell = row("esimcse-coling2022-3/bert-base-flow").cell("Avg.")
    found = {(other.table, other.value) for other in other_prints(cell, rows().values())}
    assert found == {("simcse-slides-sts", 66.55), ("mocose-acl2022-1", 66.55)}


def test_the_page_on_conflicts_is_up_to_date() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "published-conflicts.md"
    assert page.read_text(encoding="utf-8") == conflicts_page(), (
        "run `stsbench published conflicts --page > docs/published-conflicts.md`"
    )
