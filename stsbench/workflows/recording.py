"""From pair tables to the record of a measurement, saved if it has a folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stsbench._version import __version__
from stsbench.datasets import StsData
from stsbench.encoders import Identity
from stsbench.evaluation.pairs import GIVEN
from stsbench.evaluation.sts import average, score_task
from stsbench.records import RunRecord, Signature, save_run
from stsbench.records.provenance import environment, now, redact
from stsbench.records.record import DataFile, DataPart, ModelPart, ProtocolPart
from stsbench.records.store import require_free
from stsbench.workflows.settings import Settings, Stages

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Recording:
    """A measurement that is going on: what its record says before there is a score.

    Attributes:
        sets: the pairs to score.
        model: what is measured.
        similarity: the column of the pair tables that is correlated with gold.
        signatures: what each task's score will mean.
        settings: how it is measured.
    """

    sets: Sequence[StsData]
    model: ModelPart
    similarity: str
    signatures: tuple[Signature, ...]
    settings: Settings

    @classmethod
    def of(cls, sets: Sequence[StsData], identity: Identity, settings: Settings) -> "Recording":
        """Begin to record what `identity` says of a model."""
        similarity = GIVEN if identity.kind == "similarities" else settings.protocol.similarity
        post = settings.postprocessing
        values = identity.as_dict() | {"name": redact(identity.name), "postprocessing": str(post)}
        model = ModelPart(**values, dimensions=post.dimensions)
        signatures = tuple(_signature(task, similarity, model, settings) for task in sets)
        return cls(sets, model, similarity, signatures, settings)

    def prepare(self) -> None:
        """Make sure that the record can be saved where it is to be.

        Raises:
            UserError: if the folder cannot be written, or another measurement would be lost there.
        """
        out, overwrite = self.settings.out, self.settings.overwrite
        if out is not None:
            require_free(out, self.signatures, self.model, overwrite=overwrite)

    def finish(
        self,
        tables: "Sequence[pd.DataFrame]",
        truncated: Sequence[int],
        stages: Stages,
        *,
        notes: Sequence[str] = (),
        encoding: dict[str, int] | None = None,
    ) -> RunRecord:
        """Score the pair tables of the tasks and return the record, saved if it has a folder.

        Args:
            tables: the pair table of each task.
            truncated: for each task, how many of its sentences were cut.
            stages: told of the scoring, and asked for the time of all stages.
            notes: what the person should know of the model.
            encoding: what encoding took.
        """
        import pandas as pd

        protocol, bootstrap = self.settings.protocol, self.settings.bootstrap
        results = []
        for number, (task, table) in enumerate(zip(self.sets, tables, strict=True)):
            stages.progress("scoring", number, len(self.sets))
            result = score_task(
                table,
                protocol=protocol,
                similarity=self.similarity,
                signature=self.signatures[number],
                data=_data_part(task),
                bootstrap=bootstrap,
                truncated_sentences=truncated[number],
            )
            results.append(result)
        stages.progress("scoring", len(self.sets), len(self.sets))
        stages.done("score")
        problems = [problem for task in self.sets for problem in task.problems]
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
            notes=tuple(map(redact, [*notes, *problems])),
            environment=environment(),
            seconds=stages.seconds,
            encoding=encoding or {},
        ).with_pairs(pd.concat(tables, ignore_index=True))
        return record if self.settings.out is None else save_run(record, self.settings.out)


def _signature(task: StsData, similarity: str, model: ModelPart, settings: Settings) -> Signature:
    return Signature(
        task=task.task,
        split=task.split,
        aggregation=settings.protocol.aggregation,
        metric=settings.protocol.metric,
        similarity=similarity,
        text=task.text,
        data=task.sha256,
        pooling=model.pooling,
        max_length=model.max_length,
        prompt=model.prompt,
        precision=model.precision,
        dimensions=model.dimensions,
        postprocessing=model.postprocessing,
        version=__version__,
    )


def _data_part(task: StsData) -> DataPart:
    return DataPart(
        status=task.status,
        sha256=task.sha256,
        files=tuple(DataFile(name=f.name, sha256=f.sha256, expected=f.expected) for f in task.files),
        problems=tuple(map(redact, task.problems)),
    )
