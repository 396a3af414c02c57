"""One interval for one number: what `run` records, and analyses, reports and the like show again."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from changed_records import with_columns

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.records.labels import interval_remarks
from stsbench.records.scores import Scores
from stsbench.reports.scores import intervals, scores
from stsbench.scoring.settings import INTERVALS, Intervals

Data = Callable[..., StsData]


@pytest.fixture
def record(request: Any, toy_data: Data, hash_encode: Any) -> sb.RunRecord:
    tasks = [toy_data("x", pairs=60), toy_data("y", pairs=40, seed=1)]
    return sb.evaluate(hash_encode, tasks, intervals=Intervals(interval=request.param))


@pytest.mark.parametrize("record", INTERVALS, indirect=True)
def test_every_place_shows_the_interval_that_was_recorded(record: sb.RunRecord) -> None:
    (average,) = record.averages
    own = {score.task: score.interval for score in record.scores} | {"Avg.": average.interval}
    expected = {name: tuple(100 * limit for limit in limits or ()) for name, limits in own.items()}

    rows = record.frame[record.frame["subset"] == ""].set_index("task")
    printed = Scores([record]).table()[0].frame.set_index("model")
    reported = intervals({"toy": record}).tables[0].frame.set_index("task")
    hints = scores({"toy": record}).tables[0].hints
    biased = sb.length_bias(record, intervals=Intervals.of(record.protocol)).frame
    biased = biased[(biased["measure"] == "spearman") & (biased["group"] == "all")].set_index("task")
    for name, limits in expected.items():
        for table in (rows, reported, biased):
            assert tuple(table.loc[name, ["low", "high"]]) == pytest.approx(limits, abs=1e-9)
        assert printed[name].iloc[1:3].tolist() == pytest.approx(limits, abs=1e-9)
        assert f"95 % interval {limits[0]:.2f} to {limits[1]:.2f}" in hints[0, name]


@pytest.mark.parametrize("record", ["dyadic", "independent"], indirect=True)
def test_the_others_of_one_number_are_those_of_the_difference(record: sb.RunRecord, hash_encode: Any) -> None:
    # Against a model without any correlation to speak of nothing is known of, a difference is the score's own.
    noisy = with_columns(record, cosine=np.random.default_rng(3).normal(size=len(record.items)))
    found = sb.compare(record, noisy, intervals=Intervals.of(record.protocol))
    table, frame = found.table()[0].frame, found.frame
    drawn = [axes.get_lines() for axes in found.plot().axes]
    assert drawn
    whole = frame[frame["subset"] == ""]
    assert table["2.5 %"].tolist() == pytest.approx(whole["low"].tolist())
    assert set(whole["interval"]) == {record.protocol.interval}


def test_a_report_with_runs_of_different_intervals_names_them(toy_data: Data, hash_encode: Any) -> None:
    runs = {
        name: sb.evaluate(hash_encode, toy_data(), intervals=Intervals(interval=name))
        for name in ("components", "independent")
    }
    remarks = list(interval_remarks(list(runs.items())))
    assert [remark.partition(":")[0] for remark in remarks] == list(runs)
