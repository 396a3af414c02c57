"""Parses task names (`STS12,STS-B:dev`) and files of pairs into tasks to score."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.catalogue import data_set
from stsbench.data.qrels import RetrievalData, load_retrieval
from stsbench.data.reading import DataNotFoundError
from stsbench.data.tables import LabelledData, StsData, load_pairs
from stsbench.data.views import PairView
from stsbench.records.kinds import KINDS, SUPERVISED
from stsbench.scoring.kinds import TASKS, as_task
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.settings import TEXTS, Protocol
from stsbench.scoring.task import Task

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
TRANSFER_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
STS_B = "STS-B"
"""The task whose sentences most papers analyse."""

SAMPLE = "sample"
SAMPLE_USED = (
    "No benchmark data was found, so this is the SAMPLE that comes with stsbench: 252 pairs written for the\n"
    "project. Its scores are not comparable with published ones. `stsbench data get` downloads the real tasks."
)

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
"""Names of several tasks at once."""

WHOLE = PairView()
"""All pairs of the tasks."""

AnyTask = Task | StsData | LabelledData | RetrievalData
"""A task, or data: scored pairs are compared, labelled sentences classified, documents retrieved."""


class TaskSpec(NamedTuple):
    """A task with its split (`supervised` for a trained regressor, empty for a labelled task) and text variant."""

    task: str
    split: str
    text: str


def parse_tasks(tasks: str | Sequence[str], protocol: Protocol) -> list[TaskSpec]:
    """Parses task names; the protocol gives the default split and text.

    Names are groups (`GROUPS`) or `TASK[:split][@text]`, as a list or separated by commas.

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
        # A member without that text (SICK-R in `sts@raw`) keeps its own.
        if text and not any(text in data_set(member.partition(":")[0]).texts for member in members):
            raise UserError(f"no task in {rest!r} has the text {text!r}.")
        preferred = replace(protocol, text=text or protocol.text)
        for member in members:
            task, _, split = member.partition(":")
            specs.append(_spec(task, split, "", preferred))
    if not specs:
        raise UserError("no task is given: use `sts`, or names such as STS12,STS-B:dev.")
    return list(dict.fromkeys(specs))


def names_tasks(text: str | Path) -> bool:
    """Returns whether a text names tasks of the catalogue, and not a file or folder."""
    if isinstance(text, Path) or Path(text).expanduser().exists():
        return False
    try:
        return bool(parse_tasks(text, Protocol()))
    except UserError:
        return False


def _spec(task: str, split: str, text: str, protocol: Protocol) -> TaskSpec:
    entry = data_set(task)
    is_labelled = entry.kind == "labelled"
    if is_labelled and split:
        raise UserError(f"{entry.task} uses all of its splits: leave out ':{split}'.")
    default_split = "" if is_labelled else protocol.sick_split if entry.task == "SICK-R" else "test"
    # SICK and the sample have a single text; the signature names it.
    default_text = protocol.text if protocol.text in entry.texts else next(iter(entry.texts))
    splits = entry.texts[text].splits if text in entry.texts else entry.texts[default_text].splits
    if len(splits) == 1 and not is_labelled:  # Some data sets publish scores for dev only.
        default_split = splits[0]
    return TaskSpec(entry.task, split or default_split, text or default_text)


def read_task(spec: TaskSpec, data_dirs: Sequence[Path] = (), protocol: Protocol | None = None) -> Task:
    """Reads a task."""
    protocol = protocol or Protocol()
    if data_set(spec.task).kind == "labelled":
        return as_task(load_labelled(spec.task, data_dirs, text=spec.text), protocol)
    for kind in KINDS.values():
        if kind.suffix == f":{spec.split}":
            task: Callable[[StsData], Task] = TASKS[kind.name]
            return task(load_sts(spec.task, "all", spec.text, data_dirs))
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
    """Returns the tasks to score: your own file or folder (`data`), or tasks as names (see `parse_tasks`) or data.

    The default is the seven STS tasks, or the sample if their data is missing (see `or_sample`). The view excludes
    pairs.
    """
    if tasks is not None and data is not None:
        raise UserError("--tasks and --data exclude each other: measure them in two runs.")
    folders = [Path(folder) for folder in data_dirs]

    def read(names: Sequence[str]) -> list[Task]:
        return [read_task(spec, folders, protocol) for spec in parse_tasks(names, protocol)]

    if data is not None:
        is_folder = Path(data).expanduser().is_dir()
        sets = [as_task(load_retrieval(data) if is_folder else load_pairs(data, subset_column), protocol)]
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
        # Rows of the items table must identify their task.
        key = (task.kind, task.data.task, task.pairs.split if task.pairs is not None else "", task.data.text)
        if key in keys:
            raise UserError(f"two tasks are named {task.data.task}: give each once, or rename one.")
        keys.add(key)
    return sets


def _viewed(sets: list[Task], view: PairView, folders: Sequence[Path]) -> list[Task]:
    """Applies a view to tasks of pairs."""
    pairs = [task.pairs for task in sets if task.pairs is not None]
    for task in sets:
        if task.pairs is None:
            raise UserError(
                f"--exclude and --exclude-overlap apply only to compared pairs: measure {task.data.task} in a "
                "separate run."
            )
    viewed = zip(sets, view.of(pairs, folders), strict=True)
    return [type(task)(data) for task, data in viewed]  # type: ignore[call-arg]


def or_sample(read: Callable[[], list[Task]], data_dirs: Sequence[str | Path] = ()) -> list[Task]:
    """Returns the result of `read`, or the sample if no folder of data was named and the data is missing."""
    try:
        return read()
    except DataNotFoundError:
        # If you name a folder of data, the sample is not a substitute.
        if data_dirs or os.environ.get("STSBENCH_DATA"):
            raise
        return [StsPairs(load_sts(SAMPLE, text=SAMPLE))]


def tasks_here(data_dirs: Sequence[str | Path] = ()) -> list[Task]:
    """Returns the seven STS tasks, or the sample if their data is missing."""
    folders = [Path(folder) for folder in data_dirs]
    return or_sample(lambda: [StsPairs(load_sts(task, data_dirs=folders)) for task in STS_TASKS], data_dirs)


def default_tasks(data_dirs: Sequence[str | Path] = ()) -> str:
    """Returns the default tasks: `sts`, or `sample` if their data is missing.

    Args:
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.

    Raises:
        UserError: if the data is damaged, or missing in a folder that you named.
    """
    return SAMPLE if is_sample(tasks_here(data_dirs)) else "sts"


def read_pairs_of(
    task: str | None, split: str | None, text: str = "senteval", data_dirs: Sequence[str | Path] = ()
) -> StsData:
    """Reads pairs, by default all splits; the default task is STS-B, or the sample if its data is missing."""
    if task is None:
        (default,) = or_sample(lambda: [StsPairs(read_pairs_of(STS_B, split, text, data_dirs))], data_dirs)
        assert default.pairs is not None, "both are pairs"
        return default.pairs
    entry = data_set(task)
    if len(entry.texts) == 1 and text in TEXTS:  # As in `_spec`, a single text is used for any variant.
        text = next(iter(entry.texts))
    if split is None and text in entry.texts:
        splits = {part.split for part in entry.texts[text].parts}
        split = "all" if len(splits) > 1 else next(iter(splits))
    return load_sts(entry.task, split or "test", text, [Path(folder) for folder in data_dirs])


def canonical(task: str) -> str:
    """Returns the catalogue's spelling of a task's name; other names are unchanged."""
    try:
        return data_set(task).task
    except UserError:
        return task


def is_sample(tasks: Sequence[Task]) -> bool:
    """Returns whether the tasks are the packaged sample."""
    return tasks[0].data.task == SAMPLE
