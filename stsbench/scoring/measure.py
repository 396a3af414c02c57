"""Measure one model: encode every distinct sentence once, turn vectors into items, score and record them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.encoders.plan import Embeddings
from stsbench.encoders.postprocess import normalize, truncate, whiten
from stsbench.encoders.protocol import Encoder, Identity, notes_on, reader_of
from stsbench.encoders.sides import embed_each
from stsbench.encoders.use import Use
from stsbench.records.items import join_items
from stsbench.records.parts import DataFile, DataPart, ModelPart, ProtocolPart, Score
from stsbench.records.provenance import environment, now, redact
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.records.store import HeldError, MeasuredTask, Measurement, require_free, save_beside, save_run
from stsbench.scoring.kinds import in_order
from stsbench.scoring.kinds.sts import compared_elsewhere, rater_part
from stsbench.scoring.recompute import averages, counts_in
from stsbench.scoring.settings import GIVEN_SIMILARITY, Settings, Stages
from stsbench.scoring.similarities import SavedPredictions, SavedSimilarities
from stsbench.scoring.statistic import Support
from stsbench.scoring.task import Items, Rows, Scoring, Task, Vectors


class SavedBesideError(UserError):
    """A record that was saved beside the folder that it was meant for, as that one holds another by now.

    Attributes:
        record: as it was saved.
    """

    def __init__(self, taken: HeldError, record: RunRecord) -> None:
        super().__init__(
            f"{taken}: this measurement is saved in {record.folder}; to have it in the other's place, run again "
            "with --overwrite."
        )
        self.record = record


@dataclass(frozen=True)
class Recording:
    """A measurement that is going on: what its record says before there is a score.

    The tasks stand in the order of `KINDS`, and a signature says of each what its score will mean.
    """

    tasks: Sequence[Task]
    model: ModelPart
    signatures: tuple[Signature, ...]
    settings: Settings

    @classmethod
    def of(
        cls, tasks: Sequence[Task], identity: Identity, settings: Settings, encoder: Encoder | None = None
    ) -> "Recording":
        """Return the recording of a model, by what `identity` says of it, before anything is measured.

        Args:
            tasks: what is measured.
            identity: of the model.
            settings: how it is measured.
            encoder: which says for each task what stands before its sentences, where that goes by task; None of
                what has no vectors.
        """
        if identity.kind == "similarities":
            settings = replace(settings, protocol=replace(settings.protocol, similarity=GIVEN_SIMILARITY))
        use = identity.use.processed(settings.use)
        model = ModelPart(**vars(identity) | {"name": redact(identity.name), "use": use})
        ordered = in_order(tasks)
        uses = [use if encoder is None else _use_on(task, use, encoder) for task in ordered]
        signatures = tuple(
            _signature(task, model, settings, use_on) for task, use_on in zip(ordered, uses, strict=True)
        )
        return cls(ordered, model, signatures, settings)

    @property
    def protocol(self) -> ProtocolPart:
        """The choices for all tasks, as the record says them."""
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
        """What is measured, on what and how: `Measurement.of` the record that will be."""
        seed = self.settings.classification.seed
        tasks = tuple(
            MeasuredTask(str(signature), task.data.sha256, seed if task.is_trained else None)
            for signature, task in zip(self.signatures, self.tasks, strict=True)
        )
        return Measurement(self.model, self.protocol, tasks)

    def prepare(self) -> None:
        """Make sure that the record can be saved where it is to be."""
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
        """Score the items of each task and return the record, saved if it has a folder.

        Args:
            items: of each task, in the order of `tasks`.
            stages: told of the scoring, and asked for the time of all stages.
            truncated: how many sentences of each task were cut; none by default.
            notes: what the person should know of the model and the fits.
            encoding: what encoding took.

        Raises:
            SavedBesideError: if another measurement has come into its folder meanwhile.
        """
        scores, supports = [], []
        for number, of_task in enumerate(items):
            stages.progress("scoring", number, len(items))
            score, support = self._score(number, of_task, truncated[number] if truncated else 0)
            scores.append(score)
            supports.append(support)
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
            averages=averages(scores, supports, self.settings.intervals),
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
            # Hours may lie behind it: it is lost no more than the other.
            raise SavedBesideError(taken, save_beside(record, out)) from taken

    def _score(self, number: int, items: Items, truncated: int) -> tuple[Score, Support]:
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
        return score, computed.support


def _use_on(task: Task, use: Use, encoder: Encoder) -> Use:
    """Return how a model is used on a task: with the text before its sentences, or those of their sides."""
    prompts = [reader.identity.use.prompt for reader in _readers(encoder, task)]
    if len(set(prompts)) == 1:
        return replace(use, prompt=prompts[0])
    first, second = (prompt or "" for prompt in prompts)
    return replace(use, prompt="", prompts=(first, second))


def _signature(task: Task, model: ModelPart, settings: Settings, use: Use) -> Signature:
    """Return what a task's score means."""
    # What is trained gets vectors of unit length only where that was asked for.
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
    """Encode the sentences of some tasks, each once, and score the tasks."""
    identity = encoder.identity
    stages.done("hash")
    recording = Recording.of(tasks, identity, settings, encoder)
    recording.prepare()

    sentences = [task.sentences() for task in recording.tasks]
    read = [
        part
        for task, texts in zip(recording.tasks, sentences, strict=True)
        for part in readings(encoder, task, texts)
    ]
    embeddings = embed_each(read, use_cache=settings.use_cache, progress=stages.progress)
    stages.done("encode")
    stages.seconds |= {stage: round(value, 3) for stage, value in embeddings.cost.seconds.items()}
    trained = sum(task.is_trained for task in recording.tasks)
    vectors = _AllVectors.of(embeddings, recording.model, is_trained=trained > 0)
    # Apple's GPU has no float64, in which the logistic regression is solved.
    device = "cuda" if identity.use.device == "cuda" else "cpu"

    items, truncated, notes = [], [], list(encoder.notes)
    ends = np.cumsum([len(of_task) for of_task in sentences]).tolist()
    for number, (task, of_task, end) in enumerate(zip(recording.tasks, sentences, ends, strict=True)):
        place = slice(end - len(of_task), end)
        # A sentence that occurs twice was cut once, or by either side where these are read apart.
        cut = zip(of_task, embeddings.rows[place].tolist(), embeddings.truncated[place].tolist(), strict=True)
        truncated.append(len({(text, row) for text, row, is_cut in cut if is_cut}))
        notes += notes_on(encoder, task.data.task, of_task)
        if task.is_trained:
            stages.progress("training", number - len(ends) + trained, trained)
        of_sentences, remarks = vectors.of_task(task, embeddings, place, device)
        items.append(task.items(of_sentences, settings))
        notes += [*remarks, *items[-1].notes]
        if number + 1 == len(ends) - trained:
            stages.done("similarities")
    if trained:
        stages.progress("training", trained, trained)
        stages.done("train")
    cost = {name: value for name, value in vars(embeddings.cost).items() if name != "seconds"}
    cost |= {"dimensions": recording.model.use.whiten or vectors.compared.shape[1]}
    if (weight_bytes := getattr(encoder, "weight_bytes", None)) is not None:
        cost["weight_bytes"] = weight_bytes
    return recording.finish(items, stages, truncated=truncated, notes=notes, encoding=cost)


def _readers(encoder: Encoder, task: Task) -> list[Encoder]:
    """Return what reads the sentences of a task, for each side of its pairs."""
    sides = range(task.sides) if task.sides > 1 else [None]
    return [reader_of(encoder, task.data.task, side) for side in sides]


def readings(encoder: Encoder, task: Task, sentences: Sequence[str]) -> list[tuple[Encoder, Sequence[str]]]:
    """Return what reads the sentences of a task, one side of its pairs after the other, each with these sentences.

    Raises:
        UserError: if the encoder reads pairs by their sides, and the task's items are single sentences.
    """
    readers = _readers(encoder, task)
    size = len(sentences) // len(readers)
    return [(reader, sentences[side * size :][:size]) for side, reader in enumerate(readers)]


def measure_similarities(
    similarities: SavedSimilarities | SavedPredictions,
    tasks: Sequence[Task],
    settings: Settings,
    stages: Stages,
) -> RunRecord:
    """Score similarities that were computed elsewhere."""
    if settings.use.changed("afterwards"):
        raise UserError(
            "similarities have no vectors any more: --dimensions, --whiten and --normalize are not for them."
        )
    for task in tasks:
        if task.pairs is None:
            raise UserError(f"{task.data.task} is no matter of similarities: give the vectors.")
    recording = Recording.of(tasks, similarities.identity, settings)
    recording.prepare()
    pairs = [task.pairs for task in recording.tasks if task.pairs is not None]
    columns = similarities.columns(pairs)
    similarity = recording.settings.protocol.similarity
    if similarity not in columns[0]:
        raise UserError(
            f"{similarities.path} holds no similarity {similarity!r}: choose one of {', '.join(columns[0])}."
        )
    items = [Items(compared_elsewhere(task, part)) for task, part in zip(recording.tasks, columns, strict=True)]
    stages.done("similarities")
    return recording.finish(items, stages, notes=similarities.notes(pairs))


@dataclass(frozen=True)
class _AllVectors:
    """The vectors as similarities are taken of them, and as classifiers are trained on them: (sequences, d)."""

    compared: NDArray[np.float32]
    trained_on: NDArray[np.float32]
    whiten: int | None

    @classmethod
    def of(cls, embeddings: Embeddings, model: ModelPart, *, is_trained: bool) -> "_AllVectors":
        (plain,) = embeddings.vectors.values()
        use = model.use
        if use.dimensions is not None:
            plain = truncate(plain, use.dimensions)
        # Where nobody trains on them as they are, they are scaled in their place, and not held twice.
        in_place = plain.flags.c_contiguous and (use.normalize or not is_trained)
        compared = normalize(plain, out=plain if in_place else None) if model.normalize else plain
        return cls(compared, compared if use.normalize else plain, use.whiten)

    def of_task(self, task: Task, embeddings: Embeddings, place: slice, device: str) -> tuple[Vectors, list[str]]:
        """Return the vectors of a task, whitened by those of its sentences if wanted, and what to say of that."""
        rows, lengths = embeddings.rows[place], embeddings.lengths[place]
        matrix: NDArray[np.floating] = self.compared
        if task.is_trained:
            matrix, rows = self.trained_on[rows], np.arange(len(rows))
        if self.whiten is None:
            return Vectors(matrix, rows, lengths, device), []
        whitened = whiten(matrix, matrix[rows], self.whiten or None, task=task.data.task)
        kept, width = whitened.shape[1], matrix.shape[1]
        notes = []
        if not self.whiten and kept < width:
            notes.append(
                f"{task.data.task}: its sentences vary in {kept} of {width} dimensions, and whitening kept those."
            )
        return Vectors(whitened, rows, lengths, device), notes
