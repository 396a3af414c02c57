"""What encoders are scored on, found in what is trained on: dropped and counted, or told everywhere.

Of labelled tables pairs, of a corpus sentences in one pass over it: `stsbench data overlap --corpus` counts pairs
and near-duplicates, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import Met, pairs_in, read_splits, sentences_met
from stsbench.scoring.tasks import STS_TASKS
from stsbench.training.tasks import TestPairs

STS_B = ("STS-B:dev", "STS-B:test")
"""Checkpoints are selected by the first and reported by the second."""

SCORED = (*STS_B, *(f"{task}:test" for task in STS_TASKS if task != "STS-B"))
"""What encoders are scored on, and STS-B's dev split."""

_DROPPED: Mapping[TestPairs, Sequence[str]] = {"dropped": STS_B, "all-dropped": SCORED, "kept": ()}


@dataclass(frozen=True)
class Leakage:
    """What is common to a labelled table and the scored pairs of tasks. Pairs are counted once, rows as they come.

    Attributes:
        rows: that were dropped.
        dropped: pairs of each set that were dropped.
        left: pairs of each set that are trained on; sets without any left out.
        trained_on: pairs that are trained on.
        absent: sets that are not here, so nobody looked for their pairs.
    """

    rows: int
    dropped: Mapping[str, int]
    left: Mapping[str, int]
    trained_on: int
    absent: Sequence[str]

    def sentence(self) -> str:
        """Return what was dropped, as a part of a sentence."""
        of_sets = listed([f"{count:,} of {name}" for name, count in self.dropped.items() if count])
        parts = []
        if self.dropped:
            parts.append(f"dropped {self.rows:,} that hold scored pairs{f' ({of_sets})' if of_sets else ''}")
        if self.absent:
            parts.append(f"not looked for the pairs of {listed(list(self.absent))}, which are not here")
        return "; ".join(parts)

    def remark(self, task: str) -> str | None:
        """Return what everybody should know who reads a score of what is trained so; None if that is nothing."""
        if not self.left:
            return None
        of_sets = listed([f"{count:,} of {name}" for name, count in self.left.items()])
        return (
            f"Trained on test pairs: of the {self.trained_on:,} pairs that {task} is trained on, with labels, "
            f"some are scored pairs of tasks ({of_sets}), so scores there are no results."
        )


@dataclass(frozen=True)
class Benchmarks:
    """The scored pairs of tasks.

    Attributes:
        dropped: the sets whose pairs are dropped.
    """

    pairs: Mapping[str, frozenset[tuple[int, int]]]
    dropped: Sequence[str]
    absent: Sequence[str]

    @classmethod
    def read(cls, test_pairs: TestPairs, data_dirs: Sequence[Path]) -> "Benchmarks":
        """Read the tasks."""
        sets, absent = read_splits(SCORED, data_dirs)
        for name in filter(absent.__contains__, _DROPPED[test_pairs]):
            raise UserError(
                f"pairs of {name} are to be dropped from labelled training data (labelled.test_pairs: "
                f"{test_pairs}), and it is not here to tell them by: {absent[name]}"
            ) from absent[name]
        pairs = {name: frozenset(pairs_in(data)) for name, data in sets.items()}
        return cls(pairs, _DROPPED[test_pairs], list(absent))

    def holds(self, pairs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
        """Return which pairs are to be dropped, (n,)."""
        known = frozenset[tuple[int, int]]().union(*(self.pairs[name] for name in self.dropped))
        return np.array([pair in known for pair in pairs], dtype=bool)

    def overlap(self, table: Sequence[tuple[int, int]], trained_on: Sequence[tuple[int, int]]) -> Leakage:
        """Return what was found in a table, and in those of its pairs that are trained on."""
        everything, left = frozenset(table), frozenset(trained_on)
        counts = {name: len(scored & left) for name, scored in self.pairs.items()}
        return Leakage(
            rows=int(self.holds(table).sum()),
            dropped={name: len(self.pairs[name] & everything) for name in self.dropped},
            left={name: count for name, count in counts.items() if count},
            trained_on=len(left),
            absent=self.absent,
        )


@dataclass(frozen=True)
class CorpusOverlap:
    """What a corpus holds of the sentences of the STS tasks."""

    met: Mapping[str, Met]
    absent: Sequence[str]

    @classmethod
    def count(cls, texts: Iterable[str], data_dirs: Sequence[Path] = ()) -> "CorpusOverlap":
        """Hold a corpus against the test splits of the STS tasks, and STS-B's dev split."""
        sets, absent = read_splits(SCORED, data_dirs)
        sentences = {name: sentences_in(data) for name, data in sets.items()}
        return cls(sentences_met(texts, sentences) if sets else {}, list(absent))

    def sentence(self) -> str:
        """Return it in one sentence; empty where none of the sets is here."""
        if not self.met:
            return ""
        some = [
            f"{met.letters:,} of the {met.distinct:,} of {name} ({met.released:,} as released)"
            for name, met in self.met.items()
            if met.letters
        ]
        none = [name for name, met in self.met.items() if not met.letters]
        parts = [
            f"it holds {listed(some)}" if some else "",
            f"it holds none of {listed(none)}" if none else "",
            f"nobody looked for those of {listed(list(self.absent))}, not here or broken" if self.absent else "",
        ]
        return (
            "the corpus and the distinct sentences that encoders are scored on, by letters and digits: "
            f"{'; '.join(filter(None, parts))}."
        )
