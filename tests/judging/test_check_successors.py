"""`check` knows the rows that were read from public repositories, and how their models were used."""

from collections.abc import Callable, Mapping

import pytest

import stsbench as sb
from stsbench.judging.check import check
from stsbench.published.catalogue import checkpoints, row

MakeRun = Callable[..., sb.RunRecord]
Printed = Callable[[str], Mapping[str, float]]


@pytest.mark.parametrize(
    "name", ["diffcse-bert-base", "pcl-roberta-large", "infocse-bert-base", "whitenedcse-bert-large"]
)
def test_a_run_of_a_successor_s_checkpoint_passes_against_its_own_row(
    make_run: MakeRun, printed: Printed, name: str
) -> None:
    known = checkpoints()[name]
    run = make_run(printed(name), {"name": known.hub, "pooling": known.pooling})
    found = check(run)
    assert found.passed
    assert row(name).name in found.against


def test_another_precision_than_the_row_s_is_remarked_on(make_run: MakeRun, printed: Printed) -> None:
    used = {"name": "royokong/prompteol-opt-2.7b", "pooling": "last", "precision": "fp32"}
    assert "precision: fp16 for the row; fp32 here" in check(make_run(printed("prompteol"), used)).notes
    same = check(make_run(printed("prompteol"), used | {"precision": "fp16"}))
    assert not any("precision" in note for note in same.notes)


def test_a_pooling_that_is_not_the_row_s_is_told(make_run: MakeRun, printed: Printed) -> None:
    found = check(make_run(printed("whitenedcse-bert-base")), "whitenedcse-bert-base")
    assert {cell.verdict for cell in found.cells} == {"not comparable"}
    assert "pooling" in found.cells[0].reason


def test_the_transfer_checkpoint_of_diffcse_is_not_held_against_the_sts_row(
    make_run: MakeRun, printed: Printed
) -> None:
    run = make_run(printed("diffcse-bert-base"), {"name": "voidism/diffcse-bert-base-uncased-trans"})
    assert check(run).against == ("diffcse-transfer/diffcse-bert-base-trans",)
