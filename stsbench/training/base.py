"""The networks of a training: the base, the target with its queue of negatives, and heads of labelled tasks."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import backward
from torch.nn import functional

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.encoders.load import load
from stsbench.encoders.network import Network, load_network
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.tokenizer import Tokenizer, position_limit
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import Use
from stsbench.training.batches import Batch, Schedule, Sequences
from stsbench.training.cpu import let_numpy_draw, set_dropout
from stsbench.training.distributed import World
from stsbench.training.guesses import masked_language_network
from stsbench.training.heads import random_dense
from stsbench.training.labelled import LabelledTask
from stsbench.training.model import Forward, SentenceModel
from stsbench.training.parts import CosineDecay, Queue, Target
from stsbench.training.recipe import Recipe


@dataclass(frozen=True)
class Base:
    """A checkpoint to start from.

    Attributes:
        longest: the number of sub-words that it has positions for; None for no limit.
        normalizes: whether its vectors have unit length; so then do those of checkpoints trained from it.
        notes: notes for the user.
    """

    encoder: TransformerEncoder
    tokenizer: Tokenizer
    longest: int | None
    normalizes: bool = False
    notes: tuple[str, ...] = ()


def find_base(recipe: Recipe, device: str) -> Base:
    """Finds the recipe's base, without loading its weights."""
    encoder = load(recipe.base, pooling=recipe.pooling, device=device, template=NO_TEMPLATE)
    if not isinstance(encoder, TransformerEncoder):
        raise UserError(f"{recipe.base} is not a Transformers checkpoint: choose another --base.")
    if encoder.adapter is not None:
        raise UserError(f"{recipe.base} is an adapter, which cannot be trained: choose another --base.")
    if encoder.use.prompt:
        raise UserError(
            f"{recipe.base} puts a prompt before every sentence, which cannot be trained: choose another --base."
        )
    longest = position_limit(encoder.checkpoint)
    if longest is not None and recipe.corpus.max_length > longest:
        raise UserError(
            f"{recipe.base} reads at most {longest} sub-words: corpus.max_length {recipe.corpus.max_length} is "
            "too long."
        )
    # A closing normalisation does not change cosines: training leaves it out, and the checkpoint has it again.
    # Other modules after the pooling are not trained.
    tail, normalizes = encoder.settings.tail, encoder.settings.normalizes
    encoder.settings = replace(encoder.settings, tail=(), normalizes=False)
    notes = [*encoder.notes]
    if tail:
        kinds = listed([module.kind for module in tail])
        notes.append(
            f"{recipe.base} has modules after its pooling ({kinds}): training leaves them out, and so does "
            "the checkpoint."
        )
    tokenizer = Tokenizer(encoder.checkpoint, trust_remote_code=False)
    return Base(encoder, tokenizer, longest, normalizes, tuple(notes))


def load_model(base: Base, recipe: Recipe, device: str) -> tuple[SentenceModel, Network]:
    """Loads the base for training, and returns the model and the network that evaluates it."""
    network = load_network(base.encoder.checkpoint, Use(device=device), base.tokenizer.pad_id, tail=())
    transformer = network.model
    if recipe.dropout is not None:
        set_dropout(transformer, recipe.dropout)
    if device == "cpu":
        let_numpy_draw(transformer)
    model = SentenceModel(transformer, recipe.pooling, **_heads(transformer, recipe, network.has_pooler, device))
    model.train()
    return model, replace(network, tail=model.head) if recipe.head.evaluate else network


def _heads(transformer: Any, recipe: Recipe, has_pooler: bool, device: str) -> dict[str, nn.Module]:
    width, std = transformer.config.hidden_size, getattr(transformer.config, "initializer_range", 0.02)
    torch.manual_seed(recipe.seed_of("head"))
    heads = {"head": recipe.head.build(width, std, transformer.pooler.dense if has_pooler else None).to(device)}
    for name, layers in (("projector", recipe.projector), ("predictor", recipe.predictor)):
        if layers is not None:
            torch.manual_seed(recipe.seed_of(name))
            heads[name] = layers.build(width, std).to(device)
            width = layers.output or width
    return heads


def random_copy(model: SentenceModel, recipe: Recipe) -> nn.Module:
    from transformers import AutoModel

    torch.manual_seed(recipe.seed_of("momentum"))
    fresh: nn.Module = AutoModel.from_config(model.transformer.config)
    return fresh


def load_masked_language(base: Base, model: SentenceModel, device: str) -> nn.Module:
    """Returns a masked-language model around the trained encoder, whose word embeddings are its output layer."""
    whole = masked_language_network(base.encoder.checkpoint)
    if whole is None or base.tokenizer.mask_id is None:
        raise UserError(
            f"{base.encoder.checkpoint.name} has no masked-language head (or no mask token), which objective.mlm "
            "needs: choose another --base, or --set objective.mlm=null."
        )
    setattr(whole, whole.base_model_prefix, model.transformer)
    whole.tie_weights()
    trained: nn.Module = whole.to(device).train()
    return trained


def decay_at(decay: float | CosineDecay, step: int, steps: int) -> float:
    """Returns the decay at a step, counted from 0, of a training of `steps` steps.

    >>> [round(decay_at(CosineDecay(kind="cosine", start=0.75, end=0.95), step, 4), 4) for step in range(5)]
    [0.75, 0.7793, 0.85, 0.9207, 0.95]
    """
    if not isinstance(decay, CosineDecay):
        return decay
    turn = step / (decay.steps or steps)
    if decay.after == "stays":
        turn = min(turn, 1.0)
    return decay.end - (decay.end - decay.start) * (math.cos(math.pi * turn) + 1) / 2


class TargetModel:
    """A slow copy of the online model; modules that the recipe does not copy are shared."""

    def __init__(self, online: SentenceModel, part: Target, steps: int, start: nn.Module | None = None) -> None:
        self.part, self._steps = part, steps
        self.model = copy.deepcopy(online).requires_grad_(False).train(part.dropout)
        if start is not None:
            self.model.transformer.load_state_dict(start.state_dict())
        for name in {"head", "projector"} - {*part.modules}:
            setattr(self.model, name, getattr(online, name))
        self.model.predictor = nn.Identity()
        for name in part.trained:
            getattr(self.model, name).requires_grad_(True)
        if part.embeddings == "shared":
            self.model.transformer.embeddings = online.transformer.embeddings
        followed = dict(online.named_parameters())
        weights = self.model.named_parameters()
        self._pairs = [(slow, followed[name]) for name, slow in weights if slow is not followed[name]]

    def trained(self) -> list[nn.Parameter]:
        """Returns the copied weights that the optimiser trains, too."""
        return [weight for name in self.part.trained for weight in getattr(self.model, name).parameters()]

    @torch.no_grad()
    def follow(self, moment: str, step: int) -> None:
        """Updates m <- decay m + (1 - decay) f (ESimCSE, equation 5) if `moment` is the recipe's `update`."""
        if self._pairs and self.part.update == moment:
            slow, fast = zip(*self._pairs, strict=True)
            torch._foreach_lerp_(list(slow), list(fast), 1 - decay_at(self.part.decay, step, self._steps))


class VectorQueue:
    """The target's vectors of the last sentences, (rows, d): fewer than the recipe's size while it fills."""

    def __init__(
        self, part: Queue, width: int, seed: int, device: str, encode: Callable[[Batch], Tensor] | None
    ) -> None:
        """Fills the queue with random vectors; `encode` returns the (N, d) vectors to push, None for the keys."""
        self.part, self._width, self._seed, self._device, self._encode = part, width, seed, device, encode
        self.vectors = self._initial()

    def columns(self) -> Tensor:
        """Returns the vectors that are negatives: (rows, d), without gradient."""
        if self.part.uses is None or len(self.vectors) < self.part.size:
            return self.vectors
        newest_first = self.vectors if self.part.keeps == "first_rows" else self.vectors.flip(0)
        return torch.cat([newest_first[first:last] for first, last in self.part.uses])

    def start_epoch(self) -> None:
        if self.part.emptied == "each_epoch":
            self.vectors = self._initial()

    @torch.no_grad()
    def push(self, batch: Batch, keys: Tensor) -> None:
        newest = keys if self._encode is None else self._encode(batch)
        if self.part.keeps == "first_rows":
            self.vectors = torch.cat([newest, self.vectors])[: self.part.size]
        else:
            self.vectors = torch.cat([self.vectors, newest])[-self.part.size :]

    def state_dict(self) -> dict[str, Any]:
        return {"vectors": self.vectors}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.vectors = state["vectors"].to(self.vectors.device)

    def _initial(self) -> Tensor:
        """Returns random unit vectors (MoCoSE, section 5.6)."""
        rng = torch.Generator().manual_seed(self._seed)
        drawn = torch.randn((self.part.initial, self._width), generator=rng)
        return functional.normalize(drawn, dim=-1).to(self._device)


def dropout_seed(recipe: Recipe, world: World, *names: str) -> Callable[[int], int]:
    """Returns the seed of a chunk's dropout by its first place."""
    return lambda place: recipe.seed_of("dropout", *names, str(world.rank), str(place))


@dataclass(frozen=True)
class LabelledBatch:
    """The sequences and targets of one loss of a task; the targets are those of `LabelledRows`."""

    sides: tuple[Sequences, ...]
    targets: NDArray[np.float64]

    @property
    def sequences(self) -> Sequences:
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
        """Tokenises the table, and makes the head; `scored` maps the pooled vector to the scored one."""
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

    def __call__(self, turn: int, scale: Callable[[Tensor], Tensor]) -> tuple[Tensor, LabelledBatch]:
        """Adds the gradient of scale(loss) of a turn to the parameters; returns weighted loss and batch."""
        (rows,) = self.schedule.batches(turn)
        share = self._batch(rows[self._world.share(len(rows))])
        loss = torch.zeros((), device=self.forward.device)
        if len(share.targets):  # a process may get no rows of a short last batch
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
