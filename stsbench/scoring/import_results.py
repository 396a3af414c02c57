"""The verb `import_results`: a record of another program's scores, items, similarities or predictions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import require_file, sha256_of
from stsbench.data.rows import PACKED, TABLES, suffix_of
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import Use
from stsbench.records.imports import NotResultsError, are_predictions, import_scores
from stsbench.records.record import RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.records.store import Measurement, require_free, save_run
from stsbench.scoring.kinds.given import GIVEN_PROTOCOL, read_items
from stsbench.scoring.kinds.sts import compared_elsewhere
from stsbench.scoring.measure import Recording
from stsbench.scoring.predicted import Choices, GoldSource, given_use, import_predictions, require_no_predictions
from stsbench.scoring.settings import GIVEN_SIMILARITY, Settings, Stages, choose_protocol
from stsbench.scoring.task import Items


def import_results(
    path: str | Path,
    *,
    out: str | Path | None = None,
    model: str = "",
    gold: GoldSource | None = None,
    aggregation: str | None = None,
    metric: str | None = None,
    identical_ids: Literal["keep", "drop"] | None = None,
    data_dirs: Sequence[str | Path] = (),
    overwrite: bool = False,
    command: str = "",
) -> RunRecord:
    r"""Makes a record of SentEval's or MTEB's results, of items with scores, of similarities, or of predictions.

    What the files do not contain is marked as unknown (`-` in the signature), and scores come without items. The
    score of a table of items is their mean; two such records compare if they have the same items and groups.

    With `gold`, similarities and predictions are scored: a similarity for each pair of STS tasks; MTEB's
    predictions for retrieval, reranking, pair classification and STS; or a TREC run. Each query gets a measure by
    ir-measures, as in MTEB.

    Args:
        path: SentEval's results as JSON; a results file of MTEB, or a folder of them; a table of items with the
            columns `task, item, score` and one or two columns `group...` of dependent items (.csv, .tsv, .jsonl or
            .parquet). With `gold`: a prediction file of MTEB (`TASK_predictions.json`), a folder of them, a TREC
            run, or similarities: a .npy vector or one number per line, for each pair, task after task.
        out: the folder of the record; None to keep it in memory.
        model: the model's name; by default from the files, or the name of the file.
        gold: the gold data: names of tasks as in `evaluate` (`sts`, `STS-B:dev`), or their data; or a file of
            qrels (BEIR or TREC), or of pairs in the order of the similarities.
        aggregation: the aggregation over subsets: `all`, `mean` or `wmean`; by default `all` if every task has it,
            else `wmean`.
        metric: `spearman` (the default) or `pearson`. For queries `ndcg_at_10` (the default), or another K of
            `ndcg`, `map`, `mrr`, `recall`, `precision` or `hit_rate`.
        identical_ids: `keep` or `drop` documents with the id of their query; required if there are any.
        data_dirs: folders to look for the tasks' data in, before `STSBENCH_DATA` and the cache.
        overwrite: whether to replace another measurement in that folder.
        command: the command line, for the record.

    Raises:
        NotResultsError: if the file has none of these formats.
        UserError: if it cannot be read, has no such scores, or the record cannot be saved.

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
        choices = Choices(gold, metric, aggregation, identical_ids, data_dirs)
        is_vector = not are_predictions(path) and are_similarities(path)
        return (_import_similarities if is_vector else import_predictions)(path, choices, model, settings)
    if identical_ids is not None:
        raise UserError("--identical-ids needs documents found for queries: add --gold, or leave it out.")
    if suffix_of(path) in TABLES:
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
        model or path.stem,
        "items",
        Use(pooling=UNKNOWN, prompt="", precision=UNKNOWN, device=UNKNOWN),
        weights_sha256=sha256_of(path),
    )
    recording = Recording.of(tasks, identity, replace(settings, protocol=GIVEN_PROTOCOL))
    recording.prepare()
    notes = [f"the scores are from {path.name}, which does not describe the data or the model's use."]
    return recording.finish([Items(task.table) for task in tasks], Stages(), notes=notes)


def _import_similarities(path: Path, choices: Choices, model: str, settings: Settings) -> RunRecord:
    if choices.identical is not None:
        raise UserError("--identical-ids needs documents found for queries, and there are none: leave it out.")
    protocol = choose_protocol(aggregation=choices.aggregation, metric=choices.metric)
    values = read_similarities(path)
    tasks = choices.tasks(protocol)
    names = ", ".join(task.data.task for task in tasks)
    pairs = [task.pairs for task in tasks if task.pairs is not None]
    if len(pairs) < len(tasks):
        raise UserError(f"similarities need pairs, and not all of {names} are scored by them: give vectors.")
    sizes = [len(data.pairs) for data in pairs]
    if len(values) != sum(sizes):
        raise UserError(
            f"{path} has {len(values)} similarities for {sum(sizes)} pairs ({names}): give one number per pair, "
            "in the order of the pairs."
        )
    identity = Identity(model or path.stem, "similarities", given_use(), weights_sha256=sha256_of(path))
    how = replace(settings, protocol=replace(protocol, similarity=GIVEN_SIMILARITY))
    recording = Recording.of(tasks, identity, how)
    recording.prepare()
    parts = np.split(values, np.cumsum(sizes)[:-1])
    items = [
        Items(compared_elsewhere(task, {GIVEN_SIMILARITY: part})) for task, part in zip(tasks, parts, strict=True)
    ]
    return recording.finish(items, Stages())


def are_similarities(path: Path) -> bool:
    """Returns whether a file is a .npy vector, or has one word in its first line."""
    if path.suffix == ".npy":
        return True
    if not path.is_file() or path.suffix in PACKED:
        return False
    with path.open("rb") as stream:
        return len(stream.readline(1000).split()) <= 1


def read_similarities(path: Path) -> NDArray[np.float64]:
    """Reads (n,) similarities from a .npy vector, or a text file with one number per line.

    Raises:
        UserError: if the file holds something else, or a number is not finite.
    """
    require_file(path, absent="name a file of similarities")
    values = _from_npy(path) if path.suffix == ".npy" else _from_text(path)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise UserError(
            f"{path}: number {bad[0] + 1} of {len(values)} is {values[bad[0]]}: "
            "give a finite number for each pair."
        )
    return values


def _from_npy(path: Path) -> NDArray[np.float64]:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(f"{path} is not a .npy file of numbers: save it with numpy.save.") from error
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiu":
        kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "an archive"
        raise UserError(f"{path} holds {kind}: save one number per pair.")
    return np.asarray(values, dtype=np.float64)


def _from_text(path: Path) -> NDArray[np.float64]:
    try:
        lines = path.read_text(encoding="utf-8").rstrip().split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: write one number per line.") from error
    numbers = []
    for line, text in enumerate(lines, 1):
        try:
            numbers.append(float(text))
        except ValueError:
            raise UserError(f"{path}, line {line}: {text[:40]!r} is not a number: write one per line.") from None
    return np.array(numbers)
