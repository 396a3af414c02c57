"""`describe`: what is in a table of scored pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set, is_task, task_split_text
from stsbench.data.own_pairs import load_pairs
from stsbench.data.shared import folded_ids, unordered_pairs
from stsbench.data.tables import StsData
from stsbench.render.table import Result, Table, Tables
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.intervals import detectable, difference_error

CORRELATION, BETWEEN = 0.8, 0.9
"""The smallest difference is computed for two models with these correlations: with gold, and with each other."""

_Numbers = list[tuple[str, str, float]]
"""Rows of `Description.numbers`."""


@dataclass(frozen=True)
class Description(Result):
    """What is in a table of scored pairs.

    Attributes:
        name: the task or file.
        rows: one row per number: about (its subject), what, value.
        notes: how to read the numbers.
    """

    name: str
    rows: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per number; see `rows`."""
        return self.rows

    def value(self, about: str, what: str) -> float:
        """Returns one of the numbers; a KeyError if there is no such number."""
        rows = self.rows[(self.rows["about"] == about) & (self.rows["what"] == what)]
        if rows.empty:
            raise KeyError(f"{about}, {what}")
        return float(rows["value"].iloc[0])  # Narrow bins may have the same label.

    def table(self) -> Tables:
        """Returns the numbers."""
        shown = self.rows.assign(value=[f"{round(value, 2):,.12g}" for value in self.rows["value"]])
        return Tables([Table(shown, self.name, notes=self.notes)])


def describe(data: str | Path, *, subset_column: str = "subset", data_dirs: Sequence[Path] = ()) -> Description:
    """Describes scored pairs: counts, lengths, scores, repetitions, shared sentences.

    The smallest detectable difference is given for an assumed pair of models, as two limits: if all pairs were
    independent, and if each chain of pairs with shared sentences counted as one. For real models, use `plan` with
    their records.

    Args:
        data: your own pairs (.tsv, .csv, .jsonl, .parquet), or a task (`STS-B:dev`).
        subset_column: the column of that file with the subsets.
        data_dirs: folders to search for data first.

    Raises:
        UserError: if the file cannot be read, or no correlation is defined on it.

    >>> about = describe("sample")
    >>> about.value("pairs", "all"), about.value("sentences", "distinct")
    (252.0, 504.0)
    """
    pairs = _read(data, subset_column, data_dirs)
    name = pairs.task if pairs.split in {"all", "test"} else f"{pairs.task}:{pairs.split}"
    gold = pairs.pairs["gold"].to_numpy()
    sides = [pairs.pairs[side].tolist() for side in ("sentence1", "sentence2")]
    ids = [folded_ids(side) for side in sides]
    rows = [
        *_counted(pairs.pairs, sides, unordered_pairs(*ids)),
        *_scored(gold),
        *_depending(Sharing.of(*ids)),
    ]
    by_subset = pairs.pairs.groupby("subset", sort=False)["gold"].agg(pairs="size", mean="mean", sd="std")
    rows += [(f"subset {subset}", what, row[what]) for subset, row in by_subset.iterrows() for what in by_subset]
    counts, edges = np.histogram(gold, bins=10)
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    rows += [("histogram", f"{low:g} to {high:g}", int(count)) for low, high, count in bins]
    return Description(
        name,
        pd.DataFrame(rows, columns=["about", "what", "value"]),
        (
            "repeated: pairs whose sentences are another pair, too, by letters and digits, in either order.",
            f"smallest difference: with 80 % power at 5 %, for two models that correlate {CORRELATION:g} with the "
            f"scores and {BETWEEN:g} with each other; for two records, use `stsbench plan`.",
        ),
    )


def _read(data: str | Path, subset_column: str, data_dirs: Sequence[Path]) -> StsData:
    path = Path(data).expanduser()
    if isinstance(data, Path) or not is_task(data) or path.is_file():
        return load_pairs(path, subset_column)
    task, split, text = task_split_text(data)
    return load_sts(task, split or "test", text or data_set(task).usual_text, data_dirs)


def _counted(table: pd.DataFrame, sides: Sequence[Sequence[str]], edges: Sequence[tuple[int, int]]) -> _Numbers:
    words = np.array([[len(text.split()) for text in side] for side in sides], dtype=np.float64)
    characters = np.array([len(text) for side in sides for text in side], dtype=float)
    numbers = {edge: number for number, edge in enumerate(dict.fromkeys(edges))}
    by_edge = table["gold"].groupby(np.array([numbers[edge] for edge in edges]))
    return [
        ("pairs", "all", len(table)),
        ("pairs", "subsets", len(set(table["subset"]))),
        ("pairs", "repeated", int((by_edge.transform("size") > 1).sum())),
        ("pairs", "repeated with other scores", int((by_edge.transform("nunique") > 1).sum())),
        ("pairs", "of one sentence twice", sum(low == high for low, high in edges)),
        ("sentences", "distinct", len(set(sides[0]) | set(sides[1]))),
        ("sentences", "distinct by letters and digits", len({sentence for edge in edges for sentence in edge})),
        *_spread("words of a sentence", words.ravel()),
        *_spread("difference in words", np.abs(words[0] - words[1])),
        *_spread("characters of a sentence", characters),
    ]


def _spread(about: str, values: NDArray[np.float64]) -> _Numbers:
    numbers = {"mean": values.mean(), "median": np.median(values), "lowest": values.min(), "highest": values.max()}
    return [(about, what, float(number)) for what, number in numbers.items()]


def _scored(gold: NDArray[np.float64]) -> _Numbers:
    _, times = np.unique(gold, return_counts=True)
    return [
        *_spread("scores", gold),
        ("scores", "standard deviation", float(gold.std(ddof=1))),
        ("scores", "distinct", len(times)),
        ("scores", "% of pairs with the commonest", 100 * float(times.max() / len(gold))),
    ]


def _depending(sharing: Sharing) -> _Numbers:
    first, second, chains = sharing.first, sharing.second, np.bincount(sharing.components)
    times = np.bincount(np.concatenate([first, second[first != second]]), minlength=sharing.sentences)
    is_shared = np.maximum(times[first], times[second]) > 1
    smallest = [
        100 * detectable(difference_error(size, CORRELATION, BETWEEN)) for size in (sharing.pairs, len(chains))
    ]
    return [
        (
            "shared sentences",
            "% of pairs that share one",
            100 * float(is_shared.mean()),
        ),
        ("shared sentences", "chains of such pairs", len(chains)),
        ("shared sentences", "pairs of the longest chain", int(chains.max())),
        ("shared sentences", "pairs of the most frequent sentence", int(times.max())),
        ("smallest difference", "if pairs are independent", smallest[0]),
        ("smallest difference", "if each chain counts as one pair", smallest[1]),
    ]
