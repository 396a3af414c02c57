"""Measures one model: encode each distinct sentence once, turn vectors into items, score and record them."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.views import PairView
from stsbench.encoders.fitted import normalize, truncate, whiten
from stsbench.encoders.load import Model, load
from stsbench.encoders.plan import EncodingCost, embed
from stsbench.encoders.prompts import embed_each
from stsbench.encoders.protocol import Encoder, Identity, notes_on, reader_of
from stsbench.encoders.use import Use
from stsbench.records.kinds import join_items
from stsbench.records.parts import DataFile, DataPart, ModelPart, ProtocolPart, Score, environment, now, redact
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.records.store import HeldError, Measurement, require_free, save_beside, save_run
from stsbench.scoring.kinds import in_order
from stsbench.scoring.kinds.sts import rater_part
from stsbench.scoring.recompute import averages, counts_in
from stsbench.scoring.settings import Classification, Intervals, Protocol, Settings, Stages
from stsbench.scoring.statistic import ItemsEstimate
from stsbench.scoring.task import Items, Rows, Scoring, Task, Vectors
from stsbench.scoring.tasks import SAMPLE_USED, WHOLE, AnyTask, is_sample, read_data


class SavedBesideError(UserError):
    """A record was saved next to its folder, because another measurement has used the folder meanwhile.

    Attributes:
        record: the saved record.
    """

    def __init__(self, taken: HeldError, record: RunRecord) -> None:
        super().__init__(
            f"{taken}: this measurement is saved in {record.folder}; to replace the other one, run again with "
            "--overwrite."
        )
        self.record = record


@dataclass(frozen=True)
class Recording:
    """A measurement in progress: everything its record contains before there is a score.

    Tasks are in the order of `KINDS`, each with the signature of its score.
    """

    tasks: Sequence[Task]
    model: ModelPart
    signatures: tuple[Signature, ...]
    settings: Settings

    @classmethod
    def of(
        cls, tasks: Sequence[Task], identity: Identity, settings: Settings, encoder: Encoder | None = None
    ) -> "Recording":
        """Starts a recording.

        Args:
            tasks: the tasks to measure.
            identity: the model's identity.
            settings: the settings.
            encoder: the model, if it may use other prompts by task; None without vectors.
        """
        use, model = identity.use, ModelPart(**vars(identity) | {"name": redact(identity.name)})
        ordered = in_order(tasks)
        uses = [use if encoder is None else _use_on(task, use, encoder) for task in ordered]
        signatures = tuple(
            _signature(task, model, settings, use_on) for task, use_on in zip(ordered, uses, strict=True)
        )
        return cls(ordered, model, signatures, settings)

    @property
    def protocol(self) -> ProtocolPart:
        """The choices for all tasks, as the record stores them."""
        protocol, intervals = self.settings.protocol, self.settings.intervals
        return ProtocolPart(
            name=protocol.name,
            aggregation=protocol.aggregation,
            metric=protocol.metric,
            similarity=protocol.similarity,
            interval=intervals.interval,
            level=intervals.level,
        )

    @property
    def measurement(self) -> Measurement:
        """The model, data and choices, equal to `Measurement.of` the finished record."""
        seed = self.settings.classification.seed
        tasks = tuple(
            (str(signature), task.data.sha256, seed if task.is_trained else None)
            for signature, task in zip(self.signatures, self.tasks, strict=True)
        )
        return Measurement(self.model, self.protocol, tasks)

    def prepare(self) -> None:
        """Raises if the record cannot be saved in its folder."""
        if self.settings.out is not None:
            require_free(self.settings.out, self.measurement, overwrite=self.settings.overwrite)

    def finish(
        self,
        items: Sequence[Items],
        stages: Stages,
        *,
        truncated: Sequence[int] = (),
        notes: Sequence[str] = (),
        encoding: Mapping[str, int] = MappingProxyType({}),
    ) -> RunRecord:
        """Scores the items of each task and returns the record, saved if it has a folder.

        Args:
            items: the items of each task, in the order of `tasks`.
            stages: progress and times.
            truncated: number of truncated sentences of each task; none by default.
            notes: notes on the model and the fits.
            encoding: the cost of encoding.

        Raises:
            SavedBesideError: if another measurement has taken the folder meanwhile.
        """
        scores, estimates = [], []
        for number, of_task in enumerate(items):
            stages.progress("scoring", number, len(items))
            score, estimate = self._score(number, of_task, truncated[number] if truncated else 0)
            scores.append(score)
            estimates.append(estimate)
        stages.progress("scoring", len(items), len(items))
        stages.done("score")
        problems = [problem for task in self.tasks for problem in task.data.problems]
        left_out = [note for task in self.tasks for note in getattr(task.data, "notes", ())]
        record = RunRecord(
            stsbench=__version__,
            created=now(),
            command=self.settings.command,
            model=self.model,
            protocol=self.protocol,
            scores=tuple(scores),
            averages=averages(scores, estimates, self.settings.intervals),
            notes=tuple(dict.fromkeys(map(redact, [*notes, *left_out, *problems]))),
            environment=environment(),
            seconds=stages.seconds,
            encoding=dict(encoding),
        ).with_items(join_items([of_task.table for of_task in items]))
        out = self.settings.out
        if out is None:
            return record
        try:
            return save_run(record, out, overwrite=self.settings.overwrite)
        except HeldError as taken:
            # The measurement may have taken hours, so save it next to the other one.
            raise SavedBesideError(taken, save_beside(record, out)) from taken

    def _score(self, number: int, items: Items, truncated: int) -> tuple[Score, ItemsEstimate]:
        task, signature = self.tasks[number], self.signatures[number]
        computed = task.numbers(
            Rows.of(items.table, signature.split), Scoring(signature, items.training, self.settings.intervals)
        )
        numbers = {number.key: number for number in (*computed.numbers, *items.stated)}
        score = Score(
            kind=task.kind,
            task=task.data.task,
            split=signature.split,
            text=task.data.text,
            numbers=tuple(numbers.values()),
            signature=str(signature),
            data=_data_part(task),
            counts=counts_in(items.table),
            truncated_sentences=truncated,
            training=items.training,
            raters=rater_part(items.table),
        )
        return score, computed.headline


def _use_on(task: Task, use: Use, encoder: Encoder) -> Use:
    """Returns the use of a model on a task, with the prompt for its sentences or for each side of its pairs."""
    prompts = [reader.identity.use.prompt for reader in _readers(encoder, task)]
    if len(set(prompts)) == 1:
        return replace(use, prompt=prompts[0])
    first, second = (prompt or "" for prompt in prompts)
    return replace(use, prompt="", prompts=(first, second))


def _signature(task: Task, model: ModelPart, settings: Settings, use: Use) -> Signature:
    # Classifiers are trained on normalised vectors only if you ask for that.
    normalize = model.use.normalize if task.is_trained else model.normalize
    return Signature(
        task.data.task,
        *task.meaning(settings),
        text=task.data.text,
        data=task.data.sha256,
        use=replace(use, normalize=normalize),
        fitted=model.fitted,
        version=__version__,
    )


def _data_part(task: Task) -> DataPart:
    data = task.data
    return DataPart(
        status=data.status,
        sha256=data.sha256,
        files=tuple(DataFile(name=f.name, sha256=f.sha256, expected=f.expected) for f in data.files),
        problems=tuple(map(redact, data.problems)),
    )


def measure_encoder(encoder: Encoder, tasks: Sequence[Task], settings: Settings, stages: Stages) -> RunRecord:
    """Encodes each distinct sentence of the tasks once and scores the tasks."""
    identity = encoder.identity
    stages.done("hash")
    recording = Recording.of(tasks, identity, settings, encoder)
    recording.prepare()

    sentences = [task.sentences() for task in recording.tasks]
    parts = [
        part
        for task, texts in zip(recording.tasks, sentences, strict=True)
        for part in readings(encoder, task, texts)
    ]
    embeddings = embed_each(parts, use_cache=settings.use_cache, progress=stages.progress)
    stages.done("encode")
    (plain,) = embeddings.vectors.values()
    use, trained = recording.model.use, sum(task.is_trained for task in recording.tasks)
    plain = plain if use.dimensions is None else truncate(plain, use.dimensions)
    normalized = normalize(plain) if recording.model.normalize else plain
    items, truncated, notes, end = [], [], list(encoder.notes), 0
    costs, numbers = [embeddings.cost], Counter[str]()
    for number, (task, texts) in enumerate(zip(recording.tasks, sentences, strict=True)):
        place = slice(end, end := end + len(texts))
        rows = embeddings.rows[place]
        # A truncated sentence counts once for each encoder.
        cut = zip(texts, rows.tolist(), embeddings.truncated[place].tolist(), strict=True)
        truncated.append(len({(text, row) for text, row, is_cut in cut if is_cut}))
        notes += notes_on(encoder, task.data.task, texts)
        if task.is_trained:
            stages.progress("training", sum(of.is_trained for of in recording.tasks[:number]), trained)
        matrix: NDArray[np.floating] = plain if task.is_trained and not use.normalize else normalized
        documents = _Documents(_readers(encoder, task)[-1], settings.use_cache, stages)
        if use.whiten is not None:
            width = matrix.shape[1]
            matrix = whiten(matrix, matrix[rows], use.whiten or None, task=task.data.task)
            if not use.whiten and (kept := matrix.shape[1]) < width:
                notes.append(
                    f"{task.data.task}: whitening kept the {kept} of {width} dimensions with any variance."
                )
        # Apple's GPU has no float64, which the logistic regression needs.
        device = "cuda" if use.device == "cuda" else "cpu"
        lengths = embeddings.lengths[place]
        items.append(task.items(Vectors(matrix, rows, lengths, device, documents.encode), settings))
        notes += items[-1].notes
        truncated[-1] += documents.truncated
        costs += documents.costs
        numbers.update(items[-1].cost)
        stages.done("train" if task.is_trained else "similarities")
    if trained:
        stages.progress("training", trained, trained)
    whole = reduce(add, costs)
    stages.seconds |= {stage: round(value, 3) for stage, value in whole.seconds.items()}
    cost = {name: value for name, value in vars(whole).items() if name != "seconds"} | numbers
    cost |= {"dimensions": use.whiten or plain.shape[1]}
    if (weight_bytes := getattr(encoder, "weight_bytes", None)) is not None:
        cost["weight_bytes"] = weight_bytes
    return recording.finish(items, stages, truncated=truncated, notes=notes, encoding=cost)


@dataclass
class _Documents:
    """Encodes the second side of a task that streams, some texts at a time."""

    reader: Encoder
    use_cache: bool
    stages: Stages
    costs: list[EncodingCost] = field(default_factory=list)
    truncated: int = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.floating]:
        if self.reader.identity.use.whiten is not None:
            raise UserError("documents are encoded in parts, so use a whitening of `stsbench fit whitening`.")
        self.stages.done("similarities")
        embeddings = embed(self.reader, texts, use_cache=self.use_cache, progress=self.stages.progress)
        self.stages.done("encode")
        self.costs.append(embeddings.cost)
        self.truncated += int(embeddings.truncated.sum())
        (vectors,) = embeddings.vectors.values()
        return vectors[embeddings.rows]


def _readers(encoder: Encoder, task: Task) -> list[Encoder]:
    """Returns the encoder of each side of a task's pairs, or of its single sentences."""
    sides = range(task.sides) if task.sides > 1 else [None]
    return [reader_of(encoder, task.data.task, side) for side in sides]


def readings(encoder: Encoder, task: Task, sentences: Sequence[str]) -> list[tuple[Encoder, Sequence[str]]]:
    """Returns the encoder and the sentences of each side of a task; of the first if it streams the second."""
    readers = _readers(encoder, task)[: 1 if task.streams else None]
    size = len(sentences) // len(readers)
    return [(reader, sentences[side * size :][:size]) for side, reader in enumerate(readers)]


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
            here, else `sample`, with a warning. Also data as `stsbench.data.tables.load_pairs` reads it.
        protocol: aggregation, metric, similarity and text; default: `simcse` (see `stsbench.protocol`).
        classification: the classifier, folds and seed (`stsbench.scoring.settings.Classification`).
        intervals: how intervals are computed; default: `Intervals()`.
        data: your own data instead of `tasks`: pairs (.tsv, .csv, .jsonl or .parquet), or a folder of queries and
            documents in BEIR's layout (see `stsbench.data.qrels.load_retrieval`).
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        view: which pairs are left out (`stsbench.data.views.PairView`); default: none.
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
