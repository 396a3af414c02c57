"""Several models on the same pairs: their order, and how much of it the pairs show."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from changed_records import scored_again, with_columns
from scipy.stats import spearmanr, ttest_rel

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.aligned import AlignedScores
from stsbench.judging.compare import differences
from stsbench.judging.rank import ranking_of
from stsbench.judging.verdicts import records
from stsbench.records.store import save_run
from stsbench.scoring.statistic import Correlation
from stsbench.statistics import Dependence
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import spearman_terms

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]


def of_weights(record: sb.RunRecord, name: str) -> sb.RunRecord:
    """Return a record as of a checkpoint of this name."""
    weights = hashlib.sha256(name.encode()).hexdigest()
    return record.model_copy(
        update={"model": record.model.model_copy(update={"name": name, "weights_sha256": weights})}
    )


def near_gold(record: sb.RunRecord, noise: float, seed: int) -> sb.RunRecord:
    """Return a record whose similarities are the gold scores with so much noise."""
    gold, rng = record.items["gold"], np.random.default_rng(seed)
    changed = scored_again(with_columns(record, cosine=gold + noise * rng.normal(size=len(gold))))
    return of_weights(changed, f"noise {noise:g}")


@pytest.fixture
def runs(measure: Measure, toy_data: Data) -> list[sb.RunRecord]:
    """Return a good model, two that are alike, and a bad one."""
    record = measure([toy_data("x", pairs=150), toy_data("y", pairs=150, seed=1)])
    return [near_gold(record, noise, seed) for seed, noise in enumerate((3.0, 0.2, 3.01, 40.0))]


def test_the_good_one_leads_two_cannot_be_told_apart_and_the_bad_one_is_last(runs: list[sb.RunRecord]) -> None:
    ranking = sb.rank(runs)
    assert (list(ranking.p), ranking.headlines) == (["x", "y", "Avg."], ["Avg."])
    average = ranking.of("Avg.")
    names = average["model"].tolist()
    assert names[0] == "noise 0.2"
    assert set(names[1:3]) == {"noise 3", "noise 3.01"}
    assert average[["best", "worst"]].values.tolist() == [[1, 1], [2, 3], [2, 3], [4, 4]]
    assert average["letters"].map("".join).tolist() == ["a", "b", "b", "c"]
    assert average["first"][0] == 1.0
    assert ranking.sentence.startswith(f"noise 0.2 is best on STS average ({average['score'][0]:.2f}); noise 3")


def test_its_scores_and_intervals_are_those_of_the_records(measure: Measure) -> None:
    runs = [of_weights(measure(noise=noise, seed=7), str(noise)) for noise in (0.0, 2.0)]
    rows = sb.rank(runs).rows
    parts = [*runs[0].scores, *runs[0].averages]
    for row, score in zip(records(rows[rows["model"] == "0.0"]), parts, strict=True):
        assert row.score == pytest.approx(100 * (score.value or 0))
        assert (row.low, row.high) == pytest.approx(tuple(100 * limit for limit in score.interval or ()))


def six_models(seed: int, pairs: int = 150, sentences: int = 60) -> AlignedScores:
    """Return six models, some of them nearly alike, on pairs that share sentences."""
    rng = np.random.default_rng(seed)
    sharing = Sharing.of(rng.integers(sentences, size=pairs), sentences + rng.integers(sentences, size=pairs))
    gold = rng.normal(size=pairs)
    sides = gold + rng.normal(size=pairs) + rng.choice([0.2, 1.0, 2.0], size=(6, 1)) * rng.normal(size=(6, pairs))
    scores = np.array([spearmanr(gold, side).statistic for side in sides])
    terms = np.array([spearman_terms(gold, side) for side in sides])
    statistic = Correlation("spearman", "all", "cosine")
    return AlignedScores("sts", "x", statistic, scores, terms, sharing, sharing)


@pytest.mark.parametrize("interval", ["dyadic", "components", "independent"])
def test_a_further_model_never_lowers_a_corrected_p(interval: Dependence) -> None:
    for seed in range(15):
        every = six_models(seed)
        smaller: dict[tuple[int, int], float] = {}
        models = np.random.default_rng(seed).permutation(6)
        for size in range(2, 7):
            chosen = sorted(models[:size])
            some = replace(every, scores=every.scores[chosen], terms=every.terms[chosen])
            p = ranking_of(some, interval, draws=300).p
            for one, other in combinations(range(size), 2):
                pair = chosen[one], chosen[other]
                assert p[one, other] >= smaller.get(pair, 0.0)
                smaller[pair] = p[one, other]
            if size == 2:
                assert p[0, 1] == pytest.approx(differences([some], sb.Intervals(interval))["p"][0], rel=1e-12)


def test_how_a_ranking_is_shown(runs: list[sb.RunRecord]) -> None:
    ranking = sb.rank(runs, draws=200)
    headline, tasks = ranking.table()
    assert headline.frame["model"][0] == "noise 0.2"
    assert list(tasks.frame.columns) == ["model", "x", "y", "Avg."]
    assert len(ranking.frame) == 3 * 4
    labels = [label.get_text() for label in ranking.plot().axes[0].get_yticklabels()]
    assert labels[:2] == ["noise 0.2, rank 1", f"{headline.frame['model'][1]}, rank 2 to 3"]
    assert sb.rank(runs, draws=200).to("json") == ranking.to("json")
    together = sb.rank(runs, draws=200, simultaneous=True)
    for alone, wide in zip(records(ranking.rows), records(together.rows), strict=True):
        assert wide.best <= alone.best <= alone.rank <= alone.worst <= wide.worst


def test_the_largest_group_of_comparable_runs_is_ranked_and_the_others_are_named(
    runs: list[sb.RunRecord], measure: Measure, toy_data: Data, tmp_path: Path
) -> None:
    tasks = [toy_data("x", pairs=150), toy_data("y", pairs=150, seed=1)]
    elsewhere = of_weights(measure([toy_data("z")]), "elsewhere")
    by_dot = of_weights(measure(tasks, protocol=sb.protocol(similarity="dot")), "noise 3")
    model = runs[0].model.model_copy(update={"kind": "imported", "name": "theirs", "weights_sha256": None})
    imported, again = runs[0].model_copy(update={"model": model}), save_run(runs[1], tmp_path / "again")
    ranking = sb.rank([elsewhere, runs[0], by_dot, imported, *runs[1:], again])
    assert ranking.frame["score"].tolist() == sb.rank(runs).frame["score"].tolist()
    (left_out,) = ranking.notes
    for fragment in (
        "noise 3 and elsewhere have no task in common",
        "similarity is cosine in one and dot in the other",
        "theirs was imported",
        "(again) is the same model as noise 0.2",
    ):
        assert fragment in left_out


def test_mistakes(runs: list[sb.RunRecord]) -> None:
    for models, options, fragment in (
        ([runs[0]] * 101, {}, "expected 2 to 100 runs, got 101"),
        ([runs[0], runs[0]], {}, "is the same model as"),
        (runs, {"interval": "dyadik"}, "did you mean dyadic"),
        (runs, {"level": 2}, "a confidence level of 2"),
    ):
        with pytest.raises(sb.UserError, match=fragment):
            sb.rank(models, **options)  # type: ignore[arg-type]
    # The same weights, used in another way, are another model.
    shorter = runs[0].model.model_copy(update={"use": replace(runs[0].model.use, dimensions=4)})
    assert len(sb.rank([runs[0], runs[0].model_copy(update={"model": shorter})]).models) == 2


def test_the_average_has_intervals_over_other_tasks(
    runs: list[sb.RunRecord], measure: Measure, toy_data: Data
) -> None:
    ranking = sb.rank(runs, draws=200)
    tasks = ranking.rows[ranking.rows["tasks"] == 1]
    first, *others = records(ranking.of("Avg."))
    for row in (first, *records(tasks)):
        assert np.isnan([row.to_first, row.tasks_low, row.tasks_high]).all()
    for row in others:
        paired = ttest_rel(*(tasks["score"][tasks["model"] == of.model] for of in (row, first)))
        assert row.to_first == pytest.approx(row.score - first.score)
        assert (row.tasks_low, row.tasks_high) == pytest.approx(tuple(paired.confidence_interval(0.95)))
    assert ranking.frame["tasks"].tolist() == [1] * 8 + [2] * 4
    assert [*ranking.table()[0].frame.columns][-3:] == ["to first", "tasks 2.5 %", "tasks 97.5 %"]
    single = [of_weights(measure([toy_data("x")], noise=n, seed=3), str(n)) for n in (0.5, 1.5)]
    assert "to first" not in sb.rank(single, draws=200).table()[0].frame.columns
