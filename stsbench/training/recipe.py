"""The recipe: every choice of a training, validated."""

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from stsbench.base.words import listed
from stsbench.statistics.seeds import generator
from stsbench.training.heads import Head, Layers, NoHead
from stsbench.training.noise import Noises
from stsbench.training.parts import (
    Corpus,
    CosineDecay,
    Negatives,
    Objective,
    Optimiser,
    RecipePart,
    Saving,
    Selection,
    Target,
)
from stsbench.training.tasks import CONTRASTIVE, LabelledTables, Phase, Task
from stsbench.training.views import TextView, Views

Pooling = Literal["cls_before_pooler", "avg", "max", "last"]
"""The poolings of sentence-transformers checkpoints."""


class Recipe(RecipePart):
    """Every choice of a training.

    Attributes:
        base: the checkpoint that training starts from, as `load` takes it.
        pooling: token vectors to sentence vector, in training and in evaluation.
        dropout: everywhere in the encoder; None for the checkpoint's own.
        head: after the pooling, on both sides.
        projector: after the head, on both sides; None for none.
        predictor: after both, on the queries' side only; None for none.
        precision: of forward and backward passes; weights, losses and optimiser are fp32.
        cuda_graphs: whether a GPU records passes by their shape and replays them; without effect on a CPU, with
            noise and with gradient caching.
        deterministic: whether a GPU uses the slower kernels that give the same bits each time; a CPU has no
        others.
        labelled: settings that the tables of all tasks share.
        tasks: heads that learn labels, by names of your choice.
        phases: trained one after the other; empty to train everything together.
        log_every: steps between two lines of the log.
    """

    name: str = Field(pattern=r"^[\w.-]+$")
    base: str
    corpus: Corpus = Corpus()
    views: Views = Views()
    pooling: Pooling
    dropout: float | None = Field(None, ge=0, lt=1)
    noise: Noises = Noises()
    head: Head = NoHead()
    projector: Layers | None = None
    predictor: Layers | None = None
    target: Target | None = None
    objective: Objective = Objective()
    negatives: Negatives = Negatives()
    labelled: LabelledTables = LabelledTables()
    tasks: dict[Annotated[str, Field(pattern=r"^[\w-]+$")], Task] = Field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    optimiser: Optimiser
    selection: Selection = Selection()
    saving: Saving = Saving()
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    cuda_graphs: bool = True
    deterministic: bool = True
    log_every: int = Field(10, ge=1)
    seed: int = 42

    @model_validator(mode="before")
    @classmethod
    def _queue_brings_a_target(cls, values: Any) -> Any:
        """Add ESimCSE's target to a queue without one; removing a queue removes its target."""
        negatives = values.get("negatives") if isinstance(values, dict) else None
        if not isinstance(negatives, dict) or "queue" not in negatives:
            return values
        queue, target = negatives["queue"], values.get("target")
        if queue is None and isinstance(target, dict) and target.get("encodes", "queue") == "queue":
            return {**values, "target": None}
        return {**values, "target": {}} if queue and target is None else values

    @model_validator(mode="after")
    def _phases_take_the_tasks(self) -> Self:
        parts = [CONTRASTIVE, *self.tasks]
        if CONTRASTIVE in self.tasks:
            raise ValueError(f"tasks.{CONTRASTIVE}: that name is the objective's on the corpus; choose another")
        for number, phase in enumerate(self.phases, 1):
            unknown = [name for name in phase.takes if name not in parts]
            if unknown:
                known = ", ".join(parts)
                raise ValueError(f"phases: phase {number} takes {unknown[0]!r}, which is none of {known}")
        untaken = [name for name in self.tasks if not any(name in phase.takes for phase in self.phases)]
        if self.phases and untaken:
            raise ValueError(f"phases: none takes {untaken[0]!r}; name it in one, or remove tasks.{untaken[0]}")
        return self

    @model_validator(mode="after")
    def _not_selected_on_what_it_was_trained_on(self) -> Self:
        from stsbench.scoring.tasks import canonical

        if self.keeps_test_pairs and canonical(self.selection.task.partition(":")[0]) == "STS-B":
            raise ValueError(
                f"labelled.test_pairs is kept, so training reads pairs of selection.task {self.selection.task}: "
                "use another selection.task, such as SICK-R:dev"
            )
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        queue = self.negatives.queue
        keys_by_target = self.target is not None and self.target.encodes == "keys"
        if self.target is not None and queue is None and not keys_by_target:
            raise ValueError("target.encodes is queue, and negatives.queue is missing")
        if not self.negatives.in_batch and queue is None:
            raise ValueError("negatives.in_batch is false, and negatives.queue is missing: there are no negatives")
        if not self.negatives.in_batch and self.negatives.hard is not None:
            raise ValueError("negatives.hard goes with negatives.in_batch: true")
        bare = self.negatives.in_batch and queue is None and self.negatives.hard is None
        if self.objective.loss == "nt-xent" and (not bare or self.objective.similarity != "cosine"):
            raise ValueError("objective.loss nt-xent goes with cosines and in-batch negatives alone")
        parts = (*self.noise.query.parts, *self.noise.key.parts)
        padded = [length for part in parts if (length := getattr(part, "padded_to", None)) is not None]
        if unlike := [length for length in padded if length != self.corpus.max_length]:
            raise ValueError(
                f"noise: padded_to {unlike[0]} is not corpus.max_length, {self.corpus.max_length}: set one to the "
                "other"
            )
        if self.noise.adversarial is not None and self.optimiser.gradient_cache:
            raise ValueError("noise.adversarial does not go with optimiser.gradient_cache: set one to null")
        if self.noise.masks == "shared" and (self.views.query != self.views.key or keys_by_target):
            raise ValueError(
                "noise.masks shared needs the same tokens through the same encoder on both sides: the same "
                "views.query and views.key, and a target that does not encode keys"
            )
        return self

    @model_validator(mode="after")
    def _heads_fit_together(self) -> Self:
        if self.projector is not None and self.predictor is not None:
            inner = self.projector.output
            if (self.predictor.output or inner) != inner:
                raise ValueError("predictor.output is not projector.output: queries and keys would not compare")
        elif self.predictor is not None and self.predictor.output is not None:
            raise ValueError("predictor.output is not the width of keys: queries and keys would not compare")
        return self

    @model_validator(mode="after")
    def _batches_fit_together(self) -> Self:
        queue = self.negatives.queue
        if queue is not None and queue.size < self.optimiser.batch:
            raise ValueError(
                f"negatives.queue.size {queue.size} is smaller than optimiser.batch {self.optimiser.batch}: a "
                "batch would not fit in it"
            )
        if (self.negatives.hard is not None) != (self.corpus.columns == 3):
            raise ValueError("negatives.hard and corpus.columns: 3 go together: set both or neither")
        return self

    def with_paths(
        self, corpus: str | None, of_view: Callable[[str], str], of_table: Callable[[str, str], str]
    ) -> Self:
        """Return it with changed paths of its corpus, of its views' files, and of each task's tables."""
        changes = {
            "corpus": self.corpus.model_copy(update={"path": corpus}),
            "views": self.views.with_paths(of_view),
            "tasks": {name: part.with_paths(partial(of_table, name)) for name, part in self.tasks.items()},
        }
        return self.model_copy(update=changes)

    def seed_of(self, *names: str) -> int:
        """Return the seed of the draws with some names; it follows from the recipe's seed."""
        return int(generator(self.seed, *names).integers(2**63))

    @property
    def keeps_test_pairs(self) -> bool:
        """Whether tasks may be trained on pairs of STS-B's dev and test sets."""
        return self.labelled.test_pairs == "kept" and any(part.sentences > 1 for part in self.tasks.values())

    @property
    def reads_text(self) -> bool:
        """Whether a view needs the sentences themselves, not only their tokens."""
        return any(isinstance(view, TextView) for view in (self.views.query, self.views.key))


def remarks_on_tests(recipe: Recipe) -> list[str]:
    """Return a sentence for each way in which training reads test data."""
    sentences = []
    if recipe.corpus.of_tasks:
        sentences.append(
            "Trained on test sentences: the corpus is the evaluation tasks' own text, without its scores, so "
            "scores on those tasks do not compare with those of other encoders."
        )
    if recipe.keeps_test_pairs:
        tasks = listed([name for name, part in recipe.tasks.items() if part.sentences > 1])
        sentences.append(
            "Trained on test pairs: pairs of STS-B's dev and test sets were kept in the labelled data of "
            f"{tasks}, so scores on STS-B, and on tasks that share pairs with it, are no results."
        )
    return sentences


def traceable_sentence(recipe: Recipe) -> str | None:
    """Return MoCoSE's maximum traceable distance, at the lowest and the highest decay; None without a queue.

    d = 1 / (1 - eta) + queue / batch (section 5.7): the age in steps of a loss's oldest vectors.
    """
    queue, target = recipe.negatives.queue, recipe.target
    if queue is None or target is None:
        return None
    decays = (target.decay.start, target.decay.end) if isinstance(target.decay, CosineDecay) else (target.decay,)
    distances = [
        (math.inf if eta == 1 else 1 / (1 - eta)) + queue.size / recipe.optimiser.batch for eta in sorted(decays)
    ]
    steps = " to ".join(dict.fromkeys(f"{distance:.2f}" for distance in distances))
    return f"maximum traceable distance {steps} steps (1 / (1 - decay) + queue / batch; MoCoSE, section 5.7)"
