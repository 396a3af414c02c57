"""Scores of predictions: from a model's predictions and the gold data to a record of scored items.

| predictions | gold | task |
|---|---|---|
| documents found for each query | qrels | given items: a measure per query (`ndcg_at_10`) |
| labels from several classifiers per item | labels | given items: the share of correct classifiers (`accuracy`) |
| similarities of pairs | pairs with labels | pair classification (`ap`) |
| similarities of pairs | pairs with scores | STS (`spearman`) |

MTEB's other tasks (clustering, probabilities, multi-label classification) are not means over items.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, sha256_of
from stsbench.base.words import listed, storable
from stsbench.data.qrels import Qrels, Ranking, read_run, task_of_qrels
from stsbench.data.tables import StsData
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import UNKNOWN, Use, own_use
from stsbench.records.imports.mteb import (
    ENDING,
    Part,
    are_predictions,
    broken,
    read_prediction_files,
)
from stsbench.records.record import RunRecord
from stsbench.scoring.gold import (
    DEFAULT,
    MTEB,
    Gold,
    GoldFiles,
    GoldSource,
    Judgements,
    Labels,
    gold_from,
    label_of,
    names_tasks,
    task_name,
)
from stsbench.scoring.kinds.given import GIVEN_PROTOCOL, GivenItems, measured_items
from stsbench.scoring.kinds.pair_classification import PairClassification
from stsbench.scoring.kinds.sts import StsPairs, compared_elsewhere
from stsbench.scoring.measure import Recording
from stsbench.scoring.ranked import NDCG, IdenticalIds, Measure
from stsbench.scoring.settings import GIVEN_SIMILARITY, Settings, Stages, choose_protocol
from stsbench.scoring.task import Items
from stsbench.statistics.correlations import CORRELATIONS, Metric

ACCURACY = "accuracy"

_SAME = 0.99
"""Minimum cosine of a sentence with itself; half precision gives 0.999."""

_UNCONFIRMED = "no pair has the same sentence twice, so the order of the pairs is unconfirmed; check MTEB's score."

PredictedTask = GivenItems | PairClassification | StsPairs


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
        return next((name for name in CORRELATIONS if name == self.metric), None)

    def measure(self, headline: str) -> Measure:
        """Returns the measure of a query's documents: the metric, else the task's headline measure."""
        if self.metric is not None and self.correlation is None:
            return Measure.named(self.metric)
        try:
            return Measure.named(headline or NDCG)
        except UserError as error:
            raise UserError(
                f"the task's headline measure, {headline}, is not computed per query: name another with --metric, "
                f"for example {NDCG}."
            ) from error


@dataclass(frozen=True)
class Scored:
    """A task with its scored items."""

    task: PredictedTask
    items: Items


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
    identity = replace(identity, name=storable(model) or identity.name or storable(path.stem))
    tasks = [each.task for each in scored]
    _require_applicable(choices, tasks)
    protocol = GIVEN_PROTOCOL
    if not all(isinstance(task, GivenItems) for task in tasks):
        protocol = choose_protocol("mteb", metric=choices.correlation, aggregation=choices.aggregation)
    recording = Recording.of(tasks, identity, replace(settings, protocol=protocol))
    recording.prepare()
    items = [next(each.items for each in scored if each.task is task) for task in recording.tasks]
    return recording.finish(items, Stages(), notes=[*notes, *(note for each in items for note in each.notes)])


def require_no_predictions(path: Path) -> None:
    """Raises if a path holds MTEB's predictions, which need gold data."""
    if not are_predictions(path) or (path.is_dir() and not files_in(path, f"*{ENDING}")):
        return
    parts = [str(part) for part in read_prediction_files(path).parts if part.is_scorable]
    if not parts:
        raise UserError(f"{path} holds predictions that are not scored by item: import MTEB's results instead.")
    raise UserError(
        f"{path} holds MTEB predictions of {listed(parts)}: name the gold data with --gold (qrels, labels or "
        "pairs in MTEB's order, a folder with a file per task, or `mteb` for mteb's own data)."
    )


_Read = tuple[Identity, list[Scored], list[str]]


def _read_mteb(path: Path, choices: Choices) -> _Read:
    files = read_prediction_files(path)
    parts = [part for part in files.parts if part.is_scorable]
    others = [str(part) for part in files.parts if not part.is_scorable]
    if not parts:
        raise UserError(f"{path} holds no predictions that are scored by item: {listed(others)}.")
    source = gold_from(choices.gold, parts, choices.data_dirs)
    with_gold = [part for part in parts if source.has(part)]
    without_gold = [str(part) for part in parts if part not in with_gold]
    if not with_gold:
        raise UserError(
            f"--gold has no data for {listed(without_gold)}: name tasks of the catalogue, or a folder with files "
            "TASK.*, TASK/qrels/SPLIT.* or TASK/SPLIT.*, with MTEB's names."
        )
    notes = [f"the predictions are from MTEB ({storable(path.name)}), which read its own copy of the data."]
    for reason, names in (("without gold data", without_gold), ("not scored by item", others)):
        if names:
            notes.append(f"left out ({reason}): {listed(names)}.")
    identity = Identity(files.model, "predictions", given_use(files.revision), weights_sha256=files.sha256)
    return identity, [_scored(part, source, choices) for part in with_gold], notes


def _read_run(path: Path, choices: Choices) -> _Read:
    gold = choices.gold
    if not isinstance(gold, str | Path) or gold == MTEB or names_tasks(gold):
        raise UserError(f"{path} is not an MTEB prediction file (TASK{ENDING}): give its qrels as a file.")
    run, place = read_run(path), Path(gold).expanduser()
    task, split = task_of_qrels(place)
    part = Part(task, DEFAULT, split, path, run.ranking)
    if place.is_dir():
        raise UserError(f"{place} is a folder: name the file of the qrels.")
    judged = GoldFiles(place, is_single=True).judgements(part)
    relevant = _with_relevant(judged.qrels)
    unjudged = sum(query not in relevant for query in run.ranking)
    missed = sum(query not in run.ranking for query in relevant)
    if not relevant or missed == len(relevant):
        raise UserError(f"{path} has no query with a relevant document in {place}: are both from the same data?")
    notes = [f"the run is {storable(path.name)}."]
    if unjudged:
        notes.append(f"{unjudged:,} queries without relevant documents were left out.")
    if missed:
        notes.append(f"{missed:,} queries without results count as 0.")
    ranking = {query: run.ranking.get(query, {}) for query in relevant}
    identity = Identity(run.tag, "items", given_use(), weights_sha256=sha256_of(path))
    return identity, [_measured(part, ranking, judged, choices)], notes


def _scored(part: Part, source: Gold, choices: Choices) -> Scored:
    if part.is_ranking:
        return _ranked(part, source.judgements(part), choices)
    if part.are_classes:
        return _classified(part, source.labels(part))
    return _compared(part, source.pairs(part))


def _ranked(part: Part, judged: Judgements, choices: Choices) -> Scored:
    ranking = {query: _scores(part, query, documents) for query, documents in part.content.items()}
    relevant = _with_relevant(judged.qrels)
    # MTEB scores exactly the queries with a relevant document.
    for name, queries, others in (("qrels", relevant, ranking), ("predictions", ranking, relevant)):
        missing = [query for query in queries if query not in others]
        if missing:
            raise UserError(
                f"{part}: {len(missing):,} of {len(queries):,} queries of the {name} are missing from the other "
                f"side ({missing[0]!r}): give the qrels of the data, subset and split that were predicted."
            )
    return _measured(part, ranking, judged, choices)


def _measured(part: Part, ranking: Ranking, judged: Judgements, choices: Choices) -> Scored:
    """Computes the measure of each query as MTEB does."""
    name, measure = task_name(part), choices.measure(judged.headline)
    if judged.identical and choices.identical not in {None, judged.identical}:
        raise UserError(f"mteb's {part.task} has --identical-ids {judged.identical}: leave the option out.")
    choice = judged.identical or choices.identical
    identical = [query for query, documents in ranking.items() if query in documents]
    if identical and choice is None:
        raise UserError(
            f"{part}: {len(identical):,} of {len(ranking):,} queries retrieve a document with their own id "
            f"({identical[0]!r}). Give --identical-ids drop for tasks with MTEB's ignore_identical_ids (ArguAna, "
            "Quora), or keep if equal ids mean nothing."
        )
    notes = []
    # Only unusual choices belong to the gold data's hash, so that records without them still compare.
    truth: dict[str, object] = {"qrels": {query: dict(judged.qrels[query]) for query in ranking}}
    if choice == "drop":
        ranking = {
            query: {document: score for document, score in documents.items() if document != query}
            for query, documents in ranking.items()
        }
        truth["identical ids"] = choice
        notes.append(f"{name}: documents with the query's id were left out ({len(identical):,} queries).")
    if judged.skips_first:
        ranking = {
            query: dict(sorted(documents.items(), key=lambda scored: scored[1], reverse=True)[1:])
            for query, documents in ranking.items()
        }
        truth["first"] = "skipped"
        notes.append(f"{name}: the first document of each query was left out, as in MTEB.")
    scores = measure.by_query(ranking, {query: judged.qrels[query] for query in ranking})
    notes.append(f"{name}: {measure} by ir-measures {version('ir-measures')}.")
    task = measured_items(name, scores, measure=str(measure), split=part.split, truth=truth, files=judged.files)
    return Scored(task, Items(task.table, notes=tuple(notes)))


def _classified(part: Part, gold: Labels) -> Scored:
    """Scores each item by the share of experiments that classify it correctly."""
    name, size = task_name(part), len(part.content)
    experiments = [[label_of(label) for label in experiment] for experiment in part.content]
    for number, experiment in enumerate(experiments, 1):
        if len(experiment) != len(gold.labels):
            raise UserError(
                f"{part}: experiment {number} of {size} has {len(experiment):,} predictions, but there are "
                f"{len(gold.labels):,} labels: give those of the predicted data, in MTEB's order (unknown for "
                "cross-validated tasks)."
            )
    predicted, known = {label for experiment in experiments for label in experiment}, set(gold.labels)
    if not predicted & known:
        raise UserError(
            f"{part}: no predicted label ({', '.join(sorted(predicted)[:3])}) is among the gold labels "
            f"({', '.join(sorted(known)[:3])}): use the labels of MTEB's data."
        )
    scores = {
        str(place): sum(label == actual for label in labels) / size
        for place, (actual, *labels) in enumerate(zip(gold.labels, *experiments, strict=True), 1)
    }
    notes = [
        f"{name}: the score of an item is the share of {size} experiments that classify it correctly; the "
        "interval is for new items and the same classifiers."
    ]
    if gold.headline not in {"", ACCURACY}:
        notes.append(f"{name}: MTEB's headline is {gold.headline}, which is not defined for single items.")
    truth = {"labels": list(gold.labels), "experiments": size}
    task = measured_items(name, scores, measure=ACCURACY, split=part.split, truth=truth, files=gold.files)
    return Scored(task, Items(task.table, notes=tuple(notes)))


def _compared(part: Part, data: StsData) -> Scored:
    is_repeated = np.asarray(data.pairs["sentence1"] == data.pairs["sentence2"], dtype=bool)
    _require_same_pairs(data, part, is_repeated)
    task = PairClassification(data) if part.are_of_labels else StsPairs(data)
    task.demand_scorable()
    notes = () if is_repeated.any() else (f"{data.task}: {_UNCONFIRMED}",)
    return Scored(task, Items(compared_elsewhere(task, part.similarities), notes=notes))


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
    has_queries = any(isinstance(task, GivenItems) and task.measure != ACCURACY for task in tasks)
    if choices.correlation and not any(isinstance(task, StsPairs) for task in tasks):
        raise UserError(f"--metric {choices.metric} needs pairs with scores, and there are none: leave it out.")
    if choices.metric and not choices.correlation and not has_queries:
        raise UserError(f"--metric {choices.metric} needs queries, and there are none: leave it out.")
    if choices.aggregation and not any(isinstance(task, StsPairs) for task in tasks):
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
