"""Scores of predictions: from a model's predictions and the gold data to a record of scored items.

| predictions | gold | task |
|---|---|---|
| documents retrieved for each query (MTEB, TREC) | qrels | given items: a measure per query (`ndcg_at_10`) |
| MTEB's similarities of pairs with labels | pairs | pair classification (`ap`) |
| MTEB's similarities of pairs with scores | pairs, or tasks of the catalogue | STS (`spearman`) |

MTEB's prediction files contain no gold data. Its other predictions (classes, clusters, probabilities) are not
scored here: import a table with the score of each item.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, sha256_of
from stsbench.base.words import listed
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.data.qrels import IdenticalIds, Qrels, Ranking, read_qrels, read_run, task_of_qrels
from stsbench.data.tables import FileRead, StsData, load_pairs
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import UNKNOWN, Use, own_use
from stsbench.records.imports import ENDING, Part, are_predictions, broken, read_prediction_files
from stsbench.records.record import RunRecord
from stsbench.records.results import MTEB_SPLITS
from stsbench.scoring.kinds import in_order
from stsbench.scoring.kinds.given import GIVEN_PROTOCOL, GivenItems, measured_items
from stsbench.scoring.kinds.retrieval import NDCG, Measure
from stsbench.scoring.kinds.sts import PairClassification, StsPairs, compared_elsewhere
from stsbench.scoring.measure import Recording
from stsbench.scoring.settings import GIVEN_SIMILARITY, PROTOCOLS, Protocol, Settings, Stages, choose_protocol
from stsbench.scoring.task import Items, Task
from stsbench.scoring.tasks import AnyTask, names_tasks, read_data
from stsbench.statistics.correlations import CORRELATIONS, Metric

GoldSource = str | Path | AnyTask | Sequence[AnyTask]
"""Names of tasks, their data, or a file."""

DEFAULT = "default"
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
class Choices:
    """What predictions are scored against, and how.

    Attributes:
        gold: the gold data (see `stsbench.import_results`).
        metric: the metric; None for each task's default.
        aggregation: the aggregation over subsets; None for the default.
        identical: whether documents with the query's id count; None if unknown.
        data_dirs: folders to look for the tasks' data in.
    """

    gold: GoldSource
    metric: str | None = None
    aggregation: str | None = None
    identical: IdenticalIds | None = None
    data_dirs: Sequence[str | Path] = ()

    @property
    def correlation(self) -> Metric | None:
        """The metric, if it is one of pairs."""
        return next((name for name in CORRELATIONS if name == self.metric), None)

    @property
    def file(self) -> Path | None:
        """The file of the gold data; None for tasks."""
        if not isinstance(self.gold, str | Path) or names_tasks(self.gold):
            return None
        path = Path(self.gold).expanduser()
        if not path.exists():
            raise UserError(f"there is no task and no file {path}: name the gold data with --gold.")
        return path

    def tasks(self, protocol: Protocol) -> list[Task]:
        """Reads the tasks, or the file of pairs, in the order of a record's scores."""
        named: Any = self.gold
        if self.file is not None:
            return read_data(None, protocol=protocol, data=self.file)
        return in_order(read_data(named, protocol=protocol, data_dirs=self.data_dirs))


PredictedTask = GivenItems | PairClassification | StsPairs
_Read = tuple[Identity, list[tuple[PredictedTask, Items]], list[str]]


def given_use(revision: str | None = None) -> Use:
    """Returns the use of a model that is known only by its similarities or predictions: unknown."""
    return replace(own_use(GIVEN_SIMILARITY), precision=UNKNOWN, revision=revision)


def import_predictions(path: Path, choices: Choices, model: str, settings: Settings) -> RunRecord:
    """Scores predictions and returns the record, saved if `settings` names a folder.

    Args:
        path: a prediction file of MTEB, a folder of those of one model, or a TREC run.
        choices: the gold data, and how predictions are scored.
        model: the model's name; empty to take it from the files.
        settings: the folder and the intervals.

    Raises:
        UserError: if nothing can be scored, or predictions and gold data are of different items.
    """
    identity, scored, notes = (_read_mteb if are_predictions(path) else _read_run)(path, choices)
    identity = replace(identity, name=model or identity.name or path.stem)
    tasks = [task for task, _ in scored]
    _require_applicable(choices, tasks)
    protocol = GIVEN_PROTOCOL
    if not all(isinstance(task, GivenItems) for task in tasks):
        protocol = choose_protocol("mteb", metric=choices.correlation, aggregation=choices.aggregation)
    recording = Recording.of(tasks, identity, replace(settings, protocol=protocol))
    recording.prepare()
    items = [next(of_task for task, of_task in scored if task is ordered) for ordered in recording.tasks]
    notes += [note for of_task in items for note in of_task.notes]
    return recording.finish(items, Stages(), notes=notes)


def require_no_predictions(path: Path) -> None:
    """Raises if a path holds MTEB's predictions, which need gold data."""
    if not are_predictions(path) or (path.is_dir() and not files_in(path, f"*{ENDING}")):
        return
    parts = [str(part) for part in read_prediction_files(path).parts if part.is_scorable]
    if not parts:
        raise UserError(f"{path} holds predictions that are not scored by item: import MTEB's results instead.")
    raise UserError(
        f"{path} holds MTEB predictions of {listed(parts)}: name the gold data with --gold (a file of qrels, or "
        "of pairs in MTEB's order, or tasks)."
    )


def _read_mteb(path: Path, choices: Choices) -> _Read:
    files = read_prediction_files(path)
    parts = [part for part in files.parts if part.is_scorable]
    left_out = [str(part) for part in files.parts if not part.is_scorable]
    if not parts:
        raise UserError(f"{path} holds no predictions that are scored by item: {listed(left_out)}.")
    scored: list[tuple[PredictedTask, Items]] = []
    if choices.file is None:
        pairs = [task.pairs for task in choices.tasks(PROTOCOLS["mteb"]) if task.pairs is not None]
        data_of = {(data.task, data.split): data for data in pairs}
        for part in parts:
            name = _NAMES.get((part.task, part.split)) if part.subset == DEFAULT else None
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
        scored.append(_compared(parts[0], replace(data, task=task_name(parts[0]), split=parts[0].split)))
    notes = [f"the predictions are from MTEB ({path.name}), which read its own copy of the data."]
    if left_out:
        notes.append(f"left out: {listed(left_out)}.")
    identity = Identity(files.model, "predictions", given_use(files.revision), weights_sha256=files.sha256)
    return identity, scored, notes


def _read_run(path: Path, choices: Choices) -> _Read:
    if choices.file is None:
        raise UserError(f"{path} is not an MTEB prediction file (TASK{ENDING}): give its qrels as a file.")
    run, qrels = read_run(path), read_qrels(choices.file)
    relevant = _with_relevant(qrels)
    unjudged = sum(query not in relevant for query in run.ranking)
    missed = sum(query not in run.ranking for query in relevant)
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
    part = Part(task, DEFAULT, split, path, {query: run.ranking.get(query, {}) for query in relevant})
    identity = Identity(run.tag, "items", given_use(), weights_sha256=sha256_of(path))
    return identity, [_measured(part, part.content, qrels, choices)], notes


def task_name(part: Part) -> str:
    """Returns MTEB's name of a task, with the subset if there are several."""
    return part.task if part.subset == DEFAULT else f"{part.task} ({part.subset})"


def _ranked(part: Part, choices: Choices) -> tuple[GivenItems, Items]:
    assert choices.file is not None, "rankings need qrels"
    qrels = read_qrels(choices.file)
    ranking = {query: _scores(part, query, documents) for query, documents in part.content.items()}
    relevant = _with_relevant(qrels)
    # MTEB scores exactly the queries with a relevant document.
    for name, queries, others in (("qrels", relevant, ranking), ("predictions", ranking, relevant)):
        missing = [query for query in queries if query not in others]
        if missing:
            raise UserError(
                f"{part}: {len(missing):,} of {len(queries):,} queries of the {name} are missing from the other "
                f"side ({missing[0]!r}): give the qrels of the data, subset and split that were predicted."
            )
    return _measured(part, ranking, qrels, choices)


def _measured(part: Part, ranking: Ranking, qrels: Qrels, choices: Choices) -> tuple[GivenItems, Items]:
    """Computes the measure of each query as MTEB does."""
    assert choices.file is not None, "rankings need qrels"
    measure = Measure.named(NDCG if choices.metric is None or choices.correlation else choices.metric)
    name, choice = task_name(part), choices.identical
    identical = [query for query, documents in ranking.items() if query in documents]
    if identical and choice is None:
        raise UserError(
            f"{part}: {len(identical):,} of {len(ranking):,} queries retrieve a document with their own id "
            f"({identical[0]!r}). Give --identical-ids drop for tasks with MTEB's ignore_identical_ids (ArguAna, "
            "Quora), or keep if equal ids mean nothing."
        )
    judged = {query: dict(qrels[query]) for query in ranking}
    # Only the unusual choice belongs to the gold data's hash, so that records without it still compare.
    truth: dict[str, object] = {"qrels": judged} | ({"identical ids": choice} if choice == "drop" else {})
    notes = [f"{name}: {measure} by ir-measures {version('ir-measures')}."]
    if choice == "drop":
        ranking = {
            query: {document: score for document, score in documents.items() if document != query}
            for query, documents in ranking.items()
        }
        notes.append(f"{name}: documents with the query's id were left out ({len(identical):,} queries).")
    scores = measure.by_query(ranking, judged)
    files = [FileRead(choices.file.name, sha256_of(choices.file), None)]
    task = measured_items(name, scores, measure=str(measure), split=part.split, truth=truth, files=files)
    return task, Items(task.table, notes=tuple(notes))


def _compared(part: Part, data: StsData) -> tuple[PairClassification | StsPairs, Items]:
    is_repeated = np.asarray(data.pairs["sentence1"] == data.pairs["sentence2"], dtype=bool)
    _require_same_pairs(data, part, is_repeated)
    task = PairClassification(data) if part.are_of_labels else StsPairs(data)
    task.demand_scorable()
    notes = () if is_repeated.any() else (f"{data.task}: {_UNCONFIRMED}",)
    return task, Items(compared_elsewhere(task, part.similarities), notes=notes)


def _require_same_pairs(data: StsData, part: Part, is_repeated: NDArray[np.bool_]) -> None:
    """Raises if predictions cannot belong to the pairs; `is_repeated` marks pairs of one sentence."""
    cosines, count = part.similarities["cosine"], len(data.pairs)
    if len(cosines) != count:
        raise UserError(
            f"{part.path} has {len(cosines):,} predictions of {part}, but {data.task}, split {data.split}, has "
            f"{count:,} scored pairs: give the predicted pairs, in their order, with --gold."
        )
    wrong = np.flatnonzero(is_repeated & (cosines < _SAME))
    if len(wrong):
        place = int(wrong[0])
        raise UserError(
            f"{part.path}: pair {data.pairs['pair_id'][place]} of {data.task} has the same sentence twice, but "
            f"prediction {place + 1} has the cosine {cosines[place]:.4f}: the order differs from the gold data; "
            "give the pairs in MTEB's order with --gold."
        )


def _require_applicable(choices: Choices, tasks: Sequence[PredictedTask]) -> None:
    """Raises if a choice applies to none of the tasks."""
    has_queries = any(isinstance(task, GivenItems) for task in tasks)
    has_scores = any(isinstance(task, StsPairs) for task in tasks)
    if choices.correlation and not has_scores:
        raise UserError(f"--metric {choices.metric} needs pairs with scores, and there are none: leave it out.")
    if choices.metric and not choices.correlation and not has_queries:
        raise UserError(f"--metric {choices.metric} needs queries, and there are none: leave it out.")
    if choices.aggregation and not has_scores:
        raise UserError("--aggregation needs pairs with subsets, and there are none: leave it out.")
    if choices.identical and not has_queries:
        raise UserError("--identical-ids needs documents found for queries, and there are none: leave it out.")


def _with_relevant(qrels: Qrels) -> dict[str, None]:
    """Returns the queries with a relevant document, in order."""
    return {query: None for query, judged in qrels.items() if any(value > 0 for value in judged.values())}


def _scores(part: Part, query: str, documents: Mapping[str, object]) -> dict[str, float]:
    scores = {}
    for document, score in documents.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise broken(part.path, f"{part}, query {query!r}: the score of {document!r} is {score!r}")
        scores[document] = float(score)
    return scores
