"""The choices of a measurement: protocol, intervals, classification, folder.

Protocols are named sets of choices for STS scores:

| protocol | aggregation | metric | similarity | SICK-R | used by |
|---|---|---|---|---|---|
| `simcse` | `all` | Spearman | cosine | test | SimCSE, ESimCSE, MoCoSE |
| `senteval` | `wmean` | Spearman | cosine | test | SentEval's headline, SBERT-era papers |
| `mteb` | `all` | Spearman | cosine | all 9927 pairs | MTEB |

SentEval's paper reports Pearson: `--protocol senteval --metric pearson`. SentEval's trained regressors for STS-B
and SICK-R are a different measurement (`STS-B:supervised`).
"""

import math
import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.records.parts import ProtocolPart
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.correlations import CORRELATIONS, Aggregation
from stsbench.statistics.neighbours import SIMILARITIES

AGGREGATIONS: tuple[Aggregation, ...] = ("all", "mean", "wmean")
AVERAGE_PRECISION = "ap"
"""The metric for pairs with labels 1 and 0; it selects pair classification."""

GIVEN_SIMILARITY = "given"
"""The name and column of similarities from another program."""

METRICS = (*CORRELATIONS, AVERAGE_PRECISION, "ndcg_at_10")
TEXTS = ("senteval", "raw")


@dataclass(frozen=True)
class Protocol:
    """How similarities become scores.

    Attributes:
        name: the preset.
        aggregation: over the subsets of a task: `all`, `mean` or `wmean`.
        metric: `spearman`, `pearson` or `kendall`; `ap` (average precision) for pairs with labels; a measure such
            as `recall_at_5` for retrieval, whose default is `ndcg_at_10`.
        similarity: `cosine`, `dot`, `euclidean` or `manhattan` (distances are negated).
        text: the text variant, `senteval` or `raw`.
        sick_split: the split of SICK-R; other tasks use `test`.
    """

    name: str = "simcse"
    aggregation: Aggregation = "all"
    metric: str = "spearman"
    similarity: str = "cosine"
    text: str = "senteval"
    sick_split: str = "test"


PROTOCOLS = MappingProxyType(
    {
        "simcse": Protocol("simcse"),
        "senteval": Protocol("senteval", aggregation="wmean"),
        "mteb": Protocol("mteb", sick_split="all"),
    }
)


def choose_protocol(
    name: str = "simcse",
    *,
    aggregation: str | None = None,
    metric: str | None = None,
    similarity: str | None = None,
    text: str | None = None,
) -> Protocol:
    """Returns a preset with some choices replaced.

    Args:
        name: the preset: `simcse`, `senteval` or `mteb`.
        aggregation: the aggregation over the subsets of a task: `all`, `mean` or `wmean`.
        metric: `spearman`, `pearson` or `kendall`; `ap`, the average precision of pairs with labels 1 and 0; or a
            measure of retrieval, such as `ndcg_at_10` or `recall_at_5`.
        similarity: `cosine`, `dot`, `euclidean` or `manhattan` (distances are negated).
        text: the text to encode: `senteval` (tokenised, lower-cased) or `raw`.

    Raises:
        UserError: if a name is unknown.

    >>> choose_protocol("mteb", metric="pearson").metric
    'pearson'
    """
    changes: dict[str, Any] = {}
    for option, value, allowed in (
        ("protocol", name, PROTOCOLS),
        ("aggregation", aggregation, AGGREGATIONS),
        ("metric", metric, METRICS),
        ("similarity", similarity, SIMILARITIES),
        ("text", text, TEXTS),
    ):
        is_measure = option == "metric" and re.search(r"(_at_|@)\d+$", value or "")
        if value is not None and value not in allowed and not is_measure:
            raise UserError(f"unknown {option} {value!r}: {suggestion(value, allowed)}")
        if value is not None and option != "protocol":
            changes[option] = value
    return replace(PROTOCOLS[name], **changes)


CLASSIFIERS = ("logreg", "mlp-adam")
"""Converged logistic regression, and SentEval's net, which the SimCSE papers used."""

INTERVALS: tuple[Dependence, ...] = get_args(Dependence)
"""Models of the dependence between pairs, the default first."""

KFOLD = 10
SEED = 1111
"""SentEval's folds and seed."""


MARGIN = 0.5
"""The default loss in points (of 100) that is allowed for a lower precision or smaller vectors."""


def require_margin(margin: float) -> None:
    """Raises unless a margin is positive and finite."""
    if not (math.isfinite(margin) and margin > 0):
        raise UserError(
            f"a margin of {margin:g} points: give a positive number, because no data can prove a loss of 0."
        )


@dataclass(frozen=True)
class Intervals:
    """How intervals are computed.

    Attributes:
        interval: the dependence between pairs: `dyadic` (pairs that share a sentence), `components` (pairs linked
            by a chain of shared sentences) or `independent`. None for no intervals.
        level: the confidence level.

    Raises:
        UserError: for an invalid value.

    >>> Intervals("components").level
    0.95
    """

    interval: Dependence | None = DEPENDENCE
    level: float = LEVEL

    def __post_init__(self) -> None:
        if self.interval is not None and self.interval not in INTERVALS:
            raise UserError(f"unknown interval {self.interval!r}: {suggestion(self.interval, INTERVALS)}")
        if not 0 < self.level < 1:
            raise UserError(f"a confidence level of {self.level}: give a number between 0 and 1, such as 0.95.")

    @classmethod
    def of(cls, protocol: ProtocolPart) -> "Intervals":
        """Returns how the intervals of a record were computed."""
        return cls(protocol.interval, protocol.level)


@dataclass(frozen=True)
class Classification:
    """How transfer tasks are classified.

    Attributes:
        classifier: one of `CLASSIFIERS`.
        kfold: number of folds at either level.
        seed: the seed of the folds of tasks with a test set, of the net, and of the trained regressors.

    Raises:
        UserError: for an invalid value.
    """

    classifier: str = CLASSIFIERS[0]
    kfold: int = KFOLD
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.classifier not in CLASSIFIERS:
            raise UserError(f"unknown classifier {self.classifier!r}: {suggestion(self.classifier, CLASSIFIERS)}")
        if self.kfold < 2:
            raise UserError(f"{self.kfold} folds are too few for cross-validation: use 2 or more.")


@dataclass(frozen=True)
class Settings:
    """The choices of a measurement.

    Attributes:
        protocol: aggregation, metric, similarity and text.
        intervals: how intervals are computed.
        classification: how transfer tasks are classified.
        use_cache: whether to read and write the embedding cache.
        out: folder to save the record in; None to keep it in memory.
        overwrite: whether to replace another measurement in that folder.
        command: the command line, for the record.
    """

    protocol: Protocol = field(default_factory=Protocol)
    intervals: Intervals = field(default_factory=Intervals)
    classification: Classification = field(default_factory=Classification)
    use_cache: bool = True
    out: Path | None = None
    overwrite: bool = False
    command: str = ""


@dataclass
class Stages:
    """The progress callback and the seconds of each stage."""

    progress: Progress = silent
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def done(self, stage: str) -> None:
        """Ends a stage, or a part of it: the time since the last call belongs to it."""
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._since, 3)
        self._since = now
