"""`stsbench.testing`: a published row as an assertion; and golden results of a real model against their row."""

import json
from pathlib import Path

import pytest

import stsbench as sb
from stsbench.testing import assert_matches_published

ROW = "mteb-all-minilm-l6-v2/all-minilm-l6-v2"


def write(path: Path, value: float) -> Path:
    path.write_text(json.dumps({"model": "mine", "cosine_spearman": {"STS16": value}}), encoding="utf-8")
    return path


def test_a_run_that_matches_is_returned_as_its_check(tmp_path: Path) -> None:
    found = assert_matches_published(write(tmp_path / "x.json", 0.7899), ROW, tolerance=0.01)
    assert found.verdict == "pass"


def test_one_that_does_not_fails_the_test_with_the_table(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"fail: mine: 0 of 1 scores (.|\n)*STS16 +78\.99 +70\.00"):
        assert_matches_published(write(tmp_path / "x.json", 0.70), against=ROW)


def test_one_that_does_not_compare_fails_too(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="is not comparable with"):
        assert_matches_published(write(tmp_path / "x.json", 0.70), against="gaussian-dropout")


def test_a_mistake_is_no_failure_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match="no published row is known for mine"):
        assert_matches_published(write(tmp_path / "x.json", 0.70))


@pytest.mark.shared
def test_the_golden_results_of_mteb_match_their_row_and_senteval_s_do_not_on_sick_r(shared: Path) -> None:
    golden = shared / "golden"
    assert_matches_published(golden / "all-MiniLM-L6-v2.mteb.json", tolerance=0.0001)
    found = sb.check(golden / "all-MiniLM-L6-v2.mean.senteval.json", "minilm", tolerance=0.01)
    assert (len(found.of("pass")), [cell.name for cell in found.of("not comparable")]) == (5, ["SICK-R"])
    assert "split is test, expected all" in found.sentence
