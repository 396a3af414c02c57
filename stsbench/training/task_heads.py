"""Tasks in training: a head on the sentence vector, its loss in a step, and its score on dev.

A head reads the scored vector, so the checkpoint has what a task teaches. The head itself is not part of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import backward

from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder
from stsbench.training.base import Base
from stsbench.training.batches import Schedule, Sequences
from stsbench.training.distributed import World
from stsbench.training.heads import random_dense
from stsbench.training.labelled import LabelledTask
from stsbench.training.model import Forward, SentenceModel
from stsbench.training.objectives import dropout_seed
from stsbench.training.recipe import Recipe


@dataclass(frozen=True)
class LabelledBatch:
    """The sequences and targets of one loss of a task; the targets are those of `LabelledRows`."""

    sides: tuple[Sequences, ...]
    targets: NDArray[np.float64]

    @property
    def sequences(self) -> Sequences:
        """All sequences, one side after the other."""
        return [sequence for side in self.sides for sequence in side]


class TaskTerm:
    """A task's loss, the mean over a batch of its table."""

    def __init__(  # noqa: PLR0917 - the parts of a training
        self,
        task: LabelledTask,
        recipe: Recipe,
        base: Base,
        model: SentenceModel,
        scored: nn.Module,
        forward: Forward,
        world: World,
    ) -> None:
        """Tokenise the table, and make the head; `scored` maps the pooled vector to the scored one."""
        self.task, self.name, self.forward = task, task.name, forward
        self._model, self._scored, self._recipe, self._world = model, scored, recipe, world
        self.sides = tuple(_tokenized(sentences, recipe, base) for sentences in task.train.sentences)
        rows, part = len(task.train), task.part
        batch = min(part.batch or recipe.optimiser.batch, rows)
        self.schedule = Schedule(rows, batch, 1, recipe.seed_of("order", "task", task.name))
        torch.manual_seed(recipe.seed_of("head", "task", task.name))
        std = float(getattr(model.transformer.config, "initializer_range", 0.02))
        linear = random_dense(part.sentences * model.width, part.outputs, std)
        self.head = nn.Sequential(nn.Dropout(part.dropout), linear).to(forward.device).train()

    def batch(self, turn: int) -> LabelledBatch:
        """Return the batch of a turn, counted from 0."""
        (rows,) = self.schedule.batches(turn)
        return self._batch(rows)

    def __call__(self, turn: int, scale: Callable[[Tensor], Tensor]) -> tuple[Tensor, LabelledBatch]:
        """Add the gradient of scale(loss) of a turn to the parameters; return the weighted loss and the batch."""
        (rows,) = self.schedule.batches(turn)
        share = self._batch(rows[self._world.share(len(rows))])
        loss = torch.zeros((), device=self.forward.device)
        if len(share.targets):  # a process may have no share of a short last batch
            seed = dropout_seed(self._recipe, self._world, "task", self.name, str(turn))
            vectors = self.forward(self._model, self._scored, self.forward.chunks(share.sequences), seed)
            torch.manual_seed(seed(-1))
            outputs = self.head(torch.cat(torch.split(vectors, len(share.targets)), dim=-1))
            summed = self.task.part.losses(outputs, torch.from_numpy(share.targets).to(outputs)).sum()
            loss = summed * (self.task.part.weight / len(rows))
            backward(scale(loss))
        return self._world.add_up(loss), self._batch(rows)

    @torch.no_grad()
    def score(self, encoder: Encoder) -> dict[str, float]:
        """Return the measure on the dev set, without dropout, as a checkpoint of this step encodes it."""
        dev, part = self.task.dev, self.task.part
        embeddings = embed(encoder, [text for column in dev.sentences for text in column], use_cache=False)
        (vectors,) = embeddings.vectors.values()
        sides = torch.split(torch.from_numpy(np.asarray(vectors[embeddings.rows])), len(dev))
        self.head.eval()
        outputs = self.head(torch.cat(sides, dim=-1).to(self.forward.device)).cpu()
        self.head.train()
        return {part.measure: part.score(outputs, torch.from_numpy(dev.targets).to(outputs))}

    def _batch(self, rows: NDArray[np.int64]) -> LabelledBatch:
        sides = tuple([side[row] for row in rows.tolist()] for side in self.sides)
        return LabelledBatch(sides, self.task.train.targets[rows])


def _tokenized(sentences: Sequence[str], recipe: Recipe, base: Base) -> Sequences:
    read = [text.lower() for text in sentences] if base.encoder.settings.lower_case else list(sentences)
    return [np.array(ids) for ids in base.tokenizer(read, recipe.corpus.max_length)]
