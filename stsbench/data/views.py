"""Views of scored pairs: those that no other task has, and those whose sentences no training corpus holds.

A view's name follows the split behind a tilde (`STS-B:test~overlap`), so that a signature says which pairs were
scored, and what they were held against is among the files that the data's hash is over.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.words import storable
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import SENTEVAL, data_sets, paper_tasks
from stsbench.data.corpus import corpus_file
from stsbench.data.sentence_ids import folded_ids, unordered_pairs
from stsbench.data.tables import FileRead, StsData, combined_sha256
from stsbench.data.text_sets import read_corpus_set

OVERLAP = "overlap"
"""What the view without the pairs of other tasks is called."""

_WITHOUT = "~"


@dataclass(frozen=True)
class View:
    """Which pairs are left out of the scored tasks.

    Attributes:
        overlap: whether a pair counts in one task alone: of the seven STS tasks in the papers' order the first
            whose test pairs have it keeps it; a file of one's own comes last.
        corpora: files of training text: a pair is left out if either of its sentences stands in one of them.

    Sentences are the same by letters and digits alone, case folded.
    """

    overlap: bool = False
    corpora: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything is left out."""
        return self.overlap or bool(self.corpora)

    def of(self, sets: Iterable[StsData], data_dirs: Sequence[Path] = ()) -> list[StsData]:
        """Return what is left of some tasks.

        Args:
            sets: scored pairs.
            data_dirs: folders to look for the other tasks in.

        Raises:
            UserError: if a corpus cannot be read, another task's data is not here, or no pair is left.

        >>> from stsbench.data.benchmarks import load_sample
        >>> (clean,) = View(corpora=(Path("sample"),)).of([load_sample()])
        >>> clean.split, len(clean.pairs)
        ('test~sample', 251)
        """
        others = _Others(data_dirs)
        corpora = [_Corpus.read(path) for path in self.corpora]
        return [self._of(data, others, corpora) for data in sets]

    def _of(self, data: StsData, others: "_Others", corpora: "Sequence[_Corpus]") -> StsData:
        first, second = folded_ids(data.table["sentence1"]), folded_ids(data.table["sentence2"])
        kept = np.ones(len(data.table), dtype=bool)
        names, files, notes, problems = list[str](), list(data.files), list[str](), list(data.problems)
        if self.overlap:
            earlier = others.before(data)
            pairs = set().union(*(pairs_of(other) for other in earlier))
            met = np.array([pair in pairs for pair in unordered_pairs(first, second)], dtype=bool)
            names.append(OVERLAP)
            files += [file for other in earlier for file in other.files]
            problems += [problem for other in earlier for problem in other.problems]
            notes.append(_note(data, kept & met, "are pairs of a task before it"))
            kept &= ~met
        for corpus in corpora:
            met = np.isin(first, corpus.ids) | np.isin(second, corpus.ids)
            names.append(corpus.file.name)
            files.append(corpus.file)
            notes.append(_note(data, kept & met, f"have a sentence that stands in {corpus.file.name}"))
            kept &= ~met
        if not kept.any():
            raise UserError(f"{data.task}: no pair is left: {' '.join(notes)} Leave out the task, or the view.")
        return replace(
            data,
            split=_WITHOUT.join([data.split, *names]),
            pairs=data.table.take(kept),
            files=tuple(files),
            sha256=combined_sha256(files),
            status="modified" if problems and data.status != "user" else data.status,
            problems=tuple(problems),
            notes=(*data.notes, *notes),
        )


def split_and_view(split: str) -> tuple[str, str]:
    """Return a split's name and that of the view, empty where there is none.

    >>> split_and_view("test~overlap"), split_and_view("dev")
    (('test', 'overlap'), ('dev', ''))
    """
    name, _, view = split.partition(_WITHOUT)
    return name, view


def pairs_of(data: StsData) -> set[tuple[int, int]]:
    """Return the distinct pairs of a task, by letters and digits, whichever sentence is named first."""
    return set(unordered_pairs(folded_ids(data.table["sentence1"]), folded_ids(data.table["sentence2"])))


def _note(data: StsData, out: NDArray[np.bool_], why: str) -> str:
    return f"{data.task}: {int(out.sum()):,} of {len(data.table):,} pairs are left out, as they {why}."


class _Others:
    """The test pairs of the seven tasks, read once, when they are wanted."""

    def __init__(self, data_dirs: Sequence[Path]) -> None:
        self._data_dirs = data_dirs
        self._read: dict[tuple[str, str], StsData] = {}

    def before(self, data: StsData) -> list[StsData]:
        """Return the tasks that come before one, in the papers' order, in its text where they have it."""
        order = list(paper_tasks())
        names = order[: order.index(data.task)] if data.task in order and data.status != "user" else order
        return [
            self._task(name, data.text if data.text in data_sets()[name].texts else SENTEVAL) for name in names
        ]

    def _task(self, name: str, text: str) -> StsData:
        if (name, text) not in self._read:
            self._read[name, text] = load_sts(name, "test", text, self._data_dirs)
        return self._read[name, text]


@dataclass(frozen=True, eq=False)
class _Corpus:
    """A corpus to leave out: its file, and the numbers of its sentences."""

    file: FileRead
    ids: NDArray[np.uint64]

    @classmethod
    def read(cls, path: Path) -> "_Corpus":
        corpus = read_corpus_set(path)
        name = storable(corpus.name)
        return cls(
            FileRead(name, sha256_of(corpus_file(str(path))), None), np.unique(folded_ids(corpus.sentences))
        )
