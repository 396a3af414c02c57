"""Measure one model: encode every distinct sentence once, turn vectors into items, record what they give."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.postprocess import normalize, truncate, whiten
from stsbench.encoders.protocol import Encoder, notes_on
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord
from stsbench.scoring.kinds.sts import compared_elsewhere
from stsbench.scoring.predictions import SavedPredictions
from stsbench.scoring.recording import Measured, Recording
from stsbench.scoring.saved import SavedSimilarities
from stsbench.scoring.settings import Settings, Stages
from stsbench.scoring.task import Items, Task, Vectors


def measure_encoder(encoder: Encoder, tasks: Sequence[Task], settings: Settings, stages: Stages) -> RunRecord:
    """Encode the sentences of some tasks, each once, and score the tasks.

    Raises:
        UserError: if the encoder cannot do it, a task cannot be folded, or the record cannot be saved.
    """
    identity = encoder.identity
    stages.done("hash")
    recording = Recording.of(tasks, identity, settings)
    recording.prepare()

    sentences = [task.sentences() for task in recording.tasks]
    embeddings = embed(
        encoder,
        [text for of_task in sentences for text in of_task],
        normalize=False,
        use_cache=settings.use_cache,
        progress=stages.progress,
    )
    stages.done("encode")
    stages.seconds |= {stage: round(value, 3) for stage, value in embeddings.cost.seconds.items()}
    vectors = _AllVectors.of(embeddings, recording.model)
    # Apple's GPU has no float64, in which the logistic regression is solved.
    device = "cuda" if identity.use.device == "cuda" else "cpu"

    items, truncated, notes = [], [], list(encoder.notes)
    ends = np.cumsum([len(of_task) for of_task in sentences]).tolist()
    trained = sum(task.is_trained for task in recording.tasks)
    for number, (task, of_task, end) in enumerate(zip(recording.tasks, sentences, ends, strict=True)):
        place = slice(end - len(of_task), end)
        # A sentence that occurs twice was cut once.
        truncated.append(sum(dict(zip(of_task, embeddings.truncated[place].tolist(), strict=True)).values()))
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
    return recording.finish(Measured(items, truncated, notes, cost), stages)


def measure_similarities(
    similarities: SavedSimilarities | SavedPredictions,
    tasks: Sequence[Task],
    settings: Settings,
    stages: Stages,
) -> RunRecord:
    """Score similarities that were computed elsewhere.

    Raises:
        UserError: if there is not one finite number for each pair, a task needs vectors, or the record cannot be
            saved.
    """
    if settings.use.changed("afterwards"):
        raise UserError(
            "similarities have no vectors any more: --dimensions, --whiten and --normalize are not for them."
        )
    for task in tasks:
        if task.pairs is None:
            raise UserError(f"{task.data.task} is no matter of similarities: give the vectors.")
    recording = Recording.of(tasks, similarities.identity, settings)
    recording.prepare()
    pairs = [task.pairs for task in tasks if task.pairs is not None]
    columns = similarities.columns(pairs)
    if recording.similarity not in columns[0]:
        raise UserError(
            f"{similarities.path} holds no similarity {recording.similarity!r}: choose one of "
            f"{', '.join(columns[0])}."
        )
    items = [Items(compared_elsewhere(task, part)) for task, part in zip(tasks, columns, strict=True)]
    stages.done("similarities")
    return recording.finish(Measured(items, [0] * len(tasks), similarities.notes(pairs), {}), stages)


@dataclass(frozen=True)
class _AllVectors:
    """The vectors as similarities are taken of them, and as classifiers are trained on them: (sequences, d)."""

    compared: NDArray[np.float32]
    trained_on: NDArray[np.float32]
    whiten: int | None

    @classmethod
    def of(cls, embeddings: Embeddings, model: ModelPart) -> "_AllVectors":
        """Return them from those of the one pooler, as it says how the model is used."""
        (plain,) = embeddings.vectors.values()
        use = model.use
        if use.dimensions is not None:
            plain = truncate(plain, use.dimensions)
        compared = normalize(plain) if model.normalize else plain
        return cls(compared, compared if use.normalize else plain, use.whiten)

    def of_task(self, task: Task, embeddings: Embeddings, place: slice, device: str) -> tuple[Vectors, list[str]]:
        """Return the vectors of a task, whitened by those of its sentences if wanted, and what to say of that."""
        rows, lengths = embeddings.rows[place], embeddings.lengths[place]
        if task.is_trained:
            matrix: NDArray[np.floating] = self.trained_on[rows]
            rows, reference = np.arange(len(rows)), matrix
        else:
            matrix, reference = self.compared, self.compared[rows] if self.whiten is not None else self.compared
        if self.whiten is None:
            return Vectors(matrix, rows, lengths, device), []
        whitened = whiten(matrix, reference, self.whiten or None, task=task.data.task)
        kept, width = whitened.shape[1], matrix.shape[1]
        notes = []
        if not self.whiten and kept < width:
            notes.append(
                f"{task.data.task}: its sentences vary in {kept} of {width} dimensions, and whitening kept those."
            )
        return Vectors(whitened, rows, lengths, device), notes
