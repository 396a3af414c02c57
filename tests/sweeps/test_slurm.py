"""Slurm's executor on submitit's own local cluster: the same results as in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_experiments import contents, in_this_process

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.sweeps import sweep as verb
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.sweep import SlurmArray, Work

pytest.importorskip("submitit", reason="needs submitit: pip install 'stsbench[slurm]'")


@pytest.mark.slow
def test_an_array_job_gives_the_same_results(
    experiment: Callable[..., Experiment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = experiment(seeds=[1, 2], slurm={"timeout_min": 10, "slurm_array_parallelism": 2})
    with in_this_process():
        sb.sweep(asked, tmp_path / "alone")
    with pytest.raises(UserError, match=r"slurm: .*tme"):
        SlurmArray({"tme": 3}, cluster="local").start([Work(tmp_path, "u", 1, tmp_path / "u.txt")])
    executor = SlurmArray(asked.slurm, asked.threads, cluster="local")
    monkeypatch.setattr(verb, "executor_of", lambda *_, **__: executor)
    result = sb.sweep(asked, tmp_path / "there")
    assert [state.failure for state in result.jobs] == [None, None]
    assert contents(tmp_path / "there") == contents(tmp_path / "alone")
