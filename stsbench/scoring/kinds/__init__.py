"""The kinds of tasks, a file each: what is compared, classified or regressed, and the numbers that come of it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from stsbench.data.tables import LabelledData, StsData
from stsbench.records.kinds import KINDS
from stsbench.records.parts import Score
from stsbench.records.signature import Signature
from stsbench.scoring.kinds.classification import Classification
from stsbench.scoring.kinds.given import GivenItems
from stsbench.scoring.kinds.pair_classification import PairClassification
from stsbench.scoring.kinds.relatedness import Relatedness
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.settings import AVERAGE_PRECISION, Intervals, Protocol
from stsbench.scoring.task import Numbers, Rows, Scoring, Task

TASKS: Mapping[str, type[Task]] = MappingProxyType(
    {task.kind: task for task in (StsPairs, Classification, Relatedness, PairClassification, GivenItems)}
)
"""The class of each kind, by its name in a record."""

assert set(TASKS) == set(KINDS), "every kind that a record can name can be scored"


def as_task(data: Task | StsData | LabelledData, protocol: Protocol) -> Task:
    """Return a task: the protocol's metric says whether pairs are told apart or correlated."""
    if isinstance(data, StsData):
        return PairClassification(data) if protocol.metric == AVERAGE_PRECISION else StsPairs(data)
    return Classification(data) if isinstance(data, LabelledData) else data


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Return tasks in the order in which a record holds their scores: kind by kind."""
    return sorted(tasks, key=lambda task: list(KINDS).index(task.kind))


def numbers_of(score: Score, rows: Rows, intervals: Intervals) -> Numbers:
    """Return what the items of a recorded score give."""
    return TASKS[score.kind].numbers(rows, Scoring(Signature.parse(score.signature), score.training, intervals))
