"""A recipe put together, a step of it, and the loop that scores, saves and logs between steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.network import Network
from stsbench.statistics.draws import generator
from stsbench.training.adversary import Adversary
from stsbench.training.base import Base, load_masked_language, load_model, random_copy
from stsbench.training.batches import Batch, BatchReader, Schedule, make_schedule
from stsbench.training.checkpoints import Keeper
from stsbench.training.distributed import World
from stsbench.training.graphs import Graphs, has_graphs
from stsbench.training.labelled import LabelledTask
from stsbench.training.log import Log, Meter
from stsbench.training.model import Forward, SentenceModel
from stsbench.training.negatives import InBatch, VectorQueue
from stsbench.training.objectives import Branch, Contrastive, MaskedLanguageTerm, Term
from stsbench.training.optimisation import Descent
from stsbench.training.recipe import Recipe
from stsbench.training.selection import Selector
from stsbench.training.target import TargetModel
from stsbench.training.task_heads import Encoding, LabelledBatch, TaskTerm, score_tasks, task_terms
from stsbench.training.tasks import CONTRASTIVE
from stsbench.training.timetable import Timetable, make_timetable
from stsbench.training.token_store import TokenStore

# Sentences in one forward pass, if the recipe does not say. On a CPU small chunks of like length save padding and
# stay in its cache; a GPU wants to be filled.
_CHUNK_ON_CPU = 16


class Step(NamedTuple):
    """What a step did.

    Attributes:
        loss: the sum of all losses, weighted: a scalar, on the device.
        losses: the part of each of the timetable's parts that the step took.
    """

    loss: Tensor
    batches: Sequence[Batch | LabelledBatch]
    rate: float
    losses: dict[str, Tensor]


@dataclass
class Trainer:
    """All parts of a training, put together."""

    model: SentenceModel
    evaluating: Network
    timetable: Timetable
    schedule: Schedule
    reader: BatchReader
    terms: Sequence[Term]
    tasks: Sequence[TaskTerm]
    negatives: InBatch
    target: TargetModel | None
    adversary: Adversary | None
    descent: Descent
    world: World
    modules: dict[str, nn.Module]
    graphs: Graphs | None = None

    def step(self, number: int) -> Step:
        """Take an optimiser step, counted from 0."""
        losses: dict[str, Tensor] = {}
        batches: list[Batch | LabelledBatch] = []
        if self.graphs is not None:
            self.graphs.start_step()
        turn = self.timetable.turn(CONTRASTIVE, number)
        if turn is not None:
            losses[CONTRASTIVE], read = self._contrastive(turn, number)
            batches += read
        for task in self.tasks:
            turn = self.timetable.turn(task.name, number)
            if turn is not None:
                losses[task.name], labelled = task(turn, self.descent.scale(1))
                batches.append(labelled)
        self.world.add_up_gradients(self.descent.parameters)
        rate = self.descent.step(number)
        if self.target is not None:
            self.target.after_step(number)
        parts = list(losses.values())
        return Step(parts[0] if len(parts) == 1 else torch.stack(parts).sum(), batches, rate, losses)

    def _contrastive(self, turn: int, number: int) -> tuple[Tensor, list[Batch]]:
        """Take a turn of the objective on the corpus, in step `number`; return its loss and the batches read."""
        if self.schedule.starts_epoch(turn):
            self.negatives.start_epoch()
        rows = self.schedule.batches(turn)
        scale = self.descent.scale(len(rows))
        losses, batches = [], []
        for place, rows_of_batch in enumerate(rows):
            batch = self.reader(rows_of_batch, str(turn), str(place))
            if self.target is not None:
                self.target.before_loss(number)
            losses += [term(batch, scale) for term in self.terms]
            batches.append(batch)
        return torch.stack(losses).sum() / len(rows), batches

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next step depends on and the recipe does not say."""
        modules = {name: module.state_dict() for name, module in self.modules.items()}
        return {"modules": modules, **{name: part.state_dict() for name, part in self._with_a_state().items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` returned."""
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
        for name, part in self._with_a_state().items():
            part.load_state_dict(state[name])

    def _with_a_state(self) -> dict[str, InBatch | TargetModel | Adversary | Descent]:
        parts = {"negatives": self.negatives, "target": self.target, "adversary": self.adversary}
        return {name: part for name, part in parts.items() if part is not None} | {"descent": self.descent}


def assemble(
    recipe: Recipe,
    store: TokenStore,
    base: Base,
    world: World,
    device: str,
    *,
    tasks: Sequence[LabelledTask] = (),
) -> Trainer:
    """Put a recipe's parts together."""
    schedule = make_schedule(recipe, store)
    reader = BatchReader(store, base.tokenizer, recipe, base.longest, base.encoder.settings.lower_case)
    model, evaluating = load_model(base, recipe, device)
    chunk = recipe.optimiser.chunk or (_CHUNK_ON_CPU if device == "cpu" else None)
    graphs = Graphs() if device.startswith("cuda") and has_graphs(recipe) else None
    tokens = recipe.optimiser.chunk_tokens
    forward = Forward(base.tokenizer.pad_id, chunk, device, recipe.precision, graphs, tokens)
    # The evaluating network says behind what a vector is scored; the base's own has nothing there.
    behind = evaluating.tail if isinstance(evaluating.tail, nn.Module) else nn.Identity()
    heads = task_terms(tasks, recipe, base, Encoding(model, behind, forward), world)
    sizes = {head.name: head.schedule.steps_per_epoch for head in heads}
    timetable = make_timetable(recipe, {CONTRASTIVE: schedule.steps_per_epoch} | sizes)
    target = None if recipe.target is None else _target(recipe, model, timetable.steps)
    negatives = _negatives(recipe, model, target, forward, world)
    adversary = _adversary(recipe, world)
    branches = _branches(recipe, model, target)
    terms: list[Term] = [Contrastive(branches, forward, negatives, recipe, world, adversary)]
    modules: dict[str, nn.Module] = {"model": model}
    if recipe.objective.mlm is not None:
        modules["mlm"] = load_masked_language(base, model, device, tied=recipe.objective.mlm.tied)
        terms.append(
            MaskedLanguageTerm(
                network=modules["mlm"],
                forward=forward,
                part=recipe.objective.mlm,
                mask_id=base.tokenizer.mask_id or 0,
                vocabulary=base.tokenizer.vocabulary,
                around=reader.around,
                seed=recipe.seed,
                world=world,
            )
        )
    modules |= {f"tasks.{head.name}": head.head for head in heads}
    # A parameter that two modules share is trained once.
    trained = [parameter for module in modules.values() for parameter in module.parameters()]
    trained += [] if target is None else target.trained()
    descent = Descent.of(dict.fromkeys(trained), recipe.optimiser, timetable.steps, device, recipe.precision)
    return Trainer(
        model,
        evaluating,
        timetable,
        schedule,
        reader,
        terms,
        heads,
        negatives,
        target,
        adversary,
        descent,
        world,
        modules,
        graphs,
    )


def _target(recipe: Recipe, model: SentenceModel, steps: int) -> TargetModel:
    assert recipe.target is not None
    start = random_copy(model, recipe.seed) if recipe.target.start == "random" else None
    return TargetModel(model, recipe.target, steps, start)


def _branches(recipe: Recipe, model: SentenceModel, target: TargetModel | None) -> tuple[Branch, ...]:
    """Return the branches that encode the sides; those treated alike are one branch, which pads less."""
    noise = recipe.noise
    by_target = target is not None and target.part.encodes == "keys"
    alike = noise.query == noise.key and noise.masks == "own" and recipe.predictor is None and not by_target
    if alike:
        sides, side = ("query", "key", "hard"), noise.query
        return (Branch(sides, model, model.key_head, "contrastive", side.parts, side.dropout),)
    draws = "query" if noise.masks == "shared" else "key"
    query = Branch(("query",), model, model.query_head, "query", noise.query.parts, noise.query.dropout)
    if not by_target:
        key = Branch(("key", "hard"), model, model.key_head, draws, noise.key.parts, noise.key.dropout)
        return query, key
    assert target is not None
    dropout, head, trained = target.dropout(noise.key.dropout), target.model.key_head, target.part.gradient
    return query, Branch(("key", "hard"), target.model, head, draws, noise.key.parts, dropout, trained)


def _adversary(recipe: Recipe, world: World) -> Adversary | None:
    part = recipe.noise.adversarial
    if part is None:
        return None
    if world.size > 1:
        raise UserError("noise.adversarial: the steps on word embeddings are for one process; start it as one.")
    return Adversary(part)


def _negatives(
    recipe: Recipe, model: SentenceModel, target: TargetModel | None, forward: Forward, world: World
) -> InBatch:
    queue = recipe.negatives.queue
    if queue is None:
        return InBatch()
    assert target is not None  # the recipe gives a queue one

    def encode(batch: Batch) -> Tensor:
        """Return the target's vectors of the queries (the side that is not repeated)."""
        share = batch.share(world.share(len(batch.query)))
        chunks = forward.chunks(share.query)
        vectors = forward(target.model, target.model.key_head, chunks, None, dropout=target.dropout(None))
        return world.gather(vectors, len(batch.query))

    width = model.width if recipe.projector is None else recipe.projector.output_of(model.width)
    seed = int(generator(recipe.seed, "queue").integers(2**63))
    return VectorQueue(queue, width, seed, forward.device, None if target.part.encodes == "keys" else encode)


@dataclass
class Loop:
    """A training that is going on.

    Attributes:
        keeper: saves; on the leading process only.
        log: is written by the leading process only.
        remarks: what the person should know of the recipe; they stand at the top of the log.
    """

    recipe: Recipe
    trainer: Trainer
    selector: Selector
    keeper: Keeper
    log: Log
    remarks: Sequence[str] = ()
    progress: Progress = silent

    def run(self, start: int = 0) -> None:
        """Take all steps after the first `start`."""
        timetable, meter = self.trainer.timetable, Meter()
        steps = timetable.steps
        if start == 0:
            for remark in self.remarks if self.trainer.world.leads else ():
                self.log.write({"kind": "remark", "step": 0, "remark": remark})
            self._score(0)
            meter.restart()
        for step in range(start + 1, steps + 1):
            taken = self.trainer.step(step - 1)
            meter.add(taken.loss, taken.batches, taken.losses if self.trainer.tasks else {})
            self.progress("training", step, steps)
            scored, saved = self._due(step, steps)
            if scored or saved or step % self.recipe.log_every == 0:
                line = meter.line(step, timetable.epoch(step), taken.rate)
                if self.trainer.world.leads:
                    self.log.write(line)
            if scored:
                self._score(step)
            if saved and self.trainer.world.leads:
                self.keeper.save(step, self.trainer.state_dict(), self.log.commit())
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
        scored = self.selector.score(at_start=step == 0)
        dev = replace(scored, tasks=score_tasks(self.trainer.tasks, self.selector.encoder))
        if step > 0:  # the base as it was is in the log, but it is not what was trained
            self.keeper.offer(step, dev.score)
        self.log.write(dev.line(step, self.keeper.best))
