"""The verb `evaluate`: measures an encoder."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from stsbench.base.progress import Progress, silent
from stsbench.data.views import PairView
from stsbench.encoders.load import Model, load
from stsbench.records.record import RunRecord
from stsbench.scoring.measure import measure_encoder
from stsbench.scoring.settings import Classification, Intervals, Protocol, Settings, Stages
from stsbench.scoring.tasks import SAMPLE_USED, WHOLE, AnyTask, is_sample, read_data


def evaluate(
    encoder: Model,
    tasks: str | AnyTask | Sequence[str | AnyTask] | None = None,
    *,
    protocol: Protocol | None = None,
    classification: Classification | None = None,
    intervals: Intervals | None = None,
    data: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    view: PairView = WHOLE,
    use_cache: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> RunRecord:
    """Measure an encoder on STS and transfer tasks.

    Args:
        encoder: what `load` accepts: a name, a path, a callable `list[str] -> array`, or a loaded encoder.
        tasks: `sts` or `transfer` (seven each), `all` (both), `supervised`, `sample`, `sample-transfer`, or names
            with split and text: `STS12,STS-B:dev,STS16@raw,TREC,STS-B:supervised`. Default: `sts` if its data is
            here, else `sample`, with a warning. Also data that was read already, as by `load_pairs`.
        protocol: aggregation, metric, similarity and text; default: `simcse` (see `stsbench.protocol`).
        classification: the classifier, folds and seed of the transfer tasks; default: `Classification()`.
        intervals: how intervals are computed; default: `Intervals()`.
        data: your own pairs instead of `tasks`: .tsv, .csv, .jsonl or .parquet.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        view: which pairs are left out, such as `PairView(corpora=[...])`; default: none.
        use_cache: whether to read and write the embedding cache.
        out: folder to save the record and its items in; None to keep them in memory.
        overwrite: whether to replace another measurement in that folder.
        progress: called with the stage and how much of it is done.

    Returns:
        The record; see its `.table()`, `.frame`, `.signature` and `.items`.

    Raises:
        UserError: for a mistake in the arguments, in one sentence.

    >>> record = evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> record.scores[0].items
    252
    """
    stages = Stages(progress)
    encoder = load(encoder)
    settings = Settings(
        protocol=protocol or Protocol(),
        classification=classification or Classification(),
        intervals=intervals or Intervals(),
        use_cache=use_cache,
        out=None if out is None else Path(out).expanduser(),
        overwrite=overwrite,
    )
    sets = read_data(tasks, protocol=settings.protocol, data=data, data_dirs=data_dirs, view=view)
    if tasks is None and data is None and is_sample(sets):
        warnings.warn(SAMPLE_USED, stacklevel=2)
    stages.done("data")
    return measure_encoder(encoder, sets, settings, stages)
