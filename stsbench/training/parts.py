"""What every part of a recipe is, and the parts that are plain data: corpus, objective, negatives, target, ...

A part is validated data; a bare name may stand for one, and one may be a class of the person's own.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidatorFunctionWrapHandler, model_validator


class RecipePart(BaseModel):
    """A part of a recipe: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def part_of(*families: type[RecipePart]) -> Callable[[Any, ValidatorFunctionWrapHandler], Any]:
    """Return the validator of a field that takes one of our parts or one of the person's own.

    A bare name is a part without arguments: `identity` is `{kind: identity}`. A kind with a colon is a class of
    one's own: `kind: my_package.views:Shout`, or `kind: views.py:Shout` for a file beside where the training is
    started. It is imported, and so runs, when the recipe is read; it names its `kind` as a plain string.

    Args:
        families: what a class of one's own must be a kind of.
    """

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        values = {"kind": value} if isinstance(value, str) else value
        kind = values.get("kind") if isinstance(values, dict) else None
        if isinstance(kind, str) and ":" in kind:
            return _imported(kind, families).model_validate(values)
        return handler(values)

    return validate


def _imported(kind: str, families: tuple[type[RecipePart], ...]) -> type[RecipePart]:
    module, _, name = kind.rpartition(":")
    try:
        part = getattr(
            _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module), name
        )
    except Exception as error:  # whatever the person's own module raises
        raise ValueError(f"{kind} cannot be imported ({type(error).__name__}: {error})") from error
    if not (isinstance(part, type) and issubclass(part, families)):
        wanted = " or ".join(family.__name__ for family in families)
        raise ValueError(f"{kind} is no class of the kind {wanted}")  # noqa: TRY004 - a value of the recipe
    return part


def _from_file(path: Path) -> Any:
    # Imported once: the classes of a second import would be others.
    name = f"stsbench_own_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path.resolve()):
        return known
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Corpus(RecipePart):
    """The text.

    Attributes:
        path: a file (see `stsbench.data.corpus`), or `sample` for the sentences that come with stsbench.
        columns: sentences in a row: 1, 2 (a pair), or 3 (a pair and a hard negative).
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
    """The masked-language term, whose loss is multiplied by `weight`, the papers' lambda.

    Attributes:
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
        similarity: of its vectors: cosine, or the dot product that MoCoSE's equation 3 has.
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
    """What a sentence is told apart from: the other keys of its batch, hard negatives, the queue."""

    in_batch: bool = True
    hard: HardNegatives | None = None
    queue: Queue | None = None


class CosineDecay(RecipePart):
    """A decay that rises (or falls) from `start` to `end` along half a cosine, as MoCoSE's (section 4.1).

    Attributes:
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
    """Which checkpoint is kept as the best.

    Attributes:
        task: scored by Spearman, as `stsbench run --tasks` names it.
        last: whether the last step is scored too, where `every` does not meet it.
        precision: of the passes behind the scores; half is faster on a GPU, and its scores are near those in fp32.
            What is published is measured in fp32 whatever it is.
        tokens: in one pass behind the scores, padding included; None for as many as `stsbench run` takes, which
            pads much of a small task. The scores differ by rounding.
    """

    task: str = "STS-B:dev"
    every: int = Field(125, ge=1)
    last: bool = False
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    tokens: int | None = Field(None, ge=1)


class Saving(RecipePart):
    """When the state is saved that `--resume` goes on from, and how many checkpoints are kept beside the best."""

    every: int = Field(1000, ge=1)
    keep: int = Field(1, ge=0)
