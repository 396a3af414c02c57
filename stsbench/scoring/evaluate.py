"""Verbs that make a record: `evaluate`, `evaluate_similarities` and `import_results`."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.progress import Progress, silent
from stsbench.base.words import storable
from stsbench.data.views import PairView
from stsbench.encoders.load import Model, load
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import Use
from stsbench.records.imports import NotResultsError, import_scores
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.records.store import Measurement, require_free, save_run
from stsbench.scoring.gold import MtebTask
from stsbench.scoring.kinds.given import FORMATS_READ, read_items
from stsbench.scoring.measure import Recording, measure_encoder, measure_similarities
from stsbench.scoring.predicted import Choices, import_predictions, require_no_predictions
from stsbench.scoring.settings import (
    GIVEN_SIMILARITY,
    Classification,
    Intervals,
    Protocol,
    Settings,
    Stages,
)
from stsbench.scoring.similarities import SavedPredictions, SavedSimilarities, similarities_from
from stsbench.scoring.task import Items
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


def evaluate_similarities(
    similarities: SavedSimilarities | SavedPredictions | str | Path,
    tasks: str | AnyTask | Sequence[str | AnyTask] | None = None,
    *,
    protocol: Protocol | None = None,
    intervals: Intervals | None = None,
    data: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    view: PairView = WHOLE,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> RunRecord:
    """Scores similarities from another program.

    Args:
        similarities: a .npy vector or a text file with one number per line, for each scored pair, task after task,
            in the order of `.items`; or a prediction file of MTEB (`STS12_predictions.json`), or a folder of such
            files of one model.
        tasks: as in `evaluate`, like the other arguments; by default the tasks of MTEB's files.
        protocol: metric and aggregation; the similarity is the given one.
        intervals: how intervals are computed.
        data: your own scored pairs instead of `tasks`.
        data_dirs: folders to look for data in.
        view: which pairs are left out; give one number for each remaining pair.
        out: folder to save the record and its items in.
        overwrite: whether to replace another measurement in that folder.
        progress: called with the progress.

    Raises:
        UserError: unless there is a finite number for each pair.
    """
    stages = Stages(progress)
    saved = similarities_from(Path(similarities)) if isinstance(similarities, str | Path) else similarities
    if tasks is None and data is None:
        tasks = saved.tasks
    settings = Settings(
        protocol=protocol or Protocol(),
        intervals=intervals or Intervals(),
        out=None if out is None else Path(out).expanduser(),
        overwrite=overwrite,
    )
    sets = read_data(tasks, protocol=settings.protocol, data=data, data_dirs=data_dirs, view=view)
    stages.done("data")
    return measure_similarities(saved, sets, settings, stages)


def import_results(
    path: str | Path,
    *,
    out: str | Path | None = None,
    model: str = "",
    gold: str | Path | MtebTask | Sequence[MtebTask] | None = None,
    aggregation: str | None = None,
    metric: str | None = None,
    identical_ids: Literal["keep", "drop"] | None = None,
    overwrite: bool = False,
    command: str = "",
) -> RunRecord:
    r"""Makes a record of SentEval's or MTEB's results, of items with scores, or of predictions.

    What the files do not contain is marked as unknown (`-` in the signature), and scores come without items. The
    score of a table of items is their mean; two such records compare if they have the same items and groups.

    Predictions (with `gold`) are MTEB's for retrieval, reranking, classification, pair classification and STS, or
    a TREC run. Each query gets a measure by ir-measures (as in MTEB), each classified item the share of correct
    experiments; pairs become pair classification or STS.

    Args:
        path: SentEval's results as JSON; a results file of MTEB, or a folder of them; a table of items with the
            columns `task, item, score` and one or two columns `group...` of dependent items (.csv, .tsv, .jsonl or
            .parquet). With `gold`: a prediction file of MTEB (`TASK_predictions.json`), a folder of them, or a
            TREC run.
        out: the folder of the record; None to keep it in memory.
        model: the model's name; by default from the files, or the name of the file.
        gold: the gold data of predictions: a file of qrels (BEIR or TREC), labels or pairs, in MTEB's order; a
            folder with a file per task (`TASK.*`, `TASK/qrels/SPLIT.*`); `mteb` for mteb's own data; or tasks of
            mteb.
        aggregation: the aggregation over subsets: `all`, `mean` or `wmean`; by default `all` if every task has it,
            else `wmean`.
        metric: `spearman` (the default) or `pearson`. For queries `ndcg_at_10` (the default, unless mteb's task
            has another headline), or another K of `ndcg`, `map`, `mrr`, `recall`, `precision` or `hit_rate`.
        identical_ids: `keep` or `drop` documents with the id of their query; required if there are any, except for
            tasks of mteb.
        overwrite: whether to replace another measurement in that folder.
        command: the command line, for the record.

    Raises:
        NotResultsError: if the file has none of these formats.
        UserError: if it cannot be read or lacks what was asked for, or the record cannot be saved.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "ndcg.csv"
    ...     written = table.write_text("task,item,score\nquora,q1,0.5\nquora,q2,1\n")
    ...     record = import_results(table)
    >>> record.scores[0].task, record.scores[0].statistic, record.scores[0].value
    ('quora', 'mean', 0.75)
    """
    path = Path(path).expanduser()
    folder = None if out is None else Path(out).expanduser()
    settings = Settings(out=folder, overwrite=overwrite, command=command)
    if gold is not None:
        if aggregation is not None:
            raise UserError("--aggregation needs subsets, which predictions do not have: leave it out.")
        return import_predictions(path, gold, Choices(metric, identical_ids), model, settings)
    if identical_ids is not None:
        raise UserError("--identical-ids needs documents found for queries: add --gold, or leave it out.")
    if any(suffix in FORMATS_READ for suffix in path.suffixes[-2:]):
        if aggregation is not None:
            raise UserError("--aggregation needs subsets, which a table of items does not have: leave it out.")
        return _import_items(path, model, settings)
    try:
        record = import_scores(path, model, aggregation, metric or "spearman", command)
    except NotResultsError:
        require_no_predictions(path)
        raise
    if folder is None:
        return record
    require_free(folder, Measurement.of(record), overwrite=overwrite)
    return save_run(record, folder, overwrite=overwrite)


def _import_items(path: Path, model: str, settings: Settings) -> RunRecord:
    tasks = read_items(path)
    identity = Identity(
        storable(model) or storable(path.stem),
        "items",
        Use(pooling=UNKNOWN, prompt="", precision=UNKNOWN, device=UNKNOWN),
        weights_sha256=sha256_of(path),
    )
    how = replace(settings, protocol=Protocol("given", metric="mean", similarity=GIVEN_SIMILARITY))
    recording = Recording.of(tasks, identity, how)
    recording.prepare()
    notes = [f"the scores are from {storable(path.name)}, which does not describe the data or the model's use."]
    return recording.finish([Items(task.table) for task in tasks], Stages(), notes=notes)
