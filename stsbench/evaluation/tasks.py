"""Which tasks to score: from what a person writes to data that is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stsbench.datasets import StsData, data_set, load_sts
from stsbench.evaluation.protocols import Protocol
from stsbench.foundation.errors import UserError

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
SAMPLE = "sample"


class TaskSpec(NamedTuple):
    """A task with its split and text variant."""

    task: str
    split: str
    text: str


def parse_tasks(tasks: str | Sequence[str], protocol: Protocol) -> list[TaskSpec]:
    """Return the tasks that a person names, with the protocol's split and text where they name none.

    Args:
        tasks: `sts` (the seven), `sample`, or `TASK[:split][@text]`; several as a list or with commas.
        protocol: what holds where a task names no split or text.

    Raises:
        UserError: if there is no such task.

    >>> parse_tasks("STS-B:dev,sts12@raw", Protocol())
    [TaskSpec(task='STS-B', split='dev', text='senteval'), TaskSpec(task='STS12', split='test', text='raw')]
    """
    names = [name for part in ([tasks] if isinstance(tasks, str) else tasks) for name in part.split(",")]
    specs: list[TaskSpec] = []
    for name in filter(None, map(str.strip, names)):
        if name.casefold() == "sts":
            specs += [_spec(task, "", "", protocol) for task in STS_TASKS]
        else:
            rest, _, text = name.partition("@")
            task, _, split = rest.partition(":")
            specs.append(_spec(task, split, text, protocol))
    if not specs:
        raise UserError("no task was named: use `sts`, or names such as STS12,STS-B:dev.")
    return list(dict.fromkeys(specs))


def read_task(spec: TaskSpec, data_dirs: Sequence[Path] = ()) -> StsData:
    """Read a task's scored pairs.

    Raises:
        UserError: if its files are missing or broken, or it is no STS task.
    """
    return load_sts(spec.task, spec.split, spec.text, data_dirs)


def demand_scorable(data: StsData) -> None:
    """Raise unless a correlation can be defined on a task's gold scores.

    Raises:
        UserError: if the task has fewer than two scored pairs, or one and the same score for all.
    """
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
    default_split = protocol.sick_split if entry.task == "SICK-R" else "test"
    # SICK and the sample have one text each, whatever variant is asked for; their signature says which.
    default_text = protocol.text if protocol.text in entry.texts else next(iter(entry.texts))
    return TaskSpec(entry.task, split or default_split, text or default_text)
