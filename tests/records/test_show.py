"""`sb.show`: side by side from Python."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.tables import StsData


def measured(hash_encode: Callable[..., Any], tasks: Any, **options: Any) -> sb.RunRecord:
    return sb.evaluate(hash_encode, tasks, intervals=sb.Intervals(None), **options)


def test_scores_of_records_and_folders_stand_side_by_side(
    hash_encode: Callable[..., Any], toy_data: Callable[..., StsData], tmp_path: Path
) -> None:
    tasks = [toy_data("one"), toy_data("two", seed=1)]
    both = measured(hash_encode, tasks, out=tmp_path / "both")
    (table,) = (table.frame for table in replace(sb.show([tmp_path / "both", both]), intervals=False).table())
    assert list(table.columns) == ["model", "one", "two", "Avg."]
    assert table["model"].nunique() == 2
    assert table["Avg."].tolist() == [100 * (both.averages[0].value or 0)] * 2


def test_tasks_of_every_kind_have_a_table_and_stand_in_one_frame(hash_encode: Callable[..., Any]) -> None:
    run = measured(hash_encode, ["sample", "sample-questions"])
    shown = sb.show(run, subsets=True)
    sts, transfer, subsets = (table.frame for table in shown.table())
    assert "sample" in sts
    assert transfer["sample-questions"][0] == 100 * run.scores_of("transfer")[0].value
    assert {"sample", "sample-questions"} == set(subsets["task"]) == set(shown.frame["task"])
    assert shown.to_dict() == [run.to_dict()]


def test_records_that_do_not_compare_are_refused(hash_encode: Callable[..., Any]) -> None:
    runs = [measured(hash_encode, "sample", protocol=sb.protocol(metric=name)) for name in ("spearman", "pearson")]
    with pytest.raises(sb.UserError, match="metric is spearman in one and pearson in the other"):
        sb.show(runs)
