"""The best of n runs: own ones, and those that are known."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from changed_records import with_values

import stsbench as sb
from stsbench.judging.published import best_of_seeds
from stsbench.statistics.seeds import expected_best

Measure = Callable[..., sb.RunRecord]


def seed(record: sb.RunRecord, score: float, name: str, **changes: object) -> sb.RunRecord:
    """Return a record as of a seed that scores this on every task."""
    weights = hashlib.sha256(name.encode()).hexdigest()
    return with_values(record, score / 100, weights_sha256=weights, **changes)


@pytest.fixture
def runs(measure: Measure) -> list[sb.RunRecord]:
    record = measure()
    return [seed(record, score, str(score)) for score in (74.0, 76.0, 75.0, 75.4)]


def test_a_published_number_is_what_the_best_of_so_many_seeds_gives() -> None:
    found = sb.best_of("unsup-simcse-bert-base")
    assert found.sentence == (
        "unsup-simcse-bert-base scores 75.11 on Avg. on average over 50 runs; 76.25 is what the best of 7 or 8 "
        "runs gives on average, 90 % of single runs are below it."
    )
    assert found.frame["expected"].round(2)[[6, 7]].tolist() == [76.23, 76.28]
    assert found.frame["below"][0] == pytest.approx(0.9)
    assert found.notes[0].startswith("the scores are from: 50 seeds")


def test_runs_of_ones_own_are_held_against_a_number_or_a_published_row(runs: list[sb.RunRecord]) -> None:
    found = sb.best_of(runs, 75.2)
    assert found.expected == pytest.approx(tuple(expected_best([74.0, 75.0, 75.4, 76.0])))
    assert found.typical == (1, 2)
    assert sb.best_of(runs, "unsup-simcse-bert-base").number == 76.25
    assert "is above the best of all of them, 76.00" in sb.best_of(runs, "unsup-simcse-bert-base").sentence
    assert "is no more than one of the runs scores on average" in sb.best_of(runs, 70.0).sentence
    assert sb.best_of(runs).sentence.endswith("the best of 4 76.00, of all 4 76.00.")


def test_a_task_and_the_checkpoints_of_a_training_can_be_asked_for(runs: list[sb.RunRecord]) -> None:
    assert sb.best_of(runs, 75.0, task="x").task == "x"
    curve = sb.best_of("esimcse-bert-base", task="STS-B:dev")
    assert curve.what == "checkpoints"
    assert "over 125 checkpoints" in curve.sentence
    assert sb.best_of("unsup-simcse-bert-base", task="STS12").number == pytest.approx(68.40)


def test_it_is_a_table_a_curve_and_plain_data() -> None:
    found = sb.best_of("unsup-simcse-bert-base")
    (table,) = found.table()
    assert table.frame["best of"].tolist() == [*range(1, 11), 50]
    axes = found.plot().axes[0]
    assert axes.get_xlabel() == "best of so many runs"
    assert len(axes.lines[0].get_xdata()) == 50
    told = json.loads(found.to("json"))
    assert (told["number"], len(told["bests"]), len(told["scores"])) == (76.25, 50, 50)
    assert str(found).endswith("Spearman x 100.")


def test_who_checks_against_a_row_with_seeds_is_told() -> None:
    assert best_of_seeds([74.0, 75.0, 76.0], 77.0) == ", which is more than the best of all of them"
    assert best_of_seeds([74.0, 75.0, 76.0], 74.5) == ""


def test_what_makes_no_sense_is_refused(runs: list[sb.RunRecord]) -> None:
    with pytest.raises(sb.UserError, match="the best of one run is that run"):
        sb.best_of(runs[:1])
    with pytest.raises(sb.UserError, match="run 1 and run 2 are runs of the same weights, which is one seed"):
        sb.best_of([runs[0], runs[0]])
    with pytest.raises(sb.UserError, match="run 1 and run 2 are not seeds of one recipe: pooling is"):
        sb.best_of([runs[0], seed(runs[0], 75.0, "other", use=replace(runs[0].model.use, pooling="cls"))])
    with pytest.raises(sb.UserError, match="no seeds of 'unsup-simcse-bert-bas' are known: did you mean"):
        sb.best_of("unsup-simcse-bert-bas")
    with pytest.raises(sb.UserError, match="no seeds of unsup-simcse-bert-base are known on 'STS99'"):
        sb.best_of("unsup-simcse-bert-base", task="STS99")
    with pytest.raises(sb.UserError, match="no score in common on 'z'"):
        sb.best_of(runs, 75.0, task="z")
    with pytest.raises(sb.UserError, match="a score of nan"):
        sb.best_of(runs, float("nan"))
