"""Parts of the scored pairs: those that no other task has, and those whose sentences no training corpus holds.

A part's name follows the split behind a tilde (`STS-B:test~overlap`), so that a signature says which pairs were
scored, and what they were held against is among the files that the data's hash is over.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.words import storable
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import SENTEVAL, data_sets, paper_tasks
from stsbench.data.corpus import corpus_file
from stsbench.data.sentences import read_corpus_set
from stsbench.data.shared import folded_ids, pairs_in
from stsbench.data.tables import FileRead, StsData, combined_sha256

OVERLAP = "overlap"
"""What the view without the pairs of other tasks is called."""

_WITHOUT = "~"


@dataclass(frozen=True)
class PairView:
    """Which pairs are left out of the scored tasks.

    Attributes:
        overlap: whether a pair counts in one task alone: of the seven STS tasks in the papers' order the first
            whose test pairs have it keeps it; a file of one's own comes last.
        corpora: files of training text: a pair is left out if either of its sentences stands in one of them.

    Sentences are the same by letters and digits alone, case folded.
    """

    overlap: bool = False
    corpora: Sequence[str | Path] = ()

    def __bool__(self) -> bool:
        """Return whether the view leaves out any pairs."""
        return self.overlap or bool(self.corpora)

    def of(self, sets: Iterable[StsData], data_dirs: Sequence[Path] = ()) -> list[StsData]:
        """Return what is left of some tasks.

        Args:
            sets: scored pairs.
            data_dirs: folders to look for the other tasks in.

        >>> from stsbench.data.benchmarks import load_sample
        >>> (clean,) = PairView(corpora=(Path("sample"),)).of([load_sample()])
        >>> clean.split, len(clean.pairs)
        ('test~sample', 251)
        """
        corpora = [_read_corpus(Path(path)) for path in self.corpora]

        @cache
        def test_pairs(task: str, text: str) -> tuple[StsData, frozenset[tuple[int, int]]]:
            data = load_sts(task, "test", text, data_dirs)
            return data, frozenset(pairs_in(data))

        def exclusions(data: StsData) -> Iterator[_Exclusion]:
            if self.overlap:
                yield _in_earlier(data, test_pairs)
            yield from (_in_corpus(data, *corpus) for corpus in corpora)

        return [_without(data, list(exclusions(data))) for data in sets]


def split_and_view(split: str) -> tuple[str, str]:
    """Return a split's name and that of the view, empty where there is none.

    >>> split_and_view("test~overlap"), split_and_view("dev")
    (('test', 'overlap'), ('dev', ''))
    """
    name, _, view = split.partition(_WITHOUT)
    return name, view


class _Exclusion(NamedTuple):
    """Which pairs are left out, (n,), why, the name behind the tilde, and the files they are compared with."""

    excluded: NDArray[np.bool_]
    reason: str
    name: str
    files: Sequence[FileRead]
    problems: Sequence[str] = ()


def _without(data: StsData, exclusions: Sequence[_Exclusion]) -> StsData:
    """Return a task without what any of these leaves out; a note counts each pair once."""
    kept, notes = np.ones(len(data.pairs), dtype=bool), list[str]()
    for exclusion in exclusions:
        count = int((kept & exclusion.excluded).sum())
        notes.append(f"{data.task}: {count:,} of {len(kept):,} pairs are left out, as they {exclusion.reason}.")
        kept &= ~exclusion.excluded
    if not kept.any():
        raise UserError(f"{data.task}: no pair is left: {' '.join(notes)} Leave out the task, or the view.")
    files = (*data.files, *(file for exclusion in exclusions for file in exclusion.files))
    problems = (*data.problems, *(problem for exclusion in exclusions for problem in exclusion.problems))
    return replace(
        data,
        split=_WITHOUT.join([data.split, *(exclusion.name for exclusion in exclusions)]),
        pairs=data.pairs[kept].reset_index(drop=True),
        files=files,
        sha256=combined_sha256(files),
        status="modified" if problems and data.status != "user" else data.status,
        problems=problems,
        notes=(*data.notes, *notes),
    )


def _in_earlier(
    data: StsData, test_pairs: Callable[[str, str], tuple[StsData, frozenset[tuple[int, int]]]]
) -> _Exclusion:
    """Leave out what a task before this one has, in the papers' order, in its text where they have it."""
    order = list(paper_tasks())
    names = order[: order.index(data.task)] if data.task in order and data.status != "user" else order
    earlier = [test_pairs(name, data.text if data.text in data_sets()[name].texts else SENTEVAL) for name in names]
    known = frozenset[tuple[int, int]]().union(*(pairs for _, pairs in earlier))
    return _Exclusion(
        np.array([pair in known for pair in pairs_in(data)], dtype=bool),
        "are pairs of a task before it",
        OVERLAP,
        [file for task, _ in earlier for file in task.files],
        [problem for task, _ in earlier for problem in task.problems],
    )


def _read_corpus(path: Path) -> tuple[FileRead, NDArray[np.uint64]]:
    """Return the file of a corpus, and the numbers of its sentences."""
    corpus = read_corpus_set(path)
    file = FileRead(storable(corpus.name), sha256_of(corpus_file(str(path))), None)
    return file, np.unique(folded_ids(corpus.texts))


def _in_corpus(data: StsData, file: FileRead, known: NDArray[np.uint64]) -> _Exclusion:
    either = [np.isin(folded_ids(data.pairs[side]), known) for side in ("sentence1", "sentence2")]
    return _Exclusion(either[0] | either[1], f"have a sentence that stands in {file.name}", file.name, [file])
