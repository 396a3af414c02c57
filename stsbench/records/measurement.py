"""What makes two measurements the same: what was measured, on what and how.

When it was, at what cost and what came out does not. Nothing else decides whether a record may take another's
place.
"""

from dataclasses import dataclass

from stsbench.base.files import digest_of
from stsbench.records.parts import ModelPart, ProtocolPart, RunFields


@dataclass(frozen=True)
class MeasuredTask:
    """What a task's scores are of.

    Attributes:
        signature: of the score, as text.
        data: the whole hash over the files that were read.
        seed: of what is trained on the task; None where nothing is.
    """

    signature: str
    data: str
    seed: int | None


@dataclass(frozen=True)
class Measurement:
    """A measurement before there is a score.

    Attributes:
        model: what is measured.
        protocol: how, that of the intervals too.
        tasks: on what.
    """

    model: ModelPart
    protocol: ProtocolPart
    tasks: tuple[MeasuredTask, ...]

    @classmethod
    def of(cls, record: RunFields) -> "Measurement":
        """Return what a record is of."""
        tasks = tuple(
            MeasuredTask(
                score.signature, score.data.sha256, None if score.training is None else score.training.seed
            )
            for score in record.scores
        )
        return cls(record.model, record.protocol, tasks)

    def __str__(self) -> str:
        """Return it as a message names it."""
        return f"{self.model.name}, {self.tasks[0].signature}, ..."

    @property
    def has_hash(self) -> bool:
        """Whether a hash stands for the model: of a function nobody knows whether it is still the same."""
        return self.model.weights_sha256 is not None

    @property
    def digits(self) -> str:
        """A few digits that stand for it."""
        said = {"model": self.model.model_dump(mode="json"), "protocol": self.protocol.model_dump(mode="json")}
        tasks = [[task.signature, task.data, task.seed] for task in self.tasks]
        return digest_of({**said, "tasks": tasks})[:6]


def same_results(one: RunFields, other: RunFields) -> bool:
    """Return whether two records hold the same scores and the same items, to the last bit.

    Args:
        one: a saved record.
        other: another.
    """
    return one.scores == other.scores and one.items_file == other.items_file
