"""From what measuring gave to a run record: what each score means, what it was computed from, and the averages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.data.plain_table import PlainTable
from stsbench.encoders.protocol import Identity
from stsbench.records.kinds import KINDS
from stsbench.records.measurement import MeasuredTask, Measurement
from stsbench.records.parts import AveragePart, DataFile, DataPart, ModelPart, ProtocolPart, Score
from stsbench.records.provenance import environment, now, redact
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.records.store import HeldError, require_free, save_beside, save_run
from stsbench.scoring.intervals import Support, mean_limits
from stsbench.scoring.kinds import in_order
from stsbench.scoring.protocols import GIVEN_SIMILARITY
from stsbench.scoring.raters import rater_part
from stsbench.scoring.settings import Intervals, Settings, Stages
from stsbench.scoring.task import Items, Rows, Scoring, Task


@dataclass(frozen=True)
class Measured:
    """What measuring gave.

    Attributes:
        items: of each task, in the order of the recording's.
        truncated: how many sentences of each were cut.
        notes: what the person should know of the model and the fits.
        encoding: what encoding took.
    """

    items: Sequence[Items]
    truncated: Sequence[int]
    notes: Sequence[str]
    encoding: Mapping[str, int]


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
        tasks: what to score, in the order of `KINDS`.
        model: what is measured.
        similarity: the column of the items that is correlated with gold.
        signatures: what each task's score will mean.
        settings: how it is measured.
    """

    tasks: Sequence[Task]
    model: ModelPart
    similarity: str
    signatures: tuple[Signature, ...]
    settings: Settings

    @classmethod
    def of(cls, tasks: Sequence[Task], identity: Identity, settings: Settings) -> "Recording":
        """Begin to record what `identity` says of a model."""
        if identity.kind == "similarities":
            settings = replace(settings, protocol=replace(settings.protocol, similarity=GIVEN_SIMILARITY))
        use = identity.use.processed(settings.use)
        model = ModelPart(**vars(identity) | {"name": redact(identity.name), "use": use})
        ordered = in_order(tasks)
        signatures = tuple(_signature(task, model, settings) for task in ordered)
        return cls(ordered, model, settings.protocol.similarity, signatures, settings)

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
        seed = self.settings.classification.seed
        tasks = tuple(
            MeasuredTask(str(signature), task.data.sha256, seed if task.is_trained else None)
            for signature, task in zip(self.signatures, self.tasks, strict=True)
        )
        return Measurement(self.model, self.protocol, tasks)

    def prepare(self) -> None:
        """Make sure that the record can be saved where it is to be.

        Raises:
            UserError: if the folder cannot be written, or another measurement would be lost there.
        """
        if self.settings.out is not None:
            require_free(self.settings.out, self.measurement, overwrite=self.settings.overwrite)

    def finish(self, measured: Measured, stages: Stages) -> RunRecord:
        """Score the items and return the record, saved if it has a folder.

        Args:
            measured: what measuring gave.
            stages: told of the scoring, and asked for the time of all stages.

        Raises:
            SavedBesideError: if another measurement has come into its folder meanwhile.
            UserError: if it cannot be saved.
        """
        scores, supports = [], []
        for number in range(len(self.tasks)):
            stages.progress("scoring", number, len(self.tasks))
            score, support = self._score(number, measured)
            scores.append(score)
            supports.append(support)
        stages.progress("scoring", len(self.tasks), len(self.tasks))
        stages.done("score")
        problems = [problem for task in self.tasks for problem in task.data.problems]
        left_out = [note for task in self.tasks for note in getattr(task.data, "notes", ())]
        record = RunRecord(
            stsbench=__version__,
            created=now(),
            command=self.settings.command,
            model=self.model,
            protocol=self.protocol,
            scores=tuple(scores),
            averages=averages(scores, supports, self.settings.intervals),
            notes=tuple(dict.fromkeys(map(redact, [*measured.notes, *left_out, *problems]))),
            environment=environment(),
            seconds=stages.seconds,
            encoding=dict(measured.encoding),
        ).with_items(PlainTable.join([items.table for items in measured.items]))
        return record if self.settings.out is None else self._save(record, self.settings.out)

    def _score(self, number: int, measured: Measured) -> tuple[Score, Support]:
        task, signature, items = self.tasks[number], self.signatures[number], measured.items[number]
        given = task.numbers(
            Rows.of(items.table, signature.split), Scoring(signature, items.training, self.settings.intervals)
        )
        numbers = {each.key: each for each in given.numbers} | {each.key: each for each in items.stated}
        score = Score(
            kind=task.kind,
            task=task.data.task,
            split=signature.split,
            text=task.data.text,
            numbers=tuple(numbers.values()),
            signature=str(signature),
            data=_data_part(task),
            counts=counts_in(items.table),
            truncated_sentences=measured.truncated[number],
            training=items.training,
            raters=rater_part(items.table),
        )
        return score, given.support

    def _save(self, record: RunRecord, out: Path) -> RunRecord:
        try:
            return save_run(record, out, overwrite=self.settings.overwrite)
        except HeldError as taken:
            # Hours may lie behind it: it is lost no more than the other.
            raise SavedBesideError(taken, save_beside(record, out)) from taken


def counts_in(items: PlainTable) -> dict[str, int]:
    """Return how many items are unlike the others (see `Score.counts`), where the items say so."""
    return {f"{name}_pairs": int(items[name].sum()) for name in ("identical", "zero") if name in items.columns}


def averages(
    scores: Sequence[Score], supports: Sequence[Support], intervals: Intervals
) -> tuple[AveragePart, ...]:
    """Return the mean of the headlines of each kind of which there are several, with its interval.

    There is no interval where a task's own headline has none.
    """
    parts = []
    for kind in KINDS.values():
        places = [place for place, score in enumerate(scores) if score.kind == kind.name]
        complete = len(places) > 1 and all(scores[place].interval is not None for place in places)
        bounds = (kind.lowest, 1.0 if isfinite(kind.lowest) else inf)
        limits = mean_limits([supports[place] for place in places], intervals, bounds) if complete else None
        tasks, values = [scores[place].task for place in places], [scores[place].value for place in places]
        parts.append(AveragePart.of(kind.name, tasks, values, limits))
    return tuple(part for part in parts if part is not None)


def _signature(task: Task, model: ModelPart, settings: Settings) -> Signature:
    """Return what a task's score means."""
    # What is trained gets vectors of unit length only where that was asked for.
    normalize = model.use.normalize if task.is_trained else model.normalize
    return Signature(
        task.data.task,
        *task.meaning(settings),
        text=task.data.text,
        data=task.data.sha256,
        use=replace(model.use, normalize=normalize),
        fitted=model.fitted,
        version=__version__,
    )


def _data_part(task: Task) -> DataPart:
    data = task.data
    return DataPart(
        status=data.status,
        sha256=data.sha256,
        files=tuple(DataFile(name=f.name, sha256=f.sha256, expected=f.expected) for f in data.files),
        problems=tuple(map(redact, data.problems)),
    )
