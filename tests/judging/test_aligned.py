"""Models on the same items: which scores compare, for every kind of score."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from changed_records import with_columns, with_rows

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.verdicts import records
from stsbench.scoring.import_results import import_results
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.kinds.sts import PairClassification
from stsbench.statistics.correlations import average_precision

Measure = Callable[..., sb.RunRecord]
Data = Callable[..., StsData]
Maker = Callable[[float], sb.RunRecord]

KINDS = ("sts", "transfer", "supervised", "pair-classification", "given")


def with_table(data: StsData, **columns: list[object] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> StsData:
    return replace(data, pairs=data.pairs.assign(**columns))


@pytest.fixture
def run(request: pytest.FixtureRequest, measure: Measure, toy_data: Data, tmp_path: Path) -> Maker:
    """Returns a maker of records of a kind, by the noise in the model's predictions."""
    kind: str = request.param

    def given(noise: float) -> sb.RunRecord:
        rng = np.random.default_rng(0)
        base, own = rng.normal(size=(2, 60))
        lines = [f"quora,q{n},{0.5 + 0.1 * base[n] + noise * own[n]:.6f},g{n // 2}" for n in range(60)]
        table = tmp_path / f"{noise}.csv"
        table.write_text("\n".join(["task,item,score,group", *lines]), encoding="utf-8")
        return import_results(table)

    pairs = toy_data("x", pairs=90)
    gold = pairs.pairs["gold"].to_numpy()
    splits = [("train", "dev", "test")[number % 3] for number in range(90)]
    tasks = {
        "sts": pairs,
        "transfer": "sample-sentiment",
        "supervised": Relatedness(with_table(pairs, split=splits)),
        "pair-classification": PairClassification(with_table(pairs, gold=(gold > 2.5).astype(np.float64))),
    }
    return given if kind == "given" else lambda noise: measure([tasks[kind]], noise=noise, seed=1)


every_kind = pytest.mark.parametrize("run", KINDS, indirect=True)


def aligned(*records: sb.RunRecord) -> tuple[AlignedScores, ...]:
    return aligned_scores({f"run {number}": record for number, record in enumerate(records)})[0]


@every_kind
def test_every_kind_of_score_is_compared_ranked_gated_and_planned(run: Maker) -> None:
    old, new = run(0.0), run(3.0)
    score = old.scores[0]
    row, *subsets = records(sb.compare(old, new).rows)
    assert (row.kind, row.size) == (score.kind, score.items)
    assert row.a == pytest.approx(100 * (score.value or 0), abs=1.0)  # nested folds: the mean over folds
    assert row.difference != 0
    assert row.low < row.difference < row.high
    assert 0 < row.p < 1
    assert {part.subset for part in subsets} <= {"first", "second"}
    ranked = records(sb.rank([old, new]).rows)
    assert {place.score for place in ranked} == {row.a, row.b}
    assert all(place.low < place.score < place.high for place in ranked)
    (cell,) = sb.check(new, baseline=old, margin=99.0).cells
    assert cell.verdict == "within margin"
    assert (cell.loss_low or np.inf) < -row.difference < (cell.loss_high or -np.inf)
    assert sb.plan(old, new, difference=1.0).rows["error"][0] > 0
    assert sb.compare([old], [new]).frame["a_mean"][0] == pytest.approx(100 * (score.value or 0))


@every_kind
def test_the_order_of_the_items_does_not_matter(run: Maker) -> None:
    old, new = run(0.0), run(0.4)
    shuffled = with_rows(new, np.random.default_rng(0).permutation(len(new.items)))
    for straight, mixed in zip(aligned(old, new, old), aligned(old, shuffled, old), strict=True):
        assert mixed.scores.tolist() == straight.scores.tolist()
        assert mixed.terms.tolist() == straight.terms.tolist()


@every_kind
def test_other_items_or_another_truth_under_the_same_signature_do_not_compare(run: Maker) -> None:
    record = run(0.0)
    items = record.items
    renamed = with_columns(record, item_id=np.array([f"{name}b" for name in items["item_id"]], dtype=object))
    with pytest.raises(
        sb.UserError, match=r"run 0 and run 1 are not comparable on [\w:-]+: item_id differs \(\d+ of"
    ):
        aligned(record, renamed)
    fewer = with_rows(record, np.flatnonzero(items["split"] == record.scores[0].split)[1:])
    with pytest.raises(
        sb.UserError, match=r"run 0 and run 2 are not comparable on [\w:-]+: item_id differs \(1 of"
    ):
        aligned(record, record, fewer)
    for truth in {"gold", "label"} & set(record.scores[0].about.columns):
        other = [f"{value}b" for value in items[truth]] if truth == "label" else items[truth] + 1
        changed = record.with_items(items.assign(**{truth: other}))
        with pytest.raises(sb.UserError, match=f"{truth} differs for the same item_id"):
            aligned(record, changed)


@pytest.mark.parametrize("run", ["pair-classification"], indirect=True)
def test_each_subset_of_a_pair_classification_has_its_average_precision(run: Maker) -> None:
    old, new = run(0.0), run(0.4)
    row, *subsets = records(sb.compare(old, new).rows)
    assert [part.subset for part in subsets] == ["first", "second"]
    items = new.items[new.items["subset"] == "second"]
    assert subsets[1].b == pytest.approx(100 * average_precision(items["gold"], items["cosine"])[0])
    # There is no usual effect size of it, and no test of independent pairs.
    assert (row.effect_size, row.test) == ("", "")
    assert math.isnan(row.effect)


@pytest.mark.parametrize("run", ["given"], indirect=True)
def test_items_of_one_group_depend_on_each_other(run: Maker) -> None:
    grouped = aligned(run(0.0), run(0.4))[0]
    assert grouped.sharing.components.tolist() == [number // 2 for number in range(60)]
    terms = grouped.terms[1] - grouped.terms[0]
    by_group = (terms.reshape(30, 2).sum(axis=1) ** 2).sum()
    components, independent = (
        grouped.estimate((-1, 1), method).variance.value for method in ("components", "independent")
    )
    assert components == pytest.approx(max(by_group * 30 / 29, independent), rel=0.05)


def test_tasks_and_splits_that_not_all_runs_have_are_left_out(measure: Measure, toy_data: Data) -> None:
    alone, mixed = measure(["sample-sentiment"]), measure([toy_data("x"), "sample-sentiment"])
    assert [task.task for task in (*aligned(alone, mixed), *aligned(mixed, alone))] == ["sample-sentiment"] * 2
    splits = [toy_data("x"), toy_data("x", split="dev", seed=2)]
    names = [task.task for task in aligned(measure(splits), measure(splits, noise=1))]
    assert names == ["x:test", "x:dev", "Avg."]
    tasks, notes = aligned_scores({"one": measure(splits), "two": measure([toy_data("x")])})
    assert [task.task for task in tasks] == ["x"]
    assert notes == ("not all records hold x:dev: left out.",)


def test_scores_that_do_not_compare(measure: Measure, toy_data: Data, tmp_path: Path) -> None:
    x = measure([toy_data("x")], out=tmp_path / "run")
    first, *others = x.scores[0].numbers
    stated = x.scores[0].model_copy(update={"numbers": (first.model_copy(update={"value": 0.1234}), *others)})
    changed = x.model_copy(update={"scores": (stated,)})
    for other, fragment in (
        (changed, r"the score 12\.3400 of run 1 on x, but its items give"),
        (measure([toy_data("z")]), "run 0 and run 1 have no task in common: measure them on the same"),
        (measure([toy_data("x", split="dev")]), "on x: split is test in one and dev in the other"),
        (measure([toy_data("x", seed=3)]), "on x: data is"),
        *(
            (measure([toy_data("x")], protocol=sb.protocol(**{name: value})), f"{name} is .* in one and {value}")
            for name, value in (("aggregation", "wmean"), ("metric", "pearson"), ("similarity", "dot"))
        ),
    ):
        with pytest.raises(sb.UserError, match=fragment):
            aligned(x, other)
