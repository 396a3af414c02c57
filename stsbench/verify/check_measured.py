"""What a record says that an expected value can be compared with: scores, each with the choices that fix it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stsbench.records import RunRecord, Signature
from stsbench.records.parts import TaskPart


@dataclass(frozen=True)
class Measured:
    """One score of a record.

    Attributes:
        signature: what it means.
        quantity: what of it was measured, where a task has several scores.
        score: on the scale from 0 to 100; None where it is undefined.
        choices: what fixes it, by the names of the signature's fields; `data` is the status of the files.
    """

    signature: Signature
    quantity: str
    score: float | None
    choices: Mapping[str, str]

    @property
    def task(self) -> str:
        """The task that was scored."""
        return self.signature.task

    @property
    def name(self) -> str:
        """The task, with what keeps it apart from the task's other scores."""
        return f"{self.task} {self.quantity}".strip()


def measured_scores(record: RunRecord) -> Sequence[Measured]:
    """Return the scores of a record that papers print: one for each STS task."""
    return [_of_sts(part) for part in record.tasks]


def _of_sts(part: TaskPart) -> Measured:
    signature = Signature.parse(part.signature)
    choices = {name: str(getattr(signature, name)) for name in ("split", "metric", "similarity", "text")}
    if len(part.subsets) != 1:
        # Over a single subset every aggregation is the same number. (An imported task may name none.)
        choices["aggregation"] = signature.aggregation
    choices["data"] = part.data.status
    return Measured(signature, "", None if part.score is None else 100 * part.score, choices)
