"""What a record says that an expected value can be compared with: scores, each with the choices that fix it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stsbench.records.parts import SupervisedPart, TaskPart, TransferPart
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature

STS, ACC, DEVACC, SUPERVISED = "sts", "acc", "devacc", "supervised"
"""What is measured: a similarity's correlation, an accuracy on test or dev, a trained regressor's correlation."""

_DISTINCT = {STS: "", ACC: "", DEVACC: " devacc", SUPERVISED: ":supervised"}


@dataclass(frozen=True)
class Measured:
    """One score of a record.

    Attributes:
        signature: what it means.
        quantity: `STS`, `ACC`, `DEVACC` or `SUPERVISED`.
        score: on the scale from 0 to 100; None where it is undefined.
        choices: what fixes it, by the names of a published setting; `data` is the status of the files.
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
        return self.task + _DISTINCT[self.quantity]


def measured_scores(record: RunRecord) -> Sequence[Measured]:
    """Return the scores of a record: each STS task's, each transfer task's on test and on dev, and supervised."""
    return [
        *(_of_sts(part) for part in record.tasks),
        *(score for part in record.transfer for score in _of_transfer(part)),
        *(_of_supervised(part) for part in record.supervised),
    ]


def _of_sts(part: TaskPart) -> Measured:
    signature = Signature.parse(part.signature)
    choices = {name: str(getattr(signature, name)) for name in ("split", "metric", "similarity", "text")}
    if len(part.subsets) != 1:
        # Over a single subset every aggregation is the same number. (An imported task may name none.)
        choices["aggregation"] = signature.aggregation
    choices["data"] = part.data.status
    return Measured(signature, STS, None if part.score is None else 100 * part.score, choices)


def _of_transfer(part: TransferPart) -> list[Measured]:
    signature = Signature.parse(part.signature)
    # Papers call both an accuracy: on test (of nested folds: the outer ones), or the one that the choice was by.
    common = {"metric": "accuracy", "text": part.text, "data": part.data.status, "classifier": part.classifier}
    return [
        Measured(signature, ACC, 100 * part.acc, common | {"split": "test"}),
        Measured(signature, DEVACC, 100 * part.devacc, common | {"split": "dev"}),
    ]


def _of_supervised(part: SupervisedPart) -> Measured:
    signature = Signature.parse(part.signature)
    choices = {"split": "test", "metric": "pearson", "similarity": SUPERVISED, "text": part.text}
    return Measured(signature, SUPERVISED, 100 * part.pearson, choices | {"data": part.data.status})
