"""What is kept of a training on disk: the state, the best checkpoint, and the last ones."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stsbench.training.checkpoints import CheckpointWriter, prune
from stsbench.training.selection import Best
from stsbench.training.state import RunFolder, load_state, save_state

if TYPE_CHECKING:
    from stsbench.training.trainer import Trainer


@dataclass
class Keeper:
    """Saves a training.

    The best weights are held in memory until the next save: a training that is killed goes back to its last save
    and finds them again.

    Attributes:
        folder: of the training.
        writer: of checkpoints.
        keep: how many of the last saves have a checkpoint kept, beside the best.
        best: score and step so far.
    """

    folder: RunFolder
    writer: CheckpointWriter
    keep: int
    best: Best | None = None
    _weights: dict[str, Any] | None = field(default=None, repr=False)
    _saves: list[int] = field(default_factory=list)

    def offer(self, step: int, score: float) -> None:
        """Take note of the score of a step; the first of equal ones stays the best."""
        if self.best is None or score > self.best.score:
            self.best = Best(step, score)
            self._weights = {
                name: tensor.detach().clone() for name, tensor in self.writer.model.state_dict().items()
            }

    def save(self, step: int, trainer: "Trainer", log_size: int) -> None:
        """Write the best checkpoint, this step's, and at last the state, which commits them.

        Raises:
            UserError: if the disk is full or the folder cannot be written.
        """
        if self.best is not None and self._weights is not None:
            self.writer.write(self._weights, self.folder.checkpoint(self.best.step))
            self._weights = None
        if self.keep:
            if self.best is None or self.best.step != step:
                self.writer.write(trainer.model.state_dict(), self.folder.checkpoint(step))
            self._saves = [*self._saves, step][-self.keep :]
        best = None if self.best is None else {"step": self.best.step, "score": self.best.score}
        state = {"step": step, "log_size": log_size, "best": best, "saves": self._saves, **trainer.state_dict()}
        save_state(self.folder.state, state)
        prune(self.folder.checkpoints, {*self._saves, *([self.best.step] if self.best else [])})

    def resume(self, trainer: "Trainer", device: str) -> tuple[int, int]:
        """Put back the last state saved; return its step and the size that the log had.

        Raises:
            UserError: if it is damaged.
        """
        if not self.folder.state.is_file():
            return 0, 0
        state = load_state(self.folder.state, device)
        trainer.load_state_dict(state)
        self.best = None if state["best"] is None else Best(**state["best"])
        self._saves = list(state["saves"])
        return int(state["step"]), int(state["log_size"])
