"""How a measurement is made, apart from what is measured and on which pairs."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from stsbench.evaluation.protocols import Protocol
from stsbench.evaluation.sts import Bootstrap
from stsbench.foundation.progress import Progress, silent


@dataclass(frozen=True)
class Postprocessing:
    """What is done to vectors before they are compared.

    Attributes:
        dimensions: how many leading dimensions to keep (Matryoshka); None for all.
        whiten: how many dimensions to keep when whitening on each task's own sentences; 0 for all, None for no
            whitening.
    """

    dimensions: int | None = None
    whiten: int | None = None

    def __str__(self) -> str:
        """Return what stands in the signature."""
        return "" if self.whiten is None else f"whiten{self.whiten or ''}"


@dataclass(frozen=True)
class Settings:
    """The choices of a measurement.

    Attributes:
        protocol: aggregation, metric, similarity and text.
        postprocessing: what is done to vectors first.
        bootstrap: resamples, level and seed of the intervals.
        use_cache: whether to read and write the embedding cache.
        out: folder to save the record in; None to keep it in memory.
        overwrite: whether the record of another measurement in that folder may be replaced.
        command: the command line, for the record.
    """

    protocol: Protocol = field(default_factory=Protocol)
    postprocessing: Postprocessing = field(default_factory=Postprocessing)
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
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
