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
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import LabelledData, StsData
from stsbench.data.views import PairView
from stsbench.scoring.classifiers import arrange
from stsbench.scoring.protocols import TEXTS, Protocol
from stsbench.scoring.relatedness import Supervised

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

TaskData = StsData | LabelledData | Supervised
"""A task that was read: pairs to compare, items to classify, or pairs to train a regressor on."""


class TaskSpec(NamedTuple):
    """A task with its split (`supervised` for a trained regressor, empty for a labelled task) and text variant."""

    task: str
    split: str
    text: str


def parse_tasks(tasks: str | Sequence[str], protocol: Protocol) -> list[TaskSpec]:
    """Return the tasks that a person names, with the protocol's split and text where they name none.

    Args:
        tasks: `sts` or `transfer` (seven each), `all` (both), `supervised`, `sample`, `sample-transfer`, or
            `TASK[:split][@text]`; several as a list or with commas.
        protocol: what holds where a task names no split or text.

    Raises:
        UserError: if there is no such task.

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
    if entry.kind == "labelled" and split:
        raise UserError(f"{entry.task} is classified by all of its splits: leave out ':{split}'.")
    default_split = protocol.sick_split if entry.task == "SICK-R" else "test"
    default_split = "" if entry.kind == "labelled" else default_split
    # SICK and the sample have one text each, whatever variant is asked for; their signature says which.
    default_text = protocol.text if protocol.text in entry.texts else next(iter(entry.texts))
    splits = entry.texts[text].splits if text in entry.texts else entry.texts[default_text].splits
    if len(splits) == 1 and entry.kind != "labelled":  # Of some sets dev alone has public scores.
        default_split = splits[0]
    return TaskSpec(entry.task, split or default_split, text or default_text)


def read_task(spec: TaskSpec, data_dirs: Sequence[Path] = ()) -> TaskData:
    """Read a task.

    Raises:
        UserError: if its files are missing or broken.
    """
    if data_set(spec.task).kind == "labelled":
        return load_labelled(spec.task, data_dirs, text=spec.text)
    if spec.split == SUPERVISED:
        return Supervised(load_sts(spec.task, "all", spec.text, data_dirs))
    return load_sts(spec.task, spec.split, spec.text, data_dirs)


def read_data(
    tasks: str | TaskData | Sequence[str | TaskData] | None,
    *,
    protocol: Protocol,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
    view: PairView = WHOLE,
) -> list[TaskData]:
    """Return what to score: a file of the person's own, catalogued tasks, or data already read.

    Args:
        tasks: names as `parse_tasks` takes them, data, or both; None for the seven STS tasks or, as `or_sample`
            has it, the sample.
        protocol: what holds where a task names no split or text.
        data: the person's file, instead of tasks.
        subset_column: the column of that file that names subsets.
        data_dirs: folders to look for data in.
        view: which pairs are left out.

    Raises:
        UserError: if something is missing or broken, or no correlation is defined on it.
    """
    folders = [Path(folder) for folder in data_dirs]
    if data is not None:
        return _seen([load_pairs(Path(data), subset_column)], view, folders)

    def read(names: Sequence[str]) -> list[TaskData]:
        return [read_task(spec, folders) for spec in parse_tasks(names, protocol)]

    if tasks is None:
        sets = or_sample(lambda: read(["sts"]), data_dirs)
    else:
        items = tasks if isinstance(tasks, Sequence) and not isinstance(tasks, str) else [tasks]
        sets = [item for item in items if not isinstance(item, str)]
        names = [item for item in items if isinstance(item, str)]
        if names or not sets:
            sets += read(names)
    sets = _seen(sets, view, folders)
    for task in sets:
        demand_scorable(task)
    _demand_distinct(sets)
    return sets


def _seen(sets: list[TaskData], view: PairView, folders: Sequence[Path]) -> list[TaskData]:
    """Return what a view leaves of some tasks."""
    if not view:
        return sets
    pairs = [task for task in sets if isinstance(task, StsData)]
    for task in sets:
        if not isinstance(task, StsData):
            raise UserError(
                f"{source_of(task).task} is trained on: pairs are left out of tasks whose pairs are compared "
                "alone; measure it in a run of its own."
            )
    seen: list[TaskData] = []
    for task in view.of(pairs, folders):
        demand_scorable(task)
        seen.append(task)
    return seen


def _demand_distinct(sets: Sequence[TaskData]) -> None:
    """Raise unless a row of a table can be told to be of one task.

    Raises:
        UserError: if two tasks have one name, split and text.
    """
    seen = set()
    for task in sets:
        data = source_of(task)
        key = (type(task), data.task, data.split if isinstance(data, StsData) else "", data.text)
        if key in seen:
            raise UserError(f"two tasks are called {data.task}: give each once, and by another name.")
        seen.add(key)


def or_sample(read: Callable[[], list[TaskData]], data_dirs: Sequence[str | Path] = ()) -> list[TaskData]:
    """Return data or, where nobody named a place for it and it is not here, the sample.

    Raises:
        UserError: if the data is broken, or not in the place that was named.
    """
    try:
        return read()
    except DataNotFoundError:
        # Who says where the data is wants no substitute for it.
        if data_dirs or os.environ.get("STSBENCH_DATA"):
            raise
        return [load_sts(SAMPLE, text=SAMPLE)]


def tasks_here(data_dirs: Sequence[str | Path] = ()) -> list[TaskData]:
    """Return the seven STS tasks or, as `or_sample` has it, the sample.

    Raises:
        UserError: if they are broken, or not in the place that was named.
    """
    folders = [Path(folder) for folder in data_dirs]
    return or_sample(lambda: [load_sts(task, data_dirs=folders) for task in STS_TASKS], data_dirs)


def default_tasks(data_dirs: Sequence[str | Path] = ()) -> str:
    """Return what is measured where no tasks are named: `sts`, or `sample` where their data is not here.

    Args:
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.

    Raises:
        UserError: if the data is broken, or not in the place that was named.
    """
    return SAMPLE if source_of(tasks_here(data_dirs)[0]).task == SAMPLE else "sts"


def read_pairs_of(
    task: str | None, split: str | None, text: str = "senteval", data_dirs: Sequence[str | Path] = ()
) -> StsData:
    """Read the pairs whose sentences are looked at.

    Args:
        task: by default STS-B or, as `or_sample` has it, the sample.
        split: by default all that the task has.
        text: the text variant; the sample has its own alone.
        data_dirs: folders to look for data in.

    Raises:
        UserError: if there is no such task, split or text, or its files are missing or broken.
    """
    if task is None:
        (pairs,) = or_sample(lambda: [read_pairs_of(STS_B, split, text, data_dirs)], data_dirs)
        assert isinstance(pairs, StsData), "both are pairs"
        return pairs
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


def sentences_of(task: TaskData) -> list[str]:
    """Return the sentences of a task: of pairs all first sides, then all second sides."""
    return sentences_in(source_of(task))


def source_of(task: TaskData) -> StsData | LabelledData:
    """Return the data that a task was read as."""
    return task.data if isinstance(task, Supervised) else task


def split_by_kind(tasks: Sequence[TaskData]) -> tuple[list[StsData], list[LabelledData], list[Supervised]]:
    """Return the pairs to compare, the items to classify, and the pairs to train a regressor on."""
    kinds: tuple[list[StsData], list[LabelledData], list[Supervised]] = ([], [], [])
    for task in tasks:
        if isinstance(task, StsData):
            kinds[0].append(task)
        elif isinstance(task, LabelledData):
            kinds[1].append(task)
        else:
            kinds[2].append(task)
    return kinds


def demand_scorable(data: TaskData) -> None:
    """Raise unless a score can be defined on a task: a correlation on its gold, or an accuracy on its splits.

    Raises:
        UserError: if the task has fewer than two scored pairs, or one and the same score for all, or no split to
            train on.
    """
    if isinstance(data, LabelledData):
        arrange(data)
        return
    data = data.data if isinstance(data, Supervised) else data
    gold = data.table["gold"]
    where = f"{data.task}, split {data.split}, text {data.text},"
    if len(gold) < 2:
        raise UserError(
            f"{where} has {len(gold)} scored pairs: a correlation needs at least two; check its files."
        )
    if gold.min() == gold.max():
        raise UserError(
            f"{where} has the score {gold[0]:g} for every pair: a correlation needs scores that differ; "
            "check its files."
        )
