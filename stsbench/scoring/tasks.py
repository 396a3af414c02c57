"""Which tasks to look at: from what a person writes to data that is read, or the sample where none is here."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.catalogue import data_set
from stsbench.data.locate import DataNotFoundError
from stsbench.data.own_pairs import load_pairs
from stsbench.data.tables import LabelledData, StsData
from stsbench.data.views import PairView
from stsbench.scoring.kinds import as_task
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.settings import TEXTS, Protocol
from stsbench.scoring.task import Task

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
TRANSFER_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
STS_B = "STS-B"
"""The task whose sentences the papers look at."""

SUPERVISED = "supervised"
SAMPLE = "sample"
SAMPLE_USED = "No benchmark data was found, so this is about the SAMPLE that comes with stsbench."

GROUPS = {
    "sts": STS_TASKS,
    "transfer": TRANSFER_TASKS,
    "all": (*STS_TASKS, *TRANSFER_TASKS),
    "sample-transfer": (
        "sample-movies",
        "sample-products",
        "sample-subjectivity",
        "sample-opinions",
        "sample-sentiment",
        "sample-questions",
        "sample-paraphrases",
    ),
    SUPERVISED: ("STS-B:supervised", "SICK-R:supervised", "SICK-E"),
}
"""Names for several tasks at once."""

WHOLE = PairView()
"""All pairs of the tasks."""

AnyTask = Task | StsData | LabelledData
"""A task, or data that was read: scored pairs are compared, labelled sentences classified."""


class TaskSpec(NamedTuple):
    """A task with its split (`supervised` for a trained regressor, empty for a labelled task) and text variant."""

    task: str
    split: str
    text: str


def parse_tasks(tasks: str | Sequence[str], protocol: Protocol) -> list[TaskSpec]:
    """Return the tasks that a person names, with the protocol's split and text where they name none.

    Names are those of `GROUPS`, or `TASK[:split][@text]`; several come as a list or with commas.

    >>> parse_tasks("STS-B:dev,sts12@raw", Protocol())
    [TaskSpec(task='STS-B', split='dev', text='senteval'), TaskSpec(task='STS12', split='test', text='raw')]
    """
    names = [name for part in ([tasks] if isinstance(tasks, str) else tasks) for name in part.split(",")]
    specs: list[TaskSpec] = []
    for name in filter(None, map(str.strip, names)):
        rest, _, text = name.partition("@")
        members = GROUPS.get(rest.casefold())
        if members is None:
            task, _, split = rest.partition(":")
            specs.append(_spec(task, split, text, protocol))
            continue
        # Not every member of a group comes in every text: `sts@raw` has SICK-R in the one that it has.
        if text and not any(text in data_set(member.partition(":")[0]).texts for member in members):
            raise UserError(f"no task of {rest!r} has a text {text!r}.")
        preferred = replace(protocol, text=text or protocol.text)
        for member in members:
            task, _, split = member.partition(":")
            specs.append(_spec(task, split, "", preferred))
    if not specs:
        raise UserError("no task was named: use `sts`, or names such as STS12,STS-B:dev.")
    return list(dict.fromkeys(specs))


def _spec(task: str, split: str, text: str, protocol: Protocol) -> TaskSpec:
    entry = data_set(task)
    is_labelled = entry.kind == "labelled"
    if is_labelled and split:
        raise UserError(f"{entry.task} is classified by all of its splits: leave out ':{split}'.")
    default_split = "" if is_labelled else protocol.sick_split if entry.task == "SICK-R" else "test"
    # SICK and the sample have one text each, whatever variant is asked for; their signature says which.
    default_text = protocol.text if protocol.text in entry.texts else next(iter(entry.texts))
    splits = entry.texts[text].splits if text in entry.texts else entry.texts[default_text].splits
    if len(splits) == 1 and not is_labelled:  # Of some sets dev alone has public scores.
        default_split = splits[0]
    return TaskSpec(entry.task, split or default_split, text or default_text)


def read_task(spec: TaskSpec, data_dirs: Sequence[Path] = (), protocol: Protocol | None = None) -> Task:
    """Read a task."""
    protocol = protocol or Protocol()
    if data_set(spec.task).kind == "labelled":
        return as_task(load_labelled(spec.task, data_dirs, text=spec.text), protocol)
    if spec.split == SUPERVISED:
        return Relatedness(load_sts(spec.task, "all", spec.text, data_dirs))
    return as_task(load_sts(spec.task, spec.split, spec.text, data_dirs), protocol)


def read_data(
    tasks: str | AnyTask | Sequence[str | AnyTask] | None,
    *,
    protocol: Protocol,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
    view: PairView = WHOLE,
) -> list[Task]:
    """Return what to score: a person's own file (`data`), or tasks: names as `parse_tasks` takes them, or data.

    With nothing named they are the seven STS tasks or, as `or_sample` has it, the sample. The view says which
    pairs are left out.
    """
    folders = [Path(folder) for folder in data_dirs]

    def read(names: Sequence[str]) -> list[Task]:
        return [read_task(spec, folders, protocol) for spec in parse_tasks(names, protocol)]

    if data is not None:
        sets = [as_task(load_pairs(Path(data), subset_column), protocol)]
    elif tasks is None:
        sets = or_sample(lambda: read(["sts"]), data_dirs)
    else:
        items = tasks if isinstance(tasks, Sequence) and not isinstance(tasks, str) else [tasks]
        sets = [as_task(item, protocol) for item in items if not isinstance(item, str)]
        names = [item for item in items if isinstance(item, str)]
        if names or not sets:
            sets += read(names)
    sets = _viewed(sets, view, folders) if view else sets
    keys = set()
    for task in sets:
        task.demand_scorable()
        # A row of a table can be told to be of one task.
        key = (task.kind, task.data.task, task.pairs.split if task.pairs is not None else "", task.data.text)
        if key in keys:
            raise UserError(f"two tasks are called {task.data.task}: give each once, and by another name.")
        keys.add(key)
    return sets


def _viewed(sets: list[Task], view: PairView, folders: Sequence[Path]) -> list[Task]:
    """Return what a view leaves of some tasks."""
    pairs = [task.pairs for task in sets if task.pairs is not None]
    for task in sets:
        if task.pairs is None:
            raise UserError(
                f"{task.data.task} is trained on: pairs are left out of tasks whose pairs are compared "
                "alone; measure it in a run of its own."
            )
    viewed = zip(sets, view.of(pairs, folders), strict=True)
    return [type(task)(data) for task, data in viewed]  # type: ignore[call-arg]


def or_sample(read: Callable[[], list[Task]], data_dirs: Sequence[str | Path] = ()) -> list[Task]:
    """Return data or, where nobody named a place for it and it is not here, the sample."""
    try:
        return read()
    except DataNotFoundError:
        # Who says where the data is wants no substitute for it.
        if data_dirs or os.environ.get("STSBENCH_DATA"):
            raise
        return [StsPairs(load_sts(SAMPLE, text=SAMPLE))]


def tasks_here(data_dirs: Sequence[str | Path] = ()) -> list[Task]:
    """Return the seven STS tasks or, as `or_sample` has it, the sample."""
    folders = [Path(folder) for folder in data_dirs]
    return or_sample(lambda: [StsPairs(load_sts(task, data_dirs=folders)) for task in STS_TASKS], data_dirs)


def default_tasks(data_dirs: Sequence[str | Path] = ()) -> str:
    """Return what is measured where no tasks are named: `sts`, or `sample` where their data is not here.

    Args:
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.

    Raises:
        UserError: if the data is broken, or not in the place that was named.
    """
    return SAMPLE if is_sample(tasks_here(data_dirs)) else "sts"


def read_pairs_of(
    task: str | None, split: str | None, text: str = "senteval", data_dirs: Sequence[str | Path] = ()
) -> StsData:
    """Read the pairs whose sentences are looked at.

    By default they are all splits of the task, and the task is STS-B or, as `or_sample` has it, the sample.
    """
    if task is None:
        (default,) = or_sample(lambda: [StsPairs(read_pairs_of(STS_B, split, text, data_dirs))], data_dirs)
        assert default.pairs is not None, "both are pairs"
        return default.pairs
    entry = data_set(task)
    if len(entry.texts) == 1 and text in TEXTS:  # As in `_spec`: what has one text has it for every wish.
        text = next(iter(entry.texts))
    if split is None and text in entry.texts:
        splits = {part.split for part in entry.texts[text].parts}
        split = "all" if len(splits) > 1 else next(iter(splits))
    return load_sts(entry.task, split or "test", text, [Path(folder) for folder in data_dirs])


def canonical(task: str) -> str:
    """Return a task's name as the catalogue spells it; a name of a person's own stays as it is."""
    try:
        return data_set(task).task
    except UserError:
        return task


def is_sample(tasks: Sequence[Task]) -> bool:
    """Return whether tasks are the sample that comes with the package."""
    return tasks[0].data.task == SAMPLE
