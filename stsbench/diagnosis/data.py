"""The data of a diagnosis: each task in each of its texts, with all its splits, and the vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.base.words import listed
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set
from stsbench.data.reading import DataNotFoundError
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData, load_pairs
from stsbench.diagnosis.axes import SECOND_TEST, Claim
from stsbench.encoders.plan import Embeddings, EncodingCost, embed
from stsbench.encoders.poolers import POOLING_NAMES, NoHeadError
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.tokenizer import stated_limits
from stsbench.encoders.transformer import TransformerEncoder, recut
from stsbench.encoders.use import USUAL_LENGTHS
from stsbench.records.kinds import AVERAGE
from stsbench.scoring.kinds.sts import demand_spread
from stsbench.scoring.settings import TEXTS, Protocol
from stsbench.scoring.tasks import SAMPLE, STS_TASKS

_CHECKPOINTS = {"transformer", "sentence-transformers"}

_SPECIAL_TOKENS = 8
"""An upper bound on the special tokens that a tokenizer adds to a text."""


@dataclass(frozen=True)
class TaskPairs:
    """A task in one text (None if it has a single one), with the rows of each split, yours first."""

    data: StsData
    text: str | None
    splits: dict[str, NDArray[np.int64]]

    @classmethod
    def whole(cls, data: StsData, text: str | None, split: str) -> "TaskPairs":
        """Returns pairs that are one split."""
        return cls(data, text, {split: np.arange(len(data.pairs))})

    @cached_property
    def has_subsets(self) -> bool:
        """Whether aggregation makes a difference."""
        return any(len(set(self.data.pairs["subset"].iloc[rows])) > 1 for rows in self.splits.values())

    @property
    def default(self) -> "TaskPairs":
        """The pairs of your split."""
        split, rows = next(iter(self.splits.items()))
        pairs = self.data.pairs.iloc[rows].reset_index(drop=True)
        return TaskPairs.whole(replace(self.data, pairs=pairs), self.text, split)


@dataclass(frozen=True)
class DiagnosisData:
    """The pairs to score.

    Attributes:
        sets: each task in each of its texts.
        notes: the data that was not found.
    """

    sets: tuple[TaskPairs, ...]
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[str]:
        """The tasks of the average."""
        return list(dict.fromkeys(pairs.data.task for pairs in self.sets))

    def own(self, text: str) -> list[TaskPairs]:
        """Returns the pairs of your text and split."""
        return [pairs.default for pairs in self.sets if pairs.text in {None, text}]

    @property
    def sentences(self) -> list[str]:
        """All sentences: of each set all first sides, then all second sides."""
        return [sentence for pairs in self.sets for sentence in sentences_in(pairs.data)]


def choose_tasks(claim: Claim, tasks: str, data: str | Path | StsData | None) -> list[str | StsData]:
    """Returns the tasks to score, in the papers' order."""
    if data is not None:
        if claim.tasks != ("",):
            raise UserError("a claim about your own data is a single number: leave out the names of tasks.")
        return [data if isinstance(data, StsData) else load_pairs(Path(data).expanduser())]
    if claim.tasks != ("",) and AVERAGE not in claim.tasks:
        return [task for task in dict.fromkeys([*STS_TASKS, *claim.tasks]) if task in claim.tasks]
    chosen: dict[str, None] = {}
    for name in filter(None, map(str.strip, tasks.split(","))):
        chosen |= dict.fromkeys(STS_TASKS if name.casefold() == "sts" else [data_set(name).task])
    if not chosen:
        raise UserError("no task is given: use `sts`, or names such as STS16.")
    if SAMPLE in chosen and len(chosen) > 1:
        raise UserError("the sample is not part of any average: name it alone, or leave it out.")
    missing = [task for task in claim.tasks if task not in {"", AVERAGE, *chosen}]
    if missing:
        raise UserError(
            f"the claim names {missing[0]}, which is not among the tasks: add it, or leave --tasks out."
        )
    return list(chosen)


def read_pairs(tasks: Sequence[str | StsData], protocol: Protocol, data_dirs: Sequence[Path]) -> DiagnosisData:
    """Reads tasks in every text and split."""
    sets: list[TaskPairs] = []
    absent: list[str] = []
    for task in tasks:
        if isinstance(task, StsData):
            demand_spread(task)
            sets.append(TaskPairs.whole(task, None, task.split))
            continue
        texts = [text for text in dict.fromkeys((protocol.text, *TEXTS)) if text in data_set(task).texts]
        for text in texts if len(texts) > 1 else [None]:
            try:
                sets.append(_read(task, text, protocol, data_dirs))
            except DataNotFoundError:
                if text in {None, protocol.text}:
                    raise
                absent.append(f"{task} ({text})")
    notes = (f"Not tried, because it was not found: {', '.join(absent)}.",) if absent else ()
    return DiagnosisData(tuple(sets), notes)


def _read(task: str, text: str | None, protocol: Protocol, data_dirs: Sequence[Path]) -> TaskPairs:
    entry = data_set(task)
    variant = text or next(iter(entry.texts))
    available = set(entry.texts[variant].splits)
    data = load_sts(task, "all" if len(available) > 1 else next(iter(available)), variant, data_dirs)
    demand_spread(data)
    if len(available) == 1:
        return TaskPairs.whole(data, text, data.split)
    own, default = data.pairs["split"], protocol.sick_split if task == "SICK-R" else "test"
    names = (
        name for name in dict.fromkeys((default, "test", "dev", "all")) if name in {default, "all", *available}
    )
    splits = {name: np.flatnonzero((own == name) | (name == "all")) for name in names}
    if f"{variant}-v2" in entry.texts:
        second = load_sts(task, "test", f"{variant}-v2", data_dirs).pairs["pair_id"]
        splits[SECOND_TEST] = np.flatnonzero((own == "test") & data.pairs["pair_id"].isin(second))
    return TaskPairs(data, text, splits)


@dataclass(frozen=True)
class Encoded:
    """The vectors of sentences by each pooling.

    Attributes:
        vectors: for each pooling an array of shape (sequences, dimensions), without a closing normalisation.
        rows: by maximum length (None for no limit), the row of each sentence; the encoder's own first.
        changed: by maximum length, whether each sentence is cut elsewhere than by the encoder itself.
        cost: what encoding took, over all lengths.
        notes: which poolings the encoder lacks.
    """

    vectors: dict[str, FloatMatrix]
    rows: dict[int | None, NDArray[np.int64]]
    changed: dict[int | None, NDArray[np.bool_]]
    cost: EncodingCost
    notes: tuple[str, ...]


def encode_all(
    encoder: Encoder, texts: Sequence[str], *, lengths: Sequence[int] | None, use_cache: bool, progress: Progress
) -> Encoded:
    """Encodes texts with each pooling; those that another maximum length changes also with that length."""
    encode = partial(embed, normalize=False, use_cache=use_cache, progress=progress)
    whole, notes = _by_every_pooling(encoder, partial(encode, encoder, texts))
    limit, poolings = encoder.identity.use.max_length, tuple(whole.vectors)
    # A prompt is not part of a text's length; it has at most as many sub-words as bytes.
    most_around = _SPECIAL_TOKENS + len((encoder.identity.use.prompt or "").encode())
    parts, last = [whole], (whole.rows, whole.truncated)
    rows, changed = {limit: whole.rows}, {limit: np.zeros(len(texts), dtype=bool)}
    start = len(whole.vectors[poolings[0]])
    for length in sorted({*USUAL_LENGTHS, *meanings_of_lengths(encoder)} if lengths is None else lengths):
        shortened = None if length == limit else recut(encoder, length)
        # A text that fits into a limit is the same at a longer one.
        is_longer = limit is not None and length > limit
        before, candidates = last if is_longer else (whole.rows, whole.lengths + most_around > length)
        places = np.flatnonzero(candidates)
        if shortened is None or not len(places):
            continue
        part = encode(shortened, [texts[place] for place in places.tolist()], poolings=poolings)
        truncated = np.zeros(len(texts), dtype=bool)
        truncated[places] = part.truncated
        is_cut = truncated | whole.truncated
        if not is_cut.any():
            continue
        rows[length], changed[length] = before.copy(), is_cut
        rows[length][places] = start + part.rows
        last = rows[length], truncated
        parts.append(part)
        start += len(part.vectors[poolings[0]])
    return Encoded(
        vectors={name: np.concatenate([part.vectors[name] for part in parts]) for name in poolings},
        rows=rows,
        changed=changed,
        cost=reduce(add, (part.cost for part in parts)),
        notes=notes,
    )


def meanings_of_lengths(encoder: Encoder) -> dict[int, str]:
    """Returns by maximum length a sentence on the checkpoint's files that state it."""
    if not isinstance(encoder, TransformerEncoder):
        return {}
    return {
        length: f"{length} sub-words is the limit in {listed(files)}. sentence-transformers, the "
        "tokenizer and the network each have their own."
        for length, files in stated_limits(encoder.checkpoint).items()
    }


def _by_every_pooling(encoder: Encoder, encode: Callable[..., Embeddings]) -> tuple[Embeddings, tuple[str, ...]]:
    """Returns the vectors by each pooling of the encoder, and notes on those that it lacks."""
    identity = encoder.identity
    if identity.kind not in _CHECKPOINTS:
        note = f"{identity.name} has no poolings or maximum lengths to choose from, so the grid is smaller."
        return encode(poolings=None), (note,)
    # Your pooling may be one that only some checkpoints have, such as a template's mask.
    poolings = tuple(dict.fromkeys((*POOLING_NAMES, identity.use.pooling)))
    try:
        return encode(poolings=poolings), ()
    except NoHeadError as error:  # raised at the first batch
        if identity.use.pooling == "cls":
            raise
        return encode(poolings=[name for name in poolings if name != "cls"]), (f"Not tried: {error}",)
