"""Dev scores, and the log of a training: one JSON object per line."""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import writing
from stsbench.base.parsing import parse_json
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.encoders.network import Network
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import FloatMatrix, Identity, TokenSequence, Wrapper
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.scoring.kinds.sts import StsPairs, compared
from stsbench.scoring.task import Vectors
from stsbench.statistics.correlations import spearman

if TYPE_CHECKING:
    from torch import Tensor

    from stsbench.training.base import LabelledBatch
    from stsbench.training.batches import Batch
    from stsbench.training.model import SentenceModel

LOG = "log.jsonl"

Listener = Callable[[dict[str, Any]], None]


@dataclass
class LiveEncoder(Wrapper):
    """The model in training as an encoder, which encodes like a checkpoint of the current step."""

    base: TransformerEncoder
    network: Network
    model: "SentenceModel"
    notes: tuple[str, ...] = ()

    @property
    def identity(self) -> Identity:
        return replace(self.base.identity, weights_sha256=None)

    def prepare(self, *, weights: bool) -> None:
        """Does nothing, because the model is loaded."""

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        self.model.eval()
        try:
            return self.network(sequences, poolings)
        finally:
            self.model.train()


@dataclass(frozen=True)
class Best:
    """The best score so far and its step; minus infinity if all are undefined."""

    step: int
    score: float


@dataclass(frozen=True)
class DevScore:
    """A score on the dev set.

    Attributes:
        score: Spearman over all pairs; minus infinity if it is undefined.
        tasks: for each task the score of its head by its measure; NaN if it is undefined.
    """

    score: float
    seconds: float
    tasks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def line(self, step: int, best: Best | None) -> dict[str, Any]:
        best_so_far = {} if best is None else {"best": _finite(best.score), "best_step": best.step}
        tasks = {
            name: {measure: _finite(score) for measure, score in scores.items()}
            for name, scores in self.tasks.items()
        }
        return {
            "kind": "dev",
            "step": step,
            "dev": _finite(self.score),
            **best_so_far,
            **({"tasks": tasks} if tasks else {}),
            "time": {"seconds": round(self.seconds, 4)},
        }


def _finite(score: float) -> float | None:
    return score if math.isfinite(score) else None


def best_of(log: Sequence[dict[str, Any]]) -> Best:
    """Returns the best score of a training log.

    >>> best_of([{"kind": "dev", "step": 5, "dev": 0.8, "best": 0.8, "best_step": 5}])
    Best(step=5, score=0.8)
    """
    line = next(line for line in reversed(log) if "best_step" in line)
    return Best(line["best_step"], -math.inf if line["best"] is None else line["best"])


@dataclass(frozen=True)
class Selector:
    encoder: LiveEncoder
    data: StsData

    def score(self) -> DevScore:
        start = time.perf_counter()
        sentences = sentences_in(self.data)
        embeddings = embed(self.encoder, sentences, use_cache=False)
        (vectors,) = embeddings.vectors.values()
        table = compared(StsPairs(self.data), Vectors(vectors, embeddings.rows, embeddings.lengths))
        overall = spearman(table["gold"], table["cosine"])
        return DevScore(overall if math.isfinite(overall) else -math.inf, time.perf_counter() - start)


@dataclass
class Log:
    """Appends lines to a file, if there is one, and passes them to listeners."""

    path: Path | None
    listeners: Sequence[Listener] = ()

    def write(self, line: dict[str, Any]) -> None:
        if self.path is not None:
            with writing(self.path), self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        for listener in self.listeners:
            listener(line)

    def commit(self) -> int:
        """Flushes the log to the disk; returns its size in bytes."""
        if self.path is None:
            return 0
        with writing(self.path), self.path.open("ab") as stream:
            os.fsync(stream.fileno())
            return stream.tell()

    def cut_back(self, size: int) -> None:
        """Cuts off the lines after the first `size` bytes, whose steps will be repeated."""
        if self.path is not None and self.path.exists():
            os.truncate(self.path, size)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a log, each an object with its `kind` and its `step`."""
    try:
        lines = [parse_json(content) for content in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): is it the folder of a training?") from error
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}): resume the training from its state.") from error
    if not all(isinstance(line, dict) and "step" in line for line in lines):
        raise UserError(f"{path} has a line without a step: is it the log of a training?")
    return lines


def log_frame(lines: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Returns the losses and dev scores of a log.

    Returns:
        A row for each line that has one, in the order of the log: `step`, `loss` (the mean since the last line),
        `learning_rate`, `dev` (Spearman from -1 to 1); with tasks also each task's loss (`sentiment loss`) and
        measure on dev (`sentiment accuracy`). Values that a line does not have are NaN.

    >>> log_frame([{"kind": "dev", "step": 5, "dev": 0.8}])["dev"].tolist()
    [0.8]
    """
    rows = [line | dict(of_tasks(line)) for line in lines if "loss" in line or "dev" in line]
    tasks = list(dict.fromkeys(name for line in rows for name, _ in of_tasks(line)))
    frame = pd.DataFrame(rows, columns=["step", "loss", "learning_rate", "dev", *tasks])
    return frame.astype({name: float for name in frame if name != "step"} | {"step": int})


def of_tasks(line: dict[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Yields the losses and scores of tasks in a line, with the names of their columns."""
    for name, loss in line.get("losses", {}).items():
        yield f"{name} loss", loss
    for name, scores in line.get("tasks", {}).items():
        yield from ((f"{name} {measure}", score) for measure, score in scores.items())


def percent(score: float | None) -> str:
    return "undefined" if score is None else f"{100 * score:.2f}"


@dataclass
class Meter:
    """Adds up losses and counts between two lines of the log; losses stay on the device until then."""

    losses: "list[Tensor]" = field(default_factory=list)
    parts: "dict[str, list[Tensor]]" = field(default_factory=dict)
    sentences: int = 0
    tokens: int = 0
    since: float = field(default_factory=time.perf_counter)

    def add(
        self, loss: "Tensor", batches: "Sequence[Batch | LabelledBatch]", parts: "Mapping[str, Tensor]"
    ) -> None:
        """Counts a step; `parts` are the terms of its loss, to log their means."""
        self.losses.append(loss)
        for name, part in parts.items():
            self.parts.setdefault(name, []).append(part)
        for batch in batches:
            lengths = list(map(len, batch.sequences))
            self.sentences += len(lengths)
            self.tokens += sum(lengths)

    def line(self, step: int, epoch: float, rate: float) -> dict[str, Any]:
        import torch

        losses = torch.stack(self.losses).double()
        if not bool(losses.isfinite().all()):
            first = step - len(losses) + 1 + int((~losses.isfinite()).nonzero()[0])
            raise UserError(
                f"the loss of step {first} is not finite: lower optimiser.learning_rate, or use --set "
                "precision=fp32; earlier saves are intact."
            )
        means = {name: float(torch.stack(parts).double().mean()) for name, parts in sorted(self.parts.items())}
        return {
            "kind": "train",
            "step": step,
            "epoch": round(epoch, 6),
            "loss": float(losses.mean()),
            **({"losses": means} if means else {}),
            "learning_rate": rate,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "time": {"seconds": round(time.perf_counter() - self.since, 4)},
        }
