"""How a record tells what a lower precision changed."""

from stsbench.records.labels import distinct_labels
from stsbench.records.parts import DriftPart
from stsbench.render.cells import Rows
from stsbench.render.table import Table


def drift_table(drift: DriftPart, name: str) -> Table:
    """Return the tasks with the score of either precision, x 100, the loss and its upper bound, and the verdict.

    Args:
        drift: of the record.
        name: of the precision that was measured.
    """

    def points(value: float | None) -> float | None:
        return None if value is None else 100 * value

    splits = [task.task if task.split in {"test", "all"} else f"{task.task}:{task.split}" for task in drift.tasks]
    keys = [(name, task.split, task.text) for name, task in zip(splits, drift.tasks, strict=True)]
    rows = [
        {
            "task": called,
            "pairs": task.pairs,
            "fp32": points(task.reference),
            "score": points(task.score),
            "loss": None if task.reference is None or task.score is None else 100 * (task.reference - task.score),
            "at most": points(task.loss_high),
            "verdict": task.verdict,
        }
        for called, task in zip(distinct_labels(keys), drift.tasks, strict=True)
    ]
    return Table(
        Rows(rows),
        f"{name} against fp32, margin {100 * drift.margin:g}",
        name="drift",
        verdicts="verdict",
        notes=(
            f"{drift.sentences} sentences: cosine of the two vectors {drift.cosine_mean:.4f} on average, above "
            f"{drift.cosine_low:.4f} in 99 %, {drift.cosine_lowest:.4f} at least; of the {drift.neighbours} "
            f"nearest sentences {100 * drift.overlap:.1f} % are the same.",
            f"at most: the one-sided {100 * drift.level:g} % bound of the loss, from the sampled pairs alone.",
        ),
    )
