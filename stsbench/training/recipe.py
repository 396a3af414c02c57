"""The recipe: every choice of a training, validated. `recipe_files` reads it, `recipes/` holds the known ones."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from stsbench.base.words import listed
from stsbench.training.heads import Head, Layers, NoHead
from stsbench.training.noise import Noises
from stsbench.training.parts import RecipePart
from stsbench.training.tasks import CONTRASTIVE, LabelledTables, Phase, Task
from stsbench.training.views import TextView, Unchanged, View

Pooling = Literal["cls_before_pooler", "avg", "max", "last"]
"""The poolings that a sentence-transformers checkpoint can name."""

_HIGHEST_RATE = 0.01
_LOWEST_TEMPERATURE, _HIGHEST_TEMPERATURE = 1e-3, 10.0
_LARGEST_QUEUE = 65_536

SELECTED_ON_TEST = (
    "Selected on test: the checkpoint was chosen by its score on a test set, {task}, so that score is no result."
)
TRAINED_ON_TASKS = (
    "Trained on test sentences: the corpus is the evaluation tasks' own text, without its scores, so scores on "
    "those tasks are not like those of encoders that never saw it."
)
TRAINED_ON_TEST_PAIRS = (
    "Trained on test pairs: pairs of STS-B's dev and test sets were kept in the labelled data of {tasks}, so "
    "scores on STS-B, and on tasks that share pairs with it, are no results."
)
"""What the log, the card, the record and the report say of a training that has met what it is measured on."""


class Corpus(RecipePart):
    """The text.

    Attributes:
        path: a file (see `stsbench.data.corpus`), or `sample` for the sentences that come with stsbench.
        columns: sentences in a row: 1, 2 (a pair), 3 (a pair and a hard negative), or more, where `views` says
            which of them a side is made of.
        names: which columns of a table they are; None for all.
        rows: how many rows to read, from the top; None for all.
        max_length: sub-words that training reads, special tokens included.
        buckets: the longest sentence of each bucket but the last, in sub-words without the special ones: batches
            are of one bucket each, shuffled within it (ESimCSE, section 5.3: `[5]` parts at 5, `[3, 4, 5, 6, 7]`
            are its six classes). None for batches of any length.
        of_tasks: whether it is the evaluation tasks' own text, as ConSERT trains on. What was trained on that says
            so everywhere.
    """

    path: str | None = None
    columns: int = Field(1, ge=1, le=99)
    names: tuple[str, ...] | None = None
    rows: int | None = Field(None, ge=1)
    max_length: int = Field(32, ge=3)
    buckets: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(None, min_length=1)
    of_tasks: bool = False

    @model_validator(mode="after")
    def _buckets_ascend(self) -> Self:
        if self.buckets is not None and any(a >= b for a, b in pairwise(self.buckets)):
            raise ValueError(f"buckets {list(self.buckets)} do not ascend")
        return self


class Views(RecipePart):
    """The two sides of a positive pair: `query` is made of a row's first sentence, `key` of its second.

    A row of one sentence has it on both sides.

    Attributes:
        query: what is done to the sentence of one side.
        key: what is done to that of the other.
        query_columns: the columns, counted from 1, of which the query's sentence is one, drawn for each row each
            time it is seen: paraphrases or back-translations that were made before. None for the first.
        key_columns: the same of the key. None for the second, or where there is one only, the first.
    """

    query: View = Unchanged()
    key: View = Unchanged()
    query_columns: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(None, min_length=1)
    key_columns: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(None, min_length=1)

    def with_paths(self, change: Callable[[str], str]) -> Self:
        """Return them with each name changed that may be one of the person's files or folders."""
        sides = {"query": self.query, "key": self.key}
        changed = {side: view.with_paths(change) for side, view in sides.items() if isinstance(view, TextView)}
        return self.model_copy(update=changed)


class MaskedLanguage(RecipePart):
    """The masked-language term.

    Attributes:
        weight: lambda, what its loss is multiplied by.
        share: of the sub-words are masked.
        tied: whether words are guessed by the encoder's own table of word embeddings, as in BERT, or by a copy of
            it that is trained apart, as in the SimCSE authors' code.
    """

    weight: float = Field(gt=0)
    share: float = Field(0.15, gt=0, lt=1)
    tied: bool = True


class Objective(RecipePart):
    """What is minimised.

    Attributes:
        loss: `info-nce`: queries are to find their keys. `nt-xent`: both sides are to find each other, and the
            other vectors of the own side are negatives, too (ConSERT).
        weight: what the contrastive loss is multiplied by. The optimiser undoes most of it, its clipping does not.
        temperature: of either.
        similarity: of its vectors: cosine, or the dot product that MoCoSE's equation 3 has.
        mlm: the masked-language term; None for none.
    """

    loss: Literal["info-nce", "nt-xent"] = "info-nce"
    weight: float = Field(1.0, gt=0)
    temperature: float = Field(0.05, gt=0)
    similarity: Literal["cosine", "dot"] = "cosine"
    mlm: MaskedLanguage | None = None


class HardNegatives(RecipePart):
    """The third sentence of each row as a further column.

    Attributes:
        weight: alpha; the own hard negative's logit gets + log alpha (SimCSE, supervised).
    """

    weight: float = Field(1.0, gt=0)


class Queue(RecipePart):
    """The target's vectors of earlier batches as further columns (ESimCSE, section 3.2; MoCoSE, section 3).

    Attributes:
        size: M, the vectors it holds.
        initial: random unit vectors that it starts with.
        emptied: whether it starts anew never or at each epoch.
        keeps: which rows of the oldest batch stay where not all of them fit.
        uses: which of its vectors are negatives once it is full, as ranges from the newest on (MoCoSE, table 8);
            before that all that it holds are, as in MoCoSE's public code. None for all.
    """

    size: int = Field(ge=1)
    initial: int = Field(0, ge=0)
    emptied: Literal["never", "each_epoch"] = "never"
    keeps: Literal["first_rows", "last_rows"] = "first_rows"
    uses: tuple[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)]], ...] | None = None

    @model_validator(mode="after")
    def _within_the_queue(self) -> Self:
        if self.initial > self.size:
            raise ValueError(f"initial {self.initial} is more than the size, {self.size}")
        end = 0
        for first, last in self.uses or ():
            if not end <= first < last <= self.size:
                raise ValueError(
                    f"uses {[list(place) for place in self.uses or ()]} are not ranges of 0 to {self.size} in "
                    "ascending order"
                )
            end = last
        return self


class Negatives(RecipePart):
    """What a sentence is told apart from.

    Attributes:
        in_batch: whether the other keys of the batch are negatives.
        hard: the third sentence of each row; None for none.
        queue: vectors of earlier batches; None for none.
    """

    in_batch: bool = True
    hard: HardNegatives | None = None
    queue: Queue | None = None


class CosineDecay(RecipePart):
    """A decay that rises (or falls) along half a cosine, as MoCoSE's (section 4.1).

    Attributes:
        start: at the first step.
        end: at the last of `steps`.
        steps: how many it takes; None for those of the training.
        after: whether it stays at the end, or returns as the cosine goes on, as in MoCoSE's public code.
    """

    kind: Literal["cosine"]
    start: float = Field(ge=0, le=1)
    end: float = Field(ge=0, le=1)
    steps: int | None = Field(None, ge=1)
    after: Literal["stays", "returns"] = "stays"


class Target(RecipePart):
    """A second encoder that follows the trained one slowly.

    Attributes:
        modules: which modules it has copies of; the others are the trained ones.
        embeddings: whether its embedding layer is a copy, or the trained one (MoCoSE).
        decay: lambda or eta, the share that it keeps of itself.
        update: whether it moves after each optimiser step or before each loss.
        start: whether it starts as a copy of the encoder or from random weights.
        dropout: whether it has dropout.
        encodes: `queue`: its vectors alone, of the queries (ESimCSE). `keys`: the keys of the batch, which then
            enter the queue (MoCoSE).
        gradient: whether the loss has a gradient through the keys: what the target shares with the trained encoder
            then has one, and of its own weights those of `trained`.
        trained: copies that the optimiser trains too, beside following (MoCoSE's public code leaves its target's
            projector unfrozen).
    """

    modules: tuple[Literal["encoder", "head", "projector"], ...] = ("encoder", "head", "projector")
    embeddings: Literal["copied", "shared"] = "copied"
    decay: Annotated[float, Field(ge=0, lt=1)] | CosineDecay = 0.995
    update: Literal["after_step", "before_loss"] = "after_step"
    start: Literal["copy", "random"] = "copy"
    dropout: bool = False
    encodes: Literal["queue", "keys"] = "queue"
    gradient: bool = False
    trained: tuple[Literal["head", "projector"], ...] = ()

    @model_validator(mode="after")
    def _has_an_encoder(self) -> Self:
        if self.trained and not (self.gradient and self.encodes == "keys" and {*self.trained} <= {*self.modules}):
            raise ValueError(
                f"trained {list(self.trained)}: these have to be among modules, with encodes: keys and "
                "gradient: true"
            )
        if "encoder" not in self.modules:
            raise ValueError(f"modules {list(self.modules)}: a target without an encoder of its own is none")
        return self


class Optimiser(RecipePart):
    """AdamW with linear decay.

    Attributes:
        batch: rows in one loss, over all processes.
        accumulate: losses in one optimiser step.
        warmup: share of the steps over which the rate rises from zero.
        clip: largest norm of the gradient; None for no clipping.
        adam_epsilon: where the 1e-8 is added to the root of Adam's second moment: `after_correction` of its bias
            (Kingma and Ba 2015, algorithm 1; torch), or `before_correction`, as Transformers 4 does, whose AdamW
            trained the papers' models: small gradients move less in the first steps.
        gradient_cache: whether the batch is encoded `chunk` rows at a time without holding its graph (twice the
            forward passes, for batches that do not fit in memory).
        chunk: sentences in one forward pass; None chooses. Sentences of like length go together, so that little
            is padded.
        chunk_tokens: tokens in one forward pass, padding included, in place of `chunk`: sentences are parted where
            that pads least. Other chunks draw other dropout. None to count sentences.
    """

    epochs: int = Field(1, ge=1)
    batch: int = Field(64, ge=2)
    learning_rate: float = Field(gt=0)
    warmup: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    clip: float | None = Field(1.0, gt=0)
    adam_epsilon: Literal["after_correction", "before_correction"] = "after_correction"
    accumulate: int = Field(1, ge=1)
    gradient_cache: bool = False
    chunk: int | None = Field(None, ge=1)
    chunk_tokens: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _counts_one_thing(self) -> Self:
        if self.chunk is not None and self.chunk_tokens is not None:
            raise ValueError("chunk counts sentences and chunk_tokens tokens: set one of them to null")
        return self


class Selection(RecipePart):
    """Which checkpoint is kept as the best.

    Attributes:
        task: scored by Spearman, as `stsbench run --tasks` names it.
        every: steps between two scores.
        last: whether the last step is scored too, where `every` does not meet it.
        geometry: whether alignment and uniformity on the task are logged with the score.
        on_test: whether the task may be a test set. What was selected on one says so everywhere.
        precision: of the passes behind the scores; half is faster on a GPU, and its scores are near those in fp32.
            What is published is measured in fp32 whatever it is.
        tokens: in one pass behind the scores, padding included; None for as many as `stsbench run` takes, which
            pads much of a small task. The scores differ by rounding.
    """

    task: str = "STS-B:dev"
    every: int = Field(125, ge=1)
    last: bool = False
    geometry: bool = False
    on_test: bool = False
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    tokens: int | None = Field(None, ge=1)


class Saving(RecipePart):
    """When the state is saved that `--resume` goes on from, and how many checkpoints are kept beside the best."""

    every: int = Field(1000, ge=1)
    keep: int = Field(1, ge=0)


class Recipe(RecipePart):
    """Every choice of a training.

    Attributes:
        name: of the recipe.
        base: the checkpoint that training starts from, as `load` takes it.
        pooling: token vectors to sentence vector, in training and in evaluation.
        dropout: everywhere in the encoder; None for the checkpoint's own.
        dropout_kind: what dropout does, everywhere in the encoder: `binary` sets to zero, `gaussian` multiplies by
            draws around 1 of the same variance (Srivastava et al. 2014, section 10).
        dropout_draws: who draws the masks of binary dropout in the encoder on a CPU: `torch`, or `numpy`, which is
            several times faster and rounds rates to multiples of 1/65,536. A GPU draws its own.
        reinitialise: how many of the encoder's last layers start from random weights (seeded); for trainings of a
            base that has little left to learn.
        head: behind the pooling, on both sides.
        projector: behind the head, on both sides; None for none.
        predictor: behind both, on the queries' side alone; None for none.
        target: a second encoder, which follows; None for none. A queue needs one, and brings ESimCSE's if none is
            named.
        precision: forward and backward passes; weights, losses and optimiser are fp32.
        compile: whether torch.compile is used.
        cuda_graphs: whether a GPU's passes are recorded for their shapes and played again; it does nothing on a
            CPU, with noise, gradient caching, Gaussian dropout or torch.compile.
        deterministic: whether a GPU takes the kernels that give the same bits each time, which are slower; a CPU
            has no others.
        labelled: what the tables of all tasks have in common.
        tasks: heads that learn labels, by names of the person's choice.
        phases: one after the other; none for a single one that trains everything together.
        log_every: steps between two lines of the log.
        seed: of everything random.
    """

    name: str = Field(pattern=r"^[\w.-]+$")
    base: str
    corpus: Corpus = Corpus()
    views: Views = Views()
    pooling: Pooling
    dropout: float | None = Field(None, ge=0, lt=1)
    dropout_kind: Literal["binary", "gaussian"] = "binary"
    dropout_draws: Literal["torch", "numpy"] = "torch"
    reinitialise: int = Field(0, ge=0)
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
    compile: bool = False
    cuda_graphs: bool = True
    deterministic: bool = True
    log_every: int = Field(10, ge=1)
    seed: int = 42

    @model_validator(mode="before")
    @classmethod
    def _queue_brings_a_target(cls, values: Any) -> Any:
        """Give a queue its target: ESimCSE's, or as recipes of stsbench 0.1 say it, among the queue's own keys."""
        negatives = values.get("negatives") if isinstance(values, dict) else None
        if not isinstance(negatives, dict):
            return values
        queue = negatives.get("queue", {})
        target = values.get("target")
        if queue is None and isinstance(target, dict) and target.get("encodes", "queue") == "queue":
            return {**values, "target": None}  # a recipe's queue was taken away, and its target goes with it
        if not isinstance(queue, dict) or not queue:
            return values
        queue, target = dict(queue), {} if target is None else target
        moved = {key: queue.pop(key) for key in ("decay", "update", "start") if key in queue}
        if (head := queue.pop("head", None)) is not None:
            # The released code has no momentum copy of the head.
            moved["modules"] = ["encoder"] if head == "online" else ["encoder", "head", "projector"]
        if isinstance(target, dict):
            target = moved | target
        return {**values, "negatives": {**negatives, "queue": queue}, "target": target}

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
                "labelled.test_pairs is kept, so training has seen pairs of selection.task "
                f"{self.selection.task}, and a checkpoint cannot be chosen by it: use another selection.task, "
                "such as SICK-R:dev"
            )
        return self

    @model_validator(mode="after")
    def _draws_fit_together(self) -> Self:
        if self.dropout_draws == "numpy" and self.dropout_kind != "binary":
            raise ValueError("dropout_draws numpy: NumPy draws for dropout_kind binary alone; set it to torch")
        if self.dropout_draws == "numpy" and self.compile:
            raise ValueError("dropout_draws numpy: a compiled model has no room for NumPy; set it to torch")
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
        if self.compile and any(part.changes_embedding_layer for part in parts):
            raise ValueError(
                "compile: a compiled model would not see a noise with place: layer; set one of them off"
            )
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
        if self.predictor is not None and self.predictor.evaluate:
            raise ValueError(
                "predictor.evaluate: only queries pass the predictor, so no two vectors behind it were ever "
                "compared; evaluate the projector or the head"
            )
        if self.projector is not None and self.projector.evaluate and self.projector.normalises:
            raise ValueError(
                "projector.evaluate: a checkpoint's layer normalisation is not read without the library of "
                "sentence-transformers; set projector.norm to none, or evaluate to false"
            )
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
        named = {"query_columns": self.views.query_columns, "key_columns": self.views.key_columns}
        for key, columns in named.items():
            if columns is not None and max(columns) > self.corpus.columns:
                raise ValueError(f"views.{key} {list(columns)}: corpus.columns is {self.corpus.columns}")
        hard, many = self.negatives.hard is not None, self.corpus.columns >= 3
        if (hard and self.corpus.columns != 3) or (many and not hard and not any(named.values())):
            raise ValueError(
                "negatives.hard and corpus.columns: 3 go together (or name the columns of a side in "
                "views.key_columns)"
            )
        return self

    @property
    def keeps_test_pairs(self) -> bool:
        """Whether pairs of STS-B's dev and test sets may be among those that tasks are trained on."""
        return self.labelled.test_pairs == "kept" and any(part.sentences > 1 for part in self.tasks.values())

    @property
    def scored_heads(self) -> tuple[str, ...]:
        """The heads that the scored vector has passed, by name; none if it is the pooled one."""
        if self.projector is not None and self.projector.evaluate:
            return ("projector",) if self.head.kind == "none" else ("head", "projector")
        return ("head",) if self.head.evaluate else ()

    @property
    def reads_text(self) -> bool:
        """Whether a view needs the sentences themselves, not only their tokens."""
        return any(isinstance(view, TextView) for view in (self.views.query, self.views.key))

    def traceable_distance(self) -> tuple[float, float] | None:
        """Return MoCoSE's maximum traceable distance at the lowest and at the highest decay; None without a queue.

        d = 1 / (1 - eta) + queue / batch (section 5.7): how many steps back what a loss sees was made, infinite
        where the target stands still.
        """
        queue, target = self.negatives.queue, self.target
        if queue is None or target is None:
            return None
        decays = (
            (target.decay.start, target.decay.end) if isinstance(target.decay, CosineDecay) else (target.decay,)
        )
        terms = [math.inf if eta == 1 else 1 / (1 - eta) for eta in decays]
        batches = queue.size / self.optimiser.batch
        return min(terms) + batches, max(terms) + batches

    def traceable_sentence(self) -> str | None:
        """Return the maximum traceable distance as a sentence; None without a queue."""
        distance = self.traceable_distance()
        if distance is None:
            return None
        low, high = (f"{steps:.2f}" for steps in distance)
        steps = low if low == high else f"{low} to {high}"
        return f"maximum traceable distance {steps} steps (1 / (1 - decay) + queue / batch; MoCoSE, section 5.7)"

    def tasks_sentence(self) -> str | None:
        """Return the tasks, their measures and phases as a sentence; None without tasks."""
        if not self.tasks:
            return None
        tasks = listed([f"{name} ({part.kind}, {part.measure})" for name, part in self.tasks.items()])
        phases = [", ".join(phase.takes) for phase in self.phases]
        when = f"in phases: {', then '.join(phases)}" if phases else f"together with the {CONTRASTIVE} term"
        return f"heads, each scored on dev by its own measure: {tasks}; {when}"

    def test_remarks(self) -> list[str]:
        """Return how the training has met what encoders are measured on, a sentence for each way.

        >>> from stsbench.training.recipe_files import read_recipe
        >>> read_recipe("demo").test_remarks()
        []
        """
        sentences = [SELECTED_ON_TEST.format(task=self.selection.task)] if self.selection.on_test else []
        sentences += [TRAINED_ON_TASKS] if self.corpus.of_tasks else []
        if self.keeps_test_pairs:
            pairs = [name for name, part in self.tasks.items() if part.sentences > 1]
            sentences.append(TRAINED_ON_TEST_PAIRS.format(tasks=listed(pairs)))
        return sentences

    def remarks(self) -> list[str]:
        """Return what is allowed but far from anything that trains well, a sentence for each.

        The limits are ours, far beyond what the papers of these methods and their code use; the largest queue is
        that of MoCo for images (He et al. 2020).
        """
        rate, temperature, queue = self.optimiser.learning_rate, self.objective.temperature, self.negatives.queue
        sentences = []
        if rate > _HIGHEST_RATE:
            sentences.append(
                f"optimiser.learning_rate {rate:g} is far above the papers' 1e-5 to 5e-5: expect the encoder to "
                "forget what it knew."
            )
        if not _LOWEST_TEMPERATURE <= temperature <= _HIGHEST_TEMPERATURE:
            effect = "alone the nearest sentence counts" if temperature < 1 else "all sentences count alike"
            sentences.append(f"objective.temperature {temperature:g} is far from the papers' 0.05: {effect}.")
        if queue is not None and queue.size > _LARGEST_QUEUE:
            sentences.append(
                f"negatives.queue.size {queue.size:,} holds {queue.size / self.optimiser.batch:,.0f} batches, the "
                "papers' 2 to 8: its oldest vectors are of an encoder long gone, and each loss reads them all."
            )
        return sentences
