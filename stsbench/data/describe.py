"""`describe`: what is in a table of scored pairs."""

import unicodedata
from collections import Counter
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
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.intervals import detectable, difference_error

BINS = 10
"""Of the histogram of scores."""

CORRELATION, BETWEEN = 0.8, 0.9
"""The smallest difference is computed for two models with these correlations: with gold, and with each other."""

_SCRIPTS = {"CJK": "Han", "CANADIAN": "Canadian Aboriginal", "HALFWIDTH": "Katakana", "FULLWIDTH": "Latin"}
"""Scripts whose letters have Unicode names that begin with another word."""

_Numbers = list[tuple[str, str, float]]
"""Rows of `Description.numbers`."""


@dataclass(frozen=True)
class Description(Result):
    """What is in a table of scored pairs.

    Attributes:
        name: the task or file.
        numbers: one row per number: about (its subject), what, value.
        subsets: pairs, mean and standard deviation of the scores, by subset.
        histogram: of the scores: from, to, pairs.
        notes: how to read the numbers.
    """

    name: str
    numbers: pd.DataFrame
    subsets: pd.DataFrame
    histogram: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers, including subsets and histogram: about, what, value."""
        more: _Numbers = []
        for row in self.subsets.to_dict("records"):
            more += [(f"subset {row['subset']}", what, row[what]) for what in ("pairs", "mean", "sd")]
        for row in self.histogram.to_dict("records"):
            more.append(("histogram", f"{row['from']:g} to {row['to']:g}", row["pairs"]))
        return pd.concat([self.numbers, pd.DataFrame(more, columns=["about", "what", "value"])], ignore_index=True)

    def value(self, about: str, what: str) -> float:
        """Returns one of the numbers; a KeyError if there is no such number."""
        rows = self.frame[(self.frame["about"] == about) & (self.frame["what"] == what)]
        if rows.empty:
            raise KeyError(f"{about}, {what}")
        return float(rows["value"].iloc[0])  # Narrow bins may have the same label.

    def table(self) -> Tables:
        """Returns the numbers, the subsets if there are several, and the histogram."""
        shown = self.numbers.assign(value=[f"{round(value, 2):,.12g}" for value in self.numbers["value"]])
        tables = [(shown, self.name)]
        if len(self.subsets) > 1:
            tables.append((self.subsets, "Subsets"))
        tables.append((self.histogram, "Scores"))
        *others, last = tables
        return Tables([*(Table(*table) for table in others), Table(*last, notes=self.notes)])


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
    counts, edges = np.histogram(gold, bins=BINS)
    by_subset = pairs.pairs.groupby("subset", sort=False)["gold"]
    subsets = pd.DataFrame({"pairs": by_subset.size(), "mean": by_subset.mean(), "sd": by_subset.std()})
    rows = [
        *_counted(pairs.pairs, sides, unordered_pairs(*ids)),
        *(("script", f"% {name}", 100 * share) for name, share in scripts(sides[0] + sides[1]).items()),
        *_scored(gold),
        *_depending(Sharing.of(*ids)),
    ]
    return Description(
        name,
        pd.DataFrame(rows, columns=["about", "what", "value"]),
        subsets.reset_index(),
        pd.DataFrame({"from": edges[:-1], "to": edges[1:], "pairs": counts}),
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


def scripts(texts: Sequence[str]) -> dict[str, float]:
    """Returns the share of letters of each script, the commonest first; empty without letters.

    The script is the first word of a letter's Unicode name.

    >>> scripts(["an owl", "сова"])
    {'Latin': 0.5555555555555556, 'Cyrillic': 0.4444444444444444}
    """
    times: Counter[str] = Counter()
    for character, count in Counter("".join(texts)).items():
        if unicodedata.category(character).startswith("L"):
            word = unicodedata.name(character, "UNNAMED").split()[0].split("-")[0]
            times[_SCRIPTS.get(word, word.capitalize())] += count
    letters = times.total()
    return {script: count / letters for script, count in times.most_common()}
