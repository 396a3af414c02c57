"""The kinds of tasks, one per file: how vectors are compared, classified or regressed, and the resulting numbers.

A kind that is measured from Python is a file here, an entry in `stsbench.records.kinds`, which names its class,
and an example in `tests/scoring/test_kinds.py`. To make it available to `--tasks`, add a reader in
`stsbench.data.benchmarks` and a branch in `stsbench.scoring.tasks`.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module

from stsbench.data.qrels import RetrievalData
from stsbench.data.tables import LabelledData, StsData
from stsbench.records.kinds import KINDS, Kind
from stsbench.records.parts import Score
from stsbench.records.signature import Signature
from stsbench.scoring.kinds.classification import Classification
from stsbench.scoring.kinds.retrieval import Retrieval
from stsbench.scoring.kinds.sts import PairClassification, StsPairs
from stsbench.scoring.settings import AVERAGE_PRECISION, Intervals, Protocol
from stsbench.scoring.statistic import Statistic
from stsbench.scoring.task import Numbers, Rows, Scoring, Task


def _class_of(kind: Kind) -> type[Task]:
    module, _, name = kind.scored_by.partition(".")
    found: type[Task] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


TASKS: Mapping[str, type[Task]] = {name: _class_of(kind) for name, kind in KINDS.items()}
"""The class of each kind, by its name in a record."""


def as_task(data: Task | StsData | LabelledData | RetrievalData, protocol: Protocol) -> Task:
    """Returns data as a task; pairs are classified if the metric is average precision, else correlated."""
    if isinstance(data, StsData):
        return PairClassification(data) if protocol.metric == AVERAGE_PRECISION else StsPairs(data)
    if isinstance(data, RetrievalData):
        return Retrieval(data)
    return Classification(data) if isinstance(data, LabelledData) else data


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Returns tasks in the order of their scores in a record: by kind."""
    return sorted(tasks, key=lambda task: list(KINDS).index(task.kind))


def statistic_of(score: Score) -> Statistic:
    """Returns the statistic of a recorded headline score."""
    return TASKS[score.kind].statistic(Signature.parse(score.signature))


def numbers_of(score: Score, rows: Rows, intervals: Intervals) -> Numbers:
    """Computes the numbers of a recorded score from its items."""
    return TASKS[score.kind].numbers(rows, Scoring(Signature.parse(score.signature), score.training, intervals))
