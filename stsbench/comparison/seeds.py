"""Two methods, each trained with several seeds: how far apart are they, and how far does a seed carry?

One checkpoint says little about a method: 50 seeds of unsupervised SimCSE range over 3.5 points. The paired
bootstrap of two checkpoints knows nothing of that; here the runs are the sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stsbench.base.errors import UserError
from stsbench.comparison.paired import ONE_PROTOCOL, left_out
from stsbench.comparison.result import AVERAGES, ENOUGH, Kind, SeedsComparison, SeedsDifference
from stsbench.records.labels import task_labels
from stsbench.records.parts import TaskPart, TransferPart
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature, require_same_protocol
from stsbench.statistics.significance import compare_means, holm, spread

Scores = Mapping[str, TaskPart | TransferPart]
"""What a run holds of one kind of task, by the tasks' labels."""


def compare_seeds(
    a: Mapping[str, RunRecord], b: Mapping[str, RunRecord], names: tuple[str, str], *, level: float
) -> SeedsComparison:
    """Compare the runs of one method over seeds with those of another, or tell the spread of one.

    Args:
        a: the runs of the one, by a name for messages.
        b: the runs of the other; empty for none.
        names: what to call the two.
        level: of the intervals.

    Raises:
        UserError: if protocols differ, no task is in all runs, a score is undefined, or two runs of a method are
            of the same weights.
    """
    runs = {**a, **b}
    for method in (a, b):
        _demand_distinct(method)
    rows: list[SeedsDifference] = []
    alone: list[str] = []
    for kind in AVERAGES:
        parts = {name: _scores(record, kind) for name, record in runs.items()}
        common, rest = _common_tasks(parts)
        alone += rest
        values_a, values_b = (_values({name: parts[name] for name in method}, common, kind) for method in (a, b))
        of_kind = [_row(kind, task, values_a[task], values_b[task], level) for task in values_a]
        adjusted = holm([row.p for row in of_kind if row.is_task]).tolist()
        # The average comes after the tasks, and is not corrected.
        rows += [replace(row, p_holm=p) for row, p in zip(of_kind, adjusted, strict=False)]
        rows += of_kind[len(adjusted) :]
    if not rows:
        raise UserError("there is no task that all runs were measured on: measure them on the same tasks.")
    notes = [*left_out(alone)]
    unknown = [name for name, record in runs.items() if record.model.weights_sha256 is None]
    if unknown:
        notes.append(f"whether {', '.join(unknown)} are of different weights cannot be known.")
    return SeedsComparison(*names, rows=tuple(rows), level=level, notes=tuple(notes))


def _demand_distinct(runs: Mapping[str, RunRecord]) -> None:
    first_of: dict[str, str] = {}
    for name, record in runs.items():
        weights = record.model.weights_sha256
        other = first_of.setdefault(weights, name) if weights else name
        if other != name:
            raise UserError(
                f"{other} and {name} are runs of the same weights, which is one seed: give each checkpoint once."
            )


def _scores(record: RunRecord, kind: Kind) -> Scores:
    parts: Sequence[TaskPart | TransferPart] = record.tasks if kind == "sts" else record.transfer
    return dict(zip(task_labels(parts), parts, strict=True))


def _common_tasks(runs: Mapping[str, Scores]) -> tuple[list[str], list[str]]:
    """Return the tasks that all runs hold, by one protocol, and those that only some do."""
    (first_name, first), *others = runs.items()
    every = list(dict.fromkeys(task for parts in runs.values() for task in parts))
    common = [task for task in every if all(task in parts for parts in runs.values())]
    for name, parts in others:
        for task in common:
            signatures = Signature.parse(first[task].signature), Signature.parse(parts[task].signature)
            require_same_protocol(*signatures, names=(first_name, name), task=task, remedy=ONE_PROTOCOL)
    return common, [task for task in every if task not in common]


def _values(runs: Mapping[str, Scores], tasks: Sequence[str], kind: Kind) -> dict[str, list[float]]:
    """Return the scores x 100 of all runs by task, and their averages if there are several tasks."""
    values: dict[str, list[float]] = {task: [] for task in tasks}
    for name, parts in runs.items():
        for task in tasks:
            part = parts[task]
            score = part.acc if isinstance(part, TransferPart) else part.score
            if score is None:
                raise UserError(f"{name} has no score on {task} (its similarities are constant): leave it out.")
            values[task].append(100 * score)
    if len(tasks) > 1:
        values[AVERAGES[kind]] = np.mean(list(values.values()), axis=0).tolist()
    return values


def _row(kind: Kind, task: str, a: Sequence[float], b: Sequence[float], level: float) -> SeedsDifference:
    row = SeedsDifference(kind, task, *spread(a))
    if not b:
        return row
    size, mean, sd, lowest, highest = spread(b)
    row = replace(row, b_runs=size, b_mean=mean, b_sd=sd, b_lowest=lowest, b_highest=highest)
    if min(len(a), len(b)) < ENOUGH:
        return row
    test = compare_means(a, b, level=level)
    return replace(
        row,
        difference=test.difference,
        low=test.low,
        high=test.high,
        p=test.welch_p,
        permutation_p=test.permutation_p,
    )
