"""Tasks: heads that learn a person's own labels beside the contrastive term, and when each is trained.

A task is validated data about itself: its table, its place in the training, and three small pieces of mathematics
(what its head reads, its loss, its measure). The loop knows none of them by name. To add one, write its class here
and name it in `Task`; one of a person's own is named by its module, like a view.

The CS224N report has three (section 5.1): one sentence to five classes, two sentences to yes or no, two sentences
to a score, each a linear layer over the [CLS] vectors, a pair's two concatenated, with dropout before (section 4).
It states neither losses, nor weights, nor how often each set is read; what is here for them is said at each key.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, SerializeAsAny, WrapValidator, model_validator

from stsbench.training.heads import HeadBase, Layers
from stsbench.training.parts import RecipePart, part_of

if TYPE_CHECKING:
    from torch import Tensor, nn

CONTRASTIVE = "contrastive"
"""What phases call the objective on the corpus: InfoNCE, and the masked-language term where there is one."""

_HELD_OUT = 0.1

Label = str | int | float | bool
Share = Annotated[float, Field(gt=0, lt=1)]


class TaskHead(RecipePart, ABC):
    """A labelled task.

    Attributes:
        train: its table: .csv, .tsv, .jsonl or .parquet, in the folder of `labelled` if that names one.
        dev: another table of the same columns; None to hold out a part of `train`.
        held_out: that part, drawn by the seed (default: a tenth).
        columns: of the table: the sentence or the two, then the label or score.
        delimiter: between the cells of .csv.
        rows: how many rows of `train` to read, from the top; None for all.
        dev_rows: the same of its dev rows, all of which each score measures.
        batch: rows in its loss; None for the optimiser's.
        weight: of its loss in the sum (ours, 1: the report gives none).
        rate: the chance that a step takes it. `once`: so that an epoch of the phase passes over its table once, on
            average, as the report trains every set for the same three epochs.
        dropout: before its linear layer.
    """

    sentences: ClassVar[int]
    """How many sentences a row has."""
    measure: ClassVar[str]
    """What `score` is called."""
    has_classes: ClassVar[bool] = True
    """Whether a label is a class; else it is a score."""

    kind: str
    train: str
    dev: str | None = None
    held_out: Share | None = None
    columns: tuple[str, ...]
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    rows: int | None = Field(None, ge=1)
    dev_rows: int | None = Field(None, ge=1)
    weight: float = Field(1.0, gt=0)
    rate: Annotated[float, Field(gt=0, le=1)] | Literal["once"] = 1.0
    batch: int | None = Field(None, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _says_what_its_table_is(self) -> Self:
        if len(self.columns) != self.sentences + 1:
            what = "a sentence" if self.sentences == 1 else "two sentences"
            raise ValueError(
                f"columns {list(self.columns)}: name {what} and the label, {self.sentences + 1} columns"
            )
        if self.dev is not None and self.held_out is not None:
            raise ValueError("dev and held_out: a dev table is there, so nothing is held out; remove one")
        if self.dev is None and self.dev_rows is not None:
            raise ValueError("dev_rows without dev: there is no dev table; name one with dev, or use held_out")
        return self

    def with_paths(self, change: Callable[[str], str]) -> Self:
        """Return it with the paths of its tables changed."""
        return self.model_copy(update={"train": change(self.train), "dev": self.dev and change(self.dev)})

    @property
    def share_held_out(self) -> float:
        """The share of the training table that is its dev set; 0 where it has a dev table."""
        return 0.0 if self.dev is not None else self.held_out or _HELD_OUT

    @property
    @abstractmethod
    def known_labels(self) -> "tuple[Label, ...] | tuple[float, float] | None":
        """The classes, or the lowest and highest score, where the recipe names them."""

    def features(self, *vectors: "Tensor") -> "Tensor":
        """Return what the head reads, (N, f), of the vectors of each sentence of a row, (N, d) each."""
        import torch

        return torch.cat(vectors, dim=-1)

    def build(self, base: HeadBase, outputs: int) -> "nn.Module":
        """Return the head, features to outputs: dropout and a linear layer.

        Args:
            base: the width of the features, and the deviation of random weights.
            outputs: how many numbers a row gets.
        """
        from torch import nn

        linear = Layers(layers=1, output=outputs, ends="linear").build(base)
        return nn.Sequential(nn.Dropout(self.dropout), *linear.children())

    @abstractmethod
    def outputs(self, classes: int) -> int:
        """Return how many numbers the head gives a row, of the number of classes (of a score: 0)."""

    @abstractmethod
    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the loss of each row, (N,).

        Args:
            outputs: (N, outputs) of the head.
            targets: (N,) the number of the class, or the score scaled to 0 .. 1; in the type of `outputs`.
        """

    @abstractmethod
    def score(self, outputs: "Tensor", targets: "Tensor") -> float:
        """Return its own measure over a dev set; NaN where it is undefined. Arguments as in `losses`."""


class _ClassHead(TaskHead):
    """A task whose label is a class.

    Attributes:
        classes: in the order of their numbers; None reads them from the training table. Numbers are compared as
            numbers: `1` is the label `1.0` too.
    """

    measure: ClassVar[str] = "accuracy"
    classes: tuple[Label, ...] | None = Field(None, min_length=2)

    @property
    def known_labels(self) -> tuple[Label, ...] | None:
        return self.classes

    def outputs(self, classes: int) -> int:
        return classes

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        from torch.nn import functional

        if outputs.shape[1] == 1:
            return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets, reduction="none")
        return functional.cross_entropy(outputs, targets.long(), reduction="none")

    def score(self, outputs: "Tensor", targets: "Tensor") -> float:
        """Return the share of rows whose class is the one that the head finds likeliest."""
        guesses = outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(1)
        return float((guesses.to(targets.dtype) == targets).double().mean())


class _PairHead(TaskHead):
    """A task on two sentences."""

    sentences: ClassVar[int] = 2


class ClassificationHead(_ClassHead):
    """One sentence to a class, by cross-entropy; scored by accuracy."""

    kind: Literal["classification"]
    sentences: ClassVar[int] = 1


class PairClassificationHead(_PairHead, _ClassHead):
    """Two sentences to a class, by cross-entropy; scored by accuracy.

    Of two classes the head has a single logit (CS224N report, section 5.1), of more one each.
    """

    kind: Literal["pair-classification"]

    def outputs(self, classes: int) -> int:
        return 1 if classes == 2 else classes


class RegressionHead(_PairHead):
    """Two sentences to a score, by the squared error; scored by Pearson.

    The report says that the pair is projected to one number, and no loss: the squared error of the score, scaled
    to 0 .. 1 so that scales of any width weigh alike, is ours.

    Attributes:
        scale: the lowest and the highest score; None reads them from the training table.
    """

    kind: Literal["regression"]
    measure: ClassVar[str] = "pearson"
    has_classes: ClassVar[bool] = False
    scale: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _scale_ascends(self) -> Self:
        if self.scale is not None and self.scale[0] >= self.scale[1]:
            raise ValueError(f"scale {list(self.scale)}: name the lowest score first, and another as the highest")
        return self

    @property
    def known_labels(self) -> tuple[float, float] | None:
        return self.scale

    def outputs(self, classes: int) -> int:
        return 1

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        return (outputs[:, 0] - targets) ** 2

    def score(self, outputs: "Tensor", targets: "Tensor") -> float:
        """Return Pearson's correlation of estimates and scores."""
        from stsbench.statistics.correlations import pearson

        return pearson(outputs[:, 0].double().numpy(), targets.double().numpy())


_Known: TypeAlias = ClassificationHead | PairClassificationHead | RegressionHead
Task = Annotated[SerializeAsAny[Annotated[_Known, Field(discriminator="kind")]], WrapValidator(part_of(TaskHead))]
"""Any task, by its `kind`; or a `TaskHead` of one's own."""


TestPairs = Literal["dropped", "all-dropped", "kept"]


class LabelledTables(RecipePart):
    """What the labelled tables of all tasks have in common.

    Attributes:
        folder: where they are; None for paths as they stand. `--set labelled.folder=FOLDER` names it.
        test_pairs: `dropped`: a pair that is one of STS-B's dev or test pairs (by letters and digits, in either
            order) is left out of training. `all-dropped`: also the test pairs of STS12 to STS16 and SICK-R, of
            which STS-B's own training set holds many. `kept`: all stay; what is trained so says so everywhere, and
            cannot be selected on STS-B. Whatever stays is counted, and told as loudly.
    """

    folder: str | None = None
    test_pairs: TestPairs = "dropped"


class Phase(RecipePart):
    """A stretch of the training.

    Attributes:
        takes: the tasks that it trains, by name, and `contrastive` for the objective on the corpus.
        epochs: how many; None for the optimiser's.
        epoch_of: whose rows an epoch passes over once; None for the corpus where the phase takes it, else the
            task with most batches.
    """

    takes: tuple[str, ...] = Field(min_length=1)
    epochs: int | None = Field(None, ge=1)
    epoch_of: str | None = None

    @model_validator(mode="after")
    def _paced_by_what_it_takes(self) -> Self:
        if len(set(self.takes)) < len(self.takes):
            raise ValueError(f"takes {list(self.takes)}: one stands there twice")
        if self.epoch_of is not None and self.epoch_of not in self.takes:
            raise ValueError(f"epoch_of {self.epoch_of!r} is none of {', '.join(self.takes)}")
        return self
