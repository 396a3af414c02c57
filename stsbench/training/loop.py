"""The loop: steps, scores, saves. It knows of no method."""

from dataclasses import dataclass

from stsbench.foundation.progress import Progress, silent
from stsbench.training.keeping import Keeper
from stsbench.training.log import Log, Meter
from stsbench.training.recipe import Recipe
from stsbench.training.selection import Selector
from stsbench.training.trainer import Trainer


@dataclass
class Loop:
    """A training that is going on.

    Attributes:
        recipe: says when to score, save and log.
        trainer: takes the steps.
        selector: scores.
        keeper: saves; on the leading process only.
        log: is written by the leading process only.
        progress: told of each step.
    """

    recipe: Recipe
    trainer: Trainer
    selector: Selector
    keeper: Keeper
    log: Log
    progress: Progress = silent

    def run(self, start: int = 0) -> None:
        """Take all steps after the first `start`.

        Raises:
            UserError: if a loss is not finite, or something cannot be written.
        """
        steps, meter = self.trainer.schedule.steps, Meter()
        if start == 0:
            self._score(0)
            meter.restart()
        for step in range(start + 1, steps + 1):
            loss, batches, rate = self.trainer.step(step - 1)
            meter.add(loss, batches)
            self.progress("training", step, steps)
            scored, saved = self._due(step, steps)
            if scored or saved or step % self.recipe.log_every == 0:
                line = meter.line(step, step / self.trainer.schedule.steps_per_epoch, rate)
                if self.trainer.world.leads:
                    self.log.write(line)
            if scored:
                self._score(step)
            if saved and self.trainer.world.leads:
                self.keeper.save(step, self.trainer, self.log.commit())
            if scored or saved:
                self.trainer.world.wait()
                meter.restart()

    def _due(self, step: int, steps: int) -> tuple[bool, bool]:
        """Return whether a step is scored, and whether it is saved."""
        selection, last = self.recipe.selection, step == steps
        scored = step % selection.every == 0 or (last and (selection.last or steps < selection.every))
        return scored, last or step % self.recipe.saving.every == 0

    def _score(self, step: int) -> None:
        if not self.trainer.world.leads:
            return
        found = self.selector.score()
        if step > 0:  # the base as it was is in the log, but it is not what was trained
            self.keeper.offer(step, found.score)
        self.log.write(found.line(step, self.keeper.best))
