"""What is analysed: records and models, each with a name of its own, and their vectors.

A record stands for its model: vectors come from the cache, from the model itself only where they are not there.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
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
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import SENTENCES, sentence_ids
from stsbench.encoders.checkpoint import packaged_model
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.load import load, load_with
from stsbench.encoders.mteb_models import KIND
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.postprocess import processed, whiten
from stsbench.encoders.protocol import (
    WITH_POOLINGS,
    Encoder,
    Identity,
    Wrapper,
)
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.use import Use
from stsbench.records.labels import model_labels, task_labels
from stsbench.records.parts import ModelPart, Score
from stsbench.records.record import RECORD, MissingTableError, RunRecord, without_pairs
from stsbench.records.store import load_run
from stsbench.scoring.evaluate import evaluate
from stsbench.scoring.kinds import statistic_of
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import Correlation
from stsbench.scoring.tasks import canonical, read_pairs_of, tasks_here
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.similarity import SIMILARITIES, pair_similarities

Subject = RunRecord | Encoder
Wanted = RunRecord | Encoder | str | Path | Callable[[list[str]], Any]
"""A record, its folder or its `run.json`; or an encoder, or what `load` makes one of."""


def named_subjects(wanted: Wanted | Sequence[Wanted] | None) -> dict[str, Subject]:
    """Return what is to be analysed (None: the packaged model), by the names that tables and figures give it."""
    several: list[Any] = list(wanted) if isinstance(wanted, list | tuple) else [] if wanted is None else [wanted]
    if not several:
        several = [default_model()]
    subjects = [_subject(each) for each in several]
    models = [
        subject.model if isinstance(subject, RunRecord) else ModelPart(**vars(subject.identity))
        for subject in subjects
    ]
    folders = [subject.folder if isinstance(subject, RunRecord) else None for subject in subjects]
    return dict(zip(model_labels(models, folders), subjects, strict=True))


def _subject(wanted: Wanted) -> Subject:
    if isinstance(wanted, RunRecord):
        return wanted
    return load_run(wanted) if isinstance(wanted, str | Path) and is_run(wanted) else load(wanted)


def default_model() -> str:
    """Returns the packaged model; raises a UserError if it is not installed."""
    if packaged_model() is None:
        raise UserError("nothing was named: give a run, or --model NAME.")
    return PACKAGED


def is_run(path: str | Path) -> bool:
    """Returns whether a path is the folder or the file of a record."""
    path = Path(path).expanduser()
    return (path / RECORD).is_file() or path.suffix == ".json"


def _require_tasks(name: str, record: RunRecord, there: Sequence[str], tasks: Sequence[str]) -> None:
    """Refuse a task that a record does not have."""
    for task in tasks:
        if task not in there:
            where = f" in {record.folder}" if record.folder else ""
            raise UserError(
                f"the run of {name}{where} has no {task} (it has {', '.join(there)}): measure it with "
                f"`stsbench run --model {record.model.name} --tasks {task}`, or choose another task."
            )


class ScoredTask(NamedTuple):
    """The n pairs of a task as a model was scored on them.

    Attributes:
        task: its name, with split and text only where those tell two apart.
        statistic: what makes a score of the pairs.
        pairs: their rows of the items table.
        gold_range: the lowest and highest possible gold score of its data.
        data: the hash of its data.
    """

    task: str
    statistic: Correlation
    pairs: pd.DataFrame
    gold_range: tuple[float, float]
    data: str = ""

    @property
    def similarity(self) -> NDArray[np.float64]:
        """(n,) the similarities that are scored."""
        return np.asarray(self.pairs[self.statistic.similarity], dtype=np.float64)


def scored_tasks(
    name: str,
    subject: Subject,
    tasks: Sequence[str] = (),
    *,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> tuple[RunRecord, list[ScoredTask]]:
    """Return the record of what is analysed (a model is measured), and its tasks that are correlations of pairs.

    By default they are all tasks that a record has, and for a model the seven STS tasks, or the sample where their
    data is not here.
    """
    wanted = list(dict.fromkeys(canonical(task) for task in tasks))
    record = subject
    if not isinstance(record, RunRecord):
        chosen = wanted or tasks_here(data_dirs)
        record = evaluate(record, chosen, data_dirs=data_dirs, intervals=Intervals(None), progress=progress)
    scores = [score for score in record.scores if score.statistic in CORRELATIONS and not score.training]
    if not scores:
        raise without_pairs(record)
    _require_tasks(name, record, list(dict.fromkeys(score.task for score in scores)), wanted)
    rows = record.rows_by_score()
    named = zip(task_labels(scores), scores, strict=True)
    return record, [
        ScoredTask(label, statistic, rows[score.key], _gold_range(score, rows[score.key]), score.data.sha256)
        for label, score in named
        if (score.task in wanted or not wanted) and isinstance(statistic := statistic_of(score), Correlation)
    ]


def tasks_by_model(
    subjects: Mapping[str, Subject],
    tasks: Sequence[str] = (),
    *,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> dict[str, list[ScoredTask]]:
    """Return the scored pairs of each subject by task; see `scored_tasks`."""
    return {
        name: scored_tasks(name, subject, tasks, data_dirs=data_dirs, progress=progress)[1]
        for name, subject in subjects.items()
    }


def _gold_range(score: Score, pairs: pd.DataFrame) -> tuple[float, float]:
    """Return the scale of a catalogued task's annotators; for your own pairs, the range that occurs in them."""
    entry = data_sets().get(score.task)
    known = entry.gold_range if entry and score.text in entry.texts else None
    return known or (float(pairs["gold"].min()), float(pairs["gold"].max()))


_log = logging.getLogger(__name__)

_ENCODED_AGAIN = 16
"""Pairs of a record that what has no weights is held against."""

_TOLERANCE = 1e-3
"""How far their similarities may be, as a share of the largest: batches of other sizes round otherwise."""

_WITHOUT_MODEL = {
    "vectors": "saved vectors",
    "similarities": "saved similarities",
    "predictions": "MTEB's predictions",
}
"""The kinds of models that nobody can ask for another sentence, and what they are."""


@dataclass
class RecordedModel(Wrapper):
    """Stands for the model that a run was made with.

    A record names everything that a vector depends on, so the cache is asked without the model. Only for a
    sentence that was never encoded is the model loaded by its name, and held against the record's hash of its
    weights.
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
        """The model itself, loaded when it is needed."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> Encoder:
        model, command = self.model, _command(self.model)
        # A function can be imported again if it has a place of its own: `<lambda>` and `<locals>` have none.
        nameless = model.kind == "function" and (":" not in model.name or "<" in model.name)
        if model.kind in _WITHOUT_MODEL or nameless:
            what = _WITHOUT_MODEL.get(model.kind, "a callable")
            raise UserError(
                f"some of these sentences have no vector of {model.name} in the cache, and the record of {what} "
                "cannot make any: measure a checkpoint with `stsbench run --model`, or pass the encoder in Python."
            )
        try:
            encoder = load_with(model.name, _asked(model))
            identity = encoder.identity
        except UserError as error:
            raise UserError(
                f"some of these sentences have no vector of {model.name} in the cache, and it cannot be loaded: "
                f"{str(error).rstrip('.')}; where it is, `{command}` measures it again."
            ) from error
        # What it encodes goes into the cache as the run's own vectors: all that they depend on has to agree.
        now, then = identity.key(), self.identity.key()
        for field in now | then:
            if now.get(field) != then.get(field):
                here, recorded = now.get(field), then.get(field)
                raise UserError(
                    f"{model.name} is not as it was when the run was made: its {field} is {here}, "
                    f"the record's {recorded}; measure it again with `{command}`."
                )
        return encoder


def _asked(model: ModelPart) -> Use:
    """Return how a recorded model is asked for again. That its code may run, only the person can say."""
    use = model.use
    if model.kind in {"static", "function", KIND}:
        # What is a choice only for a checkpoint is not said to a file of word vectors, to a function, or to mteb.
        return Use(revision=use.revision).processed(use)
    return replace(
        use,
        pooling=use.pooling if model.kind in WITH_POOLINGS else AUTO,
        prompt=use.prompt if use.template is None and use.prompts is None else None,
        template=use.template or NO_TEMPLATE,
        precision=use.precision.partition("#")[0],
        trust_remote_code=False,
    )


def _command(model: ModelPart) -> str:
    """Return what measures a model again."""
    return f"stsbench run --{'encoder-module' if model.kind == 'function' else 'model'} {model.name}"


class SentenceVectors(NamedTuple):
    """The vectors of some texts: one row per distinct token sequence, and for each text its row."""

    vectors: NDArray[np.floating[Any]]
    rows: NDArray[np.int64]

    def each(self) -> NDArray[np.floating[Any]]:
        """Return one row for each text."""
        return self.vectors[self.rows]


def vectors_of(
    subject: RunRecord | Encoder,
    texts: Sequence[str],
    progress: Progress = silent,
    *,
    data_dirs: Sequence[str | Path] = (),
) -> SentenceVectors:
    """Return the vectors of some texts, from the cache where they are there.

    What a run did to its vectors is done to these: dimensions left out; whitening, on these texts. Of a record of
    which nothing was hashed sentences of its data, in `data_dirs`, are encoded again.
    """
    encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
    if isinstance(subject, RunRecord) and subject.model.weights_sha256 is None:
        _require_same_behaviour(subject, encoder, texts, data_dirs)
    vectors, rows = _vectors_before_whitening(encoder, texts, progress)
    if (whitened := encoder.identity.use.whiten) is not None:
        return SentenceVectors(whiten(vectors, vectors[rows], whitened or None), rows)
    return SentenceVectors(vectors, rows)


def _vectors_before_whitening(encoder: Encoder, texts: Sequence[str], progress: Progress) -> SentenceVectors:
    embeddings = embed(encoder, texts, normalize=False, progress=progress)
    (vectors,) = embeddings.vectors.values()
    return SentenceVectors(processed(vectors, encoder.identity), embeddings.rows)


def _require_same_behaviour(
    record: RunRecord, encoder: Encoder, texts: Sequence[str], data_dirs: Sequence[str | Path]
) -> None:
    """Hold what has no weights to hash against its record: some pairs are encoded again, and give what they gave.

    A function's code, its closure and the files that it reads can change; what it does is seen in what it returns.
    """
    name = record.model.name
    if record.model.use.whiten is not None:
        _tell_unknown(name, "its vectors were whitened")
        return
    try:
        table = record.compared_pairs()
    except MissingTableError as error:
        _tell_unknown(name, str(error).rstrip("."))
        return
    known = _pairs_among(table, texts) or _pairs_among(table, _sentences_here(record, data_dirs))
    if not known:
        _tell_unknown(name, "none of the sentences that it was measured on is here")
        return
    # Spread over the table, and always the same ones.
    pairs = known[:: -(-len(known) // _ENCODED_AGAIN)]
    sides = [[pair.first for pair in pairs], [pair.second for pair in pairs]]
    vectors, rows = _vectors_before_whitening(encoder, [*sides[0], *sides[1]], silent)
    left, right = np.split(rows, 2)
    for kind, now in pair_similarities(vectors, left, right, tuple(SIMILARITIES)).items():
        then = table[kind].to_numpy()[[pair.row for pair in pairs]]
        far = np.abs(now - then)
        if not (far <= _TOLERANCE * np.abs(then).max()).all():
            worst = int(np.argmax(far))
            task, pair = (table[column].iloc[pairs[worst].row] for column in ("task", "item_id"))
            raise UserError(
                f"{name} is not as it was when the run was made: the {kind} similarity of pair {pair} of {task} "
                f"is {now[worst]:.6g}, the record's {then[worst]:.6g}; measure it again with "
                f"`{_command(record.model)}`."
            )


class _KnownPair(NamedTuple):
    """A row of a pair table whose sentences are here."""

    row: int
    first: str
    second: str


def _pairs_among(table: pd.DataFrame, texts: Sequence[str]) -> list[_KnownPair]:
    """Return the pairs of two sentences, both among some texts."""
    by_id = dict(zip(sentence_ids(texts).tolist(), texts, strict=True))
    sides = zip(*(table[side].tolist() for side in SENTENCES), strict=True)
    return [
        _KnownPair(row, by_id[first], by_id[second])
        for row, (first, second) in enumerate(sides)
        if first != second and first in by_id and second in by_id
    ]


def _sentences_here(record: RunRecord, data_dirs: Sequence[str | Path]) -> list[str]:
    """Return the sentences of those of a record's tasks whose data is here."""
    sentences = []
    for score in record.scores:
        with suppress(UserError):
            sentences += sentences_in(read_pairs_of(score.task, score.split, score.text, data_dirs))
    return sentences


@cache
def _tell_unknown(name: str, reason: str) -> None:
    """Say once that nothing can be known."""
    _log.warning(
        "%s has no weights that could be hashed, and whether it computes what it did when the run was made cannot "
        "be known (%s).",
        name,
        reason,
    )
