"""How a measurement is made, apart from what is measured.

Protocols are named sets of the choices that make an STS score:

| protocol | over subsets | metric | similarity | SICK-R | who reports so |
|---|---|---|---|---|---|
| `simcse` | `all` | Spearman | cosine | test | SimCSE, ESimCSE, MoCoSE |
| `senteval` | `wmean` | Spearman | cosine | test | the original SentEval's headline, SBERT-era papers |
| `mteb` | `all` | Spearman | cosine | all 9927 pairs | MTEB |

SentEval's own paper prints Pearson: `--protocol senteval --metric pearson`. The regressors that the original
SentEval trains on STS-B and SICK-R are another measurement and no part of these protocols.
"""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.encoders.use import USUAL, Use
from stsbench.records.parts import ProtocolPart
from stsbench.statistics.correlations import CORRELATIONS, Aggregation, Metric
from stsbench.statistics.dependence import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.similarity import SIMILARITIES

AGGREGATIONS: tuple[Aggregation, ...] = ("all", "mean", "wmean")
AVERAGE_PRECISION = "ap"
"""The metric that tells pairs of the labels 1 and 0 apart: it makes a pair classification of a task of pairs."""

GIVEN_SIMILARITY = "given"
"""The similarity, and its column, of a run whose numbers were computed elsewhere."""

METRICS = (*CORRELATIONS, AVERAGE_PRECISION)
TEXTS = ("senteval", "raw")


@dataclass(frozen=True)
class Protocol:
    """How similarities become scores.

    Attributes:
        name: the preset it started from.
        aggregation: over the subsets of a task: `all`, `mean` or `wmean`.
        metric: `spearman`, `pearson` or `kendall`; `ap`, average precision, of pairs with labels.
        similarity: `cosine`, `dot`, `euclidean` or `manhattan` (distances negative).
        text: the text variant, `senteval` or `raw`.
        sick_split: the split of SICK-R; all other tasks are scored on `test`.
    """

    name: str = "simcse"
    aggregation: Aggregation = "all"
    metric: Metric | Literal["ap", "mean"] = "spearman"
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
    """Return a preset with some of its choices replaced.

    Args:
        name: the preset of the four choices below: `simcse`, `senteval` or `mteb`.
        aggregation: how the subsets of a task become one score: `all`, `mean` or `wmean`.
        metric: the correlation: `spearman`, `pearson` or `kendall`; or `ap`, the average precision of pairs with
            the labels 1 and 0.
        similarity: the similarity of two vectors: `cosine`, `dot`, `euclidean` or `manhattan` (distances
            negative).
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
        if value is not None and value not in allowed:
            raise UserError(f"unknown {option} {value!r}: {suggestion(value, allowed)}")
        if value is not None and option != "protocol":
            changes[option] = value
    return replace(PROTOCOLS[name], **changes)


CLASSIFIERS = ("logreg", "mlp-adam")
"""Of the transfer tasks: converged logistic regression, and SentEval's net, which is the SimCSE papers'."""

INTERVALS: tuple[Dependence, ...] = get_args(Dependence)
"""The ways to see pairs that share sentences, the default first."""

KFOLD = 10
SEED = 1111
"""SentEval's folds and seed."""


MARGIN = 0.5
"""Points of 100: what a lower precision or a smaller vector may lose unless a person says otherwise."""


def require_margin(margin: float) -> None:
    """Refuse a margin that no number of pairs could show to be kept."""
    if not (math.isfinite(margin) and margin > 0):
        raise UserError(
            f"a margin of {margin:g} points: give more than 0, as no number of pairs shows that nothing was lost."
        )


@dataclass(frozen=True)
class Intervals:
    """How intervals are computed.

    Attributes:
        interval: how pairs that share sentences are seen. `dyadic`: two pairs depend on each other if they share
            one. `components`: if a chain of shared sentences joins them. `independent`: never. None for no
            intervals at all.
        level: how often an interval holds the true value.

    Raises:
        UserError: if a value makes no sense.

    >>> Intervals("components").level
    0.95
    """

    interval: Dependence | None = DEPENDENCE
    level: float = LEVEL

    def __post_init__(self) -> None:
        if self.interval is not None and self.interval not in INTERVALS:
            raise UserError(f"unknown interval {self.interval!r}: {suggestion(self.interval, INTERVALS)}")
        if not 0 < self.level < 1:
            raise UserError(f"an interval of level {self.level}: give a share between 0 and 1, such as 0.95.")

    @classmethod
    def of(cls, protocol: ProtocolPart) -> "Intervals":
        """Return how a record's intervals were computed."""
        return cls(protocol.interval, protocol.level)


@dataclass(frozen=True)
class Classification:
    """How the transfer tasks are classified.

    Attributes:
        classifier: one of `CLASSIFIERS`.
        kfold: how many folds, at either level.
        seed: of the folds of the tasks with a test set, of the net, and of the trained regressors.

    Raises:
        UserError: if a value makes no sense.
    """

    classifier: str = CLASSIFIERS[0]
    kfold: int = KFOLD
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.classifier not in CLASSIFIERS:
            raise UserError(f"unknown classifier {self.classifier!r}: {suggestion(self.classifier, CLASSIFIERS)}")
        if self.kfold < 2:
            raise UserError(f"{self.kfold} folds are too few to cross-validate: use 2 or more.")


@dataclass(frozen=True)
class Settings:
    """The choices of a measurement.

    Attributes:
        protocol: aggregation, metric, similarity and text.
        use: of which what is done to vectors afterwards is done to those of any encoder.
        intervals: how intervals are computed.
        classification: how the transfer tasks are classified.
        use_cache: whether to read and write the embedding cache.
        out: folder to save the record in; None to keep it in memory.
        overwrite: whether the record of another measurement in that folder may be replaced.
        command: the command line, for the record.
    """

    protocol: Protocol = field(default_factory=Protocol)
    use: Use = USUAL
    intervals: Intervals = field(default_factory=Intervals)
    classification: Classification = field(default_factory=Classification)
    use_cache: bool = True
    out: Path | None = None
    overwrite: bool = False
    command: str = ""


@dataclass
class Stages:
    """What is told while measuring, and how long each stage took."""

    progress: Progress = silent
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def done(self, stage: str) -> None:
        """Count the time since the last stage ended to this one."""
        now = time.perf_counter()
        self.seconds[stage] = round(now - self._since, 3)
        self._since = now
