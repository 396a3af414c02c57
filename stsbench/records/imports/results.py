"""The scores in another program's result files, and the record made of them. Unknown fields are marked as such."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.parsing import parse_json
from stsbench.encoders.use import Use
from stsbench.records.kinds import KINDS, STS, TRANSFER
from stsbench.records.parts import (
    IMPORTED,
    AveragePart,
    DataPart,
    ModelPart,
    Number,
    ProtocolPart,
    Score,
    Training,
)
from stsbench.records.provenance import now
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.statistics import LEVEL

TEXT = "senteval"
"""The text variant of SentEval's results."""

_PROTOCOLS = {"SentEval": {"all": "simcse", "wmean": "senteval"}, "MTEB": {"all": "mteb"}}
_NO_USE = Use(pooling=UNKNOWN, precision=UNKNOWN)


def _bare(value: Any) -> Any:
    """Unwrap `[correlation, p]` and `{"correlation": ...}`; NaN becomes None.

    >>> _bare([0.5, 0.01]), _bare({"correlation": 0.5}), _bare(float("nan"))
    (0.5, 0.5, None)
    """
    if isinstance(value, Mapping):
        value = value.get("correlation", value.get("statistic", value))
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return None if isinstance(value, float) and math.isnan(value) else value


def _whole(count: Any) -> Any:
    """Returns a count that was written as `750.0` as an integer."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


Correlation = Annotated[Annotated[float, Field(strict=True, ge=-1, le=1)] | None, BeforeValidator(_bare)]
Percent = Annotated[float, Field(strict=True, ge=0, le=100)]
Count = Annotated[Annotated[int, Field(strict=True, ge=1)], BeforeValidator(_whole)]


class Entry(BaseModel):
    """A part of a result file; fields that stsbench does not need are ignored."""


class ModelEntry(Entry):
    """The model that a result file names."""

    model: str | None = None
    weights_sha256: str | None = None


@dataclass(frozen=True)
class ImportedTask:
    """The scores of one task.

    Attributes:
        task: the catalogue's name.
        split: the catalogue's name.
        text: the text variant; `UNKNOWN` if the file does not contain it.
        numbers: every metric and aggregation in the file, and those of each subset.
        design: how the data of a transfer task is divided; empty for STS.
    """

    task: str
    split: str
    text: str
    numbers: tuple[Number, ...]
    design: str = ""

    def by(self, aggregation: str, metric: str) -> Number | None:
        """Return the correlation of the whole task by an aggregation and a metric; None if the file lacks it."""
        return next((number for number in self.numbers if number.key == (metric, aggregation, "")), None)


@dataclass(frozen=True)
class ImportedResults:
    """The results in a file or folder.

    Attributes:
        program: `SentEval` or `MTEB`.
        tasks: the STS tasks, then the transfer tasks.
        model: its name; empty if unknown.
        revision: its commit.
        weights_sha256: the hash of its weights.
        notes: tasks left out, and assumptions.
    """

    program: str
    tasks: tuple[ImportedTask, ...]
    model: str = ""
    revision: str | None = None
    weights_sha256: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def sts(self) -> list[ImportedTask]:
        """The STS tasks."""
        return [task for task in self.tasks if not task.design]


def read_json(path: Path, what: str) -> Any:
    """Read another program's JSON file; `what` names its content in messages."""
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error}): check its permissions.") from error
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}): save the {what} again.") from error


def build_record(results: ImportedResults, aggregation: str, metric: str, command: str = "") -> RunRecord:
    """Return the record of imported results; all STS tasks must have the aggregation and metric."""
    scores = tuple(_score(task, aggregation, metric) for task in results.tasks)
    averages = (
        AveragePart.of(
            kind,
            [score.task for score in scores if score.kind == kind],
            [score.value for score in scores if score.kind == kind],
        )
        for kind in KINDS
    )
    return RunRecord(
        stsbench=__version__,
        created=now(),
        command=command,
        model=ModelPart(
            name=results.model,
            kind=IMPORTED,
            use=replace(_NO_USE, revision=results.revision, device=UNKNOWN),
            weights_sha256=results.weights_sha256,
        ),
        protocol=ProtocolPart(
            name=_PROTOCOLS[results.program].get(aggregation, results.program.lower()),
            aggregation=aggregation,
            metric=metric,
            similarity="cosine",
            interval=None,
            level=LEVEL,
        ),
        scores=scores,
        averages=tuple(average for average in averages if average is not None),
        notes=results.notes,
        environment={},
        seconds={},
        encoding={},
    )


def _score(task: ImportedTask, aggregation: str, metric: str) -> Score:
    training, similarity = None, "cosine"
    if task.design:
        # Signatures have the number of folds, which no result file contains.
        aggregation = "split" if task.design == "split" else UNKNOWN
        metric, similarity, training = "acc", UNKNOWN, Training(method=UNKNOWN, design=task.design)
    meaning = Signature(
        *(task.task, task.split, aggregation, metric, similarity, task.text, UNKNOWN), _NO_USE, version=UNKNOWN
    )
    headline = (metric, "" if training else aggregation, "")
    return Score(
        kind=TRANSFER if training else STS,
        task=task.task,
        split=task.split,
        text=task.text,
        numbers=tuple(sorted(task.numbers, key=lambda number: number.key != headline)),
        signature=str(meaning),
        data=DataPart(status="unknown", sha256=UNKNOWN),
        training=training,
    )
