"""The parts of a run record that say what was measured, on what, and what came out for the STS tasks."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from stsbench.records.signature import Signature

MetricValues = dict[str, float | None]
"""A correlation by each metric, between -1 and 1; None where it is undefined (constant similarities)."""

Interval = tuple[float, float]


def _readable(signature: str) -> str:
    Signature.parse(signature)
    return signature


SignatureText = Annotated[str, AfterValidator(_readable)]
"""A signature as text, which is known to read back."""


class Part(BaseModel):
    """What every part is: unchangeable, and without fields that the schema does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelPart(Part):
    """The model that was measured: `Identity` of the encoders, and what was done to its vectors."""

    name: str
    kind: str
    revision: str | None = None
    weights_sha256: str | None = None
    tokenizer_sha256: str | None = None
    config_sha256: str | None = None
    pooling: str
    max_length: int | None = None
    prompt: str = ""
    precision: str = "fp32"
    device: str = "cpu"
    modules: tuple[str, ...] = ()
    normalize: bool = False
    dimensions: int | None = None
    postprocessing: str = ""


class DataFile(Part):
    """A file that was read: its name in the data folder, its hash, and the catalogue's."""

    name: str
    sha256: str
    expected: str | None = None


class DataPart(Part):
    """What a task was read from.

    `modified`: at least one file is not the catalogued one. `unknown`: the score was imported, and nobody says.
    """

    status: Literal["verified", "modified", "user", "unknown"]
    sha256: str
    files: tuple[DataFile, ...] = ()
    problems: tuple[str, ...] = ()


class SubsetPart(Part):
    """The scores of one subset."""

    name: str
    pairs: int | None
    scores: MetricValues
    interval: Interval | None = None


class TaskPart(Part):
    """The scores of one task.

    Attributes:
        score: the headline: the protocol's metric by the protocol's aggregation, between -1 and 1.
        interval: its 95 % percentile bootstrap interval over pairs; None if it was not asked for or is undefined.
        scores: every metric by every aggregation.
        intervals: of the protocol's metric, by every aggregation.
        identical_pairs: pairs whose two sides are one token sequence; their cosine is exactly 1.
        zero_pairs: pairs with a zero vector; their cosine is 0.
        truncated_sentences: distinct sentences that were longer than the model reads.

    The counts are None where the scores were imported and the file does not say.
    """

    task: str
    split: str
    text: str
    pairs: int | None
    score: float | None
    interval: Interval | None = None
    scores: dict[str, MetricValues]
    intervals: dict[str, Interval | None] = {}
    subsets: tuple[SubsetPart, ...]
    signature: SignatureText
    data: DataPart
    identical_pairs: int | None
    zero_pairs: int | None
    truncated_sentences: int | None


class AveragePart(Part):
    """The plain mean of the tasks' headline scores.

    `of_rounded` is the mean of the scores x 100 rounded to two decimals, as the papers' scripts take it: its
    last digit can differ.
    """

    tasks: tuple[str, ...]
    score: float | None
    of_rounded: float | None
    interval: Interval | None = None


class ProtocolPart(Part):
    """The choices that were made for all tasks."""

    name: str
    aggregation: str
    metric: str
    similarity: str
    resamples: int
    level: float
    seed: int


class TableFile(Part):
    """A table that belongs to the record: the pairs or the items."""

    file: str
    rows: int
    sha256: str


class TransferPart(Part):
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
        acc_interval: percentile bootstrap over items; None if it was not asked for. So are the other two.
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


class SupervisedPart(Part):
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
        pearson_interval: percentile bootstrap over the test pairs. So is the other.
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
