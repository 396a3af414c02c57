"""How a measurement is made, apart from what is measured and on which pairs."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.encoders.use import USUAL, Use
from stsbench.records.parts import ProtocolPart
from stsbench.scoring.protocols import Protocol
from stsbench.statistics.dependence import DEPENDENCE, LEVEL, Dependence

CLASSIFIERS = ("logreg", "mlp-adam")
"""Of the transfer tasks: converged logistic regression, and SentEval's net, which is the SimCSE papers'."""

INTERVALS: tuple[Dependence, ...] = get_args(Dependence)
"""The ways to see pairs that share sentences, the default first."""

KFOLD = 10
SEED = 1111
"""SentEval's folds and seed."""


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
        """Check what a person may have set."""
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
        """Check what a person may have set."""
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
