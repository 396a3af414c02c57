"""Measure one thing: encode every distinct sentence once, compare pairs, train classifiers, record."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.postprocess import normalize, truncate, whiten
from stsbench.encoders.protocol import Encoder
from stsbench.records.record import RunRecord
from stsbench.scoring.recording import Measured, Recording
from stsbench.scoring.relatedness import Supervised, score_relatedness
from stsbench.scoring.saved import SavedSimilarities
from stsbench.scoring.settings import Postprocessing, Settings, Stages
from stsbench.scoring.sts import pair_table, pair_table_of_similarities
from stsbench.scoring.tasks import TaskData, sentences_of, source_of, split_by_kind
from stsbench.scoring.transfer import score_labelled


def measure_encoder(encoder: Encoder, sets: Sequence[TaskData], settings: Settings, stages: Stages) -> RunRecord:
    """Encode the sentences of some tasks, each once, and score the tasks.

    Raises:
        UserError: if the encoder cannot do it, a task cannot be folded, or the record cannot be saved.
    """
    identity = encoder.identity
    stages.done("hash")
    recording = Recording.of(sets, identity, settings)
    recording.prepare()

    ordered = recording.sets
    sentences = [sentences_of(task) for task in ordered]
    embeddings = embed(
        encoder,
        [text for own in sentences for text in own],
        normalize=False,
        use_cache=settings.use_cache,
        progress=stages.progress,
    )
    stages.done("encode")
    stages.seconds |= {stage: round(value, 3) for stage, value in embeddings.cost.seconds.items()}
    vectors = _Vectors.of(embeddings, identity.normalize, settings.postprocessing)
    ends = np.cumsum([len(own) for own in sentences]).tolist()
    places = [slice(end - len(own), end) for own, end in zip(sentences, ends, strict=True)]

    measured = Measured(notes=list(encoder.notes))
    for own, place in zip(sentences, places, strict=True):
        cut = dict(zip(own, embeddings.truncated[place].tolist(), strict=True))
        measured.truncated.append(sum(cut.values()))
    scored = [place for task, place in zip(ordered, places, strict=True) if isinstance(task, StsData)]
    for pairs, place in zip(split_by_kind(ordered)[0], scored, strict=True):
        rows = embeddings.rows[place]
        measured.tables.append(pair_table(pairs, vectors.to_compare(rows), rows, embeddings.lengths[place]))
    stages.done("similarities")

    trained = list(zip(ordered, places, strict=True))[len(scored) :]
    for number, (task, place) in enumerate(trained):
        stages.progress("training", number, len(trained))
        _train(task, vectors.to_train_on(embeddings.rows[place]), settings, identity.device, measured)
    if trained:
        stages.progress("training", len(trained), len(trained))
        stages.done("train")
    measured.encoding = {name: value for name, value in vars(embeddings.cost).items() if name != "seconds"}
    return recording.finish(measured, stages)


def measure_similarities(
    similarities: SavedSimilarities, sets: Sequence[TaskData], settings: Settings, stages: Stages
) -> RunRecord:
    """Score similarities that were computed elsewhere.

    Raises:
        UserError: if there is not one finite number for each pair, a task needs vectors, or the record cannot be
            saved.
    """
    if settings.postprocessing != Postprocessing():
        raise UserError(
            "similarities have no vectors any more: --dimensions, --whiten and --normalize are not for them."
        )
    scored = split_by_kind(sets)[0]
    for other in (task for task in sets if not isinstance(task, StsData)):
        raise UserError(f"{source_of(other).task} is no matter of similarities: give the vectors.")
    recording = Recording.of(sets, similarities.identity, settings)
    recording.prepare()
    values, sizes = similarities.values, [len(task.pairs) for task in scored]
    if len(values) != sum(sizes):
        raise UserError(
            f"{similarities.path} holds {len(values)} similarities for {sum(sizes)} pairs "
            f"({', '.join(task.task for task in scored)}): give one for each, in the order of the pairs."
        )
    measured, start = Measured(truncated=[0] * len(scored)), 0
    for task, size in zip(scored, sizes, strict=True):
        measured.tables.append(pair_table_of_similarities(task, values[start : start + size]))
        start += size
    stages.done("similarities")
    return recording.finish(measured, stages)


@dataclass(frozen=True)
class _Vectors:
    """The vectors as similarities are taken of them, and as classifiers are trained on them: (sequences, d)."""

    compared: NDArray[np.float32]
    trained_on: NDArray[np.float32]
    whiten: int | None

    @classmethod
    def of(cls, embeddings: Embeddings, own: bool, post: Postprocessing) -> "_Vectors":
        (plain,) = embeddings.vectors.values()
        if post.dimensions is not None:
            plain = truncate(plain, post.dimensions)
        wanted = own if post.normalize is None else post.normalize
        compared = normalize(plain) if wanted else plain
        return cls(compared, compared if post.normalize else plain, post.whiten)

    def to_compare(self, rows: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return all vectors, whitened by those of a task if that is wanted."""
        if self.whiten is None:
            return self.compared
        return whiten(self.compared, self.compared[rows], self.whiten or None)

    def to_train_on(self, rows: NDArray[np.int64]) -> NDArray[np.floating]:
        """Return the vector of each of a task's sentences."""
        own = self.trained_on[rows]
        return own if self.whiten is None else whiten(own, own, self.whiten or None)


def _train(
    task: TaskData, vectors: NDArray[np.floating], settings: Settings, device: str, measured: Measured
) -> None:
    how, bootstrap = settings.classification, settings.bootstrap
    # Apple's GPU has no float64, in which the logistic regression is solved.
    device = "cuda" if device == "cuda" else "cpu"
    half = len(vectors) // 2
    if isinstance(task, Supervised):
        found = score_relatedness(
            task.data, vectors[:half], vectors[half:], seed=how.seed, bootstrap=bootstrap, device=device
        )
        measured.supervised.append(found)
    elif not isinstance(task, StsData):
        paired = len(vectors) == 2 * len(task.items)
        sides = (vectors[:half], vectors[half:]) if paired else (vectors,)
        result = score_labelled(
            task,
            *sides,
            classifier=how.classifier,
            seed=how.seed,
            kfold=how.kfold,
            bootstrap=bootstrap,
            device=device,
        )
        measured.transfer.append(result)
        measured.notes += [f"{task.task}: {note}" for note in result.notes]
