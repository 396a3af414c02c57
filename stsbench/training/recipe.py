"""The recipe: every choice of a training, validated. `recipe_files` reads it, `recipes/` holds the known ones."""

from typing import Literal, Self

from pydantic import Field, model_validator

from stsbench.training.parts import Head, NoHead, RecipePart, TextView, Unchanged, View

Pooling = Literal["cls_before_pooler", "avg", "max", "last"]
"""The poolings that a sentence-transformers checkpoint can name."""

_HIGHEST_RATE = 0.01
_LOWEST_TEMPERATURE, _HIGHEST_TEMPERATURE = 1e-3, 10.0
_LARGEST_QUEUE = 65_536


class Corpus(RecipePart):
    """The text.

    Attributes:
        path: a file (see `stsbench.data.corpus`), or `sample` for the sentences that come with stsbench.
        columns: sentences in a row: 1, 2 (a pair) or 3 (a pair and a hard negative).
        names: which columns of a table they are; None for all.
        rows: how many rows to read, from the top; None for all.
        max_length: sub-words that training reads, special tokens included.
    """

    path: str | None = None
    columns: Literal[1, 2, 3] = 1
    names: tuple[str, ...] | None = None
    rows: int | None = Field(None, ge=1)
    max_length: int = Field(32, ge=3)


class Views(RecipePart):
    """The two sides of a positive pair: `query` is made of a row's first sentence, `key` of its second.

    A row of one sentence has it on both sides.
    """

    query: View = Unchanged()
    key: View = Unchanged()


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
        temperature: of InfoNCE.
        mlm: the masked-language term; None for none.
    """

    temperature: float = Field(0.05, gt=0)
    mlm: MaskedLanguage | None = None


class HardNegatives(RecipePart):
    """The third sentence of each row as a further column.

    Attributes:
        weight: alpha; the own hard negative's logit gets + log alpha (SimCSE, supervised).
    """

    weight: float = Field(1.0, gt=0)


class Queue(RecipePart):
    """A momentum encoder's vectors of earlier batches as further columns (ESimCSE, section 3.2).

    Attributes:
        size: M, the vectors it holds.
        decay: lambda of equation 5, the share that the momentum encoder keeps of itself.
        update: whether the momentum encoder moves after each optimiser step or before each loss.
        head: whether queue vectors pass the momentum encoder's copy of the head or the online one.
        start: whether the momentum encoder starts as a copy of the encoder or from random weights.
        emptied: whether it is emptied never or at each epoch.
        keeps: which rows of the oldest batch stay where not all of them fit.
    """

    size: int = Field(ge=1)
    decay: float = Field(0.995, ge=0, lt=1)
    update: Literal["after_step", "before_loss"] = "after_step"
    head: Literal["momentum", "online"] = "momentum"
    start: Literal["copy", "random"] = "copy"
    emptied: Literal["never", "each_epoch"] = "never"
    keeps: Literal["first_rows", "last_rows"] = "first_rows"


class Negatives(RecipePart):
    """What a sentence is told apart from, beside the other keys of its batch."""

    hard: HardNegatives | None = None
    queue: Queue | None = None


class Optimiser(RecipePart):
    """AdamW with linear decay.

    Attributes:
        batch: rows in one loss, over all processes.
        accumulate: losses in one optimiser step.
        warmup: share of the steps over which the rate rises from zero.
        clip: largest norm of the gradient; None for no clipping.
        gradient_cache: whether the batch is encoded `chunk` rows at a time without holding its graph (twice the
            forward passes, for batches that do not fit in memory).
        chunk: sentences in one forward pass; None chooses. Sentences of like length go together, so that little
            is padded.
    """

    epochs: int = Field(1, ge=1)
    batch: int = Field(64, ge=2)
    learning_rate: float = Field(gt=0)
    warmup: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    clip: float | None = Field(1.0, gt=0)
    accumulate: int = Field(1, ge=1)
    gradient_cache: bool = False
    chunk: int | None = Field(None, ge=1)


class Selection(RecipePart):
    """Which checkpoint is kept as the best.

    Attributes:
        task: scored by Spearman, as `stsbench run --tasks` names it.
        every: steps between two scores.
        last: whether the last step is scored too, where `every` does not meet it.
        geometry: whether alignment and uniformity on the task are logged with the score.
        on_test: whether the task may be a test set. What was selected on one says so everywhere.
    """

    task: str = "STS-B:dev"
    every: int = Field(125, ge=1)
    last: bool = False
    geometry: bool = False
    on_test: bool = False


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
        precision: forward and backward passes; weights, losses and optimiser are fp32.
        compile: whether torch.compile is used.
        log_every: steps between two lines of the log.
        seed: of everything random.
    """

    name: str = Field(pattern=r"^[\w.-]+$")
    base: str
    corpus: Corpus = Corpus()
    views: Views = Views()
    pooling: Pooling
    dropout: float | None = Field(None, ge=0, lt=1)
    head: Head = NoHead()
    objective: Objective = Objective()
    negatives: Negatives = Negatives()
    optimiser: Optimiser
    selection: Selection = Selection()
    saving: Saving = Saving()
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    compile: bool = False
    log_every: int = Field(10, ge=1)
    seed: int = 42

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        queue = self.negatives.queue
        if queue is not None and queue.size < self.optimiser.batch:
            raise ValueError(
                f"negatives.queue.size {queue.size} is smaller than optimiser.batch {self.optimiser.batch}: a "
                "batch would not fit in it"
            )
        if (self.negatives.hard is not None) != (self.corpus.columns == 3):
            raise ValueError("negatives.hard and corpus.columns: 3 go together")
        return self

    @property
    def reads_text(self) -> bool:
        """Whether a view needs the sentences themselves, not only their tokens."""
        return any(isinstance(view, TextView) for view in (self.views.query, self.views.key))

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
