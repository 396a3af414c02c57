"""Runs against an earlier run: the margin."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_records import scored_again, with_columns
from numpy.typing import NDArray

import stsbench as sb
from stsbench.data.tables import Pair, StsData, pair_table
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.check import judged
from stsbench.scoring.statistic import Correlation
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import pearson_terms

Records = Callable[[float], sb.RunRecord]

PAIRS, HUBS = 240, 60
PEARSON = Correlation("pearson", "all", "cosine")
SHARING = Sharing.of(np.arange(PAIRS) % HUBS, HUBS + np.arange(PAIRS))


def shared(rng: np.random.Generator, strength: float) -> NDArray[np.float64]:
    """Returns (n,) standard normal values, a share of whose variance is due to the shared sentences."""
    hubs = rng.normal(size=HUBS)[SHARING.first]
    return np.sqrt(strength) * hubs + np.sqrt(1 - strength) * rng.normal(size=PAIRS)


def compared(rng: np.random.Generator, old: float, new: float, strength: float = 0.5) -> AlignedScores:
    """Returns a task on which two models have these true correlations."""
    gold = shared(rng, strength)
    sides = [rho * gold + np.sqrt(1 - rho**2) * shared(rng, strength) for rho in (old, new)]
    scores = np.array([np.corrcoef(gold, side)[0, 1] for side in sides])
    terms = np.array([pearson_terms(gold, side) for side in sides])
    return AlignedScores("sts", "x", PEARSON, scores, terms, SHARING, SHARING)


def share_of(verdict: str, loss: float, *, tasks: int = 1, trials: int = 1000, **options: Any) -> float:
    rng = np.random.default_rng(0)
    cells = [
        judged([compared(rng, 0.8, 0.8 - loss / 100) for _ in range(tasks)], 6.0, **options) for _ in range(trials)
    ]
    return float(np.mean([any(cell.verdict == verdict for cell in of_trial) for of_trial in cells]))


# Three standard errors of a share of 0.05 in 1000 and 300 trials.
ERROR, LARGER_ERROR = (3 * np.sqrt(0.05 * 0.95 / trials) for trials in (1000, 300))


def test_error_rates_at_the_margin() -> None:
    assert share_of("within margin", 6.0) <= 0.05 + ERROR
    assert share_of("worse", 6.0) <= 0.05 + ERROR
    assert share_of("worse", 6.0, tasks=4, trials=300) <= 0.05 + LARGER_ERROR
    # Shared sentences matter here.
    assert share_of("within margin", 6.0, interval="independent") > 0.05 + ERROR
    assert share_of("within margin", -4.0, trials=200) > 0.6
    assert share_of("worse", 30.0, trials=200) > 0.9


@pytest.mark.parametrize("margin", [1.0, 4.0, 6.0, 9.0])
def test_bounds_verdict_and_number_of_pairs_agree(margin: float) -> None:
    rng = np.random.default_rng(2)
    verdicts = set()
    for _ in range(40):
        for cell in judged([compared(rng, 0.8, new) for new in (0.8, 0.74, 0.7, 0.65)], margin):
            low, high = cell.loss_low or 0.0, cell.loss_high or 0.0
            expected = "worse" if low > margin else "within margin" if high < margin else "undecided"
            assert cell.verdict == expected
            verdicts.add(cell.verdict)
            if "about" in cell.reason:
                assert PAIRS <= needed(cell.reason) <= 1_100_000
    assert "undecided" in verdicts


def needed(reason: str) -> int:
    return int(reason.split("about ")[1].split(" ", maxsplit=1)[0].replace(",", ""))


@pytest.fixture(scope="module")
def record() -> sb.RunRecord:
    """Returns a record of two tasks whose pairs share no sentences."""

    def task(name: str, seed: int) -> StsData:
        rng = np.random.default_rng(seed)
        rows = [
            Pair("all", "test", str(n), float(rng.integers(0, 11)) / 2, f"{name} one {n}", f"{name} other {n}")
            for n in range(400)
        ]
        return StsData(name, "test", "toy", pair_table(rows), (0.0, 5.0), "user", f"{seed}" * 64, (), ())

    tasks = [task("x", 1), task("y", 2)]
    return sb.evaluate(lambda texts: [[len(s), s.count("o")] for s in texts], tasks, intervals=sb.Intervals(None))


@pytest.fixture
def run(record: sb.RunRecord) -> Records:
    """Returns a maker of records: the gold scores with noise, most of it the same in all."""

    def make(noise: float) -> sb.RunRecord:
        gold, rng = record.items["gold"], np.random.default_rng(0)
        base, own = rng.normal(size=(2, len(gold)))
        return scored_again(with_columns(record, cosine=gold + base + noise * own))

    return make


@pytest.mark.parametrize(
    ("noise", "margin", "verdict", "code"),
    [(0.02, 1.0, "within margin", 0), (3.0, 1.0, "worse", 1), (0.5, 3.0, "undecided", 3)],
)
def test_a_margin(noise: float, margin: float, verdict: str, code: int, run: Records, tmp_path: Path) -> None:
    check = sb.check(run(noise), baseline=run(0.0), margin=margin)
    assert (check.verdict, check.exit_code, check.passed) == (verdict, code, not code)
    assert check.sentence.startswith(verdict)
    assert [cell.name for cell in check.cells] == ["x", "y", "Avg."]
    for cell in check.cells:
        assert (cell.loss_low or 0) < -(cell.difference or 0) < (cell.loss_high or 0)
    check.write_junit(tmp_path / "check.xml")
    suite = ET.parse(tmp_path / "check.xml").getroot()[0]
    counts = [str(len(check.of(which))) for which in ("worse", "undecided")]
    assert [suite.attrib[name] for name in ("tests", "failures", "errors")] == ["3", *counts]
    assert {"loss at least", "loss at most"} <= set(check.frame.columns)


def test_the_remedies_are_true(run: Records) -> None:
    old, new = run(0.0), run(0.5)
    check = sb.check(new, baseline=old, margin=3.0)
    cell = check.of("undecided")[0]
    enough = np.ceil(100 * (cell.loss_high or 0)) / 100
    assert f"a margin above {enough:.2f}" in cell.reason
    wider = {each.name: each.verdict for each in sb.check(new, baseline=old, margin=enough + 0.01).cells}
    assert wider[cell.name] == "within margin"
    (task, *_), _ = aligned_scores({"old": old, "new": new})
    reason = judged([task], 3.0)[0].reason
    times = -(-needed(reason) // 400)
    many = Sharing.of(np.arange(400 * times))
    more = replace(task, terms=np.tile(task.terms, times) / times, sharing=many, folded=many, items=())
    assert judged([more], 3.0)[0].verdict == ("within margin" if "(within margin, if" in reason else "worse")


def test_the_same_model_is_within_any_margin(run: Records) -> None:
    check = sb.check(run(0.3), baseline=run(0.3), margin=0.01)
    assert check.verdict == "within margin"
    assert {(cell.loss_low, cell.loss_high) for cell in check.cells} == {(0.0, 0.0)}


def test_mistakes(run: Records) -> None:
    old, new = run(0.0), run(0.1)
    fewer = new.model_copy(update={"scores": new.scores[:1]})
    for record, margin, fragment in (
        (new, float("nan"), "give a positive number"),
        (fewer, None, "no score on y, which the baseline has"),
    ):
        with pytest.raises(sb.UserError, match=fragment):
            sb.check(record, baseline=old, margin=margin)
