"""What a lower precision changes: the same checkpoint in fp32 on a fixed sample of the same pairs.

A quantised model is another model. Whether it may stand for the checkpoint is a question of non-inferiority: the
loss (fp32's score less its own) is held against a margin, and passes if its one-sided upper bound is below it
(Blackwelder 1982). Both are scored on the same pairs, so the bound is of the difference pair by pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.plain_table import PlainTable
from stsbench.data.tables import StsData
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.postprocess import normalize
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import FP32, TORCH
from stsbench.records.parts import DriftPart, TaskDrift
from stsbench.scoring.intervals import sharing_of
from stsbench.scoring.settings import Settings
from stsbench.scoring.sts import pair_table
from stsbench.scoring.tasks import TaskData
from stsbench.statistics.aggregation import correlate_task
from stsbench.statistics.dependence import DEPENDENCE, variance
from stsbench.statistics.draws import generator
from stsbench.statistics.influence import TERMS
from stsbench.statistics.intervals import lower_bound, plain_interval, upper_bound

PAIRS = 500
"""Sampled of each task; all of a task that has fewer."""

NEIGHBOURS = 10
SEED = 0

MARGIN = 0.5
"""Points of 100: the loss that is allowed unless a person says otherwise."""

Vectors = NDArray[np.floating]


@dataclass(frozen=True)
class Sampled:
    """The sampled pairs of one task.

    Attributes:
        task: with those pairs alone.
        table: their rows of the task's pair table.
        rows: the rows of their sentences among the vectors that were measured, first ones and then second ones.
    """

    task: StsData
    table: PlainTable
    rows: NDArray[np.int64]

    @property
    def sentences(self) -> list[str]:
        """The first sentences, then the second ones."""
        return [*self.task.table["sentence1"], *self.task.table["sentence2"]]


def require_gate(encoder: Encoder, sets: Sequence[TaskData], settings: Settings) -> TransformerEncoder:
    """Return the same checkpoint in fp32.

    Raises:
        UserError: if it is that already, is no checkpoint that can be had in fp32, its vectors are whitened, no
            STS task is measured, or the protocol's metric says nothing of single pairs.
    """
    if not any(isinstance(task, StsData) for task in sets):
        raise UserError(
            "--gate is about the scores of pairs, and no STS task is measured: add one, or leave it out."
        )
    if settings.protocol.metric not in TERMS:
        raise UserError(f"--gate judges {' or '.join(TERMS)}, not {settings.protocol.metric}: choose one of them.")
    if not isinstance(encoder, TransformerEncoder):
        raise UserError(f"--gate: {encoder.identity.name} is no checkpoint that can be had in fp32: leave it out.")
    if encoder.use.computed_in == FP32:
        raise UserError(
            "--gate holds a lower precision against fp32, which this is: add --precision bf16, or --backend "
            "openvino --precision int8."
        )
    if encoder.use.processed(settings.use).whiten is not None:
        raise UserError("--gate looks at a sample, and whitening is of all of a task's sentences: leave one out.")
    return encoder.with_use(precision=FP32, backend=TORCH)


def sample(task: StsData, table: PlainTable, rows: NDArray[np.int64]) -> Sampled:
    """Draw `PAIRS` pairs of a task, the same ones for every model.

    Args:
        task: n pairs.
        table: its pair table.
        rows: (2n,) the row of each first sentence among the vectors, then of each second one.
    """
    size = len(table)
    chosen = np.sort(generator(SEED, task.task, task.split).permutation(size)[:PAIRS])
    return Sampled(
        replace(task, pairs=task.table.take(chosen)),
        table.take(chosen),
        np.concatenate([rows[chosen], rows[size + chosen]]),
    )


def embed_sample(
    full: TransformerEncoder, sampled: Sequence[Sampled], settings: Settings, progress: Progress
) -> Embeddings:
    """Encode the sampled sentences in fp32, task by task, first ones and then second ones."""
    texts = [sentence for task in sampled for sentence in task.sentences]
    return embed(full, texts, normalize=False, use_cache=settings.use_cache, progress=progress)


def drift_of(
    sampled: Sequence[Sampled], vectors: Vectors, again: Embeddings, reference: Vectors, settings: Settings
) -> DriftPart:
    """Tell how far the scores, the vectors and their neighbours are from fp32.

    Args:
        sampled: of each STS task.
        vectors: those that were measured, as similarities are taken of them; shape (sequences, dimensions).
        again: the sample in fp32, as `embed_sample` gives it.
        reference: the vectors of the same, as similarities are taken of them.
        settings: of the measurement, with a margin.
    """
    ends = np.cumsum([len(task.sentences) for task in sampled]).tolist()
    places = [slice(end - len(task.sentences), end) for task, end in zip(sampled, ends, strict=True)]
    tasks = [
        _task_drift(task, pair_table(task.task, reference, again.rows[place], again.lengths[place]), settings)
        for task, place in zip(sampled, places, strict=True)
    ]
    # A sentence once, however many pairs it is in.
    _, firsts = np.unique(again.rows, return_index=True)
    ours = np.concatenate([task.rows for task in sampled])[firsts]
    one, other = normalize(vectors[ours]), normalize(reference[again.rows[firsts]])
    cosines = np.einsum("ij,ij->i", one, other, dtype=np.float64)
    nearest = max(1, min(NEIGHBOURS, len(one) - 1))
    return DriftPart(
        margin=_margin(settings),
        level=settings.intervals.level,
        seed=SEED,
        tasks=tuple(tasks),
        sentences=len(one),
        cosine_mean=float(cosines.mean()),
        cosine_low=float(np.quantile(cosines, 0.01)),
        cosine_lowest=float(cosines.min()),
        neighbours=nearest,
        overlap=shared_neighbours(one, other, nearest),
    )


def shared_neighbours(one: Vectors, other: Vectors, count: int) -> float:
    """Return the mean share of each row's nearest rows by cosine that are the same in both matrices.

    Args:
        one: (n, d) rows of unit length.
        other: (n, e) the same sentences.
        count: k, the nearest rows that are compared, the row itself left out.

    Example:
        >>> rows = np.eye(3)[[0, 0, 1, 1]]
        >>> shared_neighbours(rows, rows, 1)
        1.0
    """
    found = [_nearest(vectors, count) for vectors in (one, other)]
    shared = [len(np.intersect1d(*rows)) for rows in zip(*found, strict=True)]
    return float(np.mean(shared) / count)


def _nearest(vectors: Vectors, count: int, block: int = 1024) -> NDArray[np.int64]:
    blocks = []
    for start in range(0, len(vectors), block):
        cosines = vectors[start : start + block] @ vectors.T
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -np.inf
        blocks.append(np.argpartition(-cosines, count - 1, axis=1)[:, :count])
    return np.concatenate(blocks)


def _margin(settings: Settings) -> float:
    assert settings.margin is not None
    return settings.margin / 100


def _task_drift(sampled: Sampled, full: PlainTable, settings: Settings) -> TaskDrift:
    metric, similarity, intervals = settings.protocol.metric, settings.protocol.similarity, settings.intervals
    table, task = sampled.table, sampled.task
    gold, ours, theirs = (table["gold"], table[similarity], full[similarity])
    # Subsets together: a few pairs of each would say little apart.
    together = np.zeros(len(table), dtype=np.int64)
    reference, score = (correlate_task(gold, side, together, metric).aggregates["all"] for side in (theirs, ours))
    defined = not np.isnan([reference, score]).any()
    drift = TaskDrift(
        task=task.task,
        split=task.split,
        text=task.text,
        pairs=len(table),
        reference=float(reference) if defined else None,
        score=float(score) if defined else None,
        verdict="cannot tell",
    )
    if not defined:
        return drift
    terms = TERMS[metric](gold, theirs) - TERMS[metric](gold, ours)
    found = variance(terms, sharing_of(table), intervals.interval or DEPENDENCE)
    loss, margin = float(reference - score), _margin(settings)
    if found.value <= 0:
        # Two that order all pairs alike, or pairs that show no spread.
        same = {"interval": (0.0, 0.0), "loss_high": 0.0, "verdict": "no worse"}
        return drift if loss else drift.model_copy(update=same)
    limits = plain_interval(loss, found, intervals.level)
    low, high = (bound(loss, found, intervals.level) for bound in (lower_bound, upper_bound))
    verdict = "no worse" if high < margin else "worse" if low > margin else "cannot tell"
    return drift.model_copy(update={"interval": (limits.low, limits.high), "loss_high": high, "verdict": verdict})
