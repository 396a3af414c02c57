"""The experiment file: mistakes are reported with their lines; its cells and jobs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.sweeps.experiment import Experiment, read_experiment
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.jobs import Job, jobs_of, units_of

HEAD = "name: a\nrecipe: demo\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("axs: {}", r"e.yaml, line 3: unknown key 'axs'; did you mean 'axes'\?"),
        ("measure:\n  taskz: sts", r"e.yaml, line 4: unknown key 'measure.taskz'; did you mean 'tasks'\?"),
        ("axes:\n  optimiser.batch: []", r"e.yaml, line 4: axes.optimiser.batch has no value"),
        ("axes:\n  optimiser.batch: [32, 64, 32]", r"e.yaml, line 4: axes.optimiser.batch has the value 32 twice"),
        ("axes:\n  state: [a, b]", r"e.yaml, line 4: axes.state: a column has this name: choose another"),
        ("axes:\n  dropout: [null, none]", r"e.yaml, line 4: axes.dropout has the value none twice"),
        ("axes:\n  seed: [1, 2]", r"e.yaml, line 4: axes.seed: seeds belong under"),
        ("seeds: []", r"e.yaml, line 3: seeds: .*at least 1"),
        ("threads: 0", r"e.yaml, line 3: threads: .*greater than or equal to 1"),
        ("measure:\n  analyses: [geometri]", r"e.yaml, line 4: measure.analyses: .*did you mean geometry\?"),
        ("measure: {analyses: {geometry: {tsk: STS-B}}}", r"e.yaml, line 3: .*no option 'tsk'.*did you mean task"),
        ("measure: {tasks: null}", r"e.yaml, line 3: measure: there is nothing to measure"),
        ("set: {a: 1}\nset: {b: 1}", r"e.yaml, line 4: 'set' occurs twice"),
        ("axes: [1", r"e.yaml, line \d: not valid YAML"),
    ],
)
def test_mistake_in_the_file(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(f"{HEAD}{text}\n", encoding="utf-8")
    with pytest.raises(UserError, match=message) as caught:
        read_experiment(path)
    assert len(caught.value.sentences) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "axes: {optimiser.bach: [1, 2]}",
            r"^experiment a, 1: unknown key 'optimiser.bach'; did you mean 'batch'",
        ),
        ("axes: {optimiser.batch: [8, 1]}", r"experiment a, 1: optimiser.batch.*greater than or equal to 2"),
        ("set: {optimiser.batch: many}", r"experiment a: optimiser.batch.*valid integer"),
        ("corpus: nowhere.txt", r"there is no corpus nowhere.txt"),
        ("axes: {recipe: [demo, dmo]}", r"experiment a, dmo: unknown recipe 'dmo': did you mean demo\?"),
        ("axes: {postprocessing: [none, whitn]}", r"a, whitn: postprocessing: 'whitn': write none, whiten"),
        (
            "axes: {checkpoint: [x, y], dropout: [0]}",
            r"a, x, 0: dropout cannot be changed for a checkpoint: choose",
        ),
        ("axes: {a: {x: {seed: 8}, y: {}}, b: {x: {seed: 1}, y: {}}}", r"seed is changed by two axes"),
        ("axes: {row: {m: {checkpoint: x, max_length: long}}}", r"experiment a, m: max_length: .* valid integer"),
        (
            "axes: {checkpoint: [x], postprocessing: [{dimensions: 0}]}",
            r"dimensions: 0 is too small: give 1 or more",
        ),
        ("axes: {row: {m: {checkpoint: x, device: cpu}}}", r"a, m: device cannot be changed for a checkpoint"),
        ("axes: {checkpoint: [minilm], backend: [abacus]}", r"unknown back end 'abacus'"),
        ("axes: {checkpoint: [minilm], template: [e6]}", r"unknown template 'e6'"),
        ("seeds: [1, 2, 1]", r"experiment a: seed 1 and seed 1 are the same job"),
        ("axes: {recipe: [null, demo]}", r"there is no recipe and no checkpoint"),
        (
            "axes: {a: {x: {}, y: {optimiser.epochs: 1}}}",
            r"experiment a: a x, seed 42 and a y, seed 42 are the same",
        ),
    ],
)
def test_mistake_in_an_axis(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(f"{HEAD}{text}\n", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        jobs_of(read_experiment(path))


def made(**changes: object) -> tuple[Job, ...]:
    chosen: dict[str, object] = {"name": "a", "recipe": "demo", "measure": {"tasks": "sample"}, **changes}
    return jobs_of(Experiment.model_validate(chosen))


def test_jobs_are_cells_times_seeds_and_checkpoints_have_none() -> None:
    jobs = made(axes={"optimiser.batch": [32, 64], "postprocessing": ["none", "whiten"]}, seeds=[1, 2])
    assert [len(unit) for unit in units_of(jobs).values()] == [2] * 4
    assert len({job.id for job in jobs}) == 8
    assert [job.label for job in jobs[:3]] == [
        "batch 32, postprocessing none, seed 1",
        "batch 32, postprocessing none, seed 2",
        "batch 32, postprocessing whiten, seed 1",
    ]
    assert jobs[0].cell == {"optimiser.batch": 32, "postprocessing": "none"}
    assert jobs[0].recipe is not None
    assert (jobs[0].recipe["optimiser"]["batch"], jobs[0].recipe["seed"]) == (32, 1)
    rows = made(axes={"row": {"base": {"checkpoint": "minilm", "pooling": "avg"}, "ours": {}}}, seeds=[1, 2])
    assert [(job.label, job.seed) for job in rows] == [
        ("row base", None),
        ("row ours, seed 1", 1),
        ("row ours, seed 2", 2),
    ]


def test_a_changed_axis_adds_jobs_and_leaves_the_others_what_they_are() -> None:
    before = {job.id: job.folder for job in made(axes={"optimiser.batch": [32, 64]}, seeds=[1, 2])}
    after = {job.id: job.folder for job in made(axes={"optimiser.batch": [32, 64, 16]}, seeds=[1, 2, 3])}
    assert before.items() < after.items()
    assert len(after) == 9


@pytest.mark.parametrize(
    "change",
    [
        {"threads": 2},
        {"seeds": [7]},
        {"measure": {"tasks": "sample", "analyses": ["geometry"]}},
        {"set": {"optimiser.epochs": 3}},
        {"set": {"objective": {"temperature": 0.1}}},
    ],
)
def test_what_changes_a_result_changes_the_job(change: dict[str, object]) -> None:
    assert made(**change)[0].id != made()[0].id


def test_changes_apply_in_the_order_of_the_experiment() -> None:
    whole, part = {"negatives.queue": None}, {"negatives.queue.size": 256}
    for first, last, size in ((whole, part, 256), (part, whole, None)):
        (job,) = made(recipe="minilm-esimcse", axes={"row": {"a": first | last}})
        assert job.recipe is not None
        queue = job.recipe["negatives"]["queue"]
        assert (queue and queue["size"]) == size


def test_names_and_when_to_save_change_no_job(tmp_path: Path) -> None:
    plain = made()[0]
    assert made(name="b", about="other words", set={"saving.every": 7})[0].id == plain.id
    named = made(axes={"method": {"the plain one": {}}})[0]
    assert named.id == plain.id
    assert named.folder != plain.folder
    # The same text elsewhere is the same corpus.
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "corpus.txt").write_text("A cat sleeps.\n" * 9, encoding="utf-8")
    one, other = (made(corpus=str(tmp_path / name / "corpus.txt"))[0] for name in ("one", "other"))
    assert one.id == other.id != plain.id


def test_a_job_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    asked = Experiment(name="a", recipe="demo", axes={"row": {"base": {"checkpoint": "minilm"}, "ours": {}}})
    jobs = jobs_of(asked)
    ExperimentFolder(tmp_path).claim(asked, jobs)
    read = ExperimentFolder(tmp_path).planned()
    assert read == jobs
    assert [job.id for job in read] == [job.id for job in jobs]
    assert replace(read[0], threads=4).id != read[0].id


def test_the_examples_of_the_page_are_experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "sweep.md"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wiki4000.txt").write_text("A cat sleeps.\n" * 9, encoding="utf-8")
    counts = []
    for number, example in enumerate(
        re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    ):
        file = tmp_path / f"{number}.yaml"
        file.write_text(example, encoding="utf-8")
        counts.append(len(jobs_of(read_experiment(file), is_read=False)))
    assert counts == [9, 21, 2]
