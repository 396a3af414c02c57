"""Tasks at work: a head on the sentence vector, its loss in a step, and its score on dev.

A head reads the vector that is scored: the pooled one, or the one behind the recipe's head where that is
evaluated. So what a task learns is in the checkpoint, and the head itself is not: it is in the state that a
training goes on from, and leaves with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import backward

from stsbench.encoders.plan import embed
from stsbench.training.base import Base
from stsbench.training.batches import Schedule, Sequences
from stsbench.training.distributed import World
from stsbench.training.heads import HeadBase
from stsbench.training.labelled import LabelledTask
from stsbench.training.model import Forward, SentenceModel
from stsbench.training.objectives import dropout_seed
from stsbench.training.recipe import Recipe
from stsbench.training.selection import LiveEncoder


@dataclass(frozen=True)
class LabelledBatch:
    """The sequences and targets of one loss of a task; the targets are those of `LabelledRows`."""

    sides: tuple[Sequences, ...]
    targets: NDArray[np.float64]

    @property
    def sequences(self) -> Sequences:
        """All of them, one side after the other."""
        return [sequence for side in self.sides for sequence in side]

    def share(self, place: slice) -> "LabelledBatch":
        """Return some of the rows."""
        return LabelledBatch(tuple(side[place] for side in self.sides), self.targets[place])


class TaskTerm:
    """A task's loss, the mean over a batch of its own."""

    def __init__(  # noqa: PLR0917 - the parts of a training
        self,
        task: LabelledTask,
        recipe: Recipe,
        base: Base,
        model: SentenceModel,
        behind: nn.Module,
        forward: Forward,
        world: World,
    ) -> None:
        """Tokenise the table, and make the head, which reads what is `behind` the pooled vector."""
        self.task, self.name, self.forward = task, task.name, forward
        self._model, self._behind, self._recipe, self._world = model, behind, recipe, world
        self.sides = tuple(_tokenized(sentences, recipe, base) for sentences in task.train.sentences)
        rows = len(task.train)
        batch = min(task.part.batch or recipe.optimiser.batch, rows)
        self.schedule = Schedule(rows, batch, 1, recipe.seed_of("order", "task", task.name))
        self.head = _head(task, recipe, model).to(forward.device).train()

    def batch(self, turn: int) -> LabelledBatch:
        """Return the batch of a turn, counted from 0."""
        (rows,) = self.schedule.batches(turn)
        sides = tuple([side[row] for row in rows.tolist()] for side in self.sides)
        return LabelledBatch(sides, self.task.train.targets[rows])

    def __call__(self, turn: int, scale: Callable[[Tensor], Tensor]) -> tuple[Tensor, LabelledBatch]:
        """Add the gradient of scale(loss) of a turn to the parameters; return the loss, weighted, and batch."""
        batch = self.batch(turn)
        share = batch.share(self._world.share(len(batch.targets)))
        loss = torch.zeros((), device=self.forward.device)
        if len(share.targets):  # a process may have no share of a short last batch
            outputs = self._outputs(share, dropout_seed(self._recipe, self._world, "task", self.name, str(turn)))
            targets = torch.from_numpy(share.targets).to(outputs)
            summed = self.task.part.losses(outputs, targets).sum()
            loss = summed * (self.task.part.weight / len(batch.targets))
            backward(scale(loss))
        return self._world.add_up(loss), batch

    def _outputs(self, batch: LabelledBatch, seed: Callable[[int], int]) -> Tensor:
        """Return the head's outputs, (N, outputs); `seed(-1)` is that of the head's dropout."""
        vectors = self.forward(self._model, self._behind, self.forward.chunks(batch.sequences), seed)
        torch.manual_seed(seed(-1))
        outputs: Tensor = self.head(self.task.part.features(*torch.split(vectors, len(batch.targets))))
        return outputs


def _head(task: LabelledTask, recipe: Recipe, model: SentenceModel) -> nn.Module:
    torch.manual_seed(recipe.seed_of("head", "task", task.name))
    vectors = [torch.zeros((1, model.width)) for _ in range(task.part.sentences)]
    width = task.part.features(*vectors).shape[1]
    std = getattr(model.transformer.config, "initializer_range", 0.02)
    return task.part.build(HeadBase(width, float(std)), task.part.outputs(len(task.classes)))


def _tokenized(sentences: Sequence[str], recipe: Recipe, base: Base) -> Sequences:
    read = [text.lower() for text in sentences] if base.encoder.settings.lower_case else list(sentences)
    return [np.array(ids) for ids in base.tokenizer(read, recipe.corpus.max_length)]


@torch.no_grad()
def score_tasks(terms: Sequence[TaskTerm], encoder: LiveEncoder) -> dict[str, dict[str, float]]:
    """Return the score of each task on its dev set, of the model and heads as they are now, without dropout.

    Sentences are encoded as the dev set of the selection is: whole, as a checkpoint of this moment would.
    """
    scores = {}
    for term in terms:
        dev, part = term.task.dev, term.task.part
        embeddings = embed(encoder, [text for column in dev.sentences for text in column], use_cache=False)
        (vectors,) = embeddings.vectors.values()
        sides = torch.split(torch.from_numpy(np.asarray(vectors[embeddings.rows])), len(dev))
        term.head.eval()
        outputs = term.head(part.features(*sides).to(term.forward.device)).cpu()
        term.head.train()
        scores[term.name] = {part.measure: part.score(outputs, torch.from_numpy(dev.targets).to(outputs))}
    return scores
