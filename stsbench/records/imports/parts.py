"""What is read from a file of results, whichever program wrote it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stsbench.records.parts import MetricValues, SubsetPart


@dataclass(frozen=True)
class ImportedTask:
    """The scores of one task.

    Attributes:
        task: by the catalogue's name.
        split: by the catalogue's name.
        text: the text variant; `UNKNOWN` where the file does not tell.
        scores: correlations between -1 and 1, every metric by every aggregation that there is.
        subsets: the same of each subset.
        pairs: how many; None where the file does not tell.
    """

    task: str
    split: str
    text: str
    scores: Mapping[str, MetricValues]
    subsets: tuple[SubsetPart, ...] = ()
    pairs: int | None = None


@dataclass(frozen=True)
class ImportedTransfer:
    """The scores of one transfer task, fields as in `TransferPart`; accuracies are shares between 0 and 1."""

    task: str
    design: str
    acc: float
    devacc: float
    ndev: int
    ntest: int
    f1: float | None = None


@dataclass(frozen=True)
class ImportedResults:
    """What a file, or a folder of them, says.

    Attributes:
        program: whose results they are: `SentEval` or `MTEB`.
        tasks: the STS tasks that the catalogue knows.
        transfer: the transfer tasks that it knows.
        model: the model's name, where the file tells it.
        revision: its commit on the Hub.
        weights_sha256: the hash of its weights.
        notes: what was left out, or taken for granted.
    """

    program: str
    tasks: tuple[ImportedTask, ...]
    transfer: tuple[ImportedTransfer, ...] = ()
    model: str = ""
    revision: str | None = None
    weights_sha256: str | None = None
    notes: tuple[str, ...] = field(default=())


def correlation(value: Any) -> float | None:
    """Return a correlation however it was saved: a number, `[correlation, p]` or `{"correlation": ...}`.

    None stands for an undefined one (`NaN`).

    Raises:
        ValueError: if it is nothing of that.

    >>> correlation([0.5, 0.01]), correlation({"correlation": 0.5}), correlation(float("nan"))
    (0.5, 0.5, None)
    """
    if isinstance(value, Mapping):
        value = value.get("correlation", value.get("statistic"))
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"no correlation: {value!r}")
    if not math.isfinite(value):
        return None
    if abs(value) > 1:
        raise ValueError(f"a correlation of {value!r}")
    return float(value)


def share(percent: Any) -> float:
    """Return an accuracy in percent as a share between 0 and 1.

    Raises:
        ValueError: if it is none.
    """
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        raise ValueError(f"no accuracy: {percent!r}")
    return percent / 100
