"""`evaluate`: measure an encoder, or saved similarities, from Python."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stsbench.base.progress import Progress, silent
from stsbench.data.own_pairs import load_pairs
from stsbench.encoders.load import load
from stsbench.encoders.protocol import Encoder
from stsbench.records.record import RunRecord
from stsbench.scoring.measure import measure_encoder, measure_similarities
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.saved import SavedSimilarities
from stsbench.scoring.settings import Classification, Postprocessing, Settings, Stages
from stsbench.scoring.sts import Bootstrap
from stsbench.scoring.tasks import TaskData, demand_scorable, parse_tasks, read_task

__all__ = ["Classification", "Postprocessing", "evaluate", "evaluate_similarities", "read_data"]


def evaluate(
    encoder: Encoder | str | Path | Callable[[list[str]], Any],
    tasks: str | TaskData | Sequence[str | TaskData] = "sts",
    *,
    protocol: Protocol | None = None,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
    postprocessing: Postprocessing | None = None,
    classification: Classification | None = None,
    bootstrap: Bootstrap | None = None,
    use_cache: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> RunRecord:
    """Measure an encoder on STS and transfer tasks.

    Args:
        encoder: an encoder, or what `load` makes one of: a name, a path, a callable `list[str] -> array`.
        tasks: `sts` or `transfer` (the seven tasks of the papers), `all` (both), `supervised`, `sample`,
            `sample-transfer`, names such as `STS16`, `STS-B:dev`, `STS12@raw`, `TREC` or `STS-B:supervised`, or
            data that was read already.
        protocol: aggregation, metric, similarity and text; `simcse` by default (see `stsbench.protocol`).
        data: a file of scored pairs of your own instead of `tasks`.
        subset_column: the column of that file that names each pair's subset.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        postprocessing: what to do to the vectors first; nothing by default.
        classification: how transfer tasks are classified: classifier, folds and seed.
        bootstrap: resamples, level and seed of the intervals.
        use_cache: whether to read and write the embedding cache.
        out: folder to save the record and its tables in; None to keep them in memory.
        overwrite: whether a record of another measurement in that folder may be replaced.
        progress: told how far it is.

    Returns:
        The record; `.table()`, `.signature`, `.pairs` and `.items` look into it.

    Raises:
        UserError: for a person's mistake, in one sentence.

    >>> record = evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> record.tasks[0].pairs
    252
    """
    stages = Stages(progress)
    encoder = encoder if isinstance(encoder, Encoder) else load(encoder)
    settings = Settings(
        protocol=protocol or Protocol(),
        postprocessing=postprocessing or Postprocessing(),
        classification=classification or Classification(),
        bootstrap=bootstrap or Bootstrap(),
        use_cache=use_cache,
        out=None if out is None else Path(out).expanduser(),
        overwrite=overwrite,
    )
    sets = read_data(
        tasks, protocol=settings.protocol, data=data, subset_column=subset_column, data_dirs=data_dirs
    )
    stages.done("data")
    return measure_encoder(encoder, sets, settings, stages)


def evaluate_similarities(
    similarities: SavedSimilarities | str | Path,
    tasks: str | TaskData | Sequence[str | TaskData] = "sts",
    *,
    protocol: Protocol | None = None,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
    bootstrap: Bootstrap | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> RunRecord:
    """Score similarities that were computed elsewhere.

    Args:
        similarities: a .npy vector or a text file with one number a line: one for each scored pair, tasks one
            after the other, in the order of `.pairs`.
        tasks: as in `evaluate`, and so are the others.
        protocol: its metric and aggregation count; the similarity is the one given.
        data: a file of scored pairs of your own instead of `tasks`.
        subset_column: the column of that file that names each pair's subset.
        data_dirs: folders to look for data in.
        bootstrap: resamples, level and seed of the intervals.
        out: folder to save the record and its pair table in.
        overwrite: whether a record of another measurement in that folder may be replaced.
        progress: told how far it is.

    Raises:
        UserError: if there is not one finite number for each pair.
    """
    stages = Stages(progress)
    given = similarities if isinstance(similarities, SavedSimilarities) else SavedSimilarities(Path(similarities))
    settings = Settings(
        protocol=protocol or Protocol(),
        bootstrap=bootstrap or Bootstrap(),
        out=None if out is None else Path(out).expanduser(),
        overwrite=overwrite,
    )
    sets = read_data(
        tasks, protocol=settings.protocol, data=data, subset_column=subset_column, data_dirs=data_dirs
    )
    stages.done("data")
    return measure_similarities(given, sets, settings, stages)


def read_data(
    tasks: str | TaskData | Sequence[str | TaskData],
    *,
    protocol: Protocol,
    data: str | Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[str | Path] = (),
) -> list[TaskData]:
    """Return what to score: a file of the person's own, catalogued tasks, or data already read.

    Raises:
        UserError: if something is missing or broken, or no correlation is defined on it.
    """
    if data is not None:
        return [load_pairs(Path(data), subset_column)]
    folders = [Path(folder) for folder in data_dirs]
    items = tasks if isinstance(tasks, Sequence) and not isinstance(tasks, str) else [tasks]
    sets: list[TaskData] = [item for item in items if not isinstance(item, str)]
    names = [item for item in items if isinstance(item, str)]
    if names or not sets:
        sets += [read_task(spec, folders) for spec in parse_tasks(names, protocol)]
    for task in sets:
        demand_scorable(task)
    return sets
