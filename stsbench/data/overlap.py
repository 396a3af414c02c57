"""What data sets share: the sentences and pairs of two sets, as released and by letters and digits."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement, product
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.data.sentences import Sentences, read_corpus_set, read_sets
from stsbench.data.shared import IDS, LETTERS, RELEASED, unordered_pairs
from stsbench.render.cells import unique_labels
from stsbench.render.table import Result, Table, Tables

SENTENCES, PAIRS = "sentences", "pairs"

_NOTES = (
    "letters: equal by letters and digits; the column before it: as released. Pairs match in either order.",
    "%: of the distinct pairs of a set (sentences, if a set has no pairs), by letters and digits.",
)


@dataclass(frozen=True)
class DataOverlap(Result):
    """What sets of sentences and pairs share.

    Attributes:
        rows: one row per two sets, unit and way of comparing: a, b, unit ("sentences" or "pairs"), same ("as
            released" or "letters and digits"), distinct a, distinct b (how many each has), shared a, shared b (how
            many of those the other has, too), rows a, rows b (the rows concerned: a pair may be repeated, a
            sentence be in several pairs). If a and b are the same set, shared are those in several rows.
    """

    rows: pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """All counts; see `rows`."""
        return self.rows

    def table(self) -> Tables:
        """Returns a row for two sets that share something, and one for each set with repetitions."""
        inside = self.rows["a"] == self.rows["b"]
        captions = {
            "Shared by two sets: distinct sentences and pairs": self._wide(self.rows[~inside]),
            "Repeated within a set: distinct sentences or pairs of several rows": self._wide(self.rows[inside]),
        }
        shown = {caption: frame for caption, frame in captions.items() if len(frame)}
        notes = [()] * (len(shown) - 1) + [_NOTES]
        return Tables(
            Table(frame, caption, decimals=1, notes=below)
            for (caption, frame), below in zip(shown.items(), notes, strict=False)
        )

    def _wide(self, rows: pd.DataFrame) -> pd.DataFrame:
        shown = []
        for (a, b), group in rows.groupby(["a", "b"], sort=False):
            counts = {(row["unit"], row["same"]): row for row in group.to_dict("records")}
            if not group["shared a"].any():
                continue
            shared = {key: row["shared a"] for key, row in counts.items()}
            main = counts.get((PAIRS, LETTERS)) or counts[SENTENCES, LETTERS]
            row: dict[str, object] = {"a": a, "b": b} if a != b else {"set": a}
            for unit in (SENTENCES, PAIRS):
                row[unit] = shared.get((unit, RELEASED))
                row[f"{unit}, letters"] = shared.get((unit, LETTERS))
            row["% of a" if a != b else "%"] = 100 * main["shared a"] / main["distinct a"]
            row |= {"% of b": 100 * main["shared b"] / main["distinct b"]} if a != b else {"rows": main["rows a"]}
            shown.append(row)
        frame = pd.DataFrame(shown).dropna(axis="columns", how="all")
        counted = [name for name in frame if not str(name).startswith(("%", "a", "b", "set"))]
        return frame.astype(dict.fromkeys(counted, "Int64"))


def overlap(
    tasks: Sequence[str] = (),
    *,
    corpora: Sequence[str | Path] = (),
    columns: Sequence[str] | None = None,
    data_dirs: Sequence[Path] = (),
) -> DataOverlap:
    """Counts the sentences and pairs that data sets share.

    Args:
        tasks: the tasks, such as `STS16` (each split is a set), `STS-B:train`, `STS12@raw` or, as one set,
            `STS12+STS13`; `sts`, `transfer` or `all`. Default: `sts`.
        corpora: training corpora to compare with the tasks, instead of these with each other: files, or `sample`.
        columns: the corpora's columns with sentences; by default all cells but numbers.
        data_dirs: folders to search for data first.

    Raises:
        UserError: if a task or its data is missing, or a corpus cannot be read.

    >>> shared = overlap(["sample"], corpora=["sample"])
    >>> shared.frame[["a", "b", "unit", "same", "shared a"]].values.tolist()
    [['sample', 'corpus sample', 'sentences', 'as released', 1],
     ['sample', 'corpus sample', 'sentences', 'letters and digits', 1]]
    """
    sets = [(texts.name, _keys(texts)) for texts in read_sets(tasks or ["sts"], data_dirs)]
    labels = unique_labels([Path(corpus).name for corpus in corpora])
    # A corpus may have the name of a task.
    read = [
        (f"corpus {label}", _keys(read_corpus_set(corpus, columns)))
        for label, corpus in zip(labels, corpora, strict=True)
    ]
    compared = product(sets, read) if read else combinations_with_replacement(sets, 2)
    return DataOverlap(pd.DataFrame([row for a, b in compared for row in _compare(a, b)]))


_Keys = dict[tuple[str, str], list[Collection[object]]]
"""For each unit and way of comparing, what is in each row: its pair, or its one or two sentences, as ids."""


def _keys(texts: Sentences) -> _Keys:
    keys: _Keys = {}
    for same, ids_of in IDS.items():
        first = ids_of(texts.first)
        pairs = unordered_pairs(first, first if texts.second is None else ids_of(texts.second))
        keys[SENTENCES, same] = [set(pair) for pair in pairs]
        if texts.second is not None:
            keys[PAIRS, same] = [(pair,) for pair in pairs]
    return keys


def _compare(a: tuple[str, _Keys], b: tuple[str, _Keys]) -> list[dict[str, Any]]:
    (name_a, keys_a), (name_b, keys_b) = a, b
    is_within = keys_a is keys_b
    rows = []
    for unit, same in product((SENTENCES, PAIRS), IDS):
        # Sentences of pairs repeat by construction.
        if (
            (unit, same) not in keys_a
            or (unit, same) not in keys_b
            or (is_within and unit == SENTENCES and (PAIRS, same) in keys_a)
        ):
            continue
        sides = keys_a[unit, same], keys_b[unit, same]
        counts = [Counter(chain.from_iterable(side)) for side in sides]
        shared = counts[0].keys() & counts[1].keys()
        if is_within:
            shared = {key for key, times in counts[0].items() if times > 1}
        concerned = [sum(any(key in shared for key in row) for row in side) for side in sides]
        rows.append(
            {"a": name_a, "b": name_b, "unit": unit, "same": same}
            | {"distinct a": len(counts[0]), "distinct b": len(counts[1])}
            | {"shared a": len(shared), "shared b": len(shared), "rows a": concerned[0], "rows b": concerned[1]}
        )
    return rows
