"""The parts of a training, its steps and optimiser, and the loop that scores, saves and logs."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.training.base import (
    Base,
    LabelledBatch,
    TargetModel,
    TaskTerm,
    VectorQueue,
    dropout_seed,
    load_masked_language,
    load_model,
    random_copy,
)
from stsbench.training.batches import Batch, BatchReader, TokenStore, make_schedule, make_timetable
from stsbench.training.cpu import numpy_draws
from stsbench.training.distributed import Graphs, World
from stsbench.training.folder import Keeper
from stsbench.training.labelled import LabelledTask
from stsbench.training.log import Log, Meter, Selector
from stsbench.training.model import Forward, SentenceModel
from stsbench.training.objectives import Adversary, Branch, Contrastive, MaskedLanguageTerm, Term
from stsbench.training.parts import Optimiser
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import CONTRASTIVE

_TOKENS_ON_CPU = 640
"""Tokens in one forward pass: small chunks of similar length save padding and stay in the cache."""

_MOST_AT_ONCE = 4
"""Concurrent passes, each with gradients as large as the weights."""

# Transformers' defaults, which the papers' scripts use.
_BETAS, _EPSILON = (0.9, 0.999), 1e-8


class Step(NamedTuple):
    """The result of a step: its weighted loss on the device, and the loss of each term by name."""

    loss: Tensor
    batches: Sequence[Batch | LabelledBatch]
    rate: float
    losses: dict[str, Tensor]


class Trainer:
    """All parts of a training.

    Attributes:
        evaluating: the network that scores the model.
        modules: the modules whose weights are saved, by name.
    """

    def __init__(
        self,
        recipe: Recipe,
        store: TokenStore,
        base: Base,
        world: World,
        device: str,
        *,
        tasks: Sequence[LabelledTask] = (),
    ) -> None:
        self.world = world
        self.schedule = make_schedule(recipe, store)
        self.reader = BatchReader(store, base.tokenizer, recipe, base.longest, base.encoder.settings.lower_case)
        self.model, self.evaluating = load_model(base, recipe, device)
        # Gradient caching runs each pass twice in a step.
        recorded = device.startswith("cuda") and recipe.cuda_graphs and not recipe.optimiser.gradient_cache
        self.graphs = Graphs() if recorded else None
        by_tokens = device == "cpu" and recipe.optimiser.chunk is None
        forward = Forward(
            pad_id=base.tokenizer.pad_id,
            chunk=recipe.optimiser.chunk,
            device=device,
            precision=recipe.precision,
            graphs=self.graphs,
            tokens=_TOKENS_ON_CPU if by_tokens else None,
            at_once=min(torch.get_num_threads(), _MOST_AT_ONCE) if device == "cpu" else 1,
            apart=device == "cpu" and numpy_draws(self.model.transformer),
        )
        behind = self.evaluating.tail if isinstance(self.evaluating.tail, nn.Module) else nn.Identity()
        self.tasks = [TaskTerm(task, recipe, base, self.model, behind, forward, world) for task in tasks]
        sizes = {task.name: task.schedule.steps_per_epoch for task in self.tasks}
        self.timetable = make_timetable(recipe, {CONTRASTIVE: self.schedule.steps_per_epoch} | sizes)
        self.target = None
        if recipe.target is not None:
            start = random_copy(self.model, recipe) if recipe.target.start == "random" else None
            self.target = TargetModel(self.model, recipe.target, self.timetable.steps, start)
        self.queue = _queue(recipe, self.model, self.target, forward, world)
        self.adversary = None if recipe.noise.adversarial is None else Adversary(recipe.noise.adversarial)
        if self.adversary is not None and world.size > 1:
            raise UserError("noise.adversarial works in one process only: start a single one.")
        branches = _branches(recipe, self.model, self.target)
        self.terms: list[Term] = [Contrastive(branches, forward, self.queue, recipe, world, self.adversary)]
        self.modules: dict[str, nn.Module] = {"model": self.model}
        if (part := recipe.objective.mlm) is not None:
            network = self.modules["mlm"] = load_masked_language(base, self.model, device)
            around = self.reader.around
            self.terms.append(MaskedLanguageTerm(network, forward, part, base.tokenizer, around, recipe, world))
        self.modules |= {f"tasks.{task.name}": task.head for task in self.tasks}
        trained = [parameter for module in self.modules.values() for parameter in module.parameters()]
        trained += [] if self.target is None else self.target.trained()
        steps = self.timetable.steps
        self.descent = Descent(dict.fromkeys(trained), recipe.optimiser, steps, device, recipe.precision)

    def step(self, number: int) -> Step:
        """Takes an optimiser step, counted from 0."""
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
            self.target.follow("after_step", number)
        parts = list(losses.values())
        return Step(parts[0] if len(parts) == 1 else torch.stack(parts).sum(), batches, rate, losses)

    def _contrastive(self, turn: int, number: int) -> tuple[Tensor, list[Batch]]:
        """Runs the objective on the corpus's batches number `turn`; returns their mean loss and the batches."""
        if self.queue is not None and self.schedule.starts_epoch(turn):
            self.queue.start_epoch()
        rows = self.schedule.batches(turn)
        scale = self.descent.scale(len(rows))
        losses, batches = [], []
        for place, rows_of_batch in enumerate(rows):
            batch = self.reader(rows_of_batch, str(turn), str(place))
            if self.target is not None:
                self.target.follow("before_loss", number)
            losses += [term(batch, scale) for term in self.terms]
            batches.append(batch)
        return torch.stack(losses).sum() / len(rows), batches

    def state_dict(self) -> dict[str, Any]:
        modules = {name: module.state_dict() for name, module in self.modules.items()}
        return {"modules": modules, **{name: part.state_dict() for name, part in self._with_a_state().items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
        for name, part in self._with_a_state().items():
            part.load_state_dict(state[name])

    def _with_a_state(self) -> dict[str, Any]:
        target = None if self.target is None else self.target.model
        parts = {"negatives": self.queue, "target": target, "adversary": self.adversary, "descent": self.descent}
        return {name: part for name, part in parts.items() if part is not None}


def _branches(recipe: Recipe, model: SentenceModel, target: TargetModel | None) -> tuple[Branch, ...]:
    """Returns the branches of a batch: one for all sides if they are treated alike, which pads less."""
    of_query, of_key, own_masks = recipe.noise.query.parts, recipe.noise.key.parts, recipe.noise.masks == "own"
    by_target = target is not None and target.part.encodes == "keys"
    if of_query == of_key and own_masks and recipe.predictor is None and not by_target:
        sides = ("query", "key", "hard")
        return (Branch(sides, model, model.key_head, "contrastive", of_query),)
    query = Branch(("query",), model, model.query_head, "query", of_query)
    key = Branch(("key", "hard"), model, model.key_head, "key" if own_masks else "query", of_key)
    if target is not None and by_target:
        key = replace(
            key,
            model=target.model,
            head=target.model.key_head,
            dropout=target.part.dropout,
            trained=target.part.gradient,
        )
    return query, key


def _queue(
    recipe: Recipe, model: SentenceModel, target: TargetModel | None, forward: Forward, world: World
) -> VectorQueue | None:
    queue = recipe.negatives.queue
    if queue is None:
        return None
    assert target is not None  # every recipe with a queue has a target

    def encode(batch: Batch) -> Tensor:
        share = batch.share(world.share(len(batch.query)))
        chunks = forward.chunks(share.query)
        seed = dropout_seed(recipe, world, "queue", *batch.name) if target.part.dropout else None
        vectors = forward(target.model, target.model.key_head, chunks, seed, dropout=target.part.dropout)
        return world.gather(vectors, len(batch.query))

    width = (recipe.projector and recipe.projector.output) or model.width
    entering = None if target.part.encodes == "keys" else encode
    return VectorQueue(queue, width, recipe.seed_of("queue"), forward.device, entering)


def learning_rate(part: Optimiser, step: int, steps: int) -> float:
    """Returns the rate of a step: linear warm-up over the share `warmup` of all steps, then linear decay to zero.

    >>> part = Optimiser(learning_rate=1.0, warmup=0.5)
    >>> [learning_rate(part, step, 4) for step in range(4)]
    [0.0, 0.5, 1.0, 0.5]
    """
    warm = math.ceil(part.warmup * steps)
    share = step / warm if step < warm else (steps - step) / max(1, steps - warm)
    return part.learning_rate * share


class Descent:
    """AdamW with warm-up, linear decay, clipping and loss scaling; biases and norms have no weight decay."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], part: Optimiser, steps: int, device: str, precision: str
    ) -> None:
        self._part, self._steps = part, steps
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        decaying = [parameter for parameter in trained if parameter.ndim > 1]
        plain = [parameter for parameter in trained if parameter.ndim <= 1]
        self.parameters = [*decaying, *plain]
        groups = [{"params": decaying, "weight_decay": part.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self._adam: torch.optim.Optimizer
        if part.adam_epsilon == "before_correction":
            self._adam = _AdamWOfTransformers(groups, {"lr": part.learning_rate})
        else:
            self._adam = torch.optim.AdamW(groups, lr=part.learning_rate, betas=_BETAS, eps=_EPSILON, fused=True)
        # Scales the loss in fp16, else nothing.
        self._scaler = torch.amp.GradScaler(device.partition(":")[0], enabled=precision == "fp16")

    def scale(self, losses: int) -> Callable[[Tensor], Tensor]:
        """Returns the scaling of each of the `losses` losses of a step."""
        return lambda loss: self._scaler.scale(loss / losses)

    def step(self, step: int) -> float:
        """Takes step number `step`, counted from 0, with the current gradients; returns its rate."""
        rate = learning_rate(self._part, step, self._steps)
        for group in self._adam.param_groups:
            group["lr"] = rate
        if self._part.clip is not None:
            self._scaler.unscale_(self._adam)
            nn.utils.clip_grad_norm_(self.parameters, self._part.clip, foreach=True)
        self._scaler.step(self._adam)
        self._scaler.update()
        self._adam.zero_grad(set_to_none=True)
        return rate

    def state_dict(self) -> dict[str, Any]:
        return {"adam": self._adam.state_dict(), "scaler": self._scaler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._adam.load_state_dict(state["adam"])
        self._scaler.load_state_dict(state["scaler"])


class _AdamWOfTransformers(torch.optim.Optimizer):
    """AdamW as in Transformers 4: epsilon is added before the bias correction; weight decay comes last."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            trained: list[Tensor] = [parameter for parameter in group["params"] if parameter.grad is not None]
            if trained:
                self._step(trained, group["lr"], group["weight_decay"])

    def _step(self, parameters: list[Tensor], rate: float, decay: float) -> None:
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state |= {"step": 0, "mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
            state["step"] += 1
        states = [self.state[parameter] for parameter in parameters]
        means, squares = [state["mean"] for state in states], [state["square"] for state in states]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        torch._foreach_mul_(means, _BETAS[0])
        torch._foreach_add_(means, gradients, alpha=1 - _BETAS[0])
        torch._foreach_mul_(squares, _BETAS[1])
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - _BETAS[1])
        roots = torch._foreach_sqrt(squares)
        torch._foreach_add_(roots, _EPSILON)
        corrections = [math.sqrt(1 - _BETAS[1] ** s["step"]) / (1 - _BETAS[0] ** s["step"]) for s in states]
        torch._foreach_addcdiv_(parameters, means, roots, [-rate * correction for correction in corrections])
        if decay:
            torch._foreach_mul_(parameters, 1 - rate * decay)


@dataclass
class Loop:
    """The loop over the steps; only the leading process scores, saves and writes the log."""

    recipe: Recipe
    trainer: Trainer
    selector: Selector
    keeper: Keeper
    log: Log
    remarks: Sequence[str] = ()
    progress: Progress = silent

    def run(self, start: int = 0) -> None:
        timetable = self.trainer.timetable
        steps = timetable.steps
        if start == 0:
            for remark in self.remarks if self.trainer.world.leads else ():
                self.log.write({"kind": "remark", "step": 0, "remark": remark})
            self._score(0)
        meter = Meter()
        for step in range(start + 1, steps + 1):
            taken = self.trainer.step(step - 1)
            meter.add(taken.loss, taken.batches, taken.losses if self.trainer.tasks else {})
            self.progress("training", step, steps)
            scored, saved = self._due(step, steps)
            if scored or saved or step % self.recipe.log_every == 0:
                line, meter = meter.line(step, float(timetable.epochs[step]), taken.rate), Meter()
                if self.trainer.world.leads:
                    self.log.write(line)
            if scored:
                self._score(step)
            if saved and self.trainer.world.leads:
                # Nothing resumes after the last step.
                state = self.trainer.state_dict() if step < steps else {}
                self.keeper.save(step, state, self.log.commit())
            if scored or saved:
                self.trainer.world.wait()
                meter = Meter()  # without the time for scoring and saving

    def _due(self, step: int, steps: int) -> tuple[bool, bool]:
        selection, last = self.recipe.selection, step == steps
        scored = step % selection.every == 0 or (last and (selection.last or steps < selection.every))
        return scored, last or step % self.recipe.saving.every == 0

    def _score(self, step: int) -> None:
        if not self.trainer.world.leads:
            return
        scored = self.selector.score()
        tasks = {task.name: task.score(self.selector.encoder) for task in self.trainer.tasks}
        dev = replace(scored, tasks=tasks)
        if step > 0:  # the base is logged, but never selected
            self.keeper.offer(step, dev.score)
        self.log.write(dev.line(step, self.keeper.best))
