"""How a claim is read."""

import pytest

from stsbench.base.errors import UserError
from stsbench.diagnosis.claim import NOISE, read_claim

SEVEN = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def test_a_bare_number_is_of_the_task_or_of_the_average_of_the_tasks() -> None:
    claim = read_claim("76.25")
    assert claim.about(("STS16",)).tasks == ("STS16",)
    assert claim.about(SEVEN).tasks == ("Avg.",)
    assert read_claim("sickr=77.58").about(SEVEN).tasks == ("SICK-R",)


def test_the_tolerance_is_half_a_unit_of_the_last_digit_and_noise() -> None:
    assert [read_claim(text).values[0].tolerance for text in ("76.25", "76.3", "76")] == pytest.approx(
        [0.005 + NOISE, 0.05 + NOISE, 0.5 + NOISE]
    )
    assert read_claim("76.25", tolerance=0.3).values[0].tolerance == 0.3


@pytest.mark.parametrize(
    ("text", "score", "printed"),
    [("0.7625", 76.25, "76.25"), ("0.763", 76.3, "76.3"), ("76.25%", 76.25, "76.25"), ("0.76%", 0.76, "0.76")],
)
def test_a_number_on_the_scale_to_1_is_read_so_and_said(text: str, score: float, printed: str) -> None:
    claim = read_claim(text)
    assert (claim.values[0].score, str(claim.values[0])) == (score, printed)
    assert bool(claim.notes) == (not text.endswith("%"))


def test_one_small_number_among_others_is_a_low_score() -> None:
    low, high = read_claim("STS16=0.76,STS12=81.21").values
    assert (low.score, high.score) == (0.76, 81.21)


def test_numbers_and_mappings_are_claims_too() -> None:
    assert read_claim(76.25) == read_claim("76.25")
    assert read_claim({"STS16": 81.2139, "avg": 78.9}) == read_claim("STS16=81.2139, Avg.=78.90")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read the claim ''"),
        ("good", "cannot read 'good' in the claim: write a number"),
        ("STS16=high", "cannot read 'high' in the claim"),
        ("76,25", "cannot read the claim '76,25': give one number"),
        ("STS16=81.21,STS2016=80", "cannot read the claim .*: give one number, a number for each task"),
        ("STS18=80", r"there is no task 'STS18': did you mean STS1\d"),
        ("MR=80", "MR has labels, not similarity scores"),
        ("STS-B:dev=80", "name only the task"),
        ("STS16=181.21", "a correlation is between -100 and 100"),
        ("row:nonsense", "there is no published row 'nonsense'"),
        ("row:simcse-slides-transfer/glove-avg", "prints no Spearman's or Pearson's correlation of an STS task"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_claim(text)


@pytest.mark.parametrize("tolerance", [0, -1, 100, float("nan")])
def test_a_tolerance_is_a_positive_number_of_points(tolerance: float) -> None:
    with pytest.raises(UserError, match="give a positive number of points"):
        read_claim("76.25", tolerance)


def test_a_row_claims_its_tasks_and_leaves_the_average_that_follows_from_them() -> None:
    claim = read_claim("row:unsup-simcse-bert-base")
    assert claim.tasks == SEVEN
    assert claim.row is not None
    assert str(claim.values[0]) == "68.40"


def test_a_row_on_the_scale_to_1_is_claimed_in_points_with_what_it_states() -> None:
    claim = read_claim("row:mteb-all-minilm-l6-v2/all-minilm-l6-v2")
    assert claim.tasks == ("STS12", "STS13", "STS15", "STS16", "STS-B", "SICK-R")
    sick = claim.values[-1]
    assert (str(sick), sick.tolerance) == ("77.58", pytest.approx(NOISE))
    assert ("SICK-R split", "all") in sick.stated
    assert "text" not in dict(sick.stated), "the row leaves the text open"


def test_a_row_states_how_its_model_was_used_as_far_as_its_source_says_it() -> None:
    (first, *_) = read_claim("row:prompteol").values
    assert dict(first.stated)["template"] == "prompteol"
    assert "precision" not in dict(first.stated), "the command's code says it, the page does not"
    (first, *_) = read_claim("row:promcse").values
    assert dict(first.stated)["pooling"] == "cls_before_pooler"
    assert [value.task for value in read_claim("row:diffcse").values] == list(SEVEN)
