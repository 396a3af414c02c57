"""From what another program's files say to a record, in which the rest is marked as unknown."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from stsbench._version import __version__
from stsbench.records.imports.parts import ImportedResults, ImportedTask, ImportedTransfer
from stsbench.records.imports.senteval import TEXT
from stsbench.records.parts import AveragePart, DataPart, ModelPart, ProtocolPart, TaskPart, TransferPart
from stsbench.records.provenance import now
from stsbench.records.record import IMPORTED, RunRecord
from stsbench.records.signature import UNKNOWN, Signature

_PROTOCOLS = {"SentEval": {"all": "simcse", "wmean": "senteval"}, "MTEB": {"all": "mteb"}}
_NO_DATA = DataPart(status="unknown", sha256=UNKNOWN)


def build_record(results: ImportedResults, aggregation: str, metric: str, command: str = "") -> RunRecord:
    """Return the record of imported results.

    Args:
        results: what the files say; with the model's name.
        aggregation: the headline's, which every STS task has.
        metric: the headline's, likewise.
        command: the command line, for the record.
    """
    parts = tuple(_part(task, aggregation, metric) for task in results.tasks)
    transfer = tuple(map(_transfer_part, results.transfer))
    return RunRecord(
        stsbench=__version__,
        created=now(),
        command=command,
        model=ModelPart(
            name=results.model,
            kind=IMPORTED,
            revision=results.revision,
            weights_sha256=results.weights_sha256,
            pooling=UNKNOWN,
            precision=UNKNOWN,
            device=UNKNOWN,
        ),
        protocol=ProtocolPart(
            name=_PROTOCOLS[results.program].get(aggregation, results.program.lower()),
            aggregation=aggregation,
            metric=metric,
            similarity="cosine",
            resamples=0,
            level=0.95,
            seed=0,
        ),
        tasks=parts,
        average=_average([part.task for part in parts], [part.score for part in parts]),
        transfer=transfer,
        transfer_average=_average([part.task for part in transfer], [part.acc for part in transfer]),
        notes=results.notes,
        environment={},
        seconds={},
        encoding={},
    )


def _part(task: ImportedTask, aggregation: str, metric: str) -> TaskPart:
    return TaskPart(
        task=task.task,
        split=task.split,
        text=task.text,
        pairs=task.pairs,
        score=task.scores[aggregation][metric],
        scores=dict(task.scores),
        subsets=task.subsets,
        signature=_signature(task.task, task.split, aggregation, metric, similarity="cosine", text=task.text),
        data=_NO_DATA,
        identical_pairs=None,
        zero_pairs=None,
        truncated_sentences=None,
    )


def _transfer_part(task: ImportedTransfer) -> TransferPart:
    split = "all" if task.design == "nested" else "test"
    return TransferPart(
        **asdict(task),
        text=TEXT,
        classifier=UNKNOWN,
        kfold=None,
        seed=None,
        grid=(),
        chosen=(),
        signature=_signature(task.task, split, task.design, "acc", similarity=UNKNOWN, text=TEXT),
        data=_NO_DATA,
        truncated_sentences=None,
    )


def _signature(task: str, split: str, aggregation: str, metric: str, *, similarity: str, text: str) -> str:
    what = Signature(task, split, aggregation, metric, similarity, text, data=UNKNOWN, pooling=UNKNOWN)
    return str(replace(what, precision=UNKNOWN, version=UNKNOWN))


def _average(tasks: Sequence[str], scores: Sequence[float | None]) -> AveragePart | None:
    if len(tasks) < 2:
        return None
    defined = [score for score in scores if score is not None]
    complete, count = len(defined) == len(scores), len(scores)
    return AveragePart(
        tasks=tuple(tasks),
        score=sum(defined) / count if complete else None,
        of_rounded=sum(round(100 * score, 2) for score in defined) / count if complete else None,
    )
