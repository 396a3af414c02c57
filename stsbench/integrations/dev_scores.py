"""Dev scores of one training, each with its interval and whether its rise is significant.

An evaluation is compared with a reference on the same pairs: the first evaluation, or the last one with a
significant rise. So a slow climb adds up until it is significant, and a score that fluctuates never is. The
highest score so far would be a bad reference: the highest of many is partly luck, and nothing would rise above it.
"""

import math
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from stsbench.base.errors import UserError
from stsbench.encoders.network import Network
from stsbench.encoders.poolers import parse_pooling
from stsbench.encoders.protocol import Identity
from stsbench.encoders.rendering import Part
from stsbench.encoders.simple import CallableEncoder, EncodeFunction
from stsbench.encoders.tokenizer import NO_LIMIT
from stsbench.encoders.use import own_use
from stsbench.judging.compare import compare
from stsbench.records.export import metric_on_hub
from stsbench.records.kinds import KINDS
from stsbench.records.labels import task_labels
from stsbench.records.parts import AveragePart, Interval, Score
from stsbench.records.record import RunRecord
from stsbench.scoring.measure import evaluate
from stsbench.scoring.settings import Intervals, Protocol, Settings
from stsbench.scoring.task import Task
from stsbench.scoring.tasks import SAMPLE_USED, AnyTask, is_sample, or_sample, read_data
from stsbench.statistics.estimate import verdict

if TYPE_CHECKING:
    from torch import nn

DEV_TASK = "STS-B:dev"
"""The default, as in the papers."""

WITHOUT_RISE = "evaluations_without_rise"
"""The metric that early stopping reads."""

_LIMITS = ("low", "high")

RISE = ("rise", *(f"rise_{limit}" for limit in _LIMITS))
"""The metrics of the difference to the reference and its limits."""

_AVERAGE = "average"

ModelEncode = Callable[["nn.Module", list[str]], Any]
"""From the model in training and some sentences to an array or tensor of shape (sentences, dimensions)."""

_CHARACTERS = 16_384
"""The characters in a batch, few because the training's tensors are also on the device."""


@dataclass(frozen=True)
class DevScore:
    """One evaluation of a model in training.

    Attributes:
        step: of the training; -1 outside of one.
        metric: the name of a task's headline (`spearman_cosine`).
        record: the scores with their items.
        rise: the difference to the reference in points of 100; None for the first evaluation.
        without_rise: the number of evaluations in a row, including this one, without a significant rise; None
            outside of a training.
    """

    step: int
    metric: str
    record: RunRecord
    rise: Mapping[str, Any] | None = None
    without_rise: int | None = None

    @property
    def scores(self) -> dict[str, float]:
        """Every headline with the limits of its interval by name, the primary one first; NaN if undefined."""
        scores = self.record.scores
        if len(scores) == 1:
            return _with_limits(self.metric, scores[0])
        (average,) = self.record.averages
        numbers = _with_limits(f"{_AVERAGE}_{self.metric}", average)
        for label, score in zip(task_labels(scores), scores, strict=True):
            numbers |= _with_limits(f"{slug(label)}_{self.metric}", score)
        return numbers

    @property
    def metrics(self) -> dict[str, float]:
        """The scores and the rise of the primary one, between -1 and 1, and the count without a rise."""
        metrics = self.scores
        if self.rise is not None:
            rise = [self.rise[name] for name in ("difference", *_LIMITS)]
            metrics |= {name: number / 100 for name, number in zip(RISE, rise, strict=True)}
        if self.without_rise is not None:
            metrics[WITHOUT_RISE] = float(self.without_rise)
        return metrics


def _with_limits(name: str, number: Score | AveragePart) -> dict[str, float]:
    value = math.nan if number.value is None else number.value
    interval: Interval = number.interval or (math.nan, math.nan)
    return {name: value, **{f"{name}_{limit}": end for limit, end in zip(_LIMITS, interval, strict=True)}}


def slug(text: str) -> str:
    """Returns text as part of a metric's name.

    >>> slug("STS-B:dev")
    'sts-b-dev'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass
class Rises:
    """Compares the evaluations of one training, each with the last one that rose.

    Args:
        intervals: how intervals are computed.

    Attributes:
        history: every evaluation, without its items.
    """

    intervals: Intervals | None = None
    history: list[Mapping[str, float]] = field(default_factory=list, init=False)
    _reference: RunRecord | None = field(default=None, init=False, repr=False)
    _model: "ref[nn.Module] | None" = field(default=None, init=False, repr=False)
    _step: int = field(default=-1, init=False, repr=False)
    _without_rise: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises without intervals."""
        if self.intervals is not None and self.intervals.interval is None:
            raise UserError("a rise is judged by its interval: choose how to compute intervals.")

    def begin(self) -> None:
        """Discards all evaluations: the next one is the first of a training."""
        self.history.clear()
        self._reference, self._model, self._step, self._without_rise = None, None, -1, 0

    def judge(self, model: "nn.Module", step: int, metric: str, record: RunRecord) -> DevScore:
        """Returns an evaluation with its rise; see `DevScores.measure`."""
        if step < 0:
            return DevScore(step, metric, record)
        if step < self._step or (self._model is not None and self._model() is not model):
            self.begin()
        if step == self._step:
            return DevScore(step, metric, record)
        rise = None if self._reference is None else self._difference(self._reference, record)
        if rise is None or _is_rise(rise):
            self._reference, self._without_rise = record, 0
        else:
            self._without_rise += 1
        score = DevScore(step, metric, record, rise, self._without_rise)
        self._step, self._model = step, ref(model)
        self.history.append({"step": step, **score.metrics})
        return score

    def _difference(self, reference: RunRecord, record: RunRecord) -> dict[str, Any]:
        comparison: Any = compare(reference, record, intervals=self.intervals)  # of two runs a `Comparison`
        rows: list[dict[str, Any]] = comparison.rows[comparison.rows["subset"] == ""].to_dict("records")
        return rows[-1]  # the average comes last


@dataclass
class DevScores:
    """Measures a model in training repeatedly on the same tasks.

    Args:
        tasks: one task, or several of one kind, as `stsbench.evaluate` takes them. By default the dev set of STS-B
            if its data is available, otherwise the sample, with a warning.
        protocol: aggregation, metric, similarity and text.
        data: your own scored pairs instead of `tasks`: a .tsv, .csv, .jsonl or .parquet file.
        subset_column: the column of `data` that names subsets.
        data_dirs: folders to look for data in.
        intervals: how intervals are computed; 1 - level is the probability of a false rise or fall.
        out: the folder for the record of each evaluation, in a folder named by its step (`step-000100`); None
            saves no records.

    Attributes:
        history: every evaluation of this training, without its items.

    Raises:
        UserError: if the data is missing, or the tasks are of several kinds or have no average.
    """

    tasks: str | AnyTask | Sequence[str | AnyTask] | None = None
    protocol: Protocol | None = None
    data: str | Path | None = None
    subset_column: str = "subset"
    data_dirs: Sequence[str | Path] = ()
    intervals: Intervals | None = None
    out: str | Path | None = None
    _sets: list[Task] = field(default_factory=list, init=False, repr=False)
    rises: Rises = field(init=False, repr=False)
    history: list[Mapping[str, float]] = field(init=False)

    def __post_init__(self) -> None:
        """Reads the data, so that a mistake is reported before the training begins."""
        self._sets, self.rises = self._read(), Rises(self.intervals)
        self.history = self.rises.history
        kinds = {task.kind for task in self._sets}
        if len(kinds) > 1 or (len(self._sets) > 1 and not KINDS[self._sets[0].kind].average):
            raise UserError(
                f"a training is judged by one score, but {len(self._sets)} tasks that are "
                f"{' and '.join(KINDS[kind].words for kind in sorted(kinds))} have no common score: name one."
            )

    def _read(self) -> list[Task]:
        protocol = self.protocol or Protocol()
        if self.tasks is None and self.data is None:
            sets = or_sample(
                lambda: read_data(DEV_TASK, protocol=protocol, data_dirs=self.data_dirs), self.data_dirs
            )
            if is_sample(sets):
                warnings.warn(SAMPLE_USED, stacklevel=4)
            return sets
        return read_data(
            self.tasks,
            protocol=protocol,
            data=self.data,
            subset_column=self.subset_column,
            data_dirs=self.data_dirs,
        )

    @property
    def name(self) -> str:
        """The name of the task (`sts-b-dev`), or of the kind of several tasks."""
        first = self._sets[0]
        if len(self._sets) > 1:
            return slug(first.kind)
        split = first.pairs.split if first.pairs is not None else ""
        return slug(first.data.task if split in {"", "test"} else f"{first.data.task} {split}")

    @property
    def metric(self) -> str:
        """The primary score's name, `spearman_cosine`, or for several tasks `average_spearman_cosine`."""
        return f"{_AVERAGE}_{self._of_task}" if len(self._sets) > 1 else self._of_task

    @property
    def _of_task(self) -> str:
        task = self._sets[0]
        meaning = task.meaning(Settings(self.protocol or Protocol()))
        return metric_on_hub(meaning.metric, "" if task.is_trained else meaning.similarity)

    def measure(self, model: "nn.Module", encode: EncodeFunction, step: int = -1) -> DevScore:
        """Measures a model with its current weights, without changing the training in any bit.

        Args:
            model: the model in training, whose modes are restored.
            encode: a function of that model, from a list of sentences to an array of shape (sentences,
                dimensions).
            step: the step of the training; -1 outside of one, where no rise is judged. A second evaluation of a
                step does not count. An earlier step or another model begins a new training.

        Raises:
            UserError: if `encode` returns no finite vectors of that shape.
        """
        name = f"step {step}" if step >= 0 else "the model"
        with undisturbed(model):
            record = evaluate(
                live_encoder(encode, name),
                self._sets,
                protocol=self.protocol,
                intervals=self.intervals,
                use_cache=False,
                out=Path(self.out) / f"step-{step:06d}" if self.out is not None and step >= 0 else None,
                overwrite=True,
            )
        return self.rises.judge(model, step, self._of_task, record)


def _is_rise(difference: Mapping[str, Any]) -> bool:
    """Returns whether a rise is significant; any score is a rise above an undefined one."""
    if math.isnan(difference["a"]):
        return not math.isnan(difference["b"])
    return verdict(difference["low"], difference["high"]) == "better"


def live_encoder(encode: EncodeFunction, name: str) -> CallableEncoder:
    """Returns the encoder of one evaluation. Its vectors are not cached, as the weights have no hash."""
    return CallableEncoder(encode, Identity(name, "function", own_use("own")), token_budget=_CHARACTERS)


@contextmanager
def undisturbed(model: "nn.Module") -> Iterator[None]:
    """Evaluates a model without affecting its training.

    Inside the block it is in evaluation mode, and no gradient is recorded. Afterwards the mode of every module and
    the states of the random generators of Python, NumPy and torch (on the CPU, and on all CUDA devices if the
    model is on one) are restored.
    """
    import torch

    modes = [(module, module.training) for module in model.modules()]
    parameter = next(model.parameters(), None)
    on_cuda = parameter is not None and parameter.device.type == "cuda"
    devices = list(range(torch.cuda.device_count())) if on_cuda else []
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    # No inference mode: a tensor that a network computes once and keeps could not be used in training.
    with torch.random.fork_rng(devices), torch.no_grad():
        model.eval()
        try:
            yield
        finally:
            for module, was_training in modes:
                module.training = was_training
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002


def pooled(tokenizer: Any, pooling: str, max_length: int | None = None) -> ModelEncode:
    """Returns a function that encodes with a Transformers model in training as `stsbench run` does.

    A model with a task's head is encoded by the network below it (`base_model`).

    Args:
        tokenizer: the model's.
        pooling: a pooling of a Transformers checkpoint without a template.
        max_length: the maximum length in sub-words; by default the tokenizer's limit.

    Raises:
        UserError: if the pooling is unknown or not possible for a model in training.
    """
    reading = parse_pooling(pooling)
    if reading.is_of_template or (reading.head and pooling != "cls"):
        raise UserError(
            f"pooling {pooling} is not read of a model in training: choose another or give a function as `encode`."
        )
    if any(tokenizer("a").get("token_type_ids") or ()):
        raise UserError(
            "this tokenizer marks token types in single sentences, as XLNet's does: give a function as `encode`."
        )
    limit = min(max_length or NO_LIMIT, tokenizer.model_max_length or NO_LIMIT)
    padding = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def encode(model: Any, sentences: list[str]) -> Any:
        network = _network_of(model, 0 if padding is None else padding)
        if pooling == "cls" and not network.has_pooler:
            raise UserError("pooling cls reads behind the model's pooler, and it has none: use cls_before_pooler.")
        ids = tokenizer(
            sentences,
            truncation=limit < NO_LIMIT,
            max_length=limit if limit < NO_LIMIT else None,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        parts = [Part(tuple(of_sentence), (), ()) for of_sentence in ids]
        vectors = network.read(parts, {pooling: reading}, plain=True)[pooling].cpu().numpy()
        # Where a tokenizer adds no special tokens, an empty sentence has none at all.
        vectors[[not of_sentence for of_sentence in ids]] = 0
        return vectors

    return encode


def _network_of(model: Any, pad_id: int) -> Network:
    """Returns the current network of a Transformers model."""
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel) or model.config.is_encoder_decoder:
        kind = "an encoder-decoder" if isinstance(model, PreTrainedModel) else f"a {type(model).__name__}"
        raise UserError(
            f"a pooling needs a Transformers encoder or decoder, but the model in training is {kind}: give a "
            "function `encode(model, sentences)`."
        )
    network = model.base_model
    return Network(
        name=type(model).__name__,
        model=network,
        head=None,
        has_pooler=getattr(network, "pooler", None) is not None,
        tail=lambda vectors: vectors,
        pad_id=pad_id,
        device=str(model.device),
    )
