"""The parts of `run.json`: model, data, protocol, scores and environment (without names of users)."""

import getpass
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stsbench.base.machine import cores
from stsbench.encoders.template import Template
from stsbench.encoders.use import Use
from stsbench.records.kinds import KINDS, Kind
from stsbench.records.signature import Signature, postprocessing
from stsbench.statistics import Dependence, Reason

_PACKAGES = (
    *("numpy", "pandas", "pyarrow", "safetensors", "scipy"),
    *("sentence-transformers", "tokenizers", "torch", "transformers"),
)
_END_OF_NAME = r"(?![\w-]|\.\w)"
_LOGIN = re.compile(r"(https?://)[^/\s]*@", re.IGNORECASE)
_HOMES = re.compile(r"(/home/|/Users/|[A-Za-z]:[\\/]Users[\\/])[^/\\:'\",;\s]+")


def environment() -> dict[str, Any]:
    """Returns Python, platform, package versions and threads."""
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "threads": threads(),
    }


def threads() -> int:
    """Returns the number of threads that torch uses, or would use."""
    if "torch" in sys.modules:
        count: int = sys.modules["torch"].get_num_threads()
        return count
    return cores()


def now() -> str:
    """Returns the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def command_line(arguments: Sequence[str]) -> str:
    """Returns a command line that can be typed again, home folder and user name redacted."""
    return redact(shlex.join([Path(arguments[0]).name, *arguments[1:]])) if arguments else ""


def redact(text: str) -> str:
    """Returns text without user names: the home folder becomes `~`, user names in other folders `...`.

    The user and password of an address are left out.

    >>> redact("/home/ada/models/a"), redact("https://ada:secret@example.org/v1#a")
    ('/home/.../models/a', 'https://example.org/v1#a')
    """
    text = _LOGIN.sub(r"\1", text)
    # Python reads file names in another encoding with lone surrogates, which cannot be stored.
    text = text.encode(errors="backslashreplace").decode()
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(re.escape(home) + _END_OF_NAME, "~", text)
    text = _HOMES.sub(r"\g<1>...", text)
    user = _user()
    # Scratch folders contain user names, too. In a Hub model's name, `user/name`, no slash precedes.
    return re.sub(rf"(?<=[/\\]){re.escape(user)}{_END_OF_NAME}", "...", text) if user else text


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


SCHEMA_VERSION = 6
"""The version of this layout. Records of other versions are not read."""

IMPORTED = "imported"
"""The kind of a model whose scores come from another program's results."""

Interval = tuple[float, float]
NoInterval = Reason | Literal[""]


def _require_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
    return kind


KindName = Annotated[str, AfterValidator(_require_kind)]
SignatureText = Annotated[str, AfterValidator(lambda text: str(Signature.parse(text)))]


class RecordPart(BaseModel):
    """The base of all parts: immutable, without NaN or infinity."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class ModelPart(RecordPart):
    """The model that was measured, with the fields of the encoders' `Identity`.

    Attributes:
        use: how it was used; a template in full.
        normalizes: whether the model itself scales vectors to unit length.
        fitted: the fitted post-processing that is part of the model (`whitening256+STS-B-test`).
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
        """Whether vectors had unit length when they were compared."""
        return self.normalizes if self.use.normalize is None else self.use.normalize

    @property
    def postprocessing(self) -> str:
        """The fitted post-processing and the run's whitening, as in the signature."""
        return postprocessing(self.fitted, self.use)


ModelPart.model_rebuild(_types_namespace={**globals(), "Template": Template})


class DataFile(RecordPart):
    """A data file: its name in the data folder, its hash, and the catalogue's hash."""

    name: str
    sha256: str
    expected: str | None = None


class DataPart(RecordPart):
    """The data of a task.

    Attributes:
        status: as in `stsbench.data.tables`, or `unknown` for imported scores.
        sha256: over all files.
        problems: a sentence for each file that differs from the catalogue's.
    """

    status: Literal["verified", "unverified", "modified", "user", "unknown"]
    sha256: str
    files: tuple[DataFile, ...] = ()
    problems: tuple[str, ...] = ()


class RaterPart(RecordPart):
    """The agreement of a task's raters; None where undefined.

    Attributes:
        pairs: the number of pairs with at least two ratings.
        ratings: the mean number of ratings of such a pair.
        reliability: the share of the gold scores' variance that is not rater noise.
        ceiling: its square root, the Pearson correlation of a perfect similarity.
    """

    pairs: int
    ratings: float
    reliability: float | None
    ceiling: float | None


class Number(RecordPart):
    """One number of a task.

    Attributes:
        statistic: `spearman`, `pearson`, `kendall`, `acc`, `devacc`, `f1`, `mse`, `ap`, `accuracy`, `mean`, ...
        aggregation: over subsets: `all`, `mean` or `wmean`; empty if the statistic ignores subsets.
        subset: the subset; empty for the whole task.
        value: None if it is undefined (constant similarities).
        items: the number of pairs or items; None if unknown (imported scores).
        interval: at the protocol's level, by the protocol's method; None if there is none.
        no_interval: why there is none; empty if there is one or none was requested.
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
        """The key that distinguishes it from the other numbers of its task."""
        return self.statistic, self.aggregation, self.subset


class Training(RecordPart):
    """The training of a classifier or regressor on a task's vectors; None or empty where unknown (imported).

    Attributes:
        method: the classifier (`logreg`, or the net's name), or `supervised` for the regressor.
        design: `nested` (two levels of cross-validation), `kfold` (on train, then test) or `split`.
        kfold: the number of folds; 0 for none.
        seed: of the folds of `kfold`, the net and the regressor.
        positive: the class of F1; empty if there is no F1.
        grid: the regularisation strengths that were tried.
        chosen: the one of each final fit: one per outer fold, or a single one.
        stop_by: the correlation on dev that stops the regressor's training.
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
    """The result of one task of any kind; None or empty where unknown (imported).

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        task: its name.
        split: the split of the headline (`all` if every item is held out once).
        text: the text variant.
        numbers: the headline first, then other statistics, aggregations and subsets.
        signature: of the headline.
        data: the task's data.
        counts: `identical_pairs` (one token sequence on both sides) and `zero_pairs` (with a zero vector).
        truncated_sentences: the number of distinct sentences longer than the maximum length.
        training: the classifier or regressor trained on the vectors; None if there is none.
        raters: how well the raters of the gold scores agree; None if their ratings are not published.
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
        """Its kind, as tables and labels need it."""
        return KINDS[self.kind]

    @property
    def statistic(self) -> str:
        """The headline's statistic."""
        return self.numbers[0].statistic

    @property
    def value(self) -> float | None:
        """The headline; None if it is undefined."""
        return self.numbers[0].value

    @property
    def items(self) -> int | None:
        """The number of pairs or items of the headline."""
        return self.numbers[0].items

    @property
    def interval(self) -> Interval | None:
        """The headline's interval; None if there is none."""
        return self.numbers[0].interval

    @property
    def no_interval(self) -> NoInterval:
        """Why the headline has no interval."""
        return self.numbers[0].no_interval

    @property
    def headlines(self) -> tuple[Number, ...]:
        """The headline, and the other statistics that tables of this kind show."""
        others = (self.number(name) for name in self.about.statistics if name != self.statistic)
        return self.numbers[0], *(number for number in others if number is not None)

    def number(self, statistic: str, aggregation: str | None = None, subset: str = "") -> Number | None:
        """Returns a number, by default by the headline's aggregation; None if the score does not have it."""
        accepted = {self.numbers[0].aggregation if aggregation is None else aggregation, ""}
        numbers = (number for number in self.numbers if (number.statistic, number.subset) == (statistic, subset))
        return next((number for number in numbers if subset or number.aggregation in accepted), None)

    @property
    def subsets(self) -> tuple[Number, ...]:
        """The headline's statistic on each subset, in the order of the data."""
        return tuple(number for number in self.numbers if number.subset and number.statistic == self.statistic)


class AveragePart(RecordPart):
    """The mean of the headlines of one kind's tasks; None if one is undefined.

    `of_rounded` is the mean of the scores x 100 rounded to two decimals, as the papers' scripts compute it.
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
        """Returns the average of some tasks' scores; None for a single task, or if their kind has no average.

        >>> round(AveragePart.of("sts", ["STS12", "STS13"], [0.512344, 0.612344]).of_rounded, 6)
        56.23
        """
        if len(tasks) < 2 or not KINDS[kind].average:
            return None
        percents = [None if value is None else round(100 * value, 2) for value in values]
        rounded, mean = plain_mean(percents), plain_mean(values)
        if rounded is not None and KINDS[kind].rounded:
            mean = round(rounded / 100, 12)
        limits = None if mean is None else interval
        return cls(kind=kind, tasks=tuple(tasks), value=mean, of_rounded=rounded, interval=limits)


def plain_mean(scores: Sequence[float | None]) -> float | None:
    """Returns the mean of some scores; None if any of them is undefined."""
    defined = [score for score in scores if score is not None]
    return float(np.mean(defined)) if defined and len(defined) == len(scores) else None


class ProtocolPart(RecordPart):
    """The choices for all tasks; `interval` is how intervals treat pairs that share sentences, None for none."""

    name: str
    aggregation: str
    metric: str
    similarity: str
    interval: Dependence | None
    level: float


class TableFile(RecordPart):
    """The items table."""

    file: str
    rows: int
    sha256: str


class HeadScore(RecordPart):
    """The dev score of a task head that was trained with the encoder; the head is not part of the checkpoint.

    The measure is `accuracy` (a share), `pearson` (a correlation) or another one; the score is None if undefined.
    """

    task: str
    kind: str
    measure: str
    score: float | None
    ntrain: int = Field(ge=1)
    ndev: int = Field(ge=1)
