"""The numbers of a job, by name: what its record, its training and its analyses come to."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from stsbench.records.kinds import KINDS
from stsbench.records.labels import task_labels
from stsbench.records.record import RunRecord

if TYPE_CHECKING:
    from stsbench.analysis.result import AnalysisResult

DEV, DEV_STEP, DEV_LAST, LOSS_LAST = "dev", "dev at", "dev last", "loss last"
"""Of a training: its best dev score, at which step, that of the last step where it was scored, the last loss."""

LAST = "last: "
"""Before the measures of the checkpoint of a training's last step."""


def headlines(record: RunRecord) -> Iterator[tuple[str, float | None, tuple[float, float] | None]]:
    """Yield the label, score and interval of each task of a record, then of its averages; None for none."""
    for label, score in zip(task_labels(record.scores), record.scores, strict=True):
        number = score.number(score.about.printed) or score.numbers[0]
        yield label, number.value, number.interval
    for average in record.averages:
        yield KINDS[average.kind].average, average.value, average.interval


def of_record(record: RunRecord, prefix: str = "") -> dict[str, float | None]:
    """Return the scores x 100 of a record by task, and the averages; None where a score is undefined."""
    return {prefix + name: None if score is None else 100 * score for name, score, _ in headlines(record)}


def of_training(log: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Return what a training's log comes to: dev scores x 100, the step of the best, the last loss.

    >>> log = [{"step": 4, "dev": 0.5, "best": 0.5, "best_step": 4, "loss": 1.0}]
    >>> of_training(log)
    {'dev': 50.0, 'dev at': 4.0, 'dev last': 50.0, 'loss last': 1.0}
    """
    measures: dict[str, float | None] = {}
    steps = max(line["step"] for line in log)
    for line in log:
        if line.get("best_step") == line["step"]:
            # Of several tasks on the dev set: as they were at the best step.
            for task, scores in line.get("tasks", {}).items():
                for measure, score in scores.items():
                    measures[f"{DEV}: {task} {measure}"] = None if score is None else 100 * score
        if "best_step" in line:
            measures[DEV] = None if line["best"] is None else 100 * line["best"]
            measures[DEV_STEP] = float(line["best_step"])
        if "dev" in line and line["step"] == steps:
            measures[DEV_LAST] = None if line["dev"] is None else 100 * line["dev"]
        if "loss" in line:
            measures[LOSS_LAST] = float(line["loss"])
    return measures


def of_analysis(name: str, result: "AnalysisResult") -> dict[str, float | None]:
    """Return the numbers that stand for an analysis; None for one that is undefined.

    >>> import stsbench as sb
    >>> result = sb.geometry(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> list(of_analysis("geometry", result))
    ['geometry: alignment', 'geometry: uniformity', 'geometry: mean cosine']
    """
    numbers = result.numbers().items()
    return {f"{name}: {of}": value if isfinite(value) else None for of, value in numbers}
