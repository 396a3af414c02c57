"""The content of another program's result files, and the record made of it; the rest is marked as unknown."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from stsbench.statistics.dependence import LEVEL

TEXT = "senteval"
"""The text variant of SentEval's results."""

_PROTOCOLS = {"SentEval": {"all": "simcse", "wmean": "senteval"}, "MTEB": {"all": "mteb"}}
_NO_DATA = DataPart(status="unknown", sha256=UNKNOWN)


@dataclass(frozen=True)
class ImportedTask:
    """The scores of one task.

    Attributes:
        task: the catalogue's name.
        split: the catalogue's name.
        text: the text variant; `UNKNOWN` if the file does not contain it.
        numbers: correlations by every metric and aggregation in the file, and of each subset.
        stated: the signature that `export` wrote next to the score; None in other programs' results.
    """

    task: str
    split: str
    text: str
    numbers: tuple[Number, ...]
    stated: Signature | None = None

    def by(self, aggregation: str, metric: str) -> Number | None:
        """Return the correlation of the whole task by an aggregation and a metric; None if the file lacks it."""
        return next((number for number in self.numbers if number.key == (metric, aggregation, "")), None)


@dataclass(frozen=True)
class ImportedResults:
    """The results in a file or folder.

    Attributes:
        program: `SentEval` or `MTEB`.
        tasks: the STS tasks.
        transfer: the transfer tasks.
        model: its name; empty if unknown.
        revision: its commit.
        weights_sha256: the hash of its weights.
        notes: what was left out or assumed.
    """

    program: str
    tasks: tuple[ImportedTask, ...]
    transfer: tuple[Score, ...] = ()
    model: str = ""
    revision: str | None = None
    weights_sha256: str | None = None
    notes: tuple[str, ...] = ()


def read_json(path: Path, what: str) -> Any:
    """Read another program's JSON file; `what` names its content in messages."""
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error}): check that it is there.") from error
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}): save the {what} again.") from error


def correlation(value: Any) -> float | None:
    """Parse a correlation: a number, `[correlation, p]` or `{"correlation": ...}`; NaN becomes None.

    >>> correlation([0.5, 0.01]), correlation({"correlation": 0.5}), correlation(float("nan"))
    (0.5, 0.5, None)
    """
    if isinstance(value, Mapping):
        value = value.get("correlation", value.get("statistic"))
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"no correlation: {value!r}")
    if math.isnan(value):
        return None
    if abs(value) > 1:
        raise ValueError(f"a correlation of {value!r}")
    return float(value)


def share(percent: Any) -> float:
    """Return an accuracy in percent as a share between 0 and 1."""
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        raise ValueError(f"no accuracy: {percent!r}")
    return percent / 100


def count(number: Any) -> int:
    """Parse a number of pairs or items.

    >>> count(750)
    750
    """
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number // 1 or number < 1:
        raise ValueError(f"a count of {number!r}")
    return int(number)


def text(value: Any) -> str:
    """Parse a name or a hash; a missing one is empty."""
    if value is not None and not isinstance(value, str):
        raise ValueError(f"no text: {value!r}")
    return value or ""


def build_record(results: ImportedResults, aggregation: str, metric: str, command: str = "") -> RunRecord:
    """Return the record of imported results; all STS tasks must have the aggregation and metric."""
    use, fitted = _how_used(results)
    sts = [_score(task, aggregation, metric, use, fitted) for task in results.tasks]
    scores = (*sts, *results.transfer)
    averages = [
        AveragePart.of(
            kind,
            [score.task for score in scores if score.kind == kind],
            [score.value for score in scores if score.kind == kind],
        )
        for kind in KINDS
    ]
    return RunRecord(
        stsbench=__version__,
        created=now(),
        command=command,
        model=ModelPart(
            name=results.model,
            kind=IMPORTED,
            use=replace(use, revision=results.revision, device=UNKNOWN),
            weights_sha256=results.weights_sha256,
            fitted=fitted,
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


_NO_USE = Use(pooling=UNKNOWN, precision=UNKNOWN)


def _how_used(results: ImportedResults) -> tuple[Use, str]:
    """Return the model's use and fit if all signatures agree, or unknown values.

    A signature has only a template's name and digits, so with a template the use is unknown.
    """
    stated = {(task.stated.use, task.stated.fitted) if task.stated else (_NO_USE, "") for task in results.tasks}
    use, fitted = next(iter(stated), (_NO_USE, ""))
    return (use, fitted) if len(stated) == 1 and use.template is None else (_NO_USE, "")


def _score(task: ImportedTask, aggregation: str, metric: str, use: Use, fitted: str) -> Score:
    data = DataPart(status="unknown", sha256=task.stated.data) if task.stated else _NO_DATA
    meaning = Signature(
        task.task, task.split, aggregation, metric, "cosine", task.text, data.sha256, use, fitted, UNKNOWN
    )
    headline = (metric, aggregation, "")
    return Score(
        kind=STS,
        task=task.task,
        split=task.split,
        text=task.text,
        numbers=tuple(sorted(task.numbers, key=lambda number: number.key != headline)),
        signature=str(meaning),
        data=data,
    )


def transfer_score(task: str, design: str, numbers: Sequence[Number]) -> Score:
    """Return the score of a transfer task from its numbers and the division of its data."""
    split = "all" if design == "nested" else "test"
    # Signatures have the number of folds, which no result file contains.
    aggregation = "split" if design == "split" else UNKNOWN
    meaning = Signature(task, split, aggregation, "acc", UNKNOWN, TEXT, UNKNOWN, _NO_USE, version=UNKNOWN)
    return Score(
        kind=TRANSFER,
        task=task,
        split=split,
        text=TEXT,
        numbers=tuple(numbers),
        signature=str(meaning),
        data=_NO_DATA,
        training=Training(method=UNKNOWN, design=design),
    )
