"""Listeners of the log: TensorBoard, and Weights & Biases where it is installed."""

from pathlib import Path
from typing import Any

from stsbench.foundation.errors import UserError
from stsbench.training.log import Listener

_PLACE = {"kind", "step", "time"}


def tensorboard(folder: Path, from_step: int) -> Listener:
    """Return a listener that writes TensorBoard's files.

    Args:
        folder: to write them in.
        from_step: what an earlier process wrote from this step on is hidden.

    Raises:
        UserError: if TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError("--tensorboard needs the package tensorboard: pip install tensorboard.") from error
    writer = SummaryWriter(str(folder), purge_step=from_step)

    def listen(line: dict[str, Any]) -> None:
        for name, value in scalars(line).items():
            writer.add_scalar(name, value, line["step"])
        writer.flush()

    return listen


def wandb(name: str, recipe: dict[str, Any], run_id: str) -> Listener:
    """Return a listener that sends the log to Weights & Biases.

    Args:
        name: of the run.
        recipe: kept as its configuration.
        run_id: the same for a training that is resumed.

    Raises:
        UserError: if wandb is not installed.
    """
    try:
        import wandb as library
    except ImportError as error:
        raise UserError("--wandb needs the package wandb: pip install wandb.") from error
    run = library.init(project="stsbench", name=name, config=recipe, id=run_id, resume="allow")

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
