"""The parts of a recipe: their base class, and the plain-data parts (corpus, objective, target, ...)."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class RecipePart(BaseModel):
    """A part of a recipe: immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _with_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


BY_KIND = BeforeValidator(_with_kind)
"""Reads a bare name as a part without arguments: `identity` is `{kind: identity}`."""


class Corpus(RecipePart):
    """The text.

    Attributes:
        path: a file (see `stsbench.data.corpus`), or `sample` for the sentences that come with stsbench.
        columns: sentences in a row: 1, 2 (a pair), or 3 (a pair and a hard negative).
        names: which columns of a table they are; None for all.
        rows: how many rows to read, from the top; None for all.
        max_length: sub-words that training reads, special tokens included.
        buckets: the longest sentence of each bucket but the last, in sub-words without special tokens: each batch
            is of one bucket (ESimCSE, section 5.3: `[5]` splits at 5, `[3, 4, 5, 6, 7]` are its six classes). None
            for batches of any length.
        of_tasks: whether it is the evaluation tasks' own text, as in ConSERT, which every record then states.
    """

    path: str | None = None
    columns: int = Field(1, ge=1, le=3)
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


class MaskedLanguage(RecipePart):
    """The masked-language term, whose output layer is the encoder's table of word embeddings, as in BERT.

    Attributes:
        weight: a factor of its loss, the papers' lambda.
        share: of the sub-words are masked.
    """

    weight: float = Field(gt=0)
    share: float = Field(0.15, gt=0, lt=1)


class Objective(RecipePart):
    """The loss.

    Attributes:
        loss: `info-nce`: each query has to find its key. `nt-xent`: both sides have to find each other, with the
            other vectors of the same side as negatives, too (ConSERT).
        weight: a factor of the contrastive loss, which matters for clipping and relative to other terms.
        similarity: of its vectors: cosine, or the dot product of MoCoSE's equation 3.
    """

    loss: Literal["info-nce", "nt-xent"] = "info-nce"
    weight: float = Field(1.0, gt=0)
    temperature: float = Field(0.05, gt=0)
    similarity: Literal["cosine", "dot"] = "cosine"
    mlm: MaskedLanguage | None = None


class HardNegatives(RecipePart):
    """The third sentence of each row as a further column.

    Attributes:
        weight: alpha; log alpha is added to the logit of a row's hard negative (SimCSE, supervised).
    """

    weight: float = Field(1.0, gt=0)


class Queue(RecipePart):
    """The target's vectors of earlier batches as further columns (ESimCSE, section 3.2; MoCoSE, section 3).

    Attributes:
        size: M, the number of vectors.
        initial: the number of random unit vectors at the start.
        keeps: which rows of the oldest batch stay if they do not all fit.
        uses: which vectors of a full queue are negatives, as ranges counted from the newest (MoCoSE, table 8);
            until it is full, all are. None for all.
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
    """The negatives: the other keys of the batch, hard negatives, the queue."""

    in_batch: bool = True
    hard: HardNegatives | None = None
    queue: Queue | None = None


class CosineDecay(RecipePart):
    """A decay that moves from `start` to `end` along half a cosine (MoCoSE, section 4.1).

    Attributes:
        steps: how many that takes; None for those of the training.
        after: whether it then stays, or continues the cosine back, as in MoCoSE's public code.
    """

    kind: Literal["cosine"]
    start: float = Field(ge=0, le=1)
    end: float = Field(ge=0, le=1)
    steps: int | None = Field(None, ge=1)
    after: Literal["stays", "returns"] = "stays"


class Target(RecipePart):
    """A momentum encoder that follows the trained one.

    Attributes:
        modules: the modules that are copies; others are shared with the trained encoder.
        embeddings: whether the embedding layer is a copy, or shared (MoCoSE).
        decay: lambda or eta, the share of its weights that it keeps in an update.
        encodes: `queue`: the queries, for the queue (ESimCSE). `keys`: the keys of the batch, which then enter the
            queue (MoCoSE).
        gradient: whether the loss has a gradient through the keys, to shared modules and those of `trained`.
        trained: copies that the optimiser trains, too (MoCoSE's public code does not freeze the target's
            projector).
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
            raise ValueError(f"modules {list(self.modules)}: add encoder, of which a target has a copy")
        return self


class Optimiser(RecipePart):
    """AdamW with linear decay.

    Attributes:
        batch: rows in one loss, over all processes.
        accumulate: losses in one optimiser step.
        warmup: share of the steps over which the rate rises from zero.
        clip: largest norm of the gradient; None for no clipping.
        adam_epsilon: whether 1e-8 is added to the root of Adam's second moment `after_correction` of its bias
            (Kingma and Ba 2015; torch) or `before_correction` (Transformers 4, which trained the papers' models).
        gradient_cache: whether the batch is encoded `chunk` sentences at a time without holding its graph (twice
            the forward passes, for batches that do not fit in memory).
        chunk: sentences in one forward pass, sorted by length; None for 640 tokens on a CPU, the batch on a GPU.
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


class Selection(RecipePart):
    """The selection of the best checkpoint.

    Attributes:
        task: a dev set as `stsbench run --tasks` names it, scored by Spearman.
        last: whether the last step is always scored, too.
    """

    task: str = "STS-B:dev"
    every: int = Field(125, ge=1)
    last: bool = False


class Saving(RecipePart):
    """The steps between saves of the state for `--resume`, and the number of checkpoints kept besides the best."""

    every: int = Field(1000, ge=1)
    keep: int = Field(1, ge=1)
