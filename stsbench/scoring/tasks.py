"""Which tasks to score: from what a person writes to data that is read."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.catalogue import data_set
from stsbench.data.tables import LabelledData, StsData
from stsbench.scoring.classifiers import arrange
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.relatedness import Supervised

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
TRANSFER_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
SAMPLE = "sample"
SUPERVISED = "supervised"

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


def sentences_of(task: TaskData) -> list[str]:
    """Return the sentences of a task: of pairs all first sides, then all second sides."""
    data = source_of(task)
    table = data.items if isinstance(data, LabelledData) else data.pairs
    paired = table["sentence2"].notna().all()
    return [*table["sentence1"], *(table["sentence2"] if paired else [])]


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
    gold = data.pairs["gold"]
    where = f"{data.task}, split {data.split}, text {data.text},"
    if len(gold) < 2:
        raise UserError(
            f"{where} has {len(gold)} scored pairs: a correlation needs at least two; check its files."
        )
    if gold.nunique() == 1:
        raise UserError(
            f"{where} has the score {gold.iloc[0]:g} for every pair: a correlation needs scores that differ; "
            "check its files."
        )


def _spec(task: str, split: str, text: str, protocol: Protocol) -> TaskSpec:
    entry = data_set(task)
    if entry.kind == "labelled" and split:
        raise UserError(f"{entry.task} is classified by all of its splits: leave out ':{split}'.")
    default_split = protocol.sick_split if entry.task == "SICK-R" else "test"
    default_split = "" if entry.kind == "labelled" else default_split
    # SICK and the sample have one text each, whatever variant is asked for; their signature says which.
    default_text = protocol.text if protocol.text in entry.texts else next(iter(entry.texts))
    return TaskSpec(entry.task, split or default_split, text or default_text)
