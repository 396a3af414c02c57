"""`describe`: what is in a table of scored pairs, before anything is measured on it, and a card that says so.

Scripts are counted. The language is a guess, that of py3langid (BSD-3-Clause, a kept fork of langid.py by Lui and
Baldwin, 2012; its model is 4.6 MB of numbers, loaded without running code), an extra: `pip install
'stsbench[language]'`. A short sentence alone is often guessed wrong ("a man" as Malagasy), so some sentences
together are guessed, and the share of such groups is shown.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.words import listed
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set, is_task, paper_tasks, task_split_text
from stsbench.data.locate import DataNotFoundError
from stsbench.data.overlap import overlap_of
from stsbench.data.own_pairs import load_pairs
from stsbench.data.sentences import Sentences, read_sets
from stsbench.data.shared import folded_ids, unordered_pairs
from stsbench.data.tables import StsData
from stsbench.render.formats import escape_markdown
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.intervals import detectable, difference_error

BINS = 10
"""Of the histogram of scores."""

CORRELATION, BETWEEN = 0.8, 0.9
"""The smallest difference is computed for two models with these correlations: with gold, and with each other."""

TOGETHER, MOST_GROUPS = 20, 200
"""Sentences whose language is guessed as one text; groups of them at most, evenly spread over the texts."""

_SCRIPTS = {"CJK": "Han", "CANADIAN": "Canadian Aboriginal", "HALFWIDTH": "Katakana", "FULLWIDTH": "Latin"}
"""Scripts whose letters' names begin otherwise than the script is called."""


@dataclass(frozen=True)
class Description(Result):
    """What is in a table of scored pairs.

    Attributes:
        name: of the task or file.
        numbers: a row for each number: about (its subject), what, value.
        subsets: pairs, mean and standard deviation of the scores, by subset.
        histogram: of the scores: from, to, pairs.
        shared: with each catalogued split: `DataOverlap.frame`; empty where nothing is shared or none is here.
        notes: what a reader should know.
    """

    name: str
    numbers: pd.DataFrame
    subsets: pd.DataFrame
    histogram: pd.DataFrame
    shared: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers, those of subsets, histogram and catalogued tasks too: about, what, value."""
        more: list[tuple[str, str, float]] = []
        for row in self.subsets.to_dict("records"):
            more += [(f"subset {row['subset']}", what, row[what]) for what in ("pairs", "mean", "sd")]
        for row in self.histogram.to_dict("records"):
            more.append(("histogram", f"{row['from']:g} to {row['to']:g}", row["pairs"]))
        for row in self.shared.to_dict("records"):
            more.append((f"shared with {row['b']}", f"{row['unit']}, {row['same']}", row["shared a"]))
        return pd.concat([self.numbers, pd.DataFrame(more, columns=["about", "what", "value"])], ignore_index=True)

    def value(self, about: str, what: str) -> float:
        """Return one of the numbers; a KeyError if there is no such number."""
        rows = self.frame[(self.frame["about"] == about) & (self.frame["what"] == what)]
        if rows.empty:
            raise KeyError(f"{about}, {what}")
        return float(rows["value"].iloc[0])  # Narrow bins may have one label.

    def table(self) -> Tables:
        """Return the numbers, several subsets, the histogram, and what catalogued tasks share."""
        shown = self.numbers.assign(value=[f"{round(value, 2):,.12g}" for value in self.numbers["value"]])
        tables = [Table(shown, self.name)]
        if len(self.subsets) > 1:
            tables.append(Table(self.subsets, "Subsets"))
        tables.append(Table(self.histogram, "Scores"))
        if len(self.shared):
            rows = {
                b: {f"{row['unit']}, {row['same']}": row["shared a"] for row in group.to_dict("records")}
                for b, group in self.shared.groupby("b", sort=False)
            }
            shared = pd.DataFrame([{"set": b} | row for b, row in rows.items()])
            tables.append(Table(shared, "Shared with catalogued tasks: distinct sentences and pairs"))
        last = tables[-1]
        return Tables([*tables[:-1], Table(last.frame, last.caption, notes=self.notes)])

    def card(self) -> str:
        """Return a card in Markdown: all of it, and what only its author can add. It has none of its sentences."""
        parts = [f"# {escape_markdown(self.name)}", "Scored sentence pairs, described by stsbench."]
        for table in self.table():
            parts += [f"## {escape_markdown(table.caption)}", Table(table.frame).to("markdown")]
        parts += ["## To know", "\n".join(f"- {escape_markdown(note)}" for note in self.notes)]
        parts += [
            "## From its author",
            "Not in the file, and for its author to add: where the sentences come from and in which language they "
            "are, who scored them by which instruction and how far the raters agree, the licence, whom to cite.",
        ]
        return "\n\n".join(parts) + "\n"


def describe(
    data: str | Path,
    *,
    subset_column: str = "subset",
    data_dirs: Sequence[Path] = (),
) -> Description:
    """Describe scored pairs: counts, lengths, scores, repetitions, shared sentences, overlap with the tasks.

    The smallest difference that the pairs can show is told for an assumed pair of models, and as two limits: if
    all pairs were independent, and if each chain of pairs that share sentences counted as one. For real models it
    takes their records (`plan`).

    Args:
        data: your own pairs (.tsv, .csv, .jsonl, .parquet), or a task (`STS-B:dev`).
        subset_column: the column of that file that names subsets.
        data_dirs: folders to look for data in first.

    Raises:
        UserError: if the file cannot be read, or no correlation is defined on it.

    >>> about = describe("sample")
    >>> about.value("pairs", "all"), about.value("sentences", "distinct")
    (252.0, 504.0)
    """
    pairs, is_task_itself = _read(data, subset_column, data_dirs)
    name = pairs.task if pairs.split in {"all", "test"} else f"{pairs.task}:{pairs.split}"
    gold, sides = (
        pairs.pairs["gold"].to_numpy(),
        [pairs.pairs[side].tolist() for side in ("sentence1", "sentence2")],
    )
    ids = [folded_ids(side) for side in sides]
    counts, edges = np.histogram(gold, bins=BINS)
    by_subset = pairs.pairs.groupby("subset", sort=False)["gold"]
    subsets = pd.DataFrame({"pairs": by_subset.size(), "mean": by_subset.mean(), "sd": by_subset.std()})
    shared, notes = _shared(pairs, data_dirs, skip=pairs.task if is_task_itself else "")
    written, guessed = _written(sides)
    about_pairs = _counted(pairs.pairs, sides, unordered_pairs(*ids))
    rows = [*about_pairs, *written, *_scored(gold), *_depending(Sharing.of(*ids))]
    return Description(
        name,
        pd.DataFrame(rows, columns=["about", "what", "value"]),
        subsets.reset_index(),
        pd.DataFrame({"from": edges[:-1], "to": edges[1:], "pairs": counts}),
        shared,
        (
            "repeated: two sentences that another pair has too, by letters and digits, in either order; with "
            "other scores: of those, pairs that were not scored alike.",
            "smallest difference: in points of a correlation, which a test of 5 % finds with 80 % power for two "
            f"models that both correlate {CORRELATION:g} with the scores and {BETWEEN:g} with each other (for "
            "normal scores; models that agree less need more). With records of two models, `stsbench plan` "
            "tells it for them.",
            *notes,
            guessed,
        ),
    )


def _read(data: str | Path, subset_column: str, data_dirs: Sequence[Path]) -> tuple[StsData, bool]:
    path = Path(data).expanduser()
    if isinstance(data, Path) or not is_task(data) or path.is_file():
        return load_pairs(path, subset_column), False
    task, split, text = task_split_text(data)
    return load_sts(task, split or "test", text or data_set(task).usual_text, data_dirs), True


def _counted(
    table: pd.DataFrame, sides: Sequence[Sequence[str]], edges: Sequence[tuple[int, int]]
) -> list[tuple[str, str, float]]:
    words = np.array([[len(text.split()) for text in side] for side in sides], dtype=np.float64)
    characters = np.array([len(text) for side in sides for text in side], dtype=float)
    times = Counter(edges)
    scores: dict[tuple[int, int], set[float]] = {}
    for edge, gold in zip(edges, table["gold"], strict=True):
        scores.setdefault(edge, set()).add(gold)
    return [
        ("pairs", "all", len(table)),
        ("pairs", "subsets", len(set(table["subset"]))),
        ("pairs", "repeated", sum(times[edge] > 1 for edge in edges)),
        ("pairs", "repeated with other scores", sum(len(scores[edge]) > 1 for edge in edges)),
        ("pairs", "of one sentence twice", sum(low == high for low, high in edges)),
        ("sentences", "distinct", len(set(sides[0]) | set(sides[1]))),
        ("sentences", "distinct by letters and digits", len({sentence for edge in edges for sentence in edge})),
        *_spread("words of a sentence", words.ravel()),
        *_spread("difference in words", np.abs(words[0] - words[1])),
        *_spread("characters of a sentence", characters),
    ]


def _spread(about: str, values: NDArray[np.float64]) -> list[tuple[str, str, float]]:
    numbers = {"mean": values.mean(), "median": np.median(values), "lowest": values.min(), "highest": values.max()}
    return [(about, what, float(number)) for what, number in numbers.items()]


def _written(sides: Sequence[Sequence[str]]) -> tuple[list[tuple[str, str, float]], str]:
    """Return the scripts of the letters, the languages that either side may be in, and what those are worth."""
    shares = scripts([text for side in sides for text in side])
    rows = [("script", f"% {name}", 100 * share) for name, share in shares.items()]
    for side, texts in zip(("sentence1", "sentence2"), sides, strict=True):
        guesses = languages(texts)
        if guesses is None:
            return rows, "The language is not guessed: that takes `pip install 'stsbench[language]'`."
        rows += [(f"language of {side}, guessed", f"% {name}", 100 * share) for name, share in guesses.items()]
    return rows, (
        f"language: py3langid's guess, and a guess alone, of {TOGETHER} sentences as one text: the share of such "
        "groups. Languages that are alike, and sentences of names and numbers, are often guessed wrong."
    )


def _scored(gold: NDArray[np.float64]) -> list[tuple[str, str, float]]:
    _, times = np.unique(gold, return_counts=True)
    return [
        *_spread("scores", gold),
        ("scores", "standard deviation", float(gold.std(ddof=1))),
        ("scores", "distinct", len(times)),
        ("scores", "% of pairs with the commonest", 100 * float(times.max() / len(gold))),
    ]


def _depending(sharing: Sharing) -> list[tuple[str, str, float]]:
    graph = sharing.describe()
    smallest = [
        100 * detectable(difference_error(size, CORRELATION, BETWEEN)) for size in (graph.pairs, graph.components)
    ]
    return [
        ("shared sentences", "% of pairs that share one", 100 * graph.sharing),
        ("shared sentences", "chains of such pairs", graph.components),
        ("shared sentences", "pairs of the longest chain", graph.largest_component),
        ("shared sentences", "pairs of the most frequent sentence", graph.largest_degree),
        ("smallest difference", "if pairs are independent", smallest[0]),
        ("smallest difference", "if each chain counts as one pair", smallest[1]),
    ]


def _shared(data: StsData, data_dirs: Sequence[Path], *, skip: str) -> tuple[pd.DataFrame, list[str]]:
    """Return what is shared with each catalogued split that is here, and which tasks are not here."""
    described = Sentences.of_pairs(data)
    frames, absent = [], list[str]()
    for name in paper_tasks():
        if name == skip:
            continue
        try:
            sets = read_sets([name], data_dirs)
        except DataNotFoundError:
            absent.append(name)
            continue
        frames += [overlap_of(described, texts) for texts in sets]
    notes = [f"Not looked at, as they are not here: {listed(absent)}."] if absent else []
    if not frames:
        return pd.DataFrame(columns=["a", "b", "unit", "same", "shared a"]), notes
    shared = pd.concat(frames, ignore_index=True)
    is_shared = shared.groupby("b")["shared a"].transform("max") > 0
    if not is_shared.any():
        notes.append("No sentence of the catalogued STS tasks that are here stands in it.")
    return shared[is_shared].reset_index(drop=True), notes


def scripts(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of the letters that are of each script, the commonest first; empty without letters.

    The script is the first word of a letter's name in Unicode.

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


def languages(texts: Sequence[str]) -> dict[str, float] | None:
    """Return the share of groups of sentences that are guessed to be of each language, the commonest first.

    It is by ISO 639-1 code; None where py3langid is not installed.
    """
    try:
        import py3langid
    except ImportError:
        return None
    groups = [" ".join(texts[start : start + TOGETHER]) for start in range(0, len(texts), TOGETHER)]
    step = -(-len(groups) // MOST_GROUPS) or 1
    guesses = Counter(str(py3langid.classify(group)[0]) for group in groups[::step])
    return {language: count / guesses.total() for language, count in guesses.most_common()}
