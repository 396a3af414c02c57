"""From what measuring gave to a run record: what each score means, what it was computed from, and the averages."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.data.plain_table import PlainTable
from stsbench.data.sentence_ids import FOLDED, SENTENCES
from stsbench.data.tables import LabelledData, StsData
from stsbench.encoders.protocol import Identity
from stsbench.records.measurement import MeasuredTask, Measurement
from stsbench.records.parts import (
    AveragePart,
    DataFile,
    DataPart,
    DriftPart,
    Interval,
    ModelPart,
    ProtocolPart,
    SupervisedPart,
    TransferPart,
)
from stsbench.records.provenance import environment, now, redact
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.records.store import HeldError, require_free, save_beside, save_run
from stsbench.scoring.classifiers import arrange
from stsbench.scoring.intervals import mean_limits
from stsbench.scoring.relatedness import RelatednessResult, Supervised
from stsbench.scoring.settings import Intervals, Settings, Stages
from stsbench.scoring.sts import GIVEN, StsResult, average, score_task
from stsbench.scoring.tasks import TaskData, source_of, split_by_kind
from stsbench.scoring.transfer import TransferResult

if TYPE_CHECKING:
    import pandas as pd

_STOP_BY = "pearson"


@dataclass
class Measurements:
    """What measuring gave, task by task in the order of `split_by_kind`.

    Attributes:
        tables: the pair table of each STS task.
        transfer: the result of each transfer task.
        supervised: the result of each relatedness task with a trained regressor.
        truncated: for each task of all kinds, how many of its sentences were cut.
        notes: what the person should know of the model and the fits.
        encoding: what encoding took.
        drift: what a lower precision changed, where that was asked.
    """

    tables: list[PlainTable] = field(default_factory=list)
    transfer: list[TransferResult] = field(default_factory=list)
    supervised: list[RelatednessResult] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    encoding: dict[str, int] = field(default_factory=dict)
    drift: DriftPart | None = None


class _About(TypedDict):
    """What a task's part of the record says beside its scores."""

    signature: Signature
    data: DataPart
    truncated_sentences: int


class SavedBesideError(UserError):
    """A record that was saved beside the folder that it was meant for, as that one holds another by now.

    Attributes:
        record: as it was saved.
    """

    def __init__(self, taken: HeldError, record: RunRecord) -> None:
        super().__init__(
            f"{taken}: this measurement is saved in {record.folder}; to have it in the other's place, run again "
            "with --overwrite."
        )
        self.record = record


@dataclass(frozen=True)
class Recording:
    """A measurement that is going on: what its record says before there is a score.

    Attributes:
        sets: what to score, in the order of `split_by_kind`.
        model: what is measured.
        similarity: the column of the pair tables that is correlated with gold.
        signatures: what each task's score will mean.
        settings: how it is measured.
    """

    sets: Sequence[TaskData]
    model: ModelPart
    similarity: str
    signatures: tuple[Signature, ...]
    settings: Settings

    @classmethod
    def of(cls, sets: Sequence[TaskData], identity: Identity, settings: Settings) -> "Recording":
        """Begin to record what `identity` says of a model."""
        similarity = GIVEN if identity.kind == "similarities" else settings.protocol.similarity
        use = identity.use.processed(settings.use)
        model = ModelPart(**vars(identity) | {"name": redact(identity.name), "use": use})
        ordered = [task for kind in split_by_kind(sets) for task in kind]
        signatures = tuple(_signature(task, similarity, model, settings) for task in ordered)
        return cls(ordered, model, similarity, signatures, settings)

    @property
    def protocol(self) -> ProtocolPart:
        """The choices for all tasks, as the record says them."""
        protocol, intervals = self.settings.protocol, self.settings.intervals
        return ProtocolPart(
            name=protocol.name,
            aggregation=protocol.aggregation,
            metric=protocol.metric,
            similarity=self.similarity,
            interval=intervals.interval,
            level=intervals.level,
        )

    @property
    def measurement(self) -> Measurement:
        """What is measured, on what and how: `Measurement.of` the record that will be."""
        seed, margin = self.settings.classification.seed, self.settings.margin
        tasks = tuple(
            MeasuredTask(str(signature), source_of(task).sha256, None if isinstance(task, StsData) else seed)
            for signature, task in zip(self.signatures, self.sets, strict=True)
        )
        return Measurement(self.model, self.protocol, tasks, None if margin is None else margin / 100)

    def prepare(self) -> None:
        """Make sure that the record can be saved where it is to be.

        Raises:
            UserError: if the folder cannot be written, or another measurement would be lost there.
        """
        if self.settings.out is not None:
            require_free(self.settings.out, self.measurement, overwrite=self.settings.overwrite)

    def finish(self, measured: Measurements, stages: Stages) -> RunRecord:
        """Score the pair tables and return the record, saved if it has a folder.

        Args:
            measured: what measuring gave.
            stages: told of the scoring, and asked for the time of all stages.

        Raises:
            SavedBesideError: if another measurement has come into its folder meanwhile.
            UserError: if it cannot be saved.
        """
        _, labelled, supervised = split_by_kind(self.sets)
        intervals = self.settings.intervals
        about = [
            _About(signature=signature, data=_data_part(task), truncated_sentences=truncated)
            for signature, task, truncated in zip(self.signatures, self.sets, measured.truncated, strict=True)
        ]
        scored = self._score(measured.tables, about[: len(measured.tables)], stages)
        about = about[len(scored) :]
        classified = list(zip(labelled, measured.transfer, strict=True))
        regressed = list(zip(supervised, measured.supervised, strict=True))
        transfer = zip(classified, about[: len(classified)], strict=True)
        relatedness = zip(regressed, about[len(classified) :], strict=True)
        stages.done("score")
        problems = [problem for task in self.sets for problem in source_of(task).problems]
        left_out = [note for task in self.sets if isinstance(task, StsData) for note in task.notes]
        record = RunRecord(
            stsbench=__version__,
            created=now(),
            command=self.settings.command,
            model=self.model,
            protocol=self.protocol,
            tasks=tuple(result.part for result in scored),
            average=average(scored, intervals),
            transfer=tuple(transfer_part(result, task, **its) for (task, result), its in transfer),
            transfer_average=average_accuracy(measured.transfer, intervals),
            supervised=tuple(supervised_part(result, task, **its) for (task, result), its in relatedness),
            drift=measured.drift,
            notes=tuple(dict.fromkeys(map(redact, [*measured.notes, *left_out, *problems]))),
            environment=environment(),
            seconds=stages.seconds,
            encoding=measured.encoding,
        ).with_tables(
            PlainTable.join(measured.tables) if measured.tables else None,
            item_table(classified, regressed),
        )
        return record if self.settings.out is None else self._save(record, self.settings.out)

    def _save(self, record: RunRecord, out: Path) -> RunRecord:
        try:
            return save_run(record, out, overwrite=self.settings.overwrite)
        except HeldError as taken:
            # Hours may lie behind it: it is lost no more than the other.
            raise SavedBesideError(taken, save_beside(record, out)) from taken

    def _score(self, tables: Sequence[PlainTable], about: Sequence[_About], stages: Stages) -> list[StsResult]:
        results = []
        for number, (table, its) in enumerate(zip(tables, about, strict=True)):
            stages.progress("scoring", number, len(tables))
            results.append(
                score_task(
                    table,
                    protocol=self.settings.protocol,
                    similarity=self.similarity,
                    intervals=self.settings.intervals,
                    **its,
                )
            )
        stages.progress("scoring", len(tables), len(tables))
        return results


def _signature(task: TaskData, similarity: str, model: ModelPart, settings: Settings) -> Signature:
    """Return what a task's score means; what is trained names its design, `acc` and the classifier instead."""
    data, protocol = source_of(task), settings.protocol
    what: tuple[str, str, str, str]
    normalize = model.use.normalize
    if isinstance(task, StsData):
        what = (task.split, protocol.aggregation, protocol.metric, similarity)
        normalize = model.normalize
    elif isinstance(task, LabelledData):
        design, kfold = arrange(task).design, settings.classification.kfold
        split, folds = ("all" if design == "nested" else "test"), ("" if design == "split" else str(kfold))
        what = (split, design + folds, "acc", settings.classification.classifier)
    else:
        what = ("test", "all", _STOP_BY, "supervised")
    return Signature(
        data.task,
        *what,
        text=data.text,
        data=data.sha256,
        use=replace(model.use, normalize=normalize),
        fitted=model.fitted,
        version=__version__,
    )


def _data_part(task: TaskData) -> DataPart:
    data = source_of(task)
    return DataPart(
        status=data.status,
        sha256=data.sha256,
        files=tuple(DataFile(name=f.name, sha256=f.sha256, expected=f.expected) for f in data.files),
        problems=tuple(map(redact, data.problems)),
    )


def transfer_part(
    result: TransferResult, task: LabelledData, signature: Signature, data: DataPart, *, truncated_sentences: int
) -> TransferPart:
    """Return a transfer task's part of the record: its percents as shares."""
    values = {name: value for name, value in vars(result).items() if name not in {"items", "notes", "support"}}
    values |= {name: _share(values[name]) for name in ("acc", "devacc")}
    values |= {name: _shares(values[name]) for name in ("acc_interval", "devacc_interval", "f1_interval")}
    values["f1"] = None if result.f1 is None else _share(result.f1)
    return TransferPart(
        **values,
        text=task.text,
        signature=str(signature),
        data=data,
        truncated_sentences=truncated_sentences,
    )


def supervised_part(
    result: RelatednessResult, task: Supervised, signature: Signature, data: DataPart, *, truncated_sentences: int
) -> SupervisedPart:
    """Return the part of the record of a relatedness task with a trained regressor."""
    return SupervisedPart(
        **{name: value for name, value in vars(result).items() if name != "items"},
        text=task.data.text,
        stop_by=signature.metric,
        signature=str(signature),
        data=data,
        truncated_sentences=truncated_sentences,
    )


def average_accuracy(results: Sequence[TransferResult], intervals: Intervals) -> AveragePart | None:
    """Return the plain mean of the tasks' `acc` with its interval; None for a single task."""
    interval = None
    if len(results) > 1:
        interval = mean_limits([result.support for result in results], intervals, bounds=(0.0, 1.0))
    part = AveragePart.of(
        [result.task for result in results], [_share(result.acc) for result in results], interval
    )
    if part is None or part.of_rounded is None:
        return None
    # The accuracies are rounded already: their mean is the one of the percents.
    return part.model_copy(update={"score": _share(part.of_rounded)})


def item_table(
    transfer: Sequence[tuple[LabelledData, TransferResult]],
    supervised: Sequence[tuple[Supervised, RelatednessResult]],
) -> "pd.DataFrame | None":
    """Return one table of all predictions (see `RunRecord.items`), None if there are none."""
    if not (transfer or supervised):
        return None
    import pandas as pd

    tables = [result.items.assign(text=data.text, gold=np.nan, estimate=np.nan) for data, result in transfer]
    tables += [
        result.items.rename(columns={"pair_id": "item_id", "prediction": "estimate"}).assign(
            text=task.data.text, label=None, prediction=None, correct=None, fold=-1
        )
        for task, result in supervised
    ]
    columns = ["task", "text", "split", "item_id", "label", "prediction", "correct", "fold", "gold", "estimate"]
    columns += [*SENTENCES, *FOLDED]
    # A supervised task has nothing to be correct: pandas' own boolean holds that, and Parquet too.
    tables = [table[columns].astype({"correct": "boolean"}) for table in tables]
    return pd.concat(tables, ignore_index=True)


def _share(percent: float) -> float:
    # Two decimals of a percent are four of a share: the nearest such number, not the quotient's last bit.
    return round(percent / 100, 12)


def _shares(interval: Interval | None) -> Interval | None:
    return None if interval is None else (interval[0] / 100, interval[1] / 100)
