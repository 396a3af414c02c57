"""The subjects of analyses: records and models by name, their scored tasks, vectors and sentences.

The vectors of a record come from the cache; its model is loaded only for missing ones.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.catalogue import data_sets
from stsbench.data.qrels import texts_in
from stsbench.data.sentences import read_corpus_set
from stsbench.data.tables import SENTENCES, sentence_ids
from stsbench.data.views import split_and_view
from stsbench.encoders.checkpoint import PACKAGED, packaged_model
from stsbench.encoders.fitted import processed, whiten
from stsbench.encoders.load import load, load_with
from stsbench.encoders.mteb_models import KIND
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.protocol import (
    WITH_POOLINGS,
    Encoder,
    Identity,
    Wrapper,
    require_unchanged,
)
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.use import FP32, UNKNOWN, Use
from stsbench.records.labels import model_labels, task_labels
from stsbench.records.parts import ModelPart, Score
from stsbench.records.record import RECORD, MissingTableError, RunRecord, without_pairs
from stsbench.records.signature import Signature
from stsbench.records.store import load_run
from stsbench.scoring.kinds import statistic_of
from stsbench.scoring.measure import evaluate
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import AveragePrecision, Correlation
from stsbench.scoring.tasks import TaskSpec, canonical, read_task, tasks_here
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.neighbours import SIMILARITIES, pair_similarities

Subject = RunRecord | Encoder
Wanted = RunRecord | Encoder | str | Path | Callable[[list[str]], Any]
"""A record, its folder or its `run.json`, or anything that `load` accepts."""


def named_subjects(runs: Wanted | Sequence[Wanted] | None) -> dict[str, Subject]:
    """Returns records and models by the names that tables and figures use; None is the packaged model."""
    several: list[Any] = list(runs) if isinstance(runs, list | tuple) else [] if runs is None else [runs]
    subjects = [_subject(run) for run in several or [default_model()]]
    models = [
        subject.model if isinstance(subject, RunRecord) else ModelPart(**vars(subject.identity))
        for subject in subjects
    ]
    folders = [subject.folder if isinstance(subject, RunRecord) else None for subject in subjects]
    return dict(zip(model_labels(models, folders), subjects, strict=True))


def _subject(run: Wanted) -> Subject:
    if isinstance(run, RunRecord):
        return run
    return load_run(run) if isinstance(run, str | Path) and is_run(run) else load(run)


def default_model() -> str:
    """Returns the packaged model; raises a UserError if it is not installed."""
    if packaged_model() is None:
        raise UserError("there is nothing to analyse: give a run, or --model NAME.")
    return PACKAGED


def is_run(path: str | Path) -> bool:
    """Returns whether a path is the folder or the file of a record."""
    path = Path(path).expanduser()
    return (path / RECORD).is_file() or path.suffix == ".json"


class ScoredTask(NamedTuple):
    """The n scored pairs of a task for one model.

    Attributes:
        task: the task's name, with split and text if several tasks have that name.
        statistic: the correlation that is the score; of labels, average precision.
        pairs: the rows of the items table.
        gold_range: the lowest and highest possible gold score.
        data: the hash of the data.
    """

    task: str
    statistic: Any
    pairs: pd.DataFrame
    gold_range: tuple[float, float]
    data: str = ""

    @property
    def similarity(self) -> NDArray[np.float64]:
        """(n,) similarities."""
        return np.asarray(self.pairs[self.statistic.similarity], dtype=np.float64)


def scored_tasks(
    name: str,
    subject: Subject,
    tasks: Sequence[str] = (),
    *,
    statistics: Collection[str] = CORRELATIONS,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> tuple[RunRecord, list[ScoredTask]]:
    """Returns the record of a model, which is measured if there is none, and its tasks scored by the `statistics`.

    The default are all tasks of a record, and for a model the seven STS tasks, or the sample if their data is
    missing.

    Raises:
        UserError: if the record lacks a task.
    """
    requested = list(dict.fromkeys(canonical(task) for task in tasks))
    record = subject
    if not isinstance(record, RunRecord):
        chosen = requested or tasks_here(data_dirs)
        record = evaluate(record, chosen, data_dirs=data_dirs, intervals=Intervals(None), progress=progress)
    scores = [score for score in record.scores if score.statistic in statistics and not score.training]
    if not scores:
        raise without_pairs(record)
    measured = list(dict.fromkeys(score.task for score in scores))
    if missing := [task for task in requested if task not in measured]:
        where = f" in {record.folder}" if record.folder else ""
        raise UserError(
            f"the run of {name}{where} has no {missing[0]} (it has {', '.join(measured)}): measure it with "
            f"`stsbench run --model {record.model.name} --tasks {missing[0]}`, or choose another task."
        )
    rows = record.rows_by_score()
    named = zip(task_labels(scores), scores, strict=True)
    return record, [
        ScoredTask(label, statistic, rows[score.key], _gold_range(score, rows[score.key]), score.data.sha256)
        for label, score in named
        if (score.task in requested or not requested)
        and isinstance(statistic := statistic_of(score), Correlation | AveragePrecision)
    ]


def _gold_range(score: Score, pairs: pd.DataFrame) -> tuple[float, float]:
    """Returns the scale of a catalogued task's annotators; for your own pairs, the range of their gold scores."""
    entry = data_sets().get(score.task)
    known = entry.gold_range if entry and score.text in entry.texts else None
    return known or (float(pairs["gold"].min()), float(pairs["gold"].max()))


_log = logging.getLogger(__name__)

_TOLERANCE = 1e-3
"""Tolerance of a model's similarities relative to the largest: batches of other sizes round differently."""

_NOT_LOADABLE = {
    "vectors": "saved vectors",
    "similarities": "saved similarities",
    "predictions": "MTEB's predictions",
}
"""Kinds of models that cannot encode another sentence."""


@dataclass
class RecordedModel(Wrapper):
    """The model of a record.

    A record contains everything that a vector depends on, so cached vectors are found without the model. The model
    is loaded only for a sentence that is not in the cache, and must then have the identity in the record.
    """

    model: ModelPart
    notes: tuple[str, ...] = ()
    _loaded: Encoder | None = None

    @cached_property
    def identity(self) -> Identity:
        return Identity(**{field.name: getattr(self.model, field.name) for field in fields(Identity)})

    @property
    def token_budget(self) -> int:
        return 1 if self._loaded is None else self._loaded.token_budget

    @property
    def base(self) -> Encoder:  # type: ignore[override]
        """The model, loaded on first use."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> Encoder:
        model = self.model
        # A function can be imported again unless it is a `<lambda>` or defined in `<locals>`.
        is_local = model.kind == "function" and (":" not in model.name or "<" in model.name)
        if model.kind in _NOT_LOADABLE or is_local:
            what = _NOT_LOADABLE.get(model.kind, "a callable")
            raise UserError(
                f"some of these sentences have no vector of {model.name} in the cache, and the record of {what} "
                "cannot make any: measure a checkpoint with `stsbench run --model`, or pass the encoder in Python."
            )
        try:
            encoder = load_with(model.name, _use_for_loading(model))
            loaded, recorded = encoder.identity.key(), self.identity.key()
        except UserError as error:
            raise UserError(
                f"some of these sentences have no vector of {model.name} in the cache, and it cannot be loaded: "
                f"{str(error).rstrip('.')}. {_advice(model)}."
            ) from error
        for field in loaded | recorded:
            if loaded.get(field) != recorded.get(field):
                here, before = loaded.get(field), recorded.get(field)
                raise UserError(
                    f"{model.name} has changed since the run: its {field} is {here}, the record's {before}. "
                    f"{_advice(model)}."
                )
        return encoder


def _use_for_loading(model: ModelPart) -> Use:
    """Returns the options that load a recorded model again; running its code needs your consent."""
    use = model.use
    if model.kind in {"static", "function", KIND}:
        # These take only the options that every model has.
        return Use(revision=use.revision).processed(use)
    return replace(
        use,
        pooling=use.pooling if model.kind in WITH_POOLINGS else AUTO,
        prompt=use.prompt if use.template is None and use.prompts is None else None,
        template=use.template or NO_TEMPLATE,
        precision=use.precision.partition("#")[0].replace(UNKNOWN, FP32),
        trust_remote_code=False,
    )


def _advice(model: ModelPart) -> str:
    option = "encoder-module" if model.kind == "function" else "model"
    return f"Measure it again with `stsbench run --{option} {model.name}`"


class SentenceVectors(NamedTuple):
    """The vectors of some texts: one row per distinct token sequence, and the row of each text."""

    vectors: NDArray[np.floating[Any]]
    rows: NDArray[np.int64]

    def each(self) -> NDArray[np.floating[Any]]:
        """Returns one vector for each text."""
        return self.vectors[self.rows]


def vectors_of(subject: RunRecord | Encoder, texts: Sequence[str], progress: Progress = silent) -> SentenceVectors:
    """Returns the vectors of some texts, from the cache if possible, with the post-processing of the run.

    Whitening is fitted on these texts. A model without a hash, such as a function, must reproduce some of the
    similarities in its record, if these texts contain recorded pairs.
    """
    encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
    embeddings = embed(encoder, texts, normalize=False, progress=progress)
    (plain,) = embeddings.vectors.values()
    vectors, rows = processed(plain, encoder.identity), embeddings.rows
    if isinstance(subject, RunRecord) and subject.model.weights_sha256 is None:
        _require_same_behaviour(subject, texts, vectors[rows])
    if (whitened := encoder.identity.use.whiten) is not None:
        return SentenceVectors(whiten(vectors, vectors[rows], whitened or None), rows)
    return SentenceVectors(vectors, rows)


def _require_same_behaviour(record: RunRecord, texts: Sequence[str], vectors: NDArray[np.floating[Any]]) -> None:
    """Raises if the (n, d) vectors of n texts give other similarities than the record's."""
    name, pairs = record.model.name, pd.DataFrame()
    if record.model.use.whiten is None:
        with suppress(MissingTableError):
            place = pd.Series(np.arange(len(texts)), sentence_ids(texts))
            pairs = record.compared_pairs()
            pairs["left"], pairs["right"] = (
                pairs[side].map(place[~place.index.duplicated()]) for side in SENTENCES
            )
            pairs = pairs[(pairs["left"] != pairs["right"]) & pairs[["left", "right"]].notna().all(axis=1)]
    if not len(pairs):
        _warn_unchecked(name)
        return
    left, right = (pairs[side].to_numpy(np.int64) for side in ("left", "right"))
    for kind, now in pair_similarities(vectors, left, right, tuple(SIMILARITIES)).items():
        names = zip(pairs["task"], pairs["item_id"], strict=True)
        rows = [f"the {kind} similarity of pair {pair} of {task}" for task, pair in names]
        before, advice = pairs[kind].to_numpy(), f"{_advice(record.model)}."
        require_unchanged(name, before, now, rows, tolerance=_TOLERANCE, advice=advice)


@cache
def _warn_unchecked(name: str) -> None:
    _log.warning(
        "%s has no hash, so it may have changed since the run: no recorded similarity could be compared.", name
    )


def specs_of(records: Sequence[RunRecord]) -> list[TaskSpec]:
    """Returns the distinct tasks of records, without the results of other tools."""
    scores = (score for record in records for score in record.scores if Signature.parse(score.signature).data)
    return list(
        dict.fromkeys(TaskSpec(score.task, split_and_view(score.split)[0], score.text) for score in scores)
    )


def texts_of(
    specs: Sequence[TaskSpec],
    ids: Collection[int],
    data: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    *,
    remedy: str = "",
) -> dict[int, str]:
    """Returns sentences by id (`data.tables.sentence_ids`).

    Args:
        specs: the tasks whose data is searched.
        ids: the ids of the sentences.
        data: files with sentences that are not in the catalogue, such as your own pairs.
        data_dirs: folders to look for the tasks' data in.
        remedy: another remedy for the error message, an infinitive.

    Raises:
        UserError: if a sentence is not found.
    """
    ids, reason = set(ids), ""
    texts: dict[int, str] = {}
    for sentences in _sources(specs, data, [Path(folder) for folder in data_dirs]):
        if isinstance(sentences, UserError):
            reason = reason or f" ({str(sentences).rstrip('.')})"
            continue
        known = zip(sentence_ids(sentences).tolist(), sentences, strict=True)
        texts |= {sentence_id: text for sentence_id, text in known if sentence_id in ids}
        if len(texts) == len(ids):
            return texts
    if missing := len(ids) - len(texts):
        advice = "name the folder of the data with --data-dir, or a file of your own with --data"
        raise UserError(
            f"{missing:,} of the runs' {len(ids):,} sentences are not here{reason}: {advice}"
            f"{f', or {remedy}' if remedy else ''}."
        )
    return texts


def _sources(
    specs: Sequence[TaskSpec], data: Sequence[str | Path], folders: Sequence[Path]
) -> Iterator[Sequence[str] | UserError]:
    """Yields the sentences of each file and task, or the error for a task without data."""
    for path in data:
        folder = Path(path).expanduser()
        is_folder = folder.is_dir()  # of documents and queries
        yield [text for _, text in texts_in(folder, "queries")] if is_folder else read_corpus_set(path).texts
    for spec in specs:
        if spec.text == "user":  # your own pairs are not in the catalogue
            continue
        try:
            yield read_task(spec, folders).sentences()
        except UserError as error:
            yield error
