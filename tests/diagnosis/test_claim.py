"""How a claim is read."""

import pytest

from stsbench.base.errors import UserError
from stsbench.diagnosis.axes import NOISE, read_claim

SEVEN = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def test_a_bare_number_is_of_the_task_or_of_the_average_of_the_tasks() -> None:
    claim = read_claim("76.25")
    assert claim.about(("STS16",)).tasks == ("STS16",)
    assert claim.about(SEVEN).tasks == ("Avg.",)
    assert read_claim("sickr=77.58").about(SEVEN).tasks == ("SICK-R",)
    assert read_claim(76.25) == claim


@pytest.mark.parametrize(
    ("text", "printed", "tolerance"),
    [
        ("76.25", "76.25", 0.005),
        ("76", "76", 0.5),
        ("0.7625", "76.25", 0.005),
        ("0.763", "76.3", 0.05),
        ("76.25%", "76.25", 0.005),
        ("0.76%", "0.76", 0.005),
        ("STS16=0.76,STS12=81.21", "0.76", 0.005),  # a low score among others
    ],
    ids=range(7),
)
def test_a_number_is_read_with_its_digits_on_either_scale(text: str, printed: str, tolerance: float) -> None:
    claim = read_claim(text)
    assert str(claim.values[0]) == printed
    assert claim.values[0].tolerance == pytest.approx(tolerance + NOISE)
    assert bool(claim.notes) == (text in {"0.7625", "0.763"})
    assert read_claim(text, tolerance=0.3).values[0].tolerance == 0.3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read the claim ''"),
        ("good", "cannot read 'good' in the claim: write a number"),
        ("STS16=high", "cannot read 'STS16=high' in the claim"),
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
    for tolerance in (0, -1, 100, float("nan")):
        with pytest.raises(UserError, match="give a positive number of points"):
            read_claim("76.25", tolerance)


def test_a_row_claims_its_tasks_in_points_with_what_its_source_states() -> None:
    claim = read_claim("row:unsup-simcse-bert-base")
    assert claim.row is not None
    assert (claim.tasks, str(claim.values[0])) == (SEVEN, "68.40"), "the average follows from the seven"
    claim = read_claim("row:mteb-all-minilm-l6-v2/all-minilm-l6-v2")
    assert claim.tasks == ("STS12", "STS13", "STS15", "STS16", "STS-B", "SICK-R")
    sick = claim.values[-1]
    assert (str(sick), sick.tolerance) == ("77.58", pytest.approx(NOISE))
