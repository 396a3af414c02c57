"""From the similarities of a task's pairs, compared in many ways, to its part of the grid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set
from stsbench.data.locate import DataNotFoundError
from stsbench.data.tables import StsData
from stsbench.scoring.protocols import TEXTS, Protocol
from stsbench.scoring.tasks import SAMPLE, STS_TASKS, demand_scorable
from stsbench.statistics.aggregation import aggregate
from stsbench.statistics.correlations import Gold, correlate_rows

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Part:
    """Pairs that are correlated together."""

    pairs: NDArray[np.intp]
    gold: Gold


@dataclass(frozen=True)
class Scorer:
    """A task whose gold scores are made ready, to be held against similarities again and again.

    Attributes:
        splits: which splits are scored; `all` for all pairs.
        subsets: for each split, its subsets and then the whole.
    """

    splits: tuple[str, ...]
    subsets: tuple[tuple[_Part, ...], ...]

    @classmethod
    def of(cls, pairs: "pd.DataFrame", splits: Sequence[str]) -> "Scorer":
        """Make a task ready.

        Args:
            pairs: its scored pairs, with the columns gold, subset and split.
            splits: the splits to score.
        """
        gold, subset, split = (pairs[name].to_numpy() for name in ("gold", "subset", "split"))
        found = []
        for name in splits:
            chosen = np.flatnonzero((split == name) | (name == "all") | (len(splits) == 1))
            names = list(dict.fromkeys(subset[chosen]))
            groups = [chosen[subset[chosen] == one] for one in names] if len(names) > 1 else []
            found.append(tuple(_Part(rows, Gold.of(gold[rows])) for rows in (*groups, chosen)))
        return cls(tuple(splits), tuple(found))

    @property
    def has_subsets(self) -> bool:
        """Whether aggregation makes a difference."""
        return any(len(parts) > 1 for parts in self.subsets)

    def __call__(self, similarities: Floats) -> Floats:
        """Return the task's scores.

        Args:
            similarities: (k, n) of the n pairs, compared in k ways.

        Returns:
            (k, 2, a, s) x 100: by Spearman and Pearson, aggregated by `all`, `mean` and `wmean` (a is 1 where
            there are no subsets), on each split.
        """
        scores: Floats = 100 * np.stack([self._of_split(parts, similarities) for parts in self.subsets], axis=-1)
        return scores

    def _of_split(self, parts: tuple[_Part, ...], similarities: Floats) -> Floats:
        # (parts, 2, k)
        values: Floats = np.array([correlate_rows(part.gold, similarities[:, part.pairs]) for part in parts])
        whole: Floats = values[-1].T
        if not self.has_subsets:
            return whole[:, :, np.newaxis]
        own = values[:-1] if len(parts) > 1 else values
        sizes = [len(part.pairs) for part in parts[: len(own)]]
        three = aggregate(np.moveaxis(own, 0, -1), values[-1], sizes)
        return np.stack([three[name].T for name in ("all", "mean", "wmean")], axis=-1)


_SPLITS = ("test", "dev", "all")


@dataclass(frozen=True)
class TaskPairs:
    """One task in one text, with all its splits.

    Attributes:
        data: its pairs.
        text: the place of its text on the axis of texts; None where it has one text that serves all.
        splits: the splits to score; one of them alone is no choice.
        default_split: the one that the protocol scores.
    """

    data: StsData
    text: str | None
    splits: tuple[str, ...]
    default_split: str

    @cached_property
    def scorer(self) -> Scorer:
        """The task's gold scores, made ready."""
        return Scorer.of(self.data.pairs, self.splits)


@dataclass(frozen=True)
class DiagnosisData:
    """What to score, and what is missing.

    Attributes:
        sets: each task in each of its texts.
        tasks: the tasks that count for an average.
        texts: the text variants, the protocol's first.
        notes: what is not at hand.
    """

    sets: tuple[TaskPairs, ...]
    tasks: tuple[str, ...]
    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_sample(self) -> bool:
        """Whether the sample came along with other tasks."""
        return SAMPLE not in self.tasks and any(one.data.task == SAMPLE for one in self.sets)


def read_all(
    tasks: Sequence[str | StsData], protocol: Protocol, data_dirs: Sequence[Path], *, sample: bool
) -> DiagnosisData:
    """Read tasks in every text and split that there is.

    Args:
        tasks: names, or pairs of the person's own, which have one text and one split.
        protocol: which text and split are the default.
        data_dirs: folders to look for data in first.
        sample: whether the bundled sample comes along, as what someone may have scored by mistake.

    Raises:
        UserError: if a task's default text is missing, or files are broken.
    """
    sets: list[TaskPairs] = []
    names: list[str] = []
    absent: list[str] = []
    texts = (protocol.text, *(text for text in TEXTS if text != protocol.text))
    for task in [*tasks, *([SAMPLE] if sample else [])]:
        if isinstance(task, StsData):
            demand_scorable(task)
            sets.append(TaskPairs(task, None, (task.split,), task.split))
            names.append(task.task)
            continue
        variants = data_set(task).texts
        wanted = [text for text in texts if text in variants]
        for text in wanted if len(wanted) > 1 else [None]:
            try:
                sets.append(_read(task, text, protocol, data_dirs))
            except DataNotFoundError:
                if text in {None, protocol.text}:
                    raise
                absent.append(f"{task} ({text})")
        names += [task] if task != SAMPLE or not sample else []
    found = tuple(text for text in texts if any(one.text == text for one in sets))
    notes = (f"Not tried, as it was not found: {', '.join(absent)}.",) if absent else ()
    return DiagnosisData(tuple(sets), tuple(names), found or (protocol.text,), notes)


def narrowed(found: DiagnosisData, text: str) -> DiagnosisData:
    """Return the same tasks in one text and their default split alone, without the sample.

    Args:
        found: what was read.
        text: the text to keep.
    """
    kept = [
        replace(one, data=_only(one.data, one.default_split), splits=(one.default_split,))
        for one in found.sets
        if one.text in {None, text} and one.data.task in found.tasks
    ]
    note = "Not tried: other splits and texts, for whose sentences there are no vectors."
    return DiagnosisData(tuple(kept), found.tasks, (text,), (*found.notes, note))


def is_sts(tasks: Sequence[str]) -> bool:
    """Return whether these are the seven tasks of the papers."""
    return tuple(tasks) == STS_TASKS


def _only(data: StsData, split: str) -> StsData:
    pairs = data.pairs
    return data if split == "all" else replace(data, split=split, pairs=pairs[pairs["split"] == split])


def _read(task: str, text: str | None, protocol: Protocol, data_dirs: Sequence[Path]) -> TaskPairs:
    entry = data_set(task)
    variant = text or next(iter(entry.texts))
    there = {part.split for part in entry.texts[variant].parts}
    several = len(there) > 1
    data = load_sts(task, "all" if several else next(iter(there)), variant, data_dirs)
    default = protocol.sick_split if task == "SICK-R" else "test"
    splits = tuple(split for split in _SPLITS if split == "all" or split in there) if several else (data.split,)
    demand_scorable(data)
    return TaskPairs(data, text, splits, default if several else data.split)
