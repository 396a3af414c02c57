"""The corpus as token ids on the disk, the terms and the rows of each step, and the sequences of a batch.

Every draw is determined by the recipe's seed and the step or batch, so training resumes exactly.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import Manifest, atomic_folder, cache_dir, fingerprint, writing
from stsbench.base.progress import Progress, silent
from stsbench.data.corpus import Row
from stsbench.encoders.cache import remove
from stsbench.encoders.tokenizer import Tokenizer
from stsbench.statistics.seeds import generator
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import CONTRASTIVE, Phase
from stsbench.training.views import TextView, Tokens

_log = logging.getLogger(__name__)

Sequences = list[NDArray[np.int64]]
"""Token ids of some sentences, special tokens included."""

_LAYOUT = 5

_ABOUT, _SENTENCES = "about.json", "sentences.arrow"
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class CorpusCounts:
    """The counts of a corpus.

    Attributes:
        empty: rows left out, because a sentence in them is empty or has no sub-word.
        cut: sentences that were truncated.
        tokens: sub-words kept, without special tokens.
    """

    rows: int
    columns: int
    empty: int
    cut: int
    tokens: int

    def sentence(self) -> str:
        return (
            f"{self.rows} rows of {self.columns} sentences, {self.tokens / (self.rows * self.columns):.1f} "
            f"sub-words on average; left out {self.empty} empty rows; {self.cut} sentences were cut."
        )


class TokenStore:
    """The sentences of a corpus as token ids without special tokens, and as text if a view needs it."""

    def __init__(self, folder: Path) -> None:
        self.counts = CorpusCounts(**json.loads((folder / _ABOUT).read_bytes())["counts"])
        self._sentences = pa.ipc.open_file(pa.memory_map(str(folder / _SENTENCES))).read_all()

    def __len__(self) -> int:
        return self.counts.rows

    def tokens(self, row: int, column: int) -> Tokens:
        ids: Tokens = self._sentences["tokens"][row * self.counts.columns + column].values.to_numpy()
        return ids

    def lengths(self) -> NDArray[np.int64]:
        """Returns the sub-words of each row's first sentence, without special tokens: (rows,)."""
        lengths: NDArray[np.int64] = pc.list_value_length(self._sentences["tokens"]).to_numpy().astype(np.int64)
        return lengths[:: self.counts.columns]

    def text(self, row: int, column: int) -> str:
        return str(self._sentences["text"][row * self.counts.columns + column])


def open_store(
    root: Path,
    meaning: dict[str, Any],
    rows: Iterator[Row],
    tokenizer: Tokenizer,
    *,
    limit: int,
    lower_case: bool = False,
    with_text: bool = False,
    progress: Progress = silent,
) -> TokenStore:
    """Returns the store of a corpus; builds it if it does not exist."""
    about = {**meaning, "layout": _LAYOUT, "limit": limit, "lower_case": lower_case, "with_text": with_text}
    folder = root / fingerprint(about)[:32]
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(_lock_of(folder)):
            if not _is_whole(folder):
                if folder.exists():
                    _log.warning("the tokenised corpus %s was damaged and is made again.", folder)
                with atomic_folder(folder) as building:
                    _build(building, rows, tokenizer, limit, lower_case, with_text, progress)
            return TokenStore(folder)


def _is_whole(folder: Path) -> bool:
    try:
        Manifest.read(folder, _ABOUT, "delete it")
    except UserError:
        return False
    return True


def tokens_dir() -> Path:
    return cache_dir() / "tokens"


def clear_stores() -> int:
    """Deletes all stores and returns the freed bytes. A running training keeps its open store."""
    freed = 0
    for about in sorted(tokens_dir().glob(f"[!.]*/{_ABOUT}")):
        with FileLock(_lock_of(about.parent)):
            if about.parent.is_dir():  # else another process cleared it
                freed += sum(map(remove, about.parent.iterdir()))
                about.parent.rmdir()
    return freed


def _lock_of(store: Path) -> Path:
    return store.with_name(f".{store.name}.lock")


def _build(  # noqa: PLR0917 - of one caller
    folder: Path,
    rows: Iterator[Row],
    tokenizer: Tokenizer,
    limit: int,
    lower_case: bool,
    with_text: bool,
    progress: Progress,
) -> None:
    kept = empty = cut = columns = tokens = 0
    token = pa.uint16() if tokenizer.vocabulary <= 2**16 else pa.uint32()
    schema = pa.schema({"tokens": pa.list_(token), **({"text": pa.string()} if with_text else {})})
    with pa.ipc.new_file(str(folder / _SENTENCES), schema) as writer:
        while block := [row for _, row in islice(rows, _ROWS_AT_ONCE)]:
            columns = len(block[0])
            sentences = [sentence for row in block for sentence in row]
            ids = tokenizer([s.lower() for s in sentences] if lower_case else sentences, special_tokens=False)
            starts = range(0, len(sentences), columns)
            full = [place for at in starts if all(ids[at : at + columns]) for place in range(at, at + columns)]
            kept, empty = kept + len(full) // columns, empty + len(block) - len(full) // columns
            cut += sum(len(ids[place]) > limit for place in full)
            short = [ids[place][:limit] for place in full]
            tokens += sum(map(len, short))
            values = {"tokens": short, "text": [sentences[place] for place in full]}
            writer.write_batch(pa.record_batch([pa.array(values[f.name], f.type) for f in schema], schema=schema))
            progress("tokenising", kept + empty, 0)
    if not kept:
        raise UserError("the corpus has no sentences: all of its lines are empty.")
    counts = CorpusCounts(kept, columns, empty, cut, tokens)
    Manifest.of(folder, {"counts": asdict(counts)}, [_SENTENCES]).write(folder, _ABOUT)


@dataclass(frozen=True, eq=False)
class Schedule:
    """The rows of each optimiser step, in a new order each epoch.

    The last batch of an epoch may be shorter, as in the papers' code. With buckets, each batch is of one bucket,
    the last one of a bucket may be shorter, and batches come in random order.

    Attributes:
        bucket: (rows,) the bucket of each row; None for batches of any rows.
    """

    rows: int
    batch: int
    accumulate: int
    seed: int
    bucket: NDArray[np.int64] | None = None

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.cuts) // self.accumulate)

    def starts_epoch(self, step: int) -> bool:
        return step % self.steps_per_epoch == 0

    def batches(self, step: int) -> list[NDArray[np.int64]]:
        """Returns the rows of each batch of an optimiser step, counted from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order, cuts = _epoch(self, epoch)
        start = place * self.accumulate
        return [order[cut] for cut in cuts[start : start + self.accumulate]]

    @cached_property
    def cuts(self) -> list[slice]:
        """The slices of an order of the rows that are batches, bucket after bucket."""
        sizes = [self.rows] if self.bucket is None else np.bincount(self.bucket).tolist()
        cuts, first = [], 0
        for size in filter(None, sizes):
            ends = [*range(first + self.batch, first + size, self.batch), first + size]
            # A single sentence has no negatives: it joins the batch before.
            if self.bucket is not None and len(ends) > 1 and ends[-1] - ends[-2] == 1:
                del ends[-2]
            cuts += [slice(start, end) for start, end in pairwise([first, *ends])]
            first += size
        return cuts


def make_schedule(recipe: Recipe, store: TokenStore) -> Schedule:
    optimiser, rows = recipe.optimiser, len(store)
    if rows < optimiser.batch:
        raise UserError(
            f"the corpus has {rows} usable rows, fewer than one batch of {optimiser.batch}: "
            "give more text, or a smaller batch with --set optimiser.batch=N."
        )
    bucket = None
    if recipe.corpus.buckets is not None:
        bucket = np.searchsorted(recipe.corpus.buckets, store.lengths()).astype(np.int64)
        if 1 in np.bincount(bucket):
            raise UserError(
                f"corpus.buckets {list(recipe.corpus.buckets)}: a bucket has a single sentence, and so no "
                "negatives: choose other buckets."
            )
    return Schedule(rows, optimiser.batch, optimiser.accumulate, recipe.seed, bucket)


@lru_cache(maxsize=16)
def _epoch(schedule: Schedule, epoch: int) -> tuple[NDArray[np.int64], list[slice]]:
    order = generator(schedule.seed, "order", str(epoch)).permutation(schedule.rows)
    if schedule.bucket is None:
        return order, schedule.cuts
    shuffled = generator(schedule.seed, "buckets", str(epoch)).permutation(len(schedule.cuts))
    return order[np.argsort(schedule.bucket[order], kind="stable")], [schedule.cuts[place] for place in shuffled]


@dataclass(frozen=True, eq=False)
class Timetable:
    """The terms of each step: the contrastive one, and those of tasks.

    Attributes:
        turns: for each term (steps,): the number of the term's batch, from 0; -1 in steps without the term.
        epochs: (steps + 1,) the number of epochs completed after that many steps, over all phases.
    """

    turns: Mapping[str, NDArray[np.int64]]
    epochs: NDArray[np.float64]

    @property
    def steps(self) -> int:
        return len(self.epochs) - 1

    def turn(self, part: str, step: int) -> int | None:
        """Returns the number of a term's batch in a step, both counted from 0; None without the term."""
        turn = int(self.turns[part][step])
        return None if turn < 0 else turn


def make_timetable(recipe: Recipe, sizes: Mapping[str, int]) -> Timetable:
    """Returns the terms of each step, given the number of batches of each term."""
    epochs = [np.zeros(1)]
    taken: dict[str, list[NDArray[np.bool_]]] = {part: [] for part in sizes}
    for number, phase in enumerate(recipe.phases or (Phase(takes=(CONTRASTIVE, *recipe.tasks)),)):
        pace = sizes[phase.takes[0]]
        steps = pace * (phase.epochs or recipe.optimiser.epochs)
        epochs.append(epochs[-1][-1] + np.arange(1, steps + 1) / pace)
        for part, batches in sizes.items():
            once = part in recipe.tasks and recipe.tasks[part].rate == "once"
            rate = 0.0 if part not in phase.takes else min(1.0, batches / pace) if once else 1.0
            taken[part].append(generator(recipe.seed, "turns", str(number), part).random(steps) < rate)
    takes = {part: np.concatenate(of_phases) for part, of_phases in taken.items()}
    turns = {part: np.where(is_taken, np.cumsum(is_taken) - 1, -1) for part, is_taken in takes.items()}
    return Timetable(turns, np.concatenate(epochs))


@dataclass(frozen=True)
class Batch:
    """The sequences of one loss.

    Attributes:
        hard: the hard negatives; empty without any.
        name: of this batch's random draws.
    """

    query: Sequences
    key: Sequences
    hard: Sequences
    name: tuple[str, ...]

    @property
    def sequences(self) -> Sequences:
        return [*self.query, *self.key, *self.hard]

    def share(self, place: slice) -> "Batch":
        return Batch(self.query[place], self.key[place], self.hard[place], self.name)


@dataclass(frozen=True)
class BatchReader:
    """Reads batches from the store through the recipe's views."""

    store: TokenStore
    tokenizer: Tokenizer
    recipe: Recipe
    longest: int | None = None
    lower_case: bool = False

    def __call__(self, rows: NDArray[np.int64], *name: str) -> Batch:
        """Returns the batch of some rows; its draws follow from the seed and `name`."""
        hard = [self.store.tokens(row, 2) for row in rows.tolist()] if self.recipe.negatives.hard else []
        query, key = self._side("query", rows, name), self._side("key", rows, name)
        return Batch(query, key, self._around(hard, cut=True), name)

    def _side(self, side: Literal["query", "key"], rows: NDArray[np.int64], name: tuple[str, ...]) -> Sequences:
        seed, is_query = self.recipe.seed, side == "query"
        view = self.recipe.views.query if is_query else self.recipe.views.key
        column = 0 if is_query else min(1, self.store.counts.columns - 1)
        rng = generator(seed, "view", side, *name)
        if isinstance(view, TextView):
            texts = view.texts([self.store.text(row, column) for row in rows.tolist()], rng)
            read = [text.lower() for text in texts] if self.lower_case else texts
            return self._around([np.array(ids) for ids in self.tokenizer(read, special_tokens=False)], cut=True)
        changed = [
            view.tokens(
                self.store.tokens(row, column),
                generator(seed, "view", side, str(row)) if view.as_released else rng,
            )
            for row in rows.tolist()
        ]
        return self._around(changed, cut=not view.as_released)

    def _around(self, sentences: Sequence[Tokens], *, cut: bool) -> Sequences:
        before, behind = self._special_tokens
        limit = self.recipe.corpus.max_length if cut else self.longest
        room = None if limit is None else limit - len(before) - len(behind)
        return [np.concatenate([before, tokens[:room], behind]) for tokens in sentences]

    @property
    def around(self) -> tuple[int, int]:
        """The numbers of special tokens before and after a sentence."""
        before, behind = self._special_tokens
        return len(before), len(behind)

    @cached_property
    def _special_tokens(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        (whole,), (inner,) = self.tokenizer(["a"]), self.tokenizer(["a"], special_tokens=False)
        start = next(at for at in range(len(whole)) if whole[at : at + len(inner)] == inner)
        before, behind = whole[:start], whole[start + len(inner) :]
        return np.array(before, dtype=np.int64), np.array(behind, dtype=np.int64)
