"""Measure a model: read the tasks, encode every distinct sentence once, score, record."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench._version import __version__
from stsbench.datasets import StsData, load_pairs
from stsbench.encoders import Encoder, Identity, embed, load, truncate, whiten
from stsbench.evaluation.pairs import GIVEN, pair_table, pair_table_of_similarities, sides_of
from stsbench.evaluation.protocols import Protocol
from stsbench.evaluation.saved import SavedSimilarities
from stsbench.evaluation.sts import Bootstrap, average, score_task
from stsbench.evaluation.tasks import parse_tasks, read_task
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress, silent
from stsbench.records import RunRecord, Signature
from stsbench.records.provenance import environment, now, redact
from stsbench.records.record import DataFile, DataPart, ModelPart, ProtocolPart
from stsbench.records.store import prepare_folder, save_run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Postprocessing:
    """What is done to vectors before they are compared.

    Attributes:
        dimensions: how many leading dimensions to keep (Matryoshka); None for all.
        whiten: how many dimensions to keep when whitening on each task's own sentences; 0 for all, None for no
            whitening.
    """

    dimensions: int | None = None
    whiten: int | None = None

    def __str__(self) -> str:
        """Return what stands in the signature."""
        return "" if self.whiten is None else f"whiten{self.whiten or ''}"


@dataclass
class Stages:
    """What is told while measuring, and how long each stage took."""

    progress: Progress = silent
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def done(self, stage: str) -> None:
        """Count the time since the last stage ended to this one."""
        now_ = time.perf_counter()
        self.seconds[stage] = round(now_ - self._since, 3)
        self._since = now_


def evaluate(
    encoder: Encoder | str | Path | Callable[[list[str]], Any],
    tasks: str | Sequence[str] | Sequence[StsData] = "sts",
    *,
    protocol: Protocol | None = None,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
    postprocessing: Postprocessing | None = None,
    bootstrap: Bootstrap | None = None,
    use_cache: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
    command: str = "",
    progress: Progress = silent,
) -> RunRecord:
    """Measure an encoder on STS tasks.

    Args:
        encoder: an encoder, or what `load` makes one of: a name, a path, a callable `list[str] -> array`.
        tasks: `sts` (the seven tasks of the papers), `sample`, names such as `STS16` or `STS-B:dev` or
            `STS12@raw`, or data that was read already.
        protocol: aggregation, metric, similarity and text; `simcse` by default (see `choose_protocol`).
        data: a file of scored pairs of your own instead of `tasks`.
        subset_column: the column of that file that names each pair's subset.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        postprocessing: what to do to the vectors first; nothing by default.
        bootstrap: resamples, level and seed of the intervals.
        use_cache: whether to read and write the embedding cache.
        out: folder to save the record and its pair table in; None to keep them in memory.
        overwrite: whether a record of another measurement in that folder may be replaced.
        command: the command line, for the record.
        progress: told how far it is.

    Returns:
        The record; `.table()`, `.signature` and `.pairs` look into it.

    Raises:
        UserError: for a person's mistake, in one sentence.

    >>> record = evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> record.tasks[0].pairs
    252
    """
    protocol, bootstrap = protocol or Protocol(), bootstrap or Bootstrap()
    post = postprocessing or Postprocessing()
    encoder = encoder if isinstance(encoder, Encoder) else load(encoder)
    stages = Stages(progress)
    sets = read_data(tasks, protocol=protocol, data=data, subset_column=subset_column, data_dirs=data_dirs)
    stages.done("data")
    identity = encoder.identity
    stages.done("hash")
    signatures = [_signature(task, protocol, identity, post) for task in sets]
    folder = prepare_folder(out, signatures, _model_part(identity, post), overwrite=overwrite)

    sides = [sides_of(task) for task in sets]
    embeddings = embed(
        encoder, [text for texts in sides for text in texts], use_cache=use_cache, progress=progress
    )
    stages.done("encode")
    stages.seconds |= {stage: round(value, 3) for stage, value in embeddings.cost.seconds.items()}
    (vectors,) = embeddings.vectors.values()
    if post.dimensions is not None:
        vectors = truncate(vectors, post.dimensions, normalize="normalize" in identity.modules)

    tables, truncated, start = [], [], 0
    for task, texts in zip(sets, sides, strict=True):
        places = slice(start, start + len(texts))
        rows = embeddings.rows[places]
        own = vectors if post.whiten is None else whiten(vectors, vectors[rows], post.whiten or None)
        tables.append(pair_table(task, own, rows, embeddings.lengths[places]))
        cut = dict(zip(texts, embeddings.truncated[places], strict=True))
        truncated.append(int(sum(cut.values())))
        start = places.stop
    stages.done("similarities")
    cost = embeddings.cost
    return _record(
        sets,
        tables,
        signatures,
        truncated,
        protocol=protocol,
        similarity=protocol.similarity,
        bootstrap=bootstrap,
        model=_model_part(identity, post),
        notes=encoder.notes,
        encoding={
            "texts": cost.texts,
            "sequences": cost.sequences,
            "encoded": cost.encoded,
            "tokens": cost.tokens,
            "padded_tokens": cost.padded_tokens,
        },
        command=command,
        folder=folder,
        stages=stages,
    )


def evaluate_similarities(
    similarities: SavedSimilarities,
    tasks: str | Sequence[str] | Sequence[StsData] = "sts",
    *,
    protocol: Protocol | None = None,
    data_dirs: Sequence[str | Path] = (),
    bootstrap: Bootstrap | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    command: str = "",
    progress: Progress = silent,
) -> RunRecord:
    """Score similarities that were computed elsewhere; other arguments as in `evaluate`.

    Raises:
        UserError: if there is not one finite number for each pair.
    """
    protocol, bootstrap = protocol or Protocol(), bootstrap or Bootstrap()
    stages = Stages(progress)
    sets = read_data(tasks, protocol=protocol, data_dirs=data_dirs)
    values, expected = similarities.values, sum(len(task.pairs) for task in sets)
    if len(values) != expected:
        raise UserError(
            f"{similarities.path} holds {len(values)} similarities for {expected} pairs "
            f"({', '.join(task.task for task in sets)}): give one for each, in the order of the pairs."
        )
    stages.done("data")
    post, identity = Postprocessing(), similarities.identity
    signatures = [_signature(task, protocol, identity, post, GIVEN) for task in sets]
    folder = prepare_folder(out, signatures, _model_part(identity, post), overwrite=overwrite)
    tables, start = [], 0
    for task in sets:
        tables.append(pair_table_of_similarities(task, values[start : start + len(task.pairs)]))
        start += len(task.pairs)
    stages.done("similarities")
    return _record(
        sets,
        tables,
        signatures,
        [0] * len(sets),
        protocol=protocol,
        similarity=GIVEN,
        bootstrap=bootstrap,
        model=_model_part(identity, post),
        notes=(),
        encoding={},
        command=command,
        folder=folder,
        stages=stages,
    )


def read_data(
    tasks: str | Sequence[str] | Sequence[StsData],
    *,
    protocol: Protocol,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
) -> list[StsData]:
    """Return the pairs to score: a file of the person's own, data already read, or catalogued tasks.

    Raises:
        UserError: if something is missing or broken.
    """
    if data is not None:
        return [load_pairs(Path(data), subset_column)]
    ready = [] if isinstance(tasks, str) else [task for task in tasks if isinstance(task, StsData)]
    if ready:
        return ready
    names = [tasks] if isinstance(tasks, str) else [str(task) for task in tasks]
    return [read_task(spec, [Path(folder) for folder in data_dirs]) for spec in parse_tasks(names, protocol)]


def _record(
    sets: Sequence[StsData],
    tables: "Sequence[pd.DataFrame]",
    signatures: Sequence[Signature],
    truncated: Sequence[int],
    *,
    protocol: Protocol,
    similarity: str,
    bootstrap: Bootstrap,
    model: ModelPart,
    notes: Sequence[str],
    encoding: dict[str, int],
    command: str,
    folder: Path | None,
    stages: Stages,
) -> RunRecord:
    """Score the tasks, and save the record if it has a folder."""
    import pandas as pd

    results = []
    for number, (task, table) in enumerate(zip(sets, tables, strict=True)):
        stages.progress("scoring", number, len(sets))
        results.append(
            score_task(
                table,
                protocol=protocol,
                similarity=similarity,
                signature=signatures[number],
                data=_data_part(task),
                bootstrap=bootstrap,
                truncated_sentences=truncated[number],
            )
        )
    stages.progress("scoring", len(sets), len(sets))
    stages.done("score")
    problems = [problem for task in sets for problem in task.problems]
    record = RunRecord(
        stsbench=__version__,
        created=now(),
        command=command,
        model=model,
        protocol=ProtocolPart(
            name=protocol.name,
            aggregation=protocol.aggregation,
            metric=protocol.metric,
            similarity=similarity,
            resamples=bootstrap.resamples,
            level=bootstrap.level,
            seed=bootstrap.seed,
        ),
        tasks=tuple(result.part for result in results),
        average=average(results, bootstrap),
        notes=tuple(redact(note) for note in [*notes, *problems]),
        environment=environment(),
        seconds=stages.seconds,
        encoding=encoding,
    ).with_pairs(pd.concat(tables, ignore_index=True))
    return record if folder is None else save_run(record, folder)


def _signature(
    task: StsData, protocol: Protocol, identity: Identity, post: Postprocessing, similarity: str | None = None
) -> Signature:
    return Signature(
        task=task.task,
        split=task.split,
        aggregation=protocol.aggregation,
        metric=protocol.metric,
        similarity=similarity or protocol.similarity,
        text=task.text,
        data=task.sha256,
        pooling=identity.pooling,
        max_length=identity.max_length,
        prompt=identity.prompt,
        precision=identity.precision,
        dimensions=post.dimensions,
        postprocessing=str(post),
        version=__version__,
    )


def _model_part(identity: Identity, post: Postprocessing) -> ModelPart:
    values = {name.name: getattr(identity, name.name) for name in fields(identity)}
    values["name"] = redact(identity.name)
    return ModelPart(**values, dimensions=post.dimensions, postprocessing=str(post))


def _data_part(task: StsData) -> DataPart:
    return DataPart(
        status=task.status,
        sha256=task.sha256,
        files=tuple(DataFile(name=f.name, sha256=f.sha256, expected=f.expected) for f in task.files),
        problems=tuple(redact(problem) for problem in task.problems),
    )
