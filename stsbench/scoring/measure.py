"""Measure one model: encode every distinct sentence once, compare pairs, train classifiers, record."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.encoders.fitted.encoder import seen_note
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.postprocess import normalize, truncate, whiten
from stsbench.encoders.protocol import Encoder
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord
from stsbench.scoring.drift import drift_of, embed_sample, require_gate, sample
from stsbench.scoring.predictions import SavedPredictions
from stsbench.scoring.recording import Measurements, Recording
from stsbench.scoring.relatedness import Supervised, score_relatedness
from stsbench.scoring.saved import SavedSimilarities
from stsbench.scoring.settings import Settings, Stages
from stsbench.scoring.sts import pair_table, pair_table_of_similarities
from stsbench.scoring.tasks import TaskData, sentences_of, source_of, split_by_kind
from stsbench.scoring.transfer import score_labelled


def measure_encoder(encoder: Encoder, sets: Sequence[TaskData], settings: Settings, stages: Stages) -> RunRecord:
    """Encode the sentences of some tasks, each once, and score the tasks.

    Raises:
        UserError: if the encoder cannot do it, a task cannot be folded, or the record cannot be saved.
    """
    full = None if settings.margin is None else require_gate(encoder, sets, settings)
    identity = encoder.identity
    stages.done("hash")
    recording = Recording.of(sets, identity, settings)
    recording.prepare()

    sentences = [sentences_of(task) for task in recording.sets]
    embeddings = embed(
        encoder,
        [text for of_task in sentences for text in of_task],
        normalize=False,
        use_cache=settings.use_cache,
        progress=stages.progress,
    )
    stages.done("encode")
    stages.seconds |= {stage: round(value, 3) for stage, value in embeddings.cost.seconds.items()}
    vectors = _Vectors.of(embeddings, recording.model)
    ends = np.cumsum([len(of_task) for of_task in sentences]).tolist()
    places = [slice(end - len(of_task), end) for of_task, end in zip(sentences, ends, strict=True)]

    measured = Measurements(notes=list(encoder.notes))
    trained, sampled = [], []
    for task, of_task, place in zip(recording.sets, sentences, places, strict=True):
        # A sentence that occurs twice was cut once.
        cut = dict(zip(of_task, embeddings.truncated[place].tolist(), strict=True))
        measured.truncated.append(sum(cut.values()))
        measured.notes += seen_note(encoder, source_of(task).task, of_task)
        rows = embeddings.rows[place]
        if isinstance(task, StsData):
            compared, notes = vectors.to_compare(rows, task.task)
            measured.tables.append(pair_table(task, compared, rows, embeddings.lengths[place]))
            measured.notes += notes
            if full is not None:
                sampled.append(sample(task, measured.tables[-1], rows))
        else:
            trained.append((task, rows))
    stages.done("similarities")
    if full is not None:
        again = embed_sample(full, sampled, settings, stages.progress)
        reference = _Vectors.of(again, recording.model).compared
        measured.drift = drift_of(sampled, vectors.compared, again, reference, settings)
        stages.done("drift")

    for number, (task, rows) in enumerate(trained):
        stages.progress("training", number, len(trained))
        trained_on, notes = vectors.to_train_on(rows, source_of(task).task)
        measured.notes += notes
        _train(task, trained_on, settings, identity.use.device, measured)
    if trained:
        stages.progress("training", len(trained), len(trained))
        stages.done("train")
    measured.encoding = {name: value for name, value in vars(embeddings.cost).items() if name != "seconds"}
    return recording.finish(measured, stages)


def measure_similarities(
    similarities: SavedSimilarities | SavedPredictions,
    sets: Sequence[TaskData],
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
    tasks = split_by_kind(sets)[0]
    for other in (task for task in sets if not isinstance(task, StsData)):
        raise UserError(f"{source_of(other).task} is no matter of similarities: give the vectors.")
    recording = Recording.of(sets, similarities.identity, settings)
    recording.prepare()
    columns = similarities.columns(tasks)
    if recording.similarity not in columns[0]:
        raise UserError(
            f"{similarities.path} holds no similarity {recording.similarity!r}: choose one of "
            f"{', '.join(columns[0])}."
        )
    measured = Measurements(
        tables=[pair_table_of_similarities(task, part) for task, part in zip(tasks, columns, strict=True)],
        truncated=[0] * len(tasks),
        notes=similarities.notes(tasks),
    )
    stages.done("similarities")
    return recording.finish(measured, stages)


@dataclass(frozen=True)
class _Vectors:
    """The vectors as similarities are taken of them, and as classifiers are trained on them: (sequences, d)."""

    compared: NDArray[np.float32]
    trained_on: NDArray[np.float32]
    whiten: int | None

    @classmethod
    def of(cls, embeddings: Embeddings, model: ModelPart) -> "_Vectors":
        """Return them from those of the one pooler, as it says how the model is used."""
        (plain,) = embeddings.vectors.values()
        use = model.use
        if use.dimensions is not None:
            plain = truncate(plain, use.dimensions)
        compared = normalize(plain) if model.normalize else plain
        return cls(compared, compared if use.normalize else plain, use.whiten)

    def to_compare(self, rows: NDArray[np.int64], task: str) -> tuple[NDArray[np.floating], list[str]]:
        """Return all vectors, whitened by those of a task if that is wanted, and what is to be said of that."""
        return self._whitened(self.compared, self.compared[rows], task)

    def to_train_on(self, rows: NDArray[np.int64], task: str) -> tuple[NDArray[np.floating], list[str]]:
        """Return the vector of each of a task's sentences, likewise."""
        vectors = self.trained_on[rows]
        return self._whitened(vectors, vectors, task)

    def _whitened(
        self, vectors: NDArray[np.float32], reference: NDArray[np.float32], task: str
    ) -> tuple[NDArray[np.floating], list[str]]:
        if self.whiten is None:
            return vectors, []
        whitened = whiten(vectors, reference, self.whiten or None, task=task)
        kept, width = whitened.shape[1], vectors.shape[1]
        if self.whiten or kept == width:
            return whitened, []
        return whitened, [f"{task}: its sentences vary in {kept} of {width} dimensions, and whitening kept those."]


def _train(
    task: TaskData, vectors: NDArray[np.floating], settings: Settings, device: str, measured: Measurements
) -> None:
    how, intervals = settings.classification, settings.intervals
    # Apple's GPU has no float64, in which the logistic regression is solved.
    device = "cuda" if device == "cuda" else "cpu"
    half = len(vectors) // 2
    if isinstance(task, Supervised):
        measured.supervised.append(
            score_relatedness(
                task.data, vectors[:half], vectors[half:], seed=how.seed, intervals=intervals, device=device
            )
        )
    elif not isinstance(task, StsData):
        paired = len(vectors) == 2 * len(task.items)
        sides = (vectors[:half], vectors[half:]) if paired else (vectors,)
        result = score_labelled(
            task,
            *sides,
            classifier=how.classifier,
            seed=how.seed,
            kfold=how.kfold,
            intervals=intervals,
            device=device,
        )
        measured.transfer.append(result)
        measured.notes += [f"{task.task}: {note}" for note in result.notes]
