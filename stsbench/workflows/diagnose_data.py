"""The pairs that a diagnosis needs: every task in every text and split that is at hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from stsbench.datasets import DataNotFoundError, StsData, data_set, load_sts
from stsbench.evaluation.protocols import TEXTS, Protocol
from stsbench.evaluation.tasks import SAMPLE, STS_TASKS, demand_scorable
from stsbench.verify.diagnose_scores import Scorer

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
