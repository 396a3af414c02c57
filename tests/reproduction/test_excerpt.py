"""A few rows of the real tasks: from all over their files, side by side, and never taken for the whole."""

from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.reproduction.samples import excerpt
from stsbench.scoring.tasks import STS_TASKS, TRANSFER_TASKS


@pytest.mark.parametrize("benchmark_folder", [60], indirect=True)
def test_an_excerpt_has_about_so_many_rows_of_each_split_and_each_is_a_row_of_the_whole(
    benchmark_folder: Path,
) -> None:
    folder = excerpt("STS12,STS-B:dev", 50, [benchmark_folder])
    assert folder is not None
    for task, split, least, most in (
        ("STS12", "test", 45, 60),
        ("STS-B", "dev", 45, 60),
        ("STS-B", "test", 45, 60),
    ):
        few = load_sts(task, split, "senteval", [folder])
        whole = load_sts(task, split, "senteval", [benchmark_folder])
        columns = ["subset", "sentence1", "sentence2", "gold"]
        rows = {tuple(row) for row in whole.pairs[columns].itertuples(index=False)}
        assert {tuple(row) for row in few.pairs[columns].itertuples(index=False)} <= rows
        assert least <= len(few.pairs) <= most
        assert set(few.pairs["subset"]) == set(whole.pairs["subset"])
    assert load_sts("STS12", data_dirs=[folder]).sha256 != load_sts("STS12", data_dirs=[benchmark_folder]).sha256


def test_the_same_rows_are_one_folder_and_others_another(benchmark_folder: Path) -> None:
    first = excerpt("STS12", 10, [benchmark_folder])
    assert excerpt("STS12", 10, [benchmark_folder]) == first
    assert excerpt("STS12", 20, [benchmark_folder]) != first


def test_where_a_task_is_not_here_there_is_none_and_half_a_task_is_told(benchmark_folder: Path) -> None:
    assert excerpt("STS12,TREC", 10, [benchmark_folder]) is None
    gold = next((benchmark_folder / "downstream").rglob("STS.gs.MSRpar.txt"))
    gold.unlink()
    with pytest.raises(UserError, match="STS12 is incomplete"):
        excerpt("STS12", 10, [benchmark_folder])


def test_real_excerpts_have_scored_pairs_of_every_subset_and_every_class_ten_times(senteval: Path) -> None:
    folder = excerpt("sts,transfer", 60, [senteval])
    assert folder is not None
    for task in STS_TASKS:
        few = load_sts(task, data_dirs=[folder]).pairs
        assert set(few["subset"]) == set(load_sts(task, data_dirs=[senteval]).pairs["subset"])
        assert 50 <= len(few) <= 130
        assert all(len(set(of["gold"])) > 1 for _, of in few.groupby("subset"))
    for task in TRANSFER_TASKS:
        items = load_labelled(task, [folder]).items
        trained_on = items[items["split"].isin(["train", "all"])]
        assert trained_on["label"].value_counts().min() >= 10, task
