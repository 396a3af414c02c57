"""Tasks: heads that learn labels beside the contrastive term, and the phases in which each is trained.

To add a task, write its class here and name it in `Task`. The CS224N report has three (section 5.1), each a linear
layer over the [CLS] vectors with dropout (section 4). It states neither losses, nor weights, nor how often each
set is read: those are ours.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, SerializeAsAny, WrapValidator, model_validator

from stsbench.data.rows import number
from stsbench.training.parts import RecipePart, part_of

if TYPE_CHECKING:
    from torch import Tensor

CONTRASTIVE = "contrastive"
"""The name of the objective on the corpus in phases: InfoNCE, and the masked-language term if there is one."""

Label = str | int | float | bool


class TaskHead(RecipePart, ABC):
    """A labelled task.

    Attributes:
        train: its table: .csv, .tsv, .jsonl or .parquet, in the folder of `labelled` if that names one.
        dev: another table with the same columns; None to hold out a part of `train`.
        held_out: the share of `train` that is held out without `dev`, drawn by the seed.
        columns: of the table: one or two sentences, then the label.
        delimiter: between the cells of .csv.
        rows: how many rows of `train` to read, from the top; None for all.
        dev_rows: the same for `dev`.
        batch: rows in its loss; None for the optimiser's.
        weight: of its loss in the sum.
        rate: `always`: each step trains it; `once`: an epoch passes over its table once, on average.
        dropout: before its linear layer.
    """

    sentences: ClassVar[int]
    """Sentences in a row."""
    measure: ClassVar[str]
    """The name of `score`."""

    kind: str
    train: str
    dev: str | None = None
    held_out: float = Field(0.1, gt=0, lt=1)
    columns: tuple[str, ...]
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    rows: int | None = Field(None, ge=1)
    dev_rows: int | None = Field(None, ge=1)
    weight: float = Field(1.0, gt=0)
    rate: Literal["always", "once"] = "always"
    batch: int | None = Field(None, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _names_its_columns(self) -> Self:
        if len(self.columns) != self.sentences + 1:
            what = "a sentence" if self.sentences == 1 else "two sentences"
            raise ValueError(
                f"columns {list(self.columns)}: name {what} and the label, {self.sentences + 1} columns"
            )
        return self

    def with_paths(self, change: Callable[[str], str]) -> Self:
        return self.model_copy(update={"train": change(self.train), "dev": self.dev and change(self.dev)})

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many numbers the head gives a row."""

    @abstractmethod
    def target(self, label: Label) -> float:
        """Return the number of a class, or a score scaled to 0 .. 1; raises a ValueError for any other label."""

    @abstractmethod
    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return the loss of each row, (N,), for (N, outputs) outputs of the head and (N,) targets."""

    @abstractmethod
    def score(self, outputs: "Tensor", targets: "Tensor") -> float:
        """Return its measure over a dev set; NaN where it is undefined. Arguments as in `losses`."""


class ClassificationHead(TaskHead):
    """One sentence to a class, by cross-entropy; scored by accuracy.

    Attributes:
        classes: in the order of their numbers. Numbers are compared as numbers: `1` is also the label `1.0`.
    """

    kind: Literal["classification"]
    sentences: ClassVar[int] = 1
    measure: ClassVar[str] = "accuracy"
    classes: tuple[Label, ...] = Field(min_length=2)

    @property
    def outputs(self) -> int:
        return len(self.classes)

    def target(self, label: Label) -> float:
        known = list(map(_comparable, self.classes))
        if _comparable(label) not in known:
            raise ValueError(f"the label {label!r} is not one of the classes, {', '.join(map(str, self.classes))}")
        return float(known.index(_comparable(label)))

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        from torch.nn import functional

        if outputs.shape[1] == 1:
            return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets, reduction="none")
        return functional.cross_entropy(outputs, targets.long(), reduction="none")

    def score(self, outputs: "Tensor", targets: "Tensor") -> float:
        guesses = outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(1)
        return float((guesses.to(targets.dtype) == targets).double().mean())


class PairClassificationHead(ClassificationHead):
    """Two sentences to a class, by cross-entropy; scored by accuracy.

    The head has a single logit for two classes (CS224N report, section 5.1), else one for each.
    """

    kind: Literal["pair-classification"]  # type: ignore[assignment]
    sentences: ClassVar[int] = 2

    @property
    def outputs(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)


class RegressionHead(TaskHead):
    """Two sentences to a score, by the squared error of the scaled score (ours); scored by Pearson.

    Attributes:
        scale: the lowest and the highest score, scaled to 0 and 1.
    """

    kind: Literal["regression"]
    sentences: ClassVar[int] = 2
    measure: ClassVar[str] = "pearson"
    scale: tuple[float, float]

    @model_validator(mode="after")
    def _scale_ascends(self) -> Self:
        if self.scale[0] >= self.scale[1]:
            raise ValueError(f"scale {list(self.scale)}: name the lowest score first, then a higher one")
        return self

    @property
    def outputs(self) -> int:
        return 1

    def target(self, label: Label) -> float:
        low, high = self.scale
        score = None if isinstance(label, bool) else number(str(label))
        if score is None:
            raise ValueError(f"the score {label!r} is not a finite number")
        if not low <= score <= high:
            raise ValueError(f"the score {score:g} is outside of the scale, {low:g} to {high:g}")
        return (score - low) / (high - low)

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        return (outputs[:, 0] - targets) ** 2

    def score(self, outputs: "Tensor", targets: "Tensor") -> float:
        from stsbench.statistics.correlations import pearson

        return pearson(outputs[:, 0].double().numpy(), targets.double().numpy())


_Known: TypeAlias = ClassificationHead | PairClassificationHead | RegressionHead
Task = Annotated[SerializeAsAny[Annotated[_Known, Field(discriminator="kind")]], WrapValidator(part_of(TaskHead))]
"""Any task, by its `kind`; or your own `TaskHead`."""


TestPairs = Literal["dropped", "all-dropped", "kept"]


class LabelledTables(RecipePart):
    """Settings that the labelled tables of all tasks share.

    Attributes:
        folder: where they are; None for the working directory. `--set labelled.folder=FOLDER` names it.
        test_pairs: `dropped`: training leaves out STS-B's dev and test pairs (by letters and digits, in either
            order). `all-dropped`: also the test pairs of STS12 to STS16 and SICK-R, of which STS-B's training set
            holds many. `kept`: all stay, and the checkpoint cannot be selected on STS-B. Scored pairs that stay
            are counted and reported.
    """

    folder: str | None = None
    test_pairs: TestPairs = "dropped"


class Phase(RecipePart):
    """A phase of the training.

    Attributes:
        takes: the names of the tasks that it trains, and `contrastive` for the objective on the corpus.
        epochs: how many; None for the optimiser's.
        epoch_of: whose rows an epoch passes over once; None for the corpus if the phase takes it, else the task
            with most batches.
    """

    takes: tuple[str, ...] = Field(min_length=1)
    epochs: int | None = Field(None, ge=1)
    epoch_of: str | None = None

    @model_validator(mode="after")
    def _paced_by_what_it_takes(self) -> Self:
        if len(set(self.takes)) < len(self.takes):
            raise ValueError(f"takes {list(self.takes)}: a name occurs twice")
        if self.epoch_of is not None and self.epoch_of not in self.takes:
            raise ValueError(f"epoch_of {self.epoch_of!r} is none of {', '.join(self.takes)}")
        return self


def _comparable(label: Label) -> str | float:
    value = None if isinstance(label, bool) else number(str(label))
    return str(label).lower() if isinstance(label, bool) else str(label) if value is None else value
