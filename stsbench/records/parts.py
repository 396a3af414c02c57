"""The fields of `run.json`: what was measured, on what, how, and what came out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr

from stsbench.base.files import DIGEST, digest_of
from stsbench.encoders.template import Template
from stsbench.encoders.use import Use
from stsbench.records.kinds import KINDS, Kind
from stsbench.records.signature import Signature
from stsbench.statistics.dependence import Dependence
from stsbench.statistics.intervals import Reason

SCHEMA_VERSION = 6
"""Of the layout; no other is read."""

IMPORTED = "imported"
"""The kind of a model whose scores were read from the results of another program."""

Interval = tuple[float, float]

NoInterval = Reason | Literal[""]
"""Why a score has no interval. Empty where it has one, or where none was asked for."""


def _readable(signature: str) -> str:
    Signature.parse(signature)
    return signature


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
    return kind


KindName = Annotated[str, AfterValidator(_known)]
"""The name of a kind of task, one of `KINDS`."""

SignatureText = Annotated[str, AfterValidator(_readable)]
"""A signature as text, which is known to read back."""


class RecordPart(BaseModel):
    """What every part is: unchangeable, and without fields that the schema does not know."""

    # JSON has neither NaN nor infinity: what is not finite is refused, not written as null.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModelPart(RecordPart):
    """The model that was measured, as `Identity` of the encoders has it.

    Attributes:
        use: how it was used, what was done to its vectors afterwards as it was asked; a template in full.
        normalizes: whether the model itself scales vectors to unit length.
        fitted: the post-processing that was fitted and is part of the model (`whitening256+STS-B-test`).
    """

    name: str
    kind: str
    use: Use
    weights_sha256: str | None = None
    tokenizer_sha256: str | None = None
    config_sha256: str | None = None
    modules: tuple[str, ...] = ()
    normalizes: bool = False
    fitted: str = ""

    @property
    def normalize(self) -> bool:
        """Whether similarities were taken of vectors of unit length."""
        return self.normalizes if self.use.normalize is None else self.use.normalize

    @property
    def postprocessing(self) -> str:
        """How the signature names what was done to vectors, by what was fitted, and the whitening of the run."""
        return ",".join(filter(None, [self.fitted, self.use.whitening]))


ModelPart.model_rebuild(_types_namespace={**globals(), "Template": Template})


class DataFile(RecordPart):
    """A file that was read: its name in the data folder, its hash, and the catalogue's."""

    name: str
    sha256: str
    expected: str | None = None


class DataPart(RecordPart):
    """What a task was read from.

    `modified`: at least one file is not the catalogued one. `unverified`: nobody knows the hash of one. `unknown`:
    the score was imported, and nobody says.
    """

    status: Literal["verified", "unverified", "modified", "user", "unknown"]
    sha256: str
    files: tuple[DataFile, ...] = ()
    problems: tuple[str, ...] = ()


class RaterPart(RecordPart):
    """What the agreement of a task's raters allows.

    Attributes:
        pairs: how many have at least two ratings.
        ratings: how many such a pair has on average.
        reliability: the share of the gold scores' variance that is not the raters' noise; None where undefined.
        ceiling: its root: the Pearson correlation of a similarity without error; None where undefined.
    """

    pairs: int
    ratings: float
    reliability: float | None
    ceiling: float | None


class Number(RecordPart):
    """One number of a task.

    Attributes:
        statistic: `spearman`, `pearson`, `kendall`, `acc`, `devacc`, `f1`, `mse`, `ap`, `accuracy`, `mean`, ...
        aggregation: over subsets: `all`, `mean` or `wmean`; empty where the statistic takes no heed of them.
        subset: the subset that it is of; empty for the whole task.
        value: None where it is undefined (constant similarities).
        items: how many pairs or items it is over; None where the score was imported and nobody says.
        interval: at the protocol's level and by the protocol's method; None if there is none.
        no_interval: why there is none; empty where it has one, or where none was asked for.
    """

    statistic: str
    aggregation: str = ""
    subset: str = ""
    value: float | None
    items: int | None = None
    interval: Interval | None = None
    no_interval: NoInterval = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What distinguishes it from the other numbers of its task."""
        return self.statistic, self.aggregation, self.subset


class Training(RecordPart):
    """What was trained on the vectors of a task, and how.

    Attributes:
        method: the classifier (`logreg`, or the net's name), or `supervised` for the regressor.
        design: `nested` (two levels of cross-validation), `kfold` (on train, then test) or `split`.
        kfold: the number of folds; 0 where none were made.
        seed: of the folds of `kfold`, of the net and of the regressor.
        positive: the class that F1 is of; empty where there is no F1.
        grid: the regularisers that were tried.
        chosen: the one of each final fit: one for each outer fold, or a single one.
        stop_by: the correlation on dev that the regressor's training stopped by.

    What is not known of an imported score is None, or empty.
    """

    method: str
    design: str
    kfold: int | None = None
    seed: int | None = None
    positive: str = ""
    grid: tuple[float, ...] = ()
    chosen: tuple[float, ...] = ()
    stop_by: str = ""


class Score(RecordPart):
    """What came out of one task, whatever its kind.

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        task: its name.
        split: that the headline is over (`all` where every item is held out once).
        text: the text variant.
        numbers: the headline first, then those by other statistics, aggregations and of each subset.
        signature: of the headline.
        data: what the task was read from.
        counts: how many of its items are unlike the others: `identical_pairs` have one token sequence on both
            sides, and their cosine is exactly 1; `zero_pairs` a zero vector, and their cosine is 0.
        truncated_sentences: distinct sentences that were longer than the model reads.
        training: of what was trained on the vectors; None where nothing was.
        raters: how far those who gave the gold scores agree; None where their ratings are not published.

    What is not known of an imported score is None, or empty.
    """

    kind: KindName
    task: str
    split: str
    text: str
    numbers: tuple[Number, ...] = Field(min_length=1)
    signature: SignatureText
    data: DataPart
    counts: dict[str, int] = {}
    truncated_sentences: int | None = None
    training: Training | None = None
    raters: RaterPart | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Kind, task, split and text, which distinguish it from the other scores of its record."""
        return self.kind, self.task, self.split, self.text

    @property
    def about(self) -> Kind:
        """What tables and labels need to know of its kind."""
        return KINDS[self.kind]

    @property
    def statistic(self) -> str:
        """The headline's statistic."""
        return self.numbers[0].statistic

    @property
    def value(self) -> float | None:
        """The headline, by the protocol's statistic and aggregation; None where it is undefined."""
        return self.numbers[0].value

    @property
    def items(self) -> int | None:
        """How many pairs or items the headline is over."""
        return self.numbers[0].items

    @property
    def interval(self) -> Interval | None:
        """The headline's interval; None if there is none."""
        return self.numbers[0].interval

    @property
    def no_interval(self) -> NoInterval:
        """Why the headline has no interval."""
        return self.numbers[0].no_interval

    def number(self, statistic: str, aggregation: str | None = None, subset: str = "") -> Number | None:
        """Return one of the numbers; None if it was not taken.

        Args:
            statistic: see `Number`.
            aggregation: over subsets; None for the headline's, or of a subset for any.
            subset: the subset; empty for the whole task.
        """
        wanted = self.numbers[0].aggregation if aggregation is None else aggregation
        for number in self.numbers:
            if (number.statistic, number.subset) == (statistic, subset) and (
                subset or number.aggregation in {wanted, ""}
            ):
                return number
        return None

    @property
    def held_out(self) -> int:
        """How many rows of the items table are of other splits than the headline's, those that `devacc` is over.

        Of nested folds there are none: every item is held out once, and the headline is over all of them.
        """
        held_out = self.number("devacc")
        return (
            0 if held_out is None or (self.training and self.training.design == "nested") else held_out.items or 0
        )

    @property
    def subsets(self) -> tuple[Number, ...]:
        """The headline's statistic of each subset, in the order of the data."""
        return tuple(number for number in self.numbers if number.subset and number.statistic == self.statistic)


class AveragePart(RecordPart):
    """The plain mean of the headlines of the tasks of one kind.

    Attributes:
        kind: of the tasks.
        tasks: the tasks that it is over.
        value: None where the score of a task is undefined.
        of_rounded: the mean of the scores x 100 rounded to two decimals, as the papers' scripts take it: its last
            digit can differ.
        interval: None where a task has none, or nobody asked for any.
    """

    kind: KindName
    tasks: tuple[str, ...]
    value: float | None
    of_rounded: float | None
    interval: Interval | None = None

    @classmethod
    def of(
        cls, kind: str, tasks: Sequence[str], values: Sequence[float | None], interval: Interval | None = None
    ) -> "AveragePart | None":
        """Return the average of the scores of some tasks; None for a single task, and where their kind has none.

        An average over an undefined score is undefined, and so is its interval.

        >>> round(AveragePart.of("sts", ["STS12", "STS13"], [0.512344, 0.612344]).of_rounded, 6)
        56.23
        """
        if len(tasks) < 2 or not KINDS[kind].average:
            return None
        percents = [None if value is None else round(100 * value, 2) for value in values]
        rounded, mean = plain_mean(percents), plain_mean(values)
        if rounded is not None and KINDS[kind].rounded:
            mean = round(rounded / 100, 12)  # Scores that have two decimals by protocol: so computed, so printed.
        return cls(
            kind=kind,
            tasks=tuple(tasks),
            value=mean,
            of_rounded=rounded,
            interval=None if mean is None else interval,
        )


def plain_mean(scores: Sequence[float | None]) -> float | None:
    """Return the mean of some scores; None if any of them is undefined."""
    defined = [score for score in scores if score is not None]
    return float(np.mean(defined)) if defined and len(defined) == len(scores) else None


class ProtocolPart(RecordPart):
    """The choices that were made for all tasks.

    Attributes:
        interval: how the intervals see pairs that share sentences; None where no intervals were asked for.
        level: of the intervals.
    """

    name: str
    aggregation: str
    metric: str
    similarity: str
    interval: Dependence | None
    level: float


class TableFile(RecordPart):
    """The table that belongs to the record."""

    file: str
    rows: int
    sha256: str


class HeadScore(RecordPart):
    """The score of a task's head that was trained with the encoder, on a dev set of its own.

    The head is not in the checkpoint, so nobody can measure it again.

    Attributes:
        task: its name in the recipe.
        kind: `classification`, `pair-classification`, `regression`, or that of a task of a person's own.
        measure: what the score is: `accuracy` (a share), `pearson` (a correlation).
        score: None where it is undefined.
        ntrain: rows that it was trained on.
        ndev: rows that the score is over.
    """

    task: str
    kind: str
    measure: str
    score: float | None
    ntrain: int = Field(ge=1)
    ndev: int = Field(ge=1)


class RunFields(RecordPart):
    """Everything that `run.json` says of one measurement of one model.

    Attributes:
        schema_version: of this layout.
        stsbench: the version that wrote it.
        created: when, in UTC.
        command: the command line, home folder redacted.
        model: what was measured.
        protocol: how.
        scores: what came out, task by task in the order of `KINDS`.
        averages: of each kind of which there are several tasks, the mean of their headlines.
        heads: of a checkpoint at the end of its training: what the heads of its tasks reached on dev.
        notes: what the person was told: choices made for them, mismatches, modified data.
        environment: Python, platform, packages, threads.
        seconds: time by stage.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        items_file: the items table on disk; None for a record in memory, and for imported scores.
        digest: over all of the above (`stsbench.base.files`); None for a record in memory.
    """

    schema_version: int = SCHEMA_VERSION
    stsbench: str
    created: str
    command: str = ""
    model: ModelPart
    protocol: ProtocolPart
    scores: tuple[Score, ...] = Field(min_length=1)
    averages: tuple[AveragePart, ...] = ()
    heads: tuple[HeadScore, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, Any]
    seconds: dict[str, float]
    encoding: dict[str, int]
    items_file: TableFile | None = None
    digest: str | None = None

    _folder: Path | None = PrivateAttr(default=None)

    def average(self, kind: str) -> AveragePart | None:
        """Return the mean over the tasks of a kind; None where there is none."""
        return next((average for average in self.averages if average.kind == kind), None)

    def scores_of(self, kind: str) -> tuple[Score, ...]:
        """Return the scores of the tasks of a kind."""
        return tuple(score for score in self.scores if score.kind == kind)

    @property
    def is_imported(self) -> bool:
        """Whether the scores come from the results of another program; there is no table then."""
        return self.model.kind == IMPORTED

    @property
    def signature(self) -> str:
        """All signatures, one a line."""
        return "\n".join(score.signature for score in self.scores)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signature of each task's score."""
        return tuple(Signature.parse(score.signature) for score in self.scores)

    @property
    def folder(self) -> Path | None:
        """The folder that the record was saved in or read from; None for one in memory."""
        return self._folder


Record = TypeVar("Record", bound=BaseModel)


def sealed(record: Record) -> Record:
    """Return a record with the digest of what it says."""
    return record.model_copy(update={DIGEST: digest_of(json.loads(record.model_dump_json()))})
