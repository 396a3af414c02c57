"""From names to tasks, protocols, models and folders: the choices and defaults of `stsbench run`."""

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
from stsbench.encoders.use import own_use
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.measure import Recording
from stsbench.scoring.run import choose_folder, run_name
from stsbench.scoring.settings import Protocol, Settings, Stages
from stsbench.scoring.task import Vectors
from stsbench.scoring.tasks import SAMPLE_USED, STS_TASKS, TaskSpec, parse_tasks, read_data

Data = Callable[..., StsData]
MINILM = Identity("minilm", "sentence-transformers", replace(own_use("avg"), max_length=256), "a" * 64)


def test_the_sample_replaces_missing_data_only_if_you_name_neither_tasks_nor_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(tasks: str | None = None, **options: Any) -> list[Any]:
        return read_data(tasks, protocol=Protocol(), **options)

    assert [task.data.task for task in read()] == ["sample"]
    assert f"{len(load_sample().pairs)} pairs" in SAMPLE_USED
    with pytest.raises(UserError, match="STS16 was not found"):
        read("STS16")
    with pytest.raises(UserError, match="STS12 was not found"):
        read(data_dirs=(tmp_path,))
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path))
    with pytest.raises(UserError, match="STS12 was not found"):
        read()


def used(**choices: Any) -> Identity:
    return replace(MINILM, use=replace(MINILM.use, **choices))


@pytest.mark.parametrize(
    ("identity", "settings", "tasks", "name"),
    [
        (MINILM, Settings(), "toy", "minilm-avg-toy"),
        (replace(MINILM, name="."), Settings(), "toy", "checkpoint-avg-toy"),
        (MINILM, Settings(protocol(metric="pearson", text="raw")), "toy", "minilm-avg-toy-pearson-raw"),
        (used(dimensions=64, whiten=32), Settings(), "toy", "minilm-avg-toy-dim64-whiten32"),
        (Identity("my.module:encode", "function", own_use("own")), Settings(), "toy", "my.module_encode-own-toy"),
        (Identity("…", "function", own_use("own")), Settings(), "toy", "own-toy"),
        (MINILM, Settings(), ",".join(STS_TASKS), "minilm-avg-sts"),
        (MINILM, Settings(), "STS12,STS-B:dev", "minilm-avg-STS12_STS-B-dev"),
    ],
)
def test_a_run_is_named_after_model_pooling_tasks_and_unusual_choices(
    identity: Identity,
    settings: Settings,
    tasks: str,
    name: str,
    toy_data: Data,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "checkpoint").mkdir()
    monkeypatch.chdir(tmp_path / "checkpoint")
    named = [task.partition(":") for task in tasks.split(",")]
    sets = [StsPairs(toy_data(task, split=split or "test")) for task, _, split in named]
    assert run_name(identity, sets, settings) == name


def test_the_same_measurement_gets_the_same_folder_and_another_one_a_folder_of_its_own(
    toy_data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task, defaults = StsPairs(toy_data()), Settings()

    def chosen(identity: Identity, settings: Settings = defaults, taken: Collection[Path] = ()) -> Path:
        encoder: Any = SimpleNamespace(identity=identity)
        return choose_folder(encoder, [task], settings, taken)

    def save(identity: Identity, folder: Path) -> None:
        settings = Settings(out=folder)
        rows = np.arange(len(task.sentences()))
        vectors = Vectors(np.random.default_rng(0).normal(size=(len(rows), 4)), rows, rows)
        Recording.of([task], identity, settings).finish([task.items(vectors, settings)], Stages())

    plain = chosen(MINILM)
    assert plain == Path("runs/minilm-avg-toy")
    save(MINILM, plain)
    shorter = replace(MINILM, use=replace(MINILM.use, max_length=128))
    folders = [chosen(identity) for identity in (MINILM, shorter, replace(MINILM, weights_sha256="b" * 64))]
    assert folders[0] == plain
    assert [folder.name for folder in folders[:2]] == ["minilm-avg-toy", "minilm-avg-toy-len128"]
    assert len(set(folders)) == 3
    assert all(folder.name.startswith("minilm-avg-toy") for folder in folders)
    save(shorter, folders[1])
    assert chosen(shorter) == folders[1]
    assert chosen(shorter, Settings(overwrite=True)) == plain
    assert chosen(shorter, Settings(overwrite=True), taken={plain}) == folders[1]


SIMCSE, MTEB, RAW = protocol(), protocol("mteb"), protocol(text="raw")


def test_sts_is_the_seven_tasks_with_the_splits_and_texts_of_the_protocol() -> None:
    assert parse_tasks("sts", SIMCSE) == [TaskSpec(task, "test", "senteval") for task in STS_TASKS]
    assert len(STS_TASKS) == 7
    splits = {spec.task: spec.split for spec in parse_tasks("sts", MTEB)}
    assert splits == dict.fromkeys(STS_TASKS, "test") | {"SICK-R": "all"}
    texts = {spec.task: spec.text for spec in parse_tasks("sts", RAW)}
    assert texts == dict.fromkeys(STS_TASKS, "raw") | {"SICK-R": "senteval"}


@pytest.mark.parametrize(
    ("written", "chosen", "specs"),
    [
        ("STS-B:dev", SIMCSE, [("STS-B", "dev", "senteval")]),
        ("stsbenchmark", SIMCSE, [("STS-B", "test", "senteval")]),
        ("STS12@raw", SIMCSE, [("STS12", "test", "raw")]),
        ("STS-B:train@raw", SIMCSE, [("STS-B", "train", "raw")]),
        ("SICK-R:test", MTEB, [("SICK-R", "test", "senteval")]),
        (" sick_r ", SIMCSE, [("SICK-R", "test", "senteval")]),
        ("sample", SIMCSE, [("sample", "test", "sample")]),
        ("STS16, STS-B:dev", SIMCSE, [("STS16", "test", "senteval"), ("STS-B", "dev", "senteval")]),
        (["sts16", "STS2016,", "STS16:test@senteval"], SIMCSE, [("STS16", "test", "senteval")]),
    ],
)
def test_names_have_splits_and_texts_and_each_task_is_scored_once(
    written: str | list[str], chosen: Protocol, specs: list[tuple[str, str, str]]
) -> None:
    assert parse_tasks(written, chosen) == [TaskSpec(*spec) for spec in specs]
    assert [spec.task for spec in parse_tasks("STS16,sts", SIMCSE)][::6] == ["STS16", "SICK-R"]
