"""What version 0.1.0 left is read: a committed record, and a report's folder that may be made anew."""

import shutil
from pathlib import Path

import pytest

import stsbench as sb
from stsbench.records.scores import Scores

EXAMPLES = Path(__file__).resolve().parents[1] / "reports" / "examples"
RUNS = EXAMPLES / "trainings" / "runs"


@pytest.fixture
def old() -> sb.RunRecord:
    """Return a record that version 0.1.0 wrote."""
    record = sb.load_run(RUNS / "base")
    assert record.stsbench == "0.1.0"
    return record


def test_a_record_of_0_1_is_shown_with_the_scores_that_it_had(old: sb.RunRecord) -> None:
    assert "78.87" in str(sb.show(old))
    assert old.model.whiten is None
    assert all(text.endswith("stsbench:0.1.0") for text in old.signature.splitlines())


def test_intervals_of_0_1_are_kept_and_said_to_be_of_another_method(old: sb.RunRecord) -> None:
    assert old.protocol.interval == "bootstrap"
    # The committed ones were measured without any.
    assert not [line for line in sb.show(old).remarks if line.startswith("intervals")]
    old = old.model_copy(update={"protocol": old.protocol.model_copy(update={"resamples": 1000})})
    (told,) = [line for line in Scores([old]).remarks if line.startswith("intervals")]
    assert "bootstrap over pairs (as if none shared a sentence), recorded by stsbench 0.1.0" in told
    new = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    both = [line for line in Scores([old, new]).remarks if line.startswith("intervals of ")]
    assert [("0.1.0" in line, "dyadic" in line) for line in both] == [(True, False), (False, True)]


def test_records_of_0_1_are_checked_and_compared(old: sb.RunRecord) -> None:
    assert sb.check(old, against="minilm").frame["measured"].notna().any()
    seeds = [RUNS / f"{name}-seed{number}" for name in ("simcse", "esimcse") for number in (1, 2, 3)]
    comparison = sb.compare(a=seeds[:3], b=seeds[3:])
    assert len(comparison.frame)


def test_a_report_of_0_1_is_made_anew_in_its_place(old: sb.RunRecord, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    shutil.copytree(EXAMPLES / "trainings" / "report", folder)
    page = sb.report(RUNS / "base", folder, analyse=False)
    assert sb.__version__ in page.read_text(encoding="utf-8")
