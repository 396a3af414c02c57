"""Measure one thing: encode every distinct sentence once, compare the pairs, score, record."""

from collections.abc import Sequence

from stsbench.datasets import StsData
from stsbench.encoders import Encoder, embed, truncate, whiten
from stsbench.evaluation.pairs import pair_table, pair_table_of_similarities, sides_of
from stsbench.evaluation.saved import SavedSimilarities
from stsbench.foundation.errors import UserError
from stsbench.records import RunRecord
from stsbench.workflows.recording import Recording
from stsbench.workflows.settings import Postprocessing, Settings, Stages


def measure_encoder(encoder: Encoder, sets: Sequence[StsData], settings: Settings, stages: Stages) -> RunRecord:
    """Encode the sentences of some tasks and score their pairs.

    Raises:
        UserError: if the encoder cannot do it, or the record cannot be saved.
    """
    identity, post = encoder.identity, settings.postprocessing
    stages.done("hash")
    recording = Recording.of(sets, identity, settings)
    recording.prepare()

    sides = [sides_of(task) for task in sets]
    texts = [text for side in sides for text in side]
    embeddings = embed(encoder, texts, use_cache=settings.use_cache, progress=stages.progress)
    stages.done("encode")
    cost = embeddings.cost
    stages.seconds |= {stage: round(value, 3) for stage, value in cost.seconds.items()}
    (vectors,) = embeddings.vectors.values()
    if post.dimensions is not None:
        vectors = truncate(vectors, post.dimensions, normalize="normalize" in identity.modules)

    tables, truncated, start = [], [], 0
    for task, side in zip(sets, sides, strict=True):
        places = slice(start, start + len(side))
        rows = embeddings.rows[places]
        own = vectors if post.whiten is None else whiten(vectors, vectors[rows], post.whiten or None)
        tables.append(pair_table(task, own, rows, embeddings.lengths[places]))
        truncated.append(sum(dict(zip(side, embeddings.truncated[places].tolist(), strict=True)).values()))
        start = places.stop
    stages.done("similarities")
    counts = {name: value for name, value in vars(cost).items() if name != "seconds"}
    return recording.finish(tables, truncated, stages, notes=encoder.notes, encoding=counts)


def measure_similarities(
    similarities: SavedSimilarities, sets: Sequence[StsData], settings: Settings, stages: Stages
) -> RunRecord:
    """Score similarities that were computed elsewhere.

    Raises:
        UserError: if there is not one finite number for each pair, or the record cannot be saved.
    """
    if settings.postprocessing != Postprocessing():
        raise UserError("similarities have no vectors any more: --dimensions and --whiten are not for them.")
    recording = Recording.of(sets, similarities.identity, settings)
    recording.prepare()
    values, sizes = similarities.values, [len(task.pairs) for task in sets]
    if len(values) != sum(sizes):
        raise UserError(
            f"{similarities.path} holds {len(values)} similarities for {sum(sizes)} pairs "
            f"({', '.join(task.task for task in sets)}): give one for each, in the order of the pairs."
        )
    tables, start = [], 0
    for task, size in zip(sets, sizes, strict=True):
        tables.append(pair_table_of_similarities(task, values[start : start + size]))
        start += size
    stages.done("similarities")
    return recording.finish(tables, [0] * len(sets), stages)
