"""What data sets share: `overlap` counts sentences and pairs of two sets, `sharing` the graph of tasks' pairs."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set, paper_tasks, task_split_text
from stsbench.data.overview import DataOverview
from stsbench.data.sentences import Sentences, read_corpus_set, read_sets
from stsbench.data.shared import LETTERS, NEAR, NUMBERS, RELEASED, near_matches, same_letters, unordered_pairs
from stsbench.data.tables import StsData
from stsbench.render.cells import file_labels
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.statistics.dependence import Sharing

NEARLY = "nearly"
"""A third way of being the same, beside those of `NUMBERS`: by `near_matches`."""

SENTENCES, PAIRS = "sentences", "pairs"

TOGETHER = "all tasks"
"""The rows of all tasks as one graph."""

_SAMPLE = "sample"


@dataclass(frozen=True)
class DataOverlap(Result):
    """What sets of sentences and pairs share.

    Attributes:
        rows: a row for two sets, what is counted, and how two are found to be the same: a, b, unit ("sentences" or
            "pairs"), same ("as released", "letters and digits" or "nearly"), distinct a, distinct b (how many
            each has), shared a (of those of a, how many b has too), shared b, rows a, rows b (how many rows of
            each are concerned: a pair may stand there twice, a sentence in several pairs). Where a and b are one
            set, shared are those that stand in several rows.
        threshold: of "nearly"; None where nobody asked.
    """

    rows: pd.DataFrame
    threshold: float | None

    @property
    def frame(self) -> pd.DataFrame:
        """All of it; see `rows`."""
        return self.rows

    def count(self, a: str, b: str, unit: str = PAIRS, same: str = LETTERS) -> int:
        """Return how many distinct sentences or pairs of `a` the set `b` has, too.

        Raises:
            KeyError: if that was not looked at.
        """
        for names, side in (((a, b), "a"), ((b, a), "b")):
            rows = self.rows[(self.rows[["a", "b", "unit", "same"]] == [*names, unit, same]).all(axis=1)]
            if len(rows):
                return int(rows[f"shared {side}"].iloc[0])
        raise KeyError(f"{a}, {b}, {unit}, {same}")

    def table(self) -> Tables:
        """Return a row for two sets that share something, and one for each set that repeats some of its own."""
        inside = self.rows["a"] == self.rows["b"]
        captions = {
            "Shared by two sets: distinct sentences and pairs": self._shown(self.rows[~inside]),
            "Repeated within a set: distinct sentences or pairs of several rows": self._shown(self.rows[inside]),
        }
        shown = {caption: frame for caption, frame in captions.items() if len(frame)}
        notes = [()] * (len(shown) - 1) + [self.notes]
        return Tables(
            Table(frame, caption, decimals=1, notes=below)
            for (caption, frame), below in zip(shown.items(), notes, strict=False)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the columns count, a sentence each."""
        notes = [
            "letters: the same by letters and digits alone, case folded; the column before it: as released. Of "
            "pairs both sentences are the same, whichever is named first.",
            "%: of the distinct ones of either set, pairs where both sets have pairs, by letters and digits.",
        ]
        if self.threshold is not None:
            notes.append(
                f"nearly: distinct sentences of a for which b has one with at least {self.threshold:g} of the "
                "letter triples that either has (Jaccard's measure); all are found, none is estimated."
            )
        return tuple(notes)

    def _shown(self, rows: pd.DataFrame) -> pd.DataFrame:
        shown = []
        for (a, b), group in rows.groupby(["a", "b"], sort=False):
            counts = {(row["unit"], row["same"]): row for row in group.to_dict("records")}
            if not any(row["shared a"] for row in counts.values()):
                continue
            shared = {key: row["shared a"] for key, row in counts.items()}
            main = counts.get((PAIRS, LETTERS)) or counts[SENTENCES, LETTERS]
            row: dict[str, object] = {"a": a, "b": b} if a != b else {"set": a}
            for unit in (SENTENCES, PAIRS):
                row[unit] = shared.get((unit, RELEASED))
                row[f"{unit}, letters"] = shared.get((unit, LETTERS))
            row[NEARLY] = shared.get((SENTENCES, NEARLY))
            row["% of a" if a != b else "%"] = 100 * main["shared a"] / main["distinct a"]
            row |= {"% of b": 100 * main["shared b"] / main["distinct b"]} if a != b else {"rows": main["rows a"]}
            shown.append(row)
        frame = pd.DataFrame(shown).dropna(axis="columns", how="all")
        counted = [name for name in frame if not str(name).startswith(("%", "a", "b", "set"))]
        return frame.astype(dict.fromkeys(counted, "Int64"))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() if self.table() else "<p>These sets share nothing.</p>"


def overlap(
    tasks: Sequence[str] = (),
    *,
    corpora: Sequence[str | Path] = (),
    columns: Sequence[str] | None = None,
    near: float | None = None,
    data_dirs: Sequence[Path] = (),
    progress: Progress = silent,
) -> DataOverlap:
    """Count the sentences and pairs that data sets share.

    Args:
        tasks: the tasks to look at, such as `STS16` (all its splits, one set each), `STS-B:train`, `STS12@raw` or,
            as one set, `STS12+STS13`; `sts`, `transfer` or `all`. Default: `sts`.
        corpora: a training corpus to hold against the tasks, instead of these against each other: a file, or
            `sample`.
        columns: the corpora's columns that hold sentences, with commas; by default all cells but numbers.
        near: the share of common letter triples (0.8, say) from which on two sentences are counted as nearly the
            same, too; by default only equal sentences are counted.
        data_dirs: folders to look for data in first.
        progress: told how far it is.

    Raises:
        UserError: if a task or its data is not here, a corpus cannot be read, or the threshold is none.

    >>> shared = overlap(["sample"], corpora=["sample"])
    >>> shared.frame[["a", "b", "unit", "same", "shared a"]].values.tolist()
    [['sample', 'corpus sample', 'sentences', 'as released', 1],
     ['sample', 'corpus sample', 'sentences', 'letters and digits', 1]]
    """
    if near is not None and not 0 < near <= 1:
        raise UserError(f"a threshold of {near:g}: give a share above 0 and up to 1, such as {NEAR}.")
    sets = [_Counted(texts.name, texts) for texts in read_sets(tasks or ["sts"], data_dirs)]
    read = [read_corpus_set(corpus, columns) for corpus in corpora]
    names = file_labels([Path(texts.origin or texts.name) for texts in read])
    # A corpus may be called as a task is.
    held = [_Counted(f"corpus {name}", texts) for name, texts in zip(names, read, strict=True)]
    matched = list(product(sets, held) if held else combinations_with_replacement(sets, 2))
    rows: list[dict[str, object]] = []
    for number, (a, b) in enumerate(matched):
        progress("comparing", number, len(matched))
        rows += _shared_by(a, b, near)
    progress("comparing", len(matched), len(matched))
    return DataOverlap(pd.DataFrame(rows), near)


def overlap_of(a: Sentences, b: Sentences) -> pd.DataFrame:
    """Return what two sets share, as rows of `DataOverlap`."""
    return pd.DataFrame(_shared_by(_Counted(a.name, a), _Counted(b.name, b), None))


class _Counted:
    """A set with what stands in each of its rows, by each way of being the same, made when it is wanted."""

    def __init__(self, name: str, texts: Sentences) -> None:
        self.name, self.texts = name, texts
        self.units = (SENTENCES,) if texts.second is None else (SENTENCES, PAIRS)
        self._rows: dict[tuple[str, str], list[Collection[object]]] = {}

    def rows(self, unit: str, same: str) -> list[Collection[object]]:
        """Return what stands in each row: its pair, or its one or two sentences, as numbers."""
        key = unit, same
        if key not in self._rows:
            first = NUMBERS[same](self.texts.first)
            second = first if self.texts.second is None else NUMBERS[same](self.texts.second)
            pairs = unordered_pairs(first, second)
            self._rows[key] = [(pair,) if unit == PAIRS else set(pair) for pair in pairs]
        return self._rows[key]

    @cached_property
    def letters(self) -> list[str]:
        """The distinct sentences by their letters and digits; those without any are left out."""
        return list(dict.fromkeys(filter(None, map(same_letters, self.texts.texts))))


def _shared_by(a: _Counted, b: _Counted, near: float | None) -> list[dict[str, object]]:
    """Return the rows of `DataOverlap` on two sets."""
    units = [unit for unit in a.units if unit in b.units]
    if a is b:
        # Sentences of pairs repeat by construction: `data sharing` tells of them.
        units = units[-1:]
    rows = [_counts(a, b, unit, same) for unit in units for same in NUMBERS]
    if near is not None and a is not b:
        left, right = near_matches(a.letters, b.letters, near)
        rows.append(
            {"a": a.name, "b": b.name, "unit": SENTENCES, "same": NEARLY}
            | {"distinct a": len(left), "distinct b": len(right)}
            | {"shared a": int(left.sum()), "shared b": int(right.sum()), "rows a": None, "rows b": None}
        )
    return rows


def _counts(a: _Counted, b: _Counted, unit: str, same: str) -> dict[str, object]:
    sides = a.rows(unit, same), b.rows(unit, same)
    counts = [Counter(key for row in rows for key in row) for rows in sides]
    repeated = {key for key, times in counts[0].items() if times > 1}
    shared = repeated if a is b else counts[0].keys() & counts[1].keys()
    concerned = [sum(any(key in shared for key in row) for row in rows) for rows in sides]
    row: dict[str, object] = {"a": a.name, "b": b.name, "unit": unit, "same": same}
    return (
        row
        | {"distinct a": len(counts[0]), "distinct b": len(counts[1])}
        | {"shared a": len(shared), "shared b": len(shared), "rows a": concerned[0], "rows b": concerned[1]}
    )


def sharing(tasks: Sequence[str] = (), data_dirs: Sequence[Path] = ()) -> DataOverview:
    """Return what the pairs of tasks share: the graph whose nodes are distinct sentences, and pairs its edges.

    Columns: task, split, same ("as released", or by "letters and digits" alone, case folded, since two releases
    tokenise one sentence differently), pairs, sentences (distinct), components, largest component (its pairs),
    sharing (% of pairs that share a sentence with another), repeated (% whose two sentences another pair has too),
    most (pairs that the most frequent sentence stands in), elsewhere (% of pairs that are a pair of another of
    these tasks). Of several tasks there are rows for all of them as one graph. Readers are shown a task as
    released, and all tasks both ways.

    Args:
        tasks: the tasks to look at, with a split (`STS-B:dev`) or a text (`STS12@raw`) where wanted; by default
            the test splits of all STS tasks, as SentEval released them.
        data_dirs: folders to look for data in first.

    Raises:
        UserError: if a task is none with scored pairs, or its data is not here or broken.

    >>> sharing(["sample"]).frame.loc[0, ["pairs", "sentences", "components"]].astype(int).to_list()
    [252, 504, 252]
    """
    read = [_scored_pairs(name, data_dirs) for name in tasks or paper_tasks()]
    frame = pd.DataFrame([row for same in NUMBERS for row in _graphs(read, same)])
    order = {label: place for place, label in enumerate(dict.fromkeys(frame["task"]))}
    frame = frame.sort_values("task", key=lambda column: column.map(order), kind="stable", ignore_index=True)
    shown = frame[(frame["task"] == TOGETHER) | (frame["same"] == RELEASED) | (len(read) == 1)]
    return DataOverview(frame, shown.reset_index(drop=True))


def _scored_pairs(name: str, data_dirs: Sequence[Path]) -> StsData:
    task, split, text = task_split_text(name)
    if task == _SAMPLE and (split or text):
        raise UserError("the sample has one split and one text: name it `sample`.")
    return load_sts(task, split or "test", text or data_set(task).usual_text, data_dirs)


def _graphs(tasks: Sequence[StsData], same: str) -> list[dict[str, object]]:
    ids = [tuple(NUMBERS[same](task.pairs[side]) for side in ("sentence1", "sentence2")) for task in tasks]
    edges = [unordered_pairs(*sides) for sides in ids]
    graphs = [Sharing.of(*sides) for sides in ids]
    rows, elsewhere = [], list[list[bool]]()
    for number, (task, graph) in enumerate(zip(tasks, graphs, strict=True)):
        others = {edge for place, of_task in enumerate(edges) if place != number for edge in of_task}
        elsewhere.append([edge in others for edge in edges[number]])
        rows.append(_graph(task.task, task.split, same, graph, elsewhere[-1]))
    if len(tasks) > 1:
        rows.append(_graph(TOGETHER, "", same, Sharing.join(graphs), list(chain(*elsewhere))))
    return rows


def _graph(task: str, split: str, same: str, graph: Sharing, elsewhere: Sequence[bool]) -> dict[str, object]:
    about = graph.describe()
    return {
        "task": task,
        "split": split,
        "same": same,
        "pairs": about.pairs,
        "sentences": about.sentences,
        "components": about.components,
        "largest component": about.largest_component,
        "sharing": 100 * about.sharing,
        "repeated": 100 * about.repeated,
        "most": about.largest_degree,
        "elsewhere": 100 * float(np.mean(elsewhere)),
    }
