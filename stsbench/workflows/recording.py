"""From results to the record of a measurement, saved if it has a folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from stsbench._version import __version__
from stsbench.datasets import LabelledData, StsData
from stsbench.encoders import Identity
from stsbench.evaluation.folds import arrange
from stsbench.evaluation.pairs import GIVEN
from stsbench.evaluation.recorded import average_accuracy, item_table, supervised_part, transfer_part
from stsbench.evaluation.relatedness import RelatednessResult
from stsbench.evaluation.sts import average, score_task
from stsbench.evaluation.tasks import TaskData, source_of, split_by_kind
from stsbench.evaluation.transfer import TransferResult
from stsbench.records import RunRecord, Signature, save_run
from stsbench.records.parts import DataFile, DataPart, ModelPart, ProtocolPart
from stsbench.records.provenance import environment, now, redact
from stsbench.records.store import require_free
from stsbench.workflows.settings import Settings, Stages

if TYPE_CHECKING:
    import pandas as pd

_STOP_BY = "pearson"


@dataclass
class Measured:
    """What measuring gave, task by task in the order of `split_by_kind`.

    Attributes:
        tables: the pair table of each STS task.
        transfer: the result of each transfer task.
        supervised: the result of each relatedness task with a trained regressor.
        truncated: for each task of all kinds, how many of its sentences were cut.
        notes: what the person should know of the model and the fits.
        encoding: what encoding took.
    """

    tables: "list[pd.DataFrame]" = field(default_factory=list)
    transfer: list[TransferResult] = field(default_factory=list)
    supervised: list[RelatednessResult] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    encoding: dict[str, int] = field(default_factory=dict)


class _About(TypedDict):
    signature: Signature
    data: DataPart
    truncated_sentences: int


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
        post = settings.postprocessing
        own = identity.normalize if post.normalize is None else post.normalize
        values = identity.as_dict() | {
            "name": redact(identity.name),
            "postprocessing": str(post),
            "normalize": own,
        }
        model = ModelPart(**values, dimensions=post.dimensions)
        ordered = [task for kind in split_by_kind(sets) for task in kind]
        signatures = tuple(_signature(task, similarity, model, settings) for task in ordered)
        return cls(ordered, model, similarity, signatures, settings)

    def prepare(self) -> None:
        """Make sure that the record can be saved where it is to be.

        Raises:
            UserError: if the folder cannot be written, or another measurement would be lost there.
        """
        out, overwrite = self.settings.out, self.settings.overwrite
        if out is not None:
            require_free(out, self.signatures, self.model, overwrite=overwrite)

    def finish(self, measured: Measured, stages: Stages) -> RunRecord:
        """Score the pair tables and return the record, saved if it has a folder.

        Args:
            measured: what measuring gave.
            stages: told of the scoring, and asked for the time of all stages.
        """
        import pandas as pd

        scored, labelled, supervised = split_by_kind(self.sets)
        protocol, bootstrap = self.settings.protocol, self.settings.bootstrap
        about = [
            _About(signature=signature, data=_data_part(task), truncated_sentences=truncated)
            for signature, task, truncated in zip(self.signatures, self.sets, measured.truncated, strict=True)
        ]
        results = []
        for number, (table, its) in enumerate(zip(measured.tables, about, strict=False)):
            stages.progress("scoring", number, len(scored))
            results.append(
                score_task(table, protocol=protocol, similarity=self.similarity, bootstrap=bootstrap, **its)
            )
        stages.progress("scoring", len(scored), len(scored))
        classified = list(zip(labelled, measured.transfer, strict=True))
        regressed = list(zip(supervised, measured.supervised, strict=True))
        of_labelled, of_supervised = about[len(scored) :], about[len(scored) + len(labelled) :]
        stages.done("score")
        problems = [problem for task in self.sets for problem in source_of(task).problems]
        record = RunRecord(
            stsbench=__version__,
            created=now(),
            command=self.settings.command,
            model=self.model,
            protocol=ProtocolPart(
                name=protocol.name,
                aggregation=protocol.aggregation,
                metric=protocol.metric,
                similarity=self.similarity,
                resamples=bootstrap.resamples,
                level=bootstrap.level,
                seed=bootstrap.seed,
            ),
            tasks=tuple(result.part for result in results),
            average=average(results, bootstrap),
            transfer=tuple(
                transfer_part(result, task, **its)
                for (task, result), its in zip(classified, of_labelled, strict=False)
            ),
            transfer_average=average_accuracy(measured.transfer, bootstrap),
            supervised=tuple(
                supervised_part(result, task, **its)
                for (task, result), its in zip(regressed, of_supervised, strict=True)
            ),
            notes=tuple(dict.fromkeys(map(redact, [*measured.notes, *problems]))),
            environment=environment(),
            seconds=stages.seconds,
            encoding=measured.encoding,
        ).with_tables(
            pd.concat(measured.tables, ignore_index=True) if measured.tables else None,
            item_table(classified, regressed),
        )
        return record if self.settings.out is None else save_run(record, self.settings.out)


def _signature(task: TaskData, similarity: str, model: ModelPart, settings: Settings) -> Signature:
    """Return what a task's score means; what is trained names its design, `acc` and the classifier instead."""
    data, protocol = source_of(task), settings.protocol
    what: tuple[str, str, str, str]
    normalize = model.normalize
    if isinstance(task, StsData):
        what = (task.split, protocol.aggregation, protocol.metric, similarity)
    elif isinstance(task, LabelledData):
        design, kfold = arrange(task).design, settings.classification.kfold
        split, folds = ("all" if design == "nested" else "test"), ("" if design == "split" else str(kfold))
        what = (split, design + folds, "acc", settings.classification.classifier)
        normalize = settings.postprocessing.normalize is True
    else:
        what = ("test", "all", _STOP_BY, "supervised")
        normalize = settings.postprocessing.normalize is True
    return Signature(
        data.task,
        *what,
        text=data.text,
        data=data.sha256,
        pooling=model.pooling,
        max_length=model.max_length,
        prompt=model.prompt,
        precision=model.precision,
        normalize=normalize,
        dimensions=model.dimensions,
        postprocessing=model.postprocessing,
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
