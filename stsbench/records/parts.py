"""The fields of `run.json`: what was measured, on what, how, and what came out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from stsbench.encoders.template import Template
from stsbench.encoders.use import Use
from stsbench.records.signature import Signature
from stsbench.statistics.dependence import Dependence
from stsbench.statistics.intervals import Reason

SCHEMA_VERSION = 5
"""Of the layout. Versions 1 to 4, of stsbench 0.1 to 0.4, are read too: version 1 has the whitening as text alone;
before version 4 nothing tells of fitted post-processing and of heads, before version 5 nothing of templates,
raters and drift."""

IMPORTED = "imported"
"""The kind of a model whose scores were read from the results of another program."""

MetricValues = dict[str, float | None]
"""A correlation by each metric, between -1 and 1; None where it is undefined (constant similarities)."""

Interval = tuple[float, float]

NoInterval = Reason | Literal[""]
"""Why a score has no interval. Empty where it has one, or where none was asked for."""


def _readable(signature: str) -> str:
    Signature.parse(signature)
    return signature


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


ModelPart.model_rebuild(_types_namespace={"Template": Template})


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


class SubsetPart(RecordPart):
    """The scores of one subset, the interval of the protocol's metric, or why there is none."""

    name: str
    pairs: int | None
    scores: MetricValues
    interval: Interval | None = None
    no_interval: NoInterval = ""


class RaterPart(RecordPart):
    """What the agreement of a task's raters allows.

    Attributes:
        pairs: with at least two ratings.
        ratings: that such a pair has, in the mean.
        reliability: the share of the gold scores' variance that is not the raters' noise; None where undefined.
        ceiling: its root: the Pearson correlation of a similarity without error; None where undefined.
    """

    pairs: int
    ratings: float
    reliability: float | None
    ceiling: float | None


class TaskPart(RecordPart):
    """The scores of one task.

    Attributes:
        score: the headline: the protocol's metric by the protocol's aggregation, between -1 and 1.
        interval: its interval, at the protocol's level and by the protocol's method; None if there is none.
        no_interval: why there is none.
        scores: every metric by every aggregation.
        intervals: of the protocol's metric, by every aggregation.
        identical_pairs: pairs whose two sides are one token sequence; their cosine is exactly 1.
        zero_pairs: pairs with a zero vector; their cosine is 0.
        truncated_sentences: distinct sentences that were longer than the model reads.
        raters: how far those who gave the gold scores agree; None where their ratings are not published.

    The counts are None where the scores were imported and the file does not say.
    """

    task: str
    split: str
    text: str
    pairs: int | None
    score: float | None
    interval: Interval | None = None
    no_interval: NoInterval = ""
    scores: dict[str, MetricValues]
    intervals: dict[str, Interval | None] = {}
    subsets: tuple[SubsetPart, ...]
    signature: SignatureText
    data: DataPart
    identical_pairs: int | None
    zero_pairs: int | None
    truncated_sentences: int | None
    raters: RaterPart | None = None


class AveragePart(RecordPart):
    """The plain mean of the tasks' headline scores.

    `of_rounded` is the mean of the scores x 100 rounded to two decimals, as the papers' scripts take it: its
    last digit can differ.
    """

    tasks: tuple[str, ...]
    score: float | None
    of_rounded: float | None
    interval: Interval | None = None

    @classmethod
    def of(
        cls, tasks: Sequence[str], scores: Sequence[float | None], interval: Interval | None = None
    ) -> "AveragePart | None":
        """Return the average of the scores of some tasks; None for a single task.

        An average over an undefined score is undefined, and so is its interval.

        >>> round(AveragePart.of(["STS12", "STS13"], [0.512344, 0.612344]).of_rounded, 6)
        56.23
        """
        if len(tasks) < 2:
            return None
        rounded = plain_mean([None if score is None else round(100 * score, 2) for score in scores])
        mean = plain_mean(scores)
        return cls(tasks=tuple(tasks), score=mean, of_rounded=rounded, interval=None if mean is None else interval)


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
    """A table that belongs to the record: the pairs or the items."""

    file: str
    rows: int
    sha256: str


class TransferPart(RecordPart):
    """The scores of one transfer task: shares between 0 and 1, which print as percent with two decimals.

    Attributes:
        task: for example `TREC`.
        text: the text variant.
        design: `nested` (two levels of cross-validation), `kfold` (on train, then test) or `split`.
        classifier: `logreg`, or the net's name.
        kfold: the number of folds; 0 where none were made.
        seed: of the folds of `kfold` and of the net.
        ndev: how many items `devacc` is over.
        ntest: how many items `acc` is over.
        acc: accuracy on test, the score of the SimCSE and ESimCSE tables.
        devacc: the accuracy that the regulariser was chosen by, the score of MoCoSE's tables.
        f1: of class 1 on test, for two classes of sentence pairs.
        acc_interval: by the protocol's method; None if it was not asked for. So are the other two.
        grid: the regularisers that were tried.
        chosen: the one of each final fit: one for each outer fold, or a single one.
        truncated_sentences: distinct sentences that were longer than the model reads.

    What is not known of an imported score is None, or empty.
    """

    task: str
    text: str
    design: str
    classifier: str
    kfold: int | None
    seed: int | None
    ndev: int
    ntest: int
    acc: float
    devacc: float
    f1: float | None = None
    acc_interval: Interval | None = None
    devacc_interval: Interval | None = None
    f1_interval: Interval | None = None
    grid: tuple[float, ...]
    chosen: tuple[float, ...]
    signature: SignatureText
    data: DataPart
    truncated_sentences: int | None


class SupervisedPart(RecordPart):
    """The scores of a relatedness task whose regressor was trained: correlations between -1 and 1.

    Attributes:
        task: `STS-B` or `SICK-R`.
        text: the text variant.
        stop_by: the correlation on dev that training stopped by.
        seed: of the weights and the order of rows.
        ndev: how many pairs dev has.
        ntest: how many pairs test has.
        dev: the correlation on dev at the end.
        pearson: on test, the original SentEval's headline.
        spearman: on test.
        mse: mean squared error on test, in the gold's own units.
        pearson_interval: by the protocol's method. So is the other.
        truncated_sentences: distinct sentences that were longer than the model reads.
    """

    task: str
    text: str
    stop_by: str
    seed: int
    ndev: int
    ntest: int
    dev: float
    pearson: float
    spearman: float
    mse: float
    pearson_interval: Interval | None = None
    spearman_interval: Interval | None = None
    signature: SignatureText
    data: DataPart
    truncated_sentences: int


ScoredPart = TaskPart | TransferPart | SupervisedPart
"""What a record holds of a task of any kind."""


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


class TaskDrift(RecordPart):
    """How far the score of a model at a lower precision is from the checkpoint's own, on a sample of pairs.

    Attributes:
        task: with `split` and `text`, as in the task's own part.
        pairs: that were sampled.
        reference: the score of fp32 over them (subsets together), between -1 and 1; None where undefined.
        score: of the model that was measured, over the same pairs.
        interval: of the loss, the reference less the score: two-sided.
        loss_high: the one-sided upper bound of the loss; None where these pairs give none.
        verdict: `no worse` where the bound is below the margin.
    """

    task: str
    split: str
    text: str
    pairs: int = Field(ge=0)
    reference: float | None
    score: float | None
    interval: Interval | None = None
    loss_high: float | None = None
    verdict: Literal["no worse", "worse", "cannot tell"]


class DriftPart(RecordPart):
    """What a lower precision changed, against the checkpoint in fp32 on a sample of the same sentences.

    Attributes:
        margin: the loss that was allowed, between 0 and 1.
        level: of the interval and of the one-sided bound.
        seed: of the sample.
        tasks: the STS tasks.
        sentences: distinct ones in the sample.
        cosine_mean: of a sentence's two vectors.
        cosine_low: the cosine that 99 % of them are above.
        cosine_lowest: of all.
        neighbours: how many nearest sentences were compared.
        overlap: the mean share of them that both precisions have.
    """

    margin: float = Field(gt=0)
    level: float
    seed: int
    tasks: tuple[TaskDrift, ...]
    sentences: int = Field(ge=1)
    cosine_mean: float = Field(ge=-1.000001, le=1.000001)
    cosine_low: float = Field(ge=-1.000001, le=1.000001)
    cosine_lowest: float = Field(ge=-1.000001, le=1.000001)
    neighbours: int = Field(ge=1)
    overlap: float = Field(ge=0, le=1)

    @property
    def passes(self) -> bool:
        """Whether no task is worse by more than the margin, as far as the sample shows."""
        return all(task.verdict == "no worse" for task in self.tasks)


class RunFields(RecordPart):
    """Everything that `run.json` says of one measurement of one model.

    Attributes:
        schema_version: of this layout.
        stsbench: the version that wrote it.
        created: when, in UTC.
        command: the command line, home folder redacted.
        model: what was measured.
        protocol: how.
        tasks: the STS scores.
        average: their mean; None for a single task.
        transfer: the scores of the transfer tasks.
        transfer_average: the mean of their `acc`; None for a single task.
        supervised: the scores of the relatedness tasks whose regressor was trained.
        heads: of a checkpoint at the end of its training: what the heads of its tasks reached on dev.
        drift: of a model at a lower precision, what that changed; None where nobody looked.
        notes: what the person was told: choices made for them, mismatches, modified data.
        environment: Python, platform, packages, threads.
        seconds: time by stage.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        pairs_file: the pair table on disk; None for a record in memory, or without STS tasks.
        items_file: the item table on disk; None for a record in memory, or with STS tasks alone.
        digest: over all of the above (`stsbench.base.digest`); None for a record in memory, and in what
            versions before the third of the layout wrote.
    """

    schema_version: int = SCHEMA_VERSION
    stsbench: str
    created: str
    command: str = ""
    model: ModelPart
    protocol: ProtocolPart
    tasks: tuple[TaskPart, ...] = ()
    average: AveragePart | None = None
    transfer: tuple[TransferPart, ...] = ()
    transfer_average: AveragePart | None = None
    supervised: tuple[SupervisedPart, ...] = ()
    heads: tuple[HeadScore, ...] = ()
    drift: DriftPart | None = None
    notes: tuple[str, ...] = ()
    environment: dict[str, Any]
    seconds: dict[str, float]
    encoding: dict[str, int]
    pairs_file: TableFile | None = None
    items_file: TableFile | None = None
    digest: str | None = None

    _folder: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _headline_is_there(self) -> Self:
        if not self.parts:
            raise ValueError("it has no task")
        metric = self.protocol.metric
        for task in self.tasks:
            parts = [task.scores.get(self.protocol.aggregation, {}), *(subset.scores for subset in task.subsets)]
            if not all(metric in scores for scores in parts):
                raise ValueError(f"{task.task} lacks a score by {metric}")
        return self

    @property
    def parts(self) -> tuple[ScoredPart, ...]:
        """The scores of all tasks of all kinds."""
        return (*self.tasks, *self.transfer, *self.supervised)

    @property
    def is_imported(self) -> bool:
        """Whether the scores come from the results of another program; there are no tables then."""
        return self.model.kind == IMPORTED

    @property
    def signature(self) -> str:
        """All signatures, one a line."""
        return "\n".join(part.signature for part in self.parts)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signature of each task's score."""
        return tuple(Signature.parse(part.signature) for part in self.parts)

    @property
    def folder(self) -> Path | None:
        """The folder that the record was saved in or read from; None for one in memory."""
        return self._folder
