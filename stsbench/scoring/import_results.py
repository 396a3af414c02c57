"""The verb `import_results`: a record of another program's scores, items, similarities or predictions.

| predictions | gold | task |
|---|---|---|
| documents retrieved for each query (MTEB, TREC) | qrels | given items: a measure per query (`ndcg_at_10`) |
| MTEB's similarities of pairs with labels | pairs | pair classification (`ap`) |
| similarities of pairs with scores | pairs, or tasks of the catalogue | STS (`spearman`) |

MTEB's prediction files contain no gold data. Its other predictions (classes, clusters, probabilities) are not
scored here: import a table with the score of each item.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, require_file, sha256_of
from stsbench.base.words import listed
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.data.qrels import IdenticalIds, Qrels, Ranking, read_qrels, read_run, task_of_qrels
from stsbench.data.reading import Column, Schema, as_number, read_table
from stsbench.data.rows import PACKED, TABLES, suffix_of
from stsbench.data.tables import FileRead, StsData, load_pairs
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import UNKNOWN, Use, own_use
from stsbench.records.imports import (
    ENDING,
    NotResultsError,
    Part,
    are_predictions,
    broken,
    import_scores,
    read_prediction_files,
)
from stsbench.records.record import RunRecord
from stsbench.records.results import MTEB_SPLITS
from stsbench.records.store import Measurement, require_free, save_run
from stsbench.scoring.kinds import in_order
from stsbench.scoring.kinds.given import GIVEN_PROTOCOL, GivenItems, ranked_items, read_items
from stsbench.scoring.kinds.retrieval import NDCG, Measure
from stsbench.scoring.kinds.sts import PairClassification, StsPairs, compared_elsewhere
from stsbench.scoring.measure import Recording
from stsbench.scoring.settings import GIVEN_SIMILARITY, PROTOCOLS, Protocol, Settings, Stages, choose_protocol
from stsbench.scoring.task import Items, Task
from stsbench.scoring.tasks import AnyTask, names_tasks, read_data
from stsbench.statistics.correlations import CORRELATIONS

GoldSource = str | Path | AnyTask | Sequence[AnyTask]
"""Names of tasks, their data, or a file."""

_DEFAULT = "default"
"""MTEB's name for the only subset of a task."""

_NAMES = {
    (name, MTEB_SPLITS[task][split]): (task, split)
    for name, task in MTEB_TASKS.items()
    for split in MTEB_SPLITS[task]
}
"""The catalogue's tasks and splits, by MTEB's names."""

_SAME = 0.99
"""Minimum cosine of a sentence with itself; half precision gives 0.999."""


_UNCONFIRMED = "no pair has the same sentence twice, so the order of the pairs is unconfirmed; check MTEB's score."


@dataclass(frozen=True)
class _Choices:
    """The gold data of predictions, and how they are scored: the arguments of `import_results`."""

    gold: GoldSource
    metric: str | None
    aggregation: str | None
    identical: IdenticalIds | None
    data_dirs: Sequence[str | Path]

    @property
    def correlation(self) -> str | None:
        return self.metric if self.metric in CORRELATIONS else None

    @property
    def file(self) -> Path | None:
        """The file of the gold data; None for tasks."""
        if not isinstance(self.gold, str | Path) or names_tasks(self.gold):
            return None
        path = Path(self.gold).expanduser()
        if not path.exists():
            raise UserError(f"{path} is neither a task nor a file: name the gold data with --gold.")
        return path

    def tasks(self, protocol: Protocol) -> list[Task]:
        """Reads the tasks, or the file of pairs, in the order of a record's scores."""
        named: Any = self.gold
        if self.file is not None:
            return read_data(None, protocol=protocol, data=self.file)
        return in_order(read_data(named, protocol=protocol, data_dirs=self.data_dirs))


class _Read(NamedTuple):
    """The content of files: the model, the items of each task, notes, and how they are scored."""

    identity: Identity
    scored: Sequence[tuple[Any, Items]]
    notes: Sequence[str] = ()
    protocol: Protocol = GIVEN_PROTOCOL


def import_results(
    path: str | Path,
    *,
    out: str | Path | None = None,
    model: str = "",
    gold: GoldSource | None = None,
    aggregation: str | None = None,
    metric: str | None = None,
    identical_ids: IdenticalIds | None = None,
    data_dirs: Sequence[str | Path] = (),
    overwrite: bool = False,
    command: str = "",
) -> RunRecord:
    r"""Makes a record of SentEval's or MTEB's results, of items with scores, of similarities, or of predictions.

    What the files do not contain is marked as unknown (`-` in the signature), and scores come without items. The
    score of a table of items is their mean; two such records are comparable if they have the same items and
    groups.

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
    if gold is not None:
        choices = _Choices(gold, metric, aggregation, identical_ids, data_dirs)
        reader = (
            _read_mteb if are_predictions(path) else _read_similarities if _are_similarities(path) else _read_run
        )
        read = reader(path, choices)
        _require_applicable(choices, [task for task, _ in read.scored])
    elif identical_ids is not None:
        raise UserError("--identical-ids needs documents found for queries: add --gold, or leave it out.")
    elif suffix_of(path) in TABLES:
        if aggregation is not None:
            raise UserError("--aggregation needs subsets, which a table of items does not have: leave it out.")
        read = _read_items(path)
    else:
        try:
            record = import_scores(path, model, aggregation, metric or "spearman", command)
        except NotResultsError:
            _require_no_predictions(path)
            raise
        if folder is None:
            return record
        require_free(folder, Measurement.of(record), overwrite=overwrite)
        return save_run(record, folder, overwrite=overwrite)
    identity = replace(read.identity, name=model or read.identity.name or path.stem)
    settings = Settings(out=folder, overwrite=overwrite, command=command, protocol=read.protocol)
    recording = Recording.of([task for task, _ in read.scored], identity, settings)
    recording.prepare()
    items = [next(of_task for task, of_task in read.scored if task is ordered) for ordered in recording.tasks]
    return recording.finish(items, Stages(), notes=[*read.notes, *(note for of in items for note in of.notes)])


def _read_items(path: Path) -> _Read:
    use = Use(pooling=UNKNOWN, prompt="", precision=UNKNOWN, device=UNKNOWN)
    identity = Identity(path.stem, "items", use, weights_sha256=sha256_of(path))
    note = f"the scores are from {path.name}, which does not describe the data or the model's use."
    return _Read(identity, [(task, Items(task.table)) for task in read_items(path)], [note])


def _read_similarities(path: Path, choices: _Choices) -> _Read:
    protocol = choose_protocol(aggregation=choices.aggregation, metric=choices.metric)
    values = _similarities(path)
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
    identity = Identity(path.stem, "similarities", _unknown_use(), weights_sha256=sha256_of(path))
    parts = zip(tasks, np.split(values, np.cumsum(sizes)[:-1]), strict=True)
    scored = [(task, Items(compared_elsewhere(task, {GIVEN_SIMILARITY: part}))) for task, part in parts]
    return _Read(identity, scored, protocol=replace(protocol, similarity=GIVEN_SIMILARITY))


def _unknown_use(revision: str | None = None) -> Use:
    return replace(own_use(GIVEN_SIMILARITY), precision=UNKNOWN, revision=revision)


def _are_similarities(path: Path) -> bool:
    if path.suffix == ".npy":
        return True
    if not path.is_file() or path.suffix in PACKED:
        return False
    with path.open("rb") as stream:
        return len(stream.readline(1000).split()) <= 1


def _similarities(path: Path) -> NDArray[np.float64]:
    """Reads (n,) similarities from a .npy vector, or a text file with one number per line."""
    require_file(path, absent="name a file of similarities")
    if path.suffix != ".npy":
        column = Column("similarity", as_number)
        table = read_table(path, Schema("similarity", [column], [column.name]), format="trec")
        return table.frame[column.name].to_numpy(np.float64)
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(f"{path} is not a .npy file of numbers: save it with numpy.save.") from error
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "fiu":
        kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else "an archive"
        raise UserError(f"{path} holds {kind}: save one number per pair.")
    for bad in np.flatnonzero(~np.isfinite(values)).tolist():
        raise UserError(f"{path}: number {bad + 1} of {len(values)} is {values[bad]}; give a finite number.")
    return np.asarray(values, dtype=np.float64)


def _require_no_predictions(path: Path) -> None:
    if not are_predictions(path) or (path.is_dir() and not files_in(path, f"*{ENDING}")):
        return
    parts = [str(part) for part in read_prediction_files(path).parts if part.is_scorable]
    if not parts:
        raise UserError(f"{path} holds predictions that are not scored by item: import MTEB's results instead.")
    raise UserError(
        f"{path} holds MTEB predictions of {listed(parts)}: name the gold data with --gold (qrels, pairs, tasks)."
    )


def _read_mteb(path: Path, choices: _Choices) -> _Read:
    files = read_prediction_files(path)
    parts = [part for part in files.parts if part.is_scorable]
    left_out = [str(part) for part in files.parts if not part.is_scorable]
    if not parts:
        raise UserError(f"{path} holds no predictions that are scored by item: {listed(left_out)}.")
    scored: list[tuple[Any, Items]] = []
    if choices.file is None:
        pairs = [task.pairs for task in choices.tasks(PROTOCOLS["mteb"]) if task.pairs is not None]
        data_of = {(data.task, data.split): data for data in pairs}
        for part in parts:
            name = _NAMES.get((part.task, part.split)) if part.subset == _DEFAULT else None
            if name in data_of and part.are_similarities:
                scored.append(_compared(part, data_of[name]))
            else:
                left_out.append(str(part))
        if not scored:
            raise UserError(f"--gold has no data for {listed(left_out)}: name other tasks, or a file.")
    elif len(parts) > 1:
        names = listed([str(part) for part in parts])
        raise UserError(f"{choices.file} is a single file, but there are predictions of {names}: import one.")
    elif parts[0].is_ranking:
        scored.append(_ranked(parts[0], choices))
    else:
        data = load_pairs(choices.file)
        scored.append(_compared(parts[0], replace(data, task=_name(parts[0]), split=parts[0].split)))
    notes = [f"the predictions are from MTEB ({path.name}), which read its own copy of the data."]
    if left_out:
        notes.append(f"left out: {listed(left_out)}.")
    identity = Identity(files.model, "predictions", _unknown_use(files.revision), weights_sha256=files.sha256)
    if parts[0].is_ranking and choices.file is not None:
        return _Read(identity, scored, notes)
    protocol = choose_protocol("mteb", metric=choices.correlation, aggregation=choices.aggregation)
    return _Read(identity, scored, notes, protocol)


def _read_run(path: Path, choices: _Choices) -> _Read:
    if choices.file is None:
        raise UserError(f"{path} is not an MTEB prediction file (TASK{ENDING}): give its qrels as a file.")
    (ranking, tag), relevant = read_run(path), read_qrels(choices.file)
    unjudged = sum(query not in relevant for query in ranking)
    missed = sum(query not in ranking for query in relevant)
    if not relevant or missed == len(relevant):
        raise UserError(
            f"{path} has no query with a relevant document in {choices.file}: are both from the same data?"
        )
    notes = [f"the run is {path.name}."]
    if unjudged:
        notes.append(f"{unjudged:,} queries without relevant documents were left out.")
    if missed:
        notes.append(f"{missed:,} queries without results count as 0.")
    task, split = task_of_qrels(choices.file)
    part = Part(task, _DEFAULT, split, path, {query: ranking.get(query, {}) for query in relevant})
    identity = Identity(tag, "items", _unknown_use(), weights_sha256=sha256_of(path))
    return _Read(identity, [_measured(part, part.content, relevant, choices)], notes)


def _name(part: Part) -> str:
    return part.task if part.subset == _DEFAULT else f"{part.task} ({part.subset})"


def _ranked(part: Part, choices: _Choices) -> tuple[GivenItems, Items]:
    assert choices.file is not None, "rankings need qrels"
    relevant = read_qrels(choices.file)
    ranking = {query: _scores(part, query, documents) for query, documents in part.content.items()}
    # MTEB scores exactly the queries with a relevant document.
    for name, queries, others in (("qrels", relevant, ranking), ("predictions", ranking, relevant)):
        missing = [query for query in queries if query not in others]
        if missing:
            raise UserError(
                f"{part}: {len(missing):,} of {len(queries):,} queries of the {name} are missing from the other "
                f"side ({missing[0]!r}): give the qrels of the data, subset and split that were predicted."
            )
    return _measured(part, ranking, relevant, choices)


def _measured(part: Part, ranking: Ranking, qrels: Qrels, choices: _Choices) -> tuple[GivenItems, Items]:
    assert choices.file is not None, "rankings need qrels"
    measure = Measure.named(NDCG if choices.metric is None or choices.correlation else choices.metric)
    files = [FileRead(choices.file.name, sha256_of(choices.file), None)]
    judged = {query: dict(qrels[query]) for query in ranking}
    how: dict[str, Any] = {"split": part.split, "identical": choices.identical, "files": files}
    return ranked_items(_name(part), ranking, judged, measure, **how)


def _compared(part: Part, data: StsData) -> tuple[PairClassification | StsPairs, Items]:
    cosines, count = part.similarities["cosine"], len(data.pairs)
    if len(cosines) != count:
        raise UserError(
            f"{part.path} has {len(cosines):,} predictions of {part}, but {data.task}, split {data.split}, has "
            f"{count:,} scored pairs: give the predicted pairs, in their order, with --gold."
        )
    is_repeated = np.asarray(data.pairs["sentence1"] == data.pairs["sentence2"], dtype=bool)
    for place in np.flatnonzero(is_repeated & (cosines < _SAME)).tolist():
        raise UserError(
            f"{part.path}: pair {data.pairs['pair_id'][place]} of {data.task} has the same sentence twice, but "
            f"prediction {place + 1} has the cosine {cosines[place]:.4f}: the order differs from the gold data; "
            "give the pairs in MTEB's order with --gold."
        )
    task = PairClassification(data) if part.are_of_labels else StsPairs(data)
    task.demand_scorable()
    notes = () if is_repeated.any() else (f"{data.task}: {_UNCONFIRMED}",)
    return task, Items(compared_elsewhere(task, part.similarities), notes=notes)


def _require_applicable(choices: _Choices, tasks: Sequence[Task]) -> None:
    has_queries = any(isinstance(task, GivenItems) for task in tasks)
    has_scores = any(isinstance(task, StsPairs) for task in tasks)
    for option, value, needed, is_there in (
        (f"--metric {choices.metric}", choices.correlation, "pairs with scores", has_scores),
        (f"--metric {choices.metric}", choices.metric and not choices.correlation, "queries", has_queries),
        ("--aggregation", choices.aggregation, "pairs with subsets", has_scores),
        ("--identical-ids", choices.identical, "documents found for queries", has_queries),
    ):
        if value and not is_there:
            raise UserError(f"{option} needs {needed}, and there are none: leave it out.")


def _scores(part: Part, query: str, documents: Mapping[str, Any]) -> dict[str, float]:
    for document, score in documents.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise broken(part.path, f"{part}, query {query!r}: the score of {document!r} is {score!r}")
    return {document: float(score) for document, score in documents.items()}
