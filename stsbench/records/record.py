"""The run record: everything that is said about a model is computed from it and its pair table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from stsbench.records.signature import Signature

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1

IMPORTED = "imported"
"""The kind of a model whose scores were read from the results of another program."""

AVERAGE = "Avg."

MetricValues = dict[str, float | None]
"""A correlation by each metric, between -1 and 1; None where it is undefined (constant similarities)."""

Interval = tuple[float, float]


def _readable(signature: str) -> str:
    Signature.parse(signature)
    return signature


SignatureText = Annotated[str, AfterValidator(_readable)]
"""A signature as text, which is known to read back."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelPart(_Part):
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
    dimensions: int | None = None
    postprocessing: str = ""


class DataFile(_Part):
    """A file that was read: its name in the data folder, its hash, and the catalogue's."""

    name: str
    sha256: str
    expected: str | None = None


class DataPart(_Part):
    """What a task was read from.

    `modified`: at least one file is not the catalogued one. `unknown`: the score was imported, and nobody says.
    """

    status: Literal["verified", "modified", "user", "unknown"]
    sha256: str
    files: tuple[DataFile, ...] = ()
    problems: tuple[str, ...] = ()


class SubsetPart(_Part):
    """The scores of one subset."""

    name: str
    pairs: int | None
    scores: MetricValues
    interval: Interval | None = None


class TaskPart(_Part):
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


class AveragePart(_Part):
    """The plain mean of the tasks' headline scores.

    `of_rounded` is the mean of the scores x 100 rounded to two decimals, as the papers' scripts take it: its
    last digit can differ.
    """

    tasks: tuple[str, ...]
    score: float | None
    of_rounded: float | None
    interval: Interval | None = None


class ProtocolPart(_Part):
    """The choices that were made for all tasks."""

    name: str
    aggregation: str
    metric: str
    similarity: str
    resamples: int
    level: float
    seed: int


class PairsFile(_Part):
    """The pair table that belongs to the record."""

    file: str
    rows: int
    sha256: str


class RunRecord(_Part):
    """One measurement of one model.

    Attributes:
        schema_version: of this layout.
        stsbench: the version that wrote it.
        created: when, in UTC.
        command: the command line, home folder redacted.
        model: what was measured.
        protocol: how.
        tasks: the scores.
        average: their mean; None for a single task.
        notes: what the person was told: choices made for them, mismatches, modified data.
        environment: Python, platform, packages, threads.
        seconds: time by stage.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        pairs_file: the pair table on disk; None for a record in memory.
    """

    schema_version: int = SCHEMA_VERSION
    stsbench: str
    created: str
    command: str = ""
    model: ModelPart
    protocol: ProtocolPart
    tasks: Annotated[tuple[TaskPart, ...], Field(min_length=1)]
    average: AveragePart | None = None
    notes: tuple[str, ...] = ()
    environment: dict[str, Any]
    seconds: dict[str, float]
    encoding: dict[str, int]
    pairs_file: PairsFile | None = None

    _pairs: Any = PrivateAttr(default=None)
    _folder: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _headline_is_there(self) -> Self:
        metric = self.protocol.metric
        for task in self.tasks:
            parts = [task.scores.get(self.protocol.aggregation, {}), *(subset.scores for subset in task.subsets)]
            if not all(metric in scores for scores in parts):
                raise ValueError(f"{task.task} lacks a score by {metric}")
        return self

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same; their pair tables are told apart by the hash in `pairs_file`."""
        return isinstance(other, RunRecord) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    @property
    def pairs(self) -> "pd.DataFrame":
        """The pair table: one row per scored pair.

        Columns: task, split, text, subset, pair_id, gold; the similarities (float64); the lengths of both sides
        in words, sub-words (-1 where unknown) and characters.

        Raises:
            UserError: if the record was read from disk and its pair table is missing or another one.
        """
        if self._pairs is None:
            from stsbench.records.store import read_pairs

            self._pairs = read_pairs(self, self._folder)
        table: pd.DataFrame = self._pairs
        return table

    @property
    def is_imported(self) -> bool:
        """Whether the scores come from the results of another program: there are no pairs then."""
        return self.model.kind == IMPORTED

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signature of each task's score."""
        return tuple(Signature.parse(task.signature) for task in self.tasks)

    @property
    def signature(self) -> str:
        """All signatures, one a line."""
        return "\n".join(task.signature for task in self.tasks)

    def table(self) -> "pd.DataFrame":
        """Return one row per task and subset: pairs, score x 100 and the limits of its interval.

        Columns: task, subset (empty for the task as a whole), pairs, score, low, high, signature. The last row
        is the average, if there is one. Of two splits or texts of one task, the label says which is which.
        """
        import pandas as pd

        rows = []
        for task in self.tasks:
            label = self._label(task)
            rows.append(_row(label, "", task.pairs, task.score, task.interval, signature=task.signature))
            for subset in task.subsets if len(task.subsets) > 1 else ():
                score = subset.scores[self.protocol.metric]
                rows.append(_row(label, subset.name, subset.pairs, score, subset.interval))
        if self.average is not None:
            pairs = sum(task.pairs or 0 for task in self.tasks)
            rows.append(_row(AVERAGE, "", pairs, self.average.score, self.average.interval))
        return pd.DataFrame(rows)

    def _label(self, task: TaskPart) -> str:
        same = [other for other in self.tasks if other.task == task.task]
        split = f":{task.split}" if len({other.split for other in same}) > 1 else ""
        text = f"@{task.text}" if len({other.text for other in same}) > 1 else ""
        return task.task + split + text

    @property
    def folder(self) -> Path | None:
        """The folder that the record was saved in or read from; None for one in memory."""
        return self._folder

    def with_pairs(self, pairs: "pd.DataFrame | None", folder: Path | None = None) -> "RunRecord":
        """Return the record holding its pair table."""
        record = self.model_copy()
        record._pairs, record._folder = pairs, folder
        return record


def _row(
    task: str,
    subset: str,
    pairs: int | None,
    score: float | None,
    interval: Interval | None,
    *,
    signature: str = "",
) -> dict[str, Any]:
    low, high = interval or (None, None)
    return {
        "task": task,
        "subset": subset,
        "pairs": pairs,
        "score": _percent(score),
        "low": _percent(low),
        "high": _percent(high),
        "signature": signature,
    }


def _percent(value: float | None) -> float:
    return float("nan") if value is None else 100 * value
