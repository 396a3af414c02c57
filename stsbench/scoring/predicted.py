"""From what a model predicted and what is true to a record of scored items.

| predictions | against | become |
|---|---|---|
| the documents found for each query | qrels | given items: a measure of each query (`ndcg_at_10`) |
| the labels that several classifiers gave each item | labels | given items: the share that is right (`accuracy`) |
| the similarities of pairs | pairs with labels | pair classification (`ap`) |
| the similarities of pairs | pairs with scores | an STS task (`spearman`) |

What MTEB's other tasks are scored by (clusters, probabilities, several labels of an item) is no mean over items.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, sha256_of
from stsbench.base.words import listed, storable
from stsbench.data.qrels import Qrels, Ranking, read_run, task_of_qrels
from stsbench.data.tables import StsData
from stsbench.encoders.protocol import Identity
from stsbench.records.imports.mteb import (
    ENDING,
    Part,
    are_predictions,
    broken,
    read_prediction_files,
    similarities_of,
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
    task_name,
)
from stsbench.scoring.kinds.given import MEAN, GivenItems, measured_items
from stsbench.scoring.kinds.pair_classification import PairClassification
from stsbench.scoring.kinds.sts import StsPairs, compared_elsewhere
from stsbench.scoring.measure import Recording
from stsbench.scoring.ranked import NDCG, IdenticalIds, Measure
from stsbench.scoring.settings import GIVEN_SIMILARITY, PROTOCOLS, Protocol, Settings, Stages
from stsbench.scoring.similarities import given_use, require_same_pairs
from stsbench.scoring.task import Items
from stsbench.statistics.correlations import CORRELATIONS, Metric

ACCURACY = "accuracy"

PredictedTask = GivenItems | PairClassification | StsPairs


@dataclass(frozen=True)
class Asked:
    """What the person chose: the metric (None for each task's own), and whether identical ids count."""

    metric: str | None = None
    identical: IdenticalIds | None = None

    @property
    def correlation(self) -> Metric | None:
        """The metric, if it is one of pairs with scores."""
        return next((name for name in CORRELATIONS if name == self.metric), None)

    def measure(self, headline: str) -> Measure:
        """Return what a query's documents are measured by: what was asked for, or else the task's headline."""
        if self.metric is not None and self.correlation is None:
            return Measure.named(self.metric)
        try:
            return Measure.named(headline or NDCG)
        except UserError as error:
            raise UserError(
                f"the task's headline, {headline}, is no measure of single queries: name one with --metric, "
                f"{NDCG} say."
            ) from error


@dataclass(frozen=True)
class Scored:
    """A task with its items, and what a reader should know."""

    task: PredictedTask
    items: Items


def import_predictions(
    path: Path,
    gold: GoldSource,
    asked: Asked,
    model: str,
    settings: Settings,
) -> RunRecord:
    """Return the record of predictions, saved if it has a folder.

    Args:
        path: one of MTEB's prediction files, a folder of those of one model, or a run of TREC's.
        gold: what they are scored against (see `stsbench.import_results`).
        asked: by which metric.
        model: the model's name; empty for what the files say.
        settings: where the record is saved, and its intervals.

    Raises:
        UserError: if nothing can be scored, or predictions and gold are not of the same items.
    """
    if are_predictions(path):
        identity, scored, notes = _of_mteb(path, gold, asked)
    else:
        identity, scored, notes = _of_run(path, gold, asked)
    named = replace(identity, name=storable(model) or identity.name or storable(path.stem))
    _require_used(asked, [each.task for each in scored])
    pairs = [each.task for each in scored if not isinstance(each.task, GivenItems)]
    protocol = (
        replace(PROTOCOLS["mteb"], metric=asked.correlation or "spearman")
        if pairs
        else Protocol("given", metric=MEAN, similarity=GIVEN_SIMILARITY)
    )
    recording = Recording.of([each.task for each in scored], named, replace(settings, protocol=protocol))
    recording.prepare()
    items = [next(each.items for each in scored if each.task is task) for task in recording.tasks]
    return recording.finish(items, Stages(), notes=[*notes, *(note for each in items for note in each.notes)])


def gold_wanted(path: Path) -> UserError | None:
    """Return the error of predictions without what is true of their items; None if a path holds no predictions."""
    if not are_predictions(path) or (path.is_dir() and not files_in(path, f"*{ENDING}")):
        return None
    parts = read_prediction_files(path).parts
    wanted = {
        "qrels": [str(part) for part in parts if part.is_ranking],
        "labels, in MTEB's order,": [str(part) for part in parts if part.are_classes],
        "pairs with labels or scores, in MTEB's order,": [str(part) for part in parts if part.are_similarities],
    }
    told = [f"{what} of {listed(names)}" for what, names in wanted.items() if names]
    if not told:
        return UserError(
            f"{path} holds predictions of MTEB's that are not scored item by item: import MTEB's results instead."
        )
    return UserError(
        f"{path} holds predictions of MTEB's, and nothing of what is true: bring {'; '.join(told)} with --gold (a "
        "file, a folder with one for each task, or `mteb` for mteb's own data)."
    )


_Imported = tuple[Identity, list[Scored], list[str]]


def _of_mteb(path: Path, gold: GoldSource, asked: Asked) -> _Imported:
    files = read_prediction_files(path)
    parts = [part for part in files.parts if part.is_scorable]
    others = [str(part) for part in files.parts if not part.is_scorable]
    if not parts:
        raise UserError(f"{path} holds no predictions that are scored item by item: {listed(others)}.")
    source = gold_from(gold, parts)
    of_parts = [_scored(part, source, asked) for part in parts]
    without_gold = [str(part) for part, of_part in zip(parts, of_parts, strict=True) if of_part is None]
    scored = [of_part for of_part in of_parts if of_part is not None]
    if not scored:
        raise UserError(
            f"nothing of {listed(without_gold)} is in what --gold names: in a folder a file is called TASK.*, "
            "TASK/qrels/SPLIT.* or TASK/SPLIT.*, by MTEB's names."
        )
    reasons = {"nothing of them is in what --gold names": without_gold, "they are not scored by item": others}
    notes = [
        f"the predictions are MTEB's, {storable(path.name)}: it read its own copy of the data.",
        *(f"left out, as {reason}: {listed(names)}." for reason, names in reasons.items() if names),
    ]
    identity = Identity(files.model, "predictions", given_use(files.revision), weights_sha256=files.sha256)
    return identity, scored, notes


def _of_run(path: Path, gold: GoldSource, asked: Asked) -> _Imported:
    if not isinstance(gold, str | Path) or gold == MTEB:
        raise UserError(f"{path} is no prediction file of MTEB's (TASK{ENDING}): give its qrels as a file.")
    run, place = read_run(path), Path(gold).expanduser()
    task, split = task_of_qrels(place)
    part = Part(task, DEFAULT, split, path, run.ranking)
    judged = GoldFiles(place, is_of_one=True).judgements(part)
    if judged is None:
        raise UserError(f"{place} is a folder: name the file of the qrels.")
    relevant = _relevant(judged.qrels)
    unjudged = sum(query not in relevant for query in run.ranking)
    missed = sum(query not in run.ranking for query in relevant)
    if not relevant or missed == len(relevant):
        raise UserError(f"{path} has no query with a relevant document in {place}: are both of the same data?")
    notes = [f"the run is {storable(path.name)}."]
    if unjudged:
        notes.append(f"{unjudged:,} queries were left out, as no document is judged relevant for them.")
    if missed:
        notes.append(f"{missed:,} queries count 0, as nothing was found for them.")
    ranking = {query: run.ranking.get(query, {}) for query in relevant}
    identity = Identity(run.tag, "items", given_use(), weights_sha256=sha256_of(path))
    return identity, [_measured(part, ranking, judged, asked)], notes


def _scored(part: Part, source: Gold, asked: Asked) -> Scored | None:
    """Return what was predicted, held against its gold; None where there is none."""
    if part.is_ranking:
        judged = source.judgements(part)
        return None if judged is None else _ranked(part, judged, asked)
    if part.are_classes:
        labels = source.labels(part)
        return None if labels is None else _classified(part, labels)
    pairs = source.pairs(part)
    return None if pairs is None else _compared(part, pairs)


def _ranked(part: Part, judged: Judgements, asked: Asked) -> Scored:
    ranking = {query: _scores(part, query, found) for query, found in part.content.items()}
    relevant = _relevant(judged.qrels)
    # MTEB asks the queries that have a relevant document, and no others.
    for whose, queries, others in (("the qrels", relevant, ranking), ("the predictions", ranking, relevant)):
        alone = [query for query in queries if query not in others]
        if alone:
            raise UserError(
                f"{part}: {len(alone):,} of {len(queries):,} queries of {whose} are not among those of the other "
                f"({alone[0]!r}), and MTEB asks all that have a relevant document: give the qrels of the data, "
                "subset and split that were predicted."
            )
    return _measured(part, ranking, judged, asked)


def _measured(part: Part, ranking: Ranking, judged: Judgements, asked: Asked) -> Scored:
    """Return each query's measure, as MTEB takes it."""
    name, measure = task_name(part), asked.measure(judged.headline)
    if judged.identical and asked.identical not in {None, judged.identical}:
        raise UserError(f"mteb's {part.task} has --identical-ids {judged.identical}: leave the option out.")
    choice = judged.identical or asked.identical
    identical = [query for query, found in ranking.items() if query in found]
    if identical and choice is None:
        raise UserError(
            f"{part}: for {len(identical):,} of {len(ranking):,} queries a document of the query's own id was "
            f"found ({identical[0]!r}). MTEB leaves those out where a task has ignore_identical_ids (ArguAna, "
            "Quora): say --identical-ids drop, or keep where equal ids mean nothing."
        )
    notes = []
    # Only what is unusual is a part of the truth: a choice that changes nothing keeps no two records apart.
    truth: dict[str, object] = {"qrels": {query: dict(judged.qrels[query]) for query in ranking}}
    if choice == "drop":
        ranking = {query: _without(found, query) for query, found in ranking.items()}
        truth["identical ids"] = choice
        notes.append(f"{name}: the document with the query's id was left out, of {len(identical):,} queries.")
    if judged.skips_first:
        ranking = {query: _without_first(found) for query, found in ranking.items()}
        truth["first"] = "skipped"
        notes.append(f"{name}: the first document of each query was left out, as MTEB does.")
    scores = measure.by_query(ranking, {query: judged.qrels[query] for query in ranking})
    notes.append(f"{name}: {measure} by ir-measures {version('ir-measures')}.")
    task = measured_items(name, scores, measure=str(measure), split=part.split, truth=truth, files=judged.files)
    return Scored(task, Items(task.table, notes=tuple(notes)))


def _classified(part: Part, gold: Labels) -> Scored:
    """Return by which share of the experiments each item was put right."""
    name, size = task_name(part), len(part.content)
    experiments = [[label_of(label) for label in experiment] for experiment in part.content]
    for number, experiment in enumerate(experiments, 1):
        if len(experiment) != len(gold.labels):
            raise UserError(
                f"{part}: experiment {number} of {size} predicts {len(experiment):,} labels, and "
                f"{len(gold.labels):,} are given: give those of the data that were predicted, in their order "
                "(that of a cross-validated task nobody knows)."
            )
    predicted, known = {label for experiment in experiments for label in experiment}, set(gold.labels)
    if not predicted & known:
        raise UserError(
            f"{part}: no label that was predicted ({', '.join(sorted(predicted)[:3])}) is among those given "
            f"({', '.join(sorted(known)[:3])}): give them as MTEB's data call them."
        )
    scores = {
        str(place): sum(label == of_item for label in labels) / size
        for place, (of_item, *labels) in enumerate(zip(gold.labels, *experiments, strict=True), 1)
    }
    notes = [
        f"{name}: the score of an item is the share of {size} experiments that put it right; the interval is of "
        "new items, with the classifiers of these experiments."
    ]
    if gold.headline not in {"", ACCURACY}:
        notes.append(f"{name}: MTEB's headline is {gold.headline}, which no single item has.")
    truth = {"labels": list(gold.labels), "experiments": size}
    task = measured_items(name, scores, measure=ACCURACY, split=part.split, truth=truth, files=gold.files)
    return Scored(task, Items(task.table, notes=tuple(notes)))


def _compared(part: Part, data: StsData) -> Scored:
    predicted = similarities_of(part)
    require_same_pairs(data, predicted)
    task = PairClassification(data) if part.are_of_labels else StsPairs(data)
    task.demand_scorable()
    return Scored(task, Items(compared_elsewhere(task, predicted.similarities)))


def _require_used(asked: Asked, tasks: Sequence[PredictedTask]) -> None:
    """Refuse a choice that none of the tasks has a use for."""
    is_ranked = any(isinstance(task, GivenItems) and task.measure != ACCURACY for task in tasks)
    if asked.correlation and not any(isinstance(task, StsPairs) for task in tasks):
        raise UserError(f"--metric {asked.metric} is of pairs with scores, and there are none: leave it out.")
    if asked.metric and not asked.correlation and not is_ranked:
        raise UserError(f"--metric {asked.metric} is of queries, and there are none: leave it out.")
    if asked.identical and not is_ranked:
        raise UserError("--identical-ids is about documents found for queries, and there are none: leave it out.")


def _relevant(qrels: Qrels) -> dict[str, None]:
    """Return the queries that have a relevant document."""
    return {query: None for query, judged in qrels.items() if any(value > 0 for value in judged.values())}


def _without(found: Mapping[str, float], document: str) -> dict[str, float]:
    return {other: score for other, score in found.items() if other != document}


def _without_first(found: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(found.items(), key=lambda scored: scored[1], reverse=True)[1:])


def _scores(part: Part, query: str, found: Mapping[str, object]) -> dict[str, float]:
    scores = {}
    for document, score in found.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise broken(part.path, f"{part}, query {query!r}: the score of {document!r} is {score!r}")
        scores[document] = float(score)
    return scores
