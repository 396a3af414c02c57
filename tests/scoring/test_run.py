"""What `stsbench run` chooses where nothing is said: models, data, folders."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stsbench import UserError, protocol
from stsbench.data.benchmarks import load_sample
from stsbench.data.tables import StsData
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import Use, own_use
from stsbench.records.record import RunRecord
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.run import (
    SAMPLE_BANNER,
    choose_data,
    choose_folder,
    choose_models,
    measure_each,
    run_name,
)
from stsbench.scoring.settings import Settings
from stsbench.scoring.task import Task

Data = Callable[..., StsData]
MINILM = Identity("minilm", "sentence-transformers", replace(own_use("avg"), max_length=256), "a" * 64)


def test_without_data_the_sample_is_scored_and_the_banner_counts_its_pairs() -> None:
    data = choose_data()
    assert data.is_sample
    assert [task.data.task for task in data.sets] == ["sample"]
    assert f"{len(load_sample().pairs)} pairs" in SAMPLE_BANNER


def test_a_task_that_was_asked_for_is_not_replaced_by_the_sample() -> None:
    with pytest.raises(UserError, match="STS16 was not found"):
        choose_data("STS16")
    with pytest.raises(UserError, match="STS12 was not found"):
        choose_data("sts")
    with pytest.raises(UserError, match="no task was named"):
        choose_data("")


def test_data_that_a_named_folder_lacks_is_a_mistake_and_not_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="STS12 was not found"):
        choose_data(data_dirs=(tmp_path / "empty",))
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "empty"))
    with pytest.raises(UserError, match="STS12 was not found"):
        choose_data()
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"STSBENCH_DATA names .*nowhere, which is not a folder"):
        choose_data()


def test_the_sample_asked_for_by_name_has_no_banner() -> None:
    assert not choose_data("sample").is_sample


def test_each_model_is_measured_once() -> None:
    assert [model.name for model in choose_models(Use(), models=["a", "b", "a"])] == ["a", "b"]


def test_several_models_cannot_share_a_folder(tmp_path: Path) -> None:
    data = choose_data()
    wanted = choose_models(Use(), models=["a", "b"])
    settings = Settings(out=tmp_path)
    with pytest.raises(UserError, match="--out is a single folder, but there are several models"):
        list(measure_each(wanted, data, settings, failed=lambda *_: None, progress=lambda *_: None))


@pytest.mark.parametrize(
    ("identity", "settings", "name"),
    [
        (MINILM, Settings(), "minilm-avg-toy"),
        (replace(MINILM, name="org/model"), Settings(), "model-avg-toy"),
        (replace(MINILM, name="/models/my model/"), Settings(), "my_model-avg-toy"),
        (replace(MINILM, use=replace(MINILM.use, precision="bf16")), Settings(), "minilm-avg-toy-bf16"),
        (MINILM, Settings(protocol("senteval")), "minilm-avg-toy-senteval-wmean"),
        (MINILM, Settings(protocol(metric="pearson", text="raw")), "minilm-avg-toy-pearson-raw"),
        (
            replace(MINILM, use=replace(MINILM.use, dimensions=64, whiten=32)),
            Settings(),
            "minilm-avg-toy-dim64-whiten32",
        ),
        (Identity("my.module:encode", "function", own_use("own")), Settings(), "my.module_encode-own-toy"),
        (Identity("../../x", "similarities", own_use("given")), Settings(), "x-given-toy"),
        (Identity("…", "function", own_use("own")), Settings(), "own-toy"),
    ],
)
def test_a_folder_s_name_tells_model_pooling_tasks_and_unusual_choices(
    identity: Identity, settings: Settings, name: str, toy_data: Data
) -> None:
    assert run_name(identity, [StsPairs(toy_data())], settings) == name


def test_the_folder_here_has_a_name_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy_data: Data) -> None:
    (tmp_path / "checkpoint").mkdir()
    monkeypatch.chdir(tmp_path / "checkpoint")
    assert run_name(replace(MINILM, name="."), [StsPairs(toy_data())], Settings()) == "checkpoint-avg-toy"


def test_a_folder_s_name_tells_which_tasks(toy_data: Data) -> None:
    names = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    assert run_name(MINILM, [StsPairs(toy_data(name)) for name in names], Settings()) == "minilm-avg-sts"
    some = [StsPairs(toy_data("STS12")), StsPairs(toy_data("STS-B", split="dev"))]
    assert run_name(MINILM, some, Settings()) == "minilm-avg-STS12_STS-B-dev"


def test_a_name_fits_a_file_system(toy_data: Data) -> None:
    sets = [StsPairs(toy_data(f"{'täsk' * 5}{number}")) for number in range(60)]
    assert len(run_name(replace(MINILM, name="m" * 300), sets, Settings()).encode()) <= 200


def test_another_measurement_of_that_name_gets_a_folder_of_its_own_and_the_same_one_again(
    toy_data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_run: Callable[..., RunRecord]
) -> None:
    monkeypatch.chdir(tmp_path)
    sets, plain_settings = [StsPairs(toy_data())], Settings()

    def chosen(identity: Identity, settings: Settings = plain_settings, taken: Collection[Path] = ()) -> Path:
        encoder: Any = SimpleNamespace(identity=identity)
        return choose_folder(encoder, sets, settings, taken)

    plain = chosen(MINILM)
    assert plain == Path("runs/minilm-avg-toy")
    make_run(MINILM, sets, plain)
    shorter = replace(MINILM, use=replace(MINILM.use, max_length=128))
    trained = replace(MINILM, weights_sha256="b" * 64)
    folders = [chosen(identity) for identity in (MINILM, shorter, trained)]
    assert folders[0] == plain
    assert len(set(folders)) == 3
    assert all(folder.name.startswith("minilm-avg-toy") for folder in folders)
    make_run(shorter, sets, folders[1])
    assert chosen(shorter) == folders[1]
    assert chosen(shorter, Settings(overwrite=True)) == plain
    assert chosen(shorter, Settings(overwrite=True), taken={plain}) == folders[1]


@pytest.fixture
def make_run() -> Callable[..., RunRecord]:
    """Return a maker of saved records of models that need not exist."""

    from stsbench.scoring.measure import Recording
    from stsbench.scoring.settings import Stages
    from stsbench.scoring.task import Vectors

    def make(identity: Identity, tasks: list[Task], folder: Path) -> RunRecord:
        settings = Settings(out=folder)
        recording, items = Recording.of(tasks, identity, settings), []
        for task in tasks:
            rows = np.arange(len(task.sentences()))
            vectors = np.random.default_rng(0).normal(size=(len(rows), 4))
            items.append(task.items(Vectors(vectors, rows, rows), settings))
        return recording.finish(items, Stages())

    return make
