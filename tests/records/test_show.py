"""`sb.show` and `sb.default_tasks`: side by side from Python, on the data that a command would take."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.tables import StsData


def measured(hash_encode: Callable[..., Any], tasks: Any, **options: Any) -> sb.RunRecord:
    return sb.evaluate(hash_encode, tasks, bootstrap=sb.Bootstrap(resamples=0), **options)


def test_scores_of_records_and_folders_stand_side_by_side(
    hash_encode: Callable[..., Any], toy_data: Callable[..., StsData], tmp_path: Path
) -> None:
    tasks = [toy_data("one"), toy_data("two", seed=1)]
    both = measured(hash_encode, tasks, out=tmp_path / "both")
    table = sb.show([tmp_path / "both", both])
    assert list(table.columns) == ["model", "one", "two", "Avg."]
    assert table["model"].nunique() == 2
    assert both.average is not None
    assert table["Avg."].tolist() == [100 * (both.average.score or 0)] * 2


def test_tasks_of_every_kind_stand_in_one_row(hash_encode: Callable[..., Any]) -> None:
    run = measured(hash_encode, ["sample", "sample-questions"])
    (row,) = sb.show(run).to_dict("records")
    assert {"sample", "sample-questions"} < set(row)
    assert row["sample-questions"] == 100 * run.transfer[0].acc


def test_records_that_do_not_compare_are_refused(hash_encode: Callable[..., Any]) -> None:
    runs = [measured(hash_encode, "sample", protocol=sb.protocol(metric=name)) for name in ("spearman", "pearson")]
    with pytest.raises(sb.UserError, match="metric is spearman in one and pearson in the other"):
        sb.show(runs)


def test_the_default_tasks_are_the_seven_where_they_are_and_else_the_sample(
    benchmark_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sb.default_tasks() == "sample"
    assert sb.default_tasks([benchmark_folder]) == "sts"
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    assert sb.default_tasks() == "sts"


def test_a_place_that_was_named_and_holds_nothing_is_no_reason_for_the_sample(tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match="was not found"):
        sb.default_tasks([tmp_path])
