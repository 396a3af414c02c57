"""A gate with a margin: no worse, worse, or these pairs cannot tell."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_records import scored_again, with_columns, with_rows
from numpy.typing import NDArray

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.baseline import judged
from stsbench.scoring.statistic import Correlation
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import pearson_terms

PAIRS, HUBS = 240, 60
PEARSON = Correlation("pearson", "all", "cosine")
SHARING = Sharing.of(np.arange(PAIRS) % HUBS, HUBS + np.arange(PAIRS))


def shared(rng: np.random.Generator, strength: float) -> NDArray[np.float64]:
    """Return (n,) standard normal values, of whose variance so much is the hub sentences'."""
    hubs = rng.normal(size=HUBS)[SHARING.first]
    return np.sqrt(strength) * hubs + np.sqrt(1 - strength) * rng.normal(size=PAIRS)


def compared(rng: np.random.Generator, old: float, new: float, strength: float = 0.5) -> AlignedScores:
    """Return a task on which two models have these true correlations."""
    gold = shared(rng, strength)
    sides = [rho * gold + np.sqrt(1 - rho**2) * shared(rng, strength) for rho in (old, new)]
    scores = np.array([np.corrcoef(gold, side)[0, 1] for side in sides])
    terms = np.array([pearson_terms(gold, side) for side in sides])
    return AlignedScores("sts", "x", PEARSON, scores, terms, SHARING, SHARING)


def share_of(verdict: str, loss: float, *, trials: int = 1000, **options: Any) -> float:
    rng = np.random.default_rng(0)
    cells = [judged([compared(rng, 0.8, 0.8 - loss / 100)], 6.0, **options)[0] for _ in range(trials)]
    return float(np.mean([cell.verdict == verdict for cell in cells]))


# Three standard errors of a share of 0.05 in 1000 trials.
ERROR = 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_a_model_whose_loss_is_the_margin_passes_at_most_once_in_twenty() -> None:
    assert share_of("no worse", 6.0) <= 0.05 + ERROR
    assert share_of("worse", 6.0) <= 0.05 + ERROR
    # Pairs taken as independent let more of them through: the sentences matter here.
    assert share_of("no worse", 6.0, interval="independent") > 0.05 + ERROR


def test_a_model_that_lost_nothing_passes_and_a_bad_one_fails_where_the_pairs_can_tell() -> None:
    assert share_of("no worse", -4.0, trials=200) > 0.6
    assert share_of("worse", 30.0, trials=200) > 0.9


def test_of_several_tasks_any_is_worse_at_most_once_in_twenty() -> None:
    rng = np.random.default_rng(1)
    verdicts = []
    for _ in range(300):
        tasks = [compared(rng, 0.8, 0.74) for _ in range(4)]
        verdicts.append(any(cell.verdict == "worse" for cell in judged(tasks, 6.0)))
    assert np.mean(verdicts) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize("margin", [1.0, 4.0, 6.0, 9.0])
def test_bounds_verdict_and_number_of_pairs_agree(margin: float) -> None:
    rng = np.random.default_rng(2)
    verdicts = set()
    for _ in range(40):
        for cell in judged([compared(rng, 0.8, new) for new in (0.8, 0.74, 0.7, 0.65)], margin):
            assert cell.loss_low is not None
            assert cell.loss_high is not None
            bounds = (
                "worse" if cell.loss_low > margin else "no worse" if cell.loss_high < margin else "cannot tell"
            )
            assert cell.verdict == bounds
            verdicts.add(cell.verdict)
            for number in re.findall("about ([0-9,]+) pairs", cell.reason):
                assert PAIRS <= int(number.replace(",", "")) <= 1_100_000
    assert "cannot tell" in verdicts


Records = Callable[[float], sb.RunRecord]


@pytest.fixture(scope="module")
def data() -> list[StsData]:
    """Return two tasks of invented pairs without shared sentences."""
    from stsbench.data.tables import Pair, pair_table

    def task(name: str, seed: int) -> StsData:
        rng = np.random.default_rng(seed)
        rows = [
            Pair("all", "test", str(n), float(rng.integers(0, 11)) / 2, f"{name} one {n}", f"{name} other {n}")
            for n in range(400)
        ]
        return StsData(name, "test", "toy", pair_table(rows), (0.0, 5.0), "user", f"{seed}" * 64, (), ())

    return [task("x", 1), task("y", 2)]


@pytest.fixture
def run(data: list[StsData]) -> Records:
    """Return a maker of records: the gold scores with so much noise, most of it the same in all."""
    record = sb.evaluate(lambda texts: [[len(s), s.count("o")] for s in texts], data, intervals=sb.Intervals(None))

    def make(noise: float) -> sb.RunRecord:
        gold, rng = record.items["gold"], np.random.default_rng(0)
        base, own = rng.normal(size=(2, len(gold)))
        return scored_again(with_columns(record, cosine=gold + base + noise * own))

    return make


def test_a_model_that_hardly_differs_is_no_worse(run: Records) -> None:
    check = sb.check(run(0.02), baseline=run(0.0), margin=1.0)
    assert (check.verdict, check.exit_code, check.passed) == ("no worse", 0, True)
    assert [cell.name for cell in check.cells] == ["x", "y", "Avg."]
    for cell in check.cells:
        assert cell.loss_low is not None
        assert cell.loss_high is not None
        assert cell.difference is not None
        assert cell.loss_low < -cell.difference < cell.loss_high < 1.0
    assert check.sentence.startswith("no worse: ")
    assert check.annotations[0].startswith("::notice")


def test_a_bad_one_is_worse(run: Records, tmp_path: Path) -> None:
    check = sb.check(run(3.0), baseline=run(0.0), margin=1.0)
    assert (check.verdict, check.exit_code, check.passed) == ("worse", 1, False)
    assert check.sentence.startswith("worse: ")
    check.write_junit(tmp_path / "check.xml")
    suite = ET.parse(tmp_path / "check.xml").getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("3", "3")
    assert [line.split(" ")[0] for line in check.annotations] == ["::error"] * 4


def test_between_them_it_cannot_tell_and_says_what_would_make_it(run: Records, tmp_path: Path) -> None:
    old, new = run(0.0), run(0.5)
    check = sb.check(new, baseline=old, margin=3.0)
    assert (check.verdict, check.exit_code) == ("cannot tell", 3)
    assert check.sentence.startswith("cannot tell with these pairs whether ")
    cell = check.of("cannot tell")[0]
    assert cell.loss_high is not None
    assert f"a margin above {np.ceil(100 * cell.loss_high) / 100:.2f} would pass" in cell.reason
    assert "pairs like these 400 would tell" in cell.reason
    # What it says is so.
    (wider,) = (
        each for each in sb.check(new, baseline=old, margin=cell.loss_high + 0.02).cells if each.name == cell.name
    )
    assert wider.verdict == "no worse"
    check.write_junit(tmp_path / "check.xml")
    assert int(ET.parse(tmp_path / "check.xml").getroot()[0].attrib["errors"]) == len(check.of("cannot tell"))


def test_so_many_pairs_would_tell(run: Records) -> None:
    tasks, _ = aligned_scores({"old": run(0.0), "new": run(0.5)})
    cell = judged(tasks[:1], 3.0)[0]
    needed = int(cell.reason.split("about ")[1].split(" ")[0].replace(",", ""))
    times = -(-needed // 400)
    more = AlignedScores(
        "sts",
        "x",
        "spearman",
        tasks[0].scores,
        np.tile(tasks[0].terms, times) / times,
        Sharing.independent(400 * times),
        Sharing.independent(400 * times),
    )
    expected = "no worse" if "no worse, if the loss stays" in cell.reason else "worse"
    assert judged([more], 3.0)[0].verdict == expected


def test_the_same_model_again_is_no_worse(run: Records) -> None:
    check = sb.check(run(0.3), baseline=run(0.3), margin=0.01)
    assert check.verdict == "no worse"
    assert {(cell.loss_low, cell.loss_high) for cell in check.cells} == {(0.0, 0.0)}


def test_programs_get_the_bounds(run: Records) -> None:
    check = sb.check(run(0.5), baseline=run(0.0), margin=3.0)
    told = json.loads(check.to("json"))
    assert (told["kind"], told["allowed"]) == ("margin", 3.0)
    assert {"loss_low", "loss_high", "reason"} <= set(told["cells"][0])
    assert list(check.frame.columns) == [
        "task",
        "baseline",
        "measured",
        "difference",
        "loss at least",
        "loss at most",
        "verdict",
    ]


def test_what_was_not_measured_keeps_the_gate_shut(run: Records) -> None:
    new, old = run(0.1), run(0.0)
    fewer = new.model_copy(update={"scores": new.scores[:1]})
    check = sb.check(fewer, baseline=old, margin=1.0)
    assert (check.verdict, check.exit_code) == ("not comparable", 2)


@pytest.mark.parametrize("margin", [0.0, -0.3, float("nan"), float("inf")])
def test_a_margin_that_is_none_is_refused(margin: float, run: Records) -> None:
    with pytest.raises(sb.UserError, match="points: give a positive number"):
        sb.check(run(0.1), baseline=run(0.0), margin=margin)


def test_options_that_do_not_go_together_are_refused(run: Records) -> None:
    with pytest.raises(sb.UserError, match="--max-drop and --margin cannot go together"):
        sb.check(run(0.1), baseline=run(0.0), margin=1.0, max_drop=1.0)
    with pytest.raises(sb.UserError, match="--margin goes with --baseline"):
        sb.check(run(0.1), margin=1.0)


def test_other_pairs_are_refused(run: Records) -> None:
    old, new = run(0.0), run(0.1)
    with pytest.raises(sb.UserError, match="the baseline and the run do not compare on x: item_id differs"):
        sb.check(with_rows(new, np.arange(len(new.items)) != 5), baseline=old, margin=1.0)
