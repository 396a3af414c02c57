"""Listeners of the log: TensorBoard, and Weights & Biases where it is installed."""

from pathlib import Path
from typing import Any

from stsbench.foundation.errors import UserError
from stsbench.training.log import Listener

_PLACE = {"kind", "step", "time"}


def tensorboard(folder: Path) -> Listener:
    """Return a listener that writes TensorBoard's files into a folder.

    Raises:
        UserError: if TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError("--tensorboard needs the package tensorboard: pip install tensorboard.") from error
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


def wandb(name: str, recipe: dict[str, Any]) -> Listener:
    """Return a listener that sends the log to Weights & Biases.

    Args:
        name: of the run; a resumed training goes on under it.
        recipe: kept as its configuration.

    Raises:
        UserError: if wandb is not installed.
    """
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
    values = {name: value for name, value in line.items() if name not in _PLACE} | line.get("time", {})
    return {f"{line['kind']}/{name}": float(v) for name, v in values.items() if isinstance(v, int | float)}
