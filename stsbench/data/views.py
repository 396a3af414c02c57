"""Views: scored pairs without those of other tasks, or without those that have a sentence of a training corpus.

A view's name follows the split after a tilde (`STS-B:test~overlap`), and the files that it was compared with are
part of the data's hash, so a signature shows which pairs were scored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import SENTEVAL, data_sets, paper_tasks
from stsbench.data.corpus import corpus_file
from stsbench.data.sentences import read_corpus_set
from stsbench.data.tables import FileRead, StsData, combined_sha256, folded_ids, pair_ids, shared_ids

OVERLAP = "overlap"
"""The name of the view without the pairs of other tasks."""

_WITHOUT = "~"


@dataclass(frozen=True)
class PairView:
    """Which pairs are left out of the scored tasks, by letters and digits.

    Attributes:
        overlap: whether a pair counts in one task only: the first of the seven STS tasks, in the papers' order,
            whose test split has it; your own file comes last.
        corpora: files of training text: a pair is left out if one of its sentences is in one of them.
    """

    overlap: bool = False
    corpora: Sequence[str | Path] = ()

    def __bool__(self) -> bool:
        """Returns whether the view leaves out any pairs."""
        return self.overlap or bool(self.corpora)

    def of(self, sets: Iterable[StsData], data_dirs: Sequence[Path] = ()) -> list[StsData]:
        """Returns the tasks without the pairs.

        Args:
            sets: scored pairs.
            data_dirs: folders to search for the other tasks.

        >>> from stsbench.data.benchmarks import load_sample
        >>> (clean,) = PairView(corpora=(Path("sample"),)).of([load_sample()])
        >>> clean.split, len(clean.pairs)
        ('test~sample', 251)
        """
        corpora = [_read_corpus(Path(path)) for path in self.corpora]
        clean = []
        for data in sets:
            exclusions = [_in_earlier(data, data_dirs)] if self.overlap else []
            clean.append(_without(data, exclusions + [_in_corpus(data, *corpus) for corpus in corpora]))
        return clean


def split_and_view(split: str) -> tuple[str, str]:
    """Returns a split's name and that of the view, which may be empty.

    >>> split_and_view("test~overlap"), split_and_view("dev")
    (('test', 'overlap'), ('dev', ''))
    """
    name, _, view = split.partition(_WITHOUT)
    return name, view


class _Exclusion(NamedTuple):
    """The pairs to leave out, (n,), the reason, the name after the tilde, and the files compared with."""

    excluded: NDArray[np.bool_]
    reason: str
    name: str
    files: Sequence[FileRead]
    problems: Sequence[str] = ()


def _without(data: StsData, exclusions: Sequence[_Exclusion]) -> StsData:
    kept, notes = np.ones(len(data.pairs), dtype=bool), list[str]()
    for exclusion in exclusions:
        count = int((kept & exclusion.excluded).sum())
        notes.append(f"{data.task}: left out {count:,} of {len(kept):,} pairs that {exclusion.reason}.")
        kept &= ~exclusion.excluded
    if not kept.any():
        raise UserError(f"{data.task}: no pairs are left. {' '.join(notes)} Leave out the task or the view.")
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


def _in_earlier(data: StsData, data_dirs: Sequence[Path]) -> _Exclusion:
    """Excludes the pairs of the tasks before this one, in the papers' order, in its text if they have it."""
    names = list(paper_tasks())
    if data.task in names and data.status != "user":
        names = names[: names.index(data.task)]
    texts = [data.text if data.text in data_sets()[name].texts else SENTEVAL for name in names]
    earlier = [load_sts(name, "test", text, data_dirs) for name, text in zip(names, texts, strict=True)]
    known = np.concatenate([np.empty(0, np.uint64), *(pair_ids(*_sides(task)) for task in earlier)])
    return _Exclusion(
        shared_ids(pair_ids(*_sides(data)), known).mask,
        "are pairs of an earlier task",
        OVERLAP,
        [file for task in earlier for file in task.files],
        [problem for task in earlier for problem in task.problems],
    )


def _sides(data: StsData) -> NDArray[np.uint64]:
    return np.array([folded_ids(data.pairs[side]) for side in ("sentence1", "sentence2")])


def _read_corpus(path: Path) -> tuple[FileRead, NDArray[np.uint64]]:
    corpus = read_corpus_set(path)
    return FileRead(corpus.name, sha256_of(corpus_file(str(path))), None), folded_ids(corpus.texts)


def _in_corpus(data: StsData, file: FileRead, corpus: NDArray[np.uint64]) -> _Exclusion:
    first, second = shared_ids(_sides(data), corpus).mask
    return _Exclusion(first | second, f"have a sentence of {file.name}", file.name, [file])
