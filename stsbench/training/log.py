"""The training log: one JSON object a line, told to whoever listens too.

A line says what was reached, and under `time` how long it took: a training that was killed and resumed has the
same lines as one that was not, apart from `time`.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.base.files import writing
from stsbench.base.parsing import parse_json

if TYPE_CHECKING:
    from torch import Tensor

    from stsbench.training.batches import Batch
    from stsbench.training.task_heads import LabelledBatch

LOG = "log.jsonl"
"""Its name in the folder of a training."""

Listener = Callable[[dict[str, Any]], None]
"""Called with each line of the log."""


@dataclass
class Log:
    """Appends lines to a file; without a file it only tells."""

    path: Path | None
    listeners: Sequence[Listener] = ()

    def write(self, line: dict[str, Any]) -> None:
        """Append a line and tell it."""
        if self.path is not None:
            with writing(self.path), self.path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        for listener in self.listeners:
            listener(line)

    def commit(self) -> int:
        """Make sure that what was written is on the disk; return its size in bytes."""
        if self.path is None:
            return 0
        with writing(self.path), self.path.open("ab") as stream:
            os.fsync(stream.fileno())
            return stream.tell()

    def cut_back(self, size: int) -> None:
        """Forget the lines after the first `size` bytes: those of steps that will be taken again."""
        if self.path is not None and self.path.exists():
            os.truncate(self.path, size)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log, each an object with its `kind` and its `step`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): is it the folder of a training?") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is damaged ({error}): resume the training from its state.") from error
    lines = []
    for number, content in enumerate(text.splitlines(), start=1):
        if not content.strip():
            continue
        try:
            line = parse_json(content)
        except ValueError as error:
            raise UserError(
                f"{path}, line {number} is damaged ({error}): resume the training from its state."
            ) from error
        if not isinstance(line, dict) or "step" not in line:
            raise UserError(f"{path}, line {number} names no step: is it the log of a training?")
        lines.append(line)
    return lines


def log_frame(lines: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return what a log says of losses and dev scores.

    Returns:
        A row for each line that has one, in the order of the log: `step`, `loss` (the mean since the last line),
        `learning_rate`, `dev` (Spearman from -1 to 1); with tasks also each task's loss (`sentiment loss`) and
        measure on dev (`sentiment accuracy`). NaN where a line has no such value.

    >>> log_frame([{"kind": "dev", "step": 5, "dev": 0.8}])["dev"].tolist()
    [0.8]
    """
    rows = [line | dict(_of_tasks(line)) for line in lines if "loss" in line or "dev" in line]
    tasks = list(dict.fromkeys(name for line in rows for name, _ in _of_tasks(line)))
    frame = pd.DataFrame(rows, columns=["step", "loss", "learning_rate", "dev", *tasks])
    return frame.astype({name: float for name in frame if name != "step"} | {"step": int})


def _of_tasks(line: dict[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Yield what a line says of the parts of a loss and of tasks, named for a column."""
    losses, tasks = line.get("losses"), line.get("tasks")
    for name, loss in losses.items() if isinstance(losses, dict) else ():
        yield f"{name} loss", loss
    for name, scores in tasks.items() if isinstance(tasks, dict) else ():
        for measure, score in scores.items() if isinstance(scores, dict) else ():
            yield f"{name} {measure}", score


def percent(score: float | None) -> str:
    """Return a head's score for a sentence."""
    return "undefined" if score is None else f"{100 * score:.2f}"


@dataclass
class Meter:
    """Adds up what happens between two lines of the log.

    Losses stay on the device until a line is due: to look at each would make the device wait.
    """

    losses: "list[Tensor]" = field(default_factory=list)
    parts: "dict[str, list[Tensor]]" = field(default_factory=dict)
    sentences: int = 0
    tokens: int = 0
    since: float = field(default_factory=time.perf_counter)

    def add(
        self, loss: "Tensor", batches: "Sequence[Batch | LabelledBatch]", parts: "Mapping[str, Tensor]"
    ) -> None:
        """Count a step; `parts` are what its loss is the sum of, where a line is to say that."""
        self.losses.append(loss)
        for name, part in parts.items():
            self.parts.setdefault(name, []).append(part)
        for batch in batches:
            lengths = list(map(len, batch.sequences))
            self.sentences += len(lengths)
            self.tokens += sum(lengths)

    def line(self, step: int, epoch: float, rate: float) -> dict[str, Any]:
        """Return a line about the steps that were added."""
        import torch

        losses = torch.stack(self.losses).double()
        if not bool(losses.isfinite().all()):
            first = step - len(losses) + 1 + int((~losses.isfinite()).nonzero()[0])
            raise UserError(
                f"the loss of step {first} is not finite: lower optimiser.learning_rate, or use --set "
                "precision=fp32; what was saved before is untouched."
            )
        means = {name: float(torch.stack(parts).double().mean()) for name, parts in sorted(self.parts.items())}
        seconds = time.perf_counter() - self.since
        return {
            "kind": "train",
            "step": step,
            "epoch": round(epoch, 6),
            "loss": float(losses.mean()),
            **({"losses": means} if means else {}),
            "learning_rate": rate,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "time": {
                "seconds": round(seconds, 4),
                "tokens_per_second": round(self.tokens / max(seconds, 1e-9), 1),
            },
        }


def tensorboard_listener(folder: Path) -> Listener:
    """Return a listener that writes TensorBoard's files into a folder."""
    require("tensorboard", "--tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    writers: list[Any] = []

    def listen(line: dict[str, Any]) -> None:
        if not writers:
            # Of steps that are taken again after a kill, what was written first is hidden.
            writers.append(SummaryWriter(str(folder), purge_step=line["step"]))
        (writer,) = writers
        for name, value in scalars(line).items():
            writer.add_scalar(name, value, line["step"])
        writer.flush()

    return listen


def wandb_listener(name: str, recipe: dict[str, Any]) -> Listener:
    """Return a listener that sends the log to Weights & Biases."""
    try:
        import wandb as library
    except ImportError as error:
        raise UserError("--wandb needs the package wandb: pip install wandb.") from error
    run = library.init(project="stsbench", name=name, config=recipe, id=name, resume="allow")

    def listen(line: dict[str, Any]) -> None:
        run.log(scalars(line), step=line["step"])

    return listen


def scalars(line: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a line, named by what they are of.

    >>> scalars({"kind": "train", "step": 5, "loss": 0.5, "time": {"tokens_per_second": 100.0}})
    {'train/loss': 0.5, 'train/tokens_per_second': 100.0}
    """
    values = {name: value for name, value in line.items() if name not in {"kind", "step", "time"}}
    values |= line.get("time", {})
    values |= dict(_of_tasks(line))
    return {f"{line['kind']}/{name}": float(v) for name, v in values.items() if isinstance(v, int | float)}
