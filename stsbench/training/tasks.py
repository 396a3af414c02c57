"""Tasks: heads that learn labels in addition to the contrastive term, and the phases that train them.

The CS224N report has three (section 5.1), each a linear layer over the [CLS] vectors with dropout (section 4). It
does not state losses, weights, or how often each set is read: those are our choices.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from stsbench.data.rows import number
from stsbench.training.parts import RecipePart

if TYPE_CHECKING:
    from torch import Tensor

CONTRASTIVE = "contrastive"
"""The name of the objective on the corpus in phases: InfoNCE, and the masked-language term if there is one."""

Label = str | int | float | bool


class _Task(RecipePart):
    """A labelled task.

    Attributes:
        train: its table: .csv, .tsv, .jsonl or .parquet, in the folder of `labelled` if that names one.
        dev: another table with the same columns; None to hold out a tenth of `train`, drawn by the seed.
        columns: of the table: one or two sentences, then the label.
        delimiter: between the cells of .csv.
        rows: how many rows of `train` to read, from the top; None for all.
        dev_rows: the same for `dev`.
        batch: rows in its loss; None for the optimiser's.
        weight: of its loss in the sum.
        rate: `always`: each step trains it; `once`: an epoch passes over its table once, on average.
        dropout: before its linear layer.
    """

    kind: str
    train: str
    dev: str | None = None
    columns: tuple[str, ...]
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    rows: int | None = Field(None, ge=1)
    dev_rows: int | None = Field(None, ge=1)
    weight: float = Field(1.0, gt=0)
    rate: Literal["always", "once"] = "always"
    batch: int | None = Field(None, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)

    @property
    def sentences(self) -> int:
        """Sentences in a row."""
        return 2

    @model_validator(mode="after")
    def _fits_its_tables(self) -> Self:
        if len(self.columns) != self.sentences + 1:
            what = "a sentence" if self.sentences == 1 else "two sentences"
            raise ValueError(
                f"columns {list(self.columns)}: name {what} and the label, {self.sentences + 1} columns"
            )
        if self.dev_rows is not None and self.dev is None:
            raise ValueError("dev_rows: there is no table `dev` to read; remove dev_rows, or add dev")
        return self


class Classification(_Task):
    """One sentence or two to a class, by cross-entropy; scored by accuracy.

    The head of a pair has a single logit for two classes (CS224N report, section 5.1), else one for each.

    Attributes:
        classes: in the order of their numbers. Numbers are compared as numbers: `1` is also the label `1.0`.
    """

    measure: ClassVar[str] = "accuracy"

    kind: Literal["classification", "pair-classification"]
    classes: tuple[Label, ...] = Field(min_length=2)

    @property
    def sentences(self) -> int:
        return 1 if self.kind == "classification" else 2

    @property
    def outputs(self) -> int:
        """How many numbers the head gives a row."""
        return 1 if self.sentences == len(self.classes) == 2 else len(self.classes)

    def target(self, label: Label) -> float:
        """Returns the number of the class; raises a ValueError for any other label."""
        known = list(map(_comparable, self.classes))
        if _comparable(label) not in known:
            raise ValueError(f"the label {label!r} is not one of the classes, {', '.join(map(str, self.classes))}")
        return float(known.index(_comparable(label)))

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Returns the loss of each row, (N,), for (N, outputs) outputs of the head and (N,) targets."""
        from torch.nn import functional

        if self.outputs == 1:
            return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets, reduction="none")
        return functional.cross_entropy(outputs, targets.long(), reduction="none")

    def score(self, outputs: "Tensor", targets: "Tensor") -> float:
        guesses = outputs[:, 0] > 0 if self.outputs == 1 else outputs.argmax(1)
        return float((guesses.to(targets.dtype) == targets).double().mean())


class Regression(_Task):
    """Two sentences to a score, by the squared error of the scaled score (ours); scored by Pearson.

    Attributes:
        scale: the lowest and the highest score, scaled to 0 and 1.
    """

    outputs: ClassVar[int] = 1
    measure: ClassVar[str] = "pearson"

    kind: Literal["regression"]
    scale: tuple[float, float]

    @model_validator(mode="after")
    def _scale_ascends(self) -> Self:
        if self.scale[0] >= self.scale[1]:
            raise ValueError(f"scale {list(self.scale)}: name the lowest score first, then a higher one")
        return self

    def target(self, label: Label) -> float:
        """Returns the score scaled to 0 .. 1; raises a ValueError for any other label."""
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


Task = Annotated[Classification | Regression, Field(discriminator="kind")]


class LabelledTables(RecipePart):
    """Settings that the labelled tables of all tasks share.

    Attributes:
        folder: where they are; None for the working directory. `--set labelled.folder=FOLDER` names it.
        test_pairs: `dropped`: training leaves out STS-B's dev and test pairs (by letters and digits, in either
            order). `kept`: they stay, and the checkpoint cannot be selected on STS-B. Test pairs that stay, also
            of STS12 to STS16 and SICK-R, are counted and reported.
    """

    folder: str | None = None
    test_pairs: Literal["dropped", "kept"] = "dropped"


class Phase(RecipePart):
    """A phase of the training.

    Attributes:
        takes: the names of the tasks that it trains, and `contrastive` for the objective on the corpus. An epoch
            is one pass over the rows of the first.
        epochs: how many; None for the optimiser's.
    """

    takes: tuple[str, ...] = Field(min_length=1)
    epochs: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _takes_each_once(self) -> Self:
        if len(set(self.takes)) < len(self.takes):
            raise ValueError(f"takes {list(self.takes)}: a name occurs twice")
        return self


def _comparable(label: Label) -> str | float:
    value = None if isinstance(label, bool) else number(str(label))
    return str(label).lower() if isinstance(label, bool) else str(label) if value is None else value
