"""Length collapse: do longer sentences look more alike, whatever they say? (Zhou et al. 2025, ACL)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.length_measures import THRESHOLDS, Lengths
from stsbench.analysis.result import AnalysisResult, CommandWithIntervals, headline
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.cli.options import Bins, DataDirs, Length, OwnTexts, Tasks, numbers
from stsbench.records.kinds import ALL_TASKS
from stsbench.render.charts import draw_by_model
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.analysis.inputs import ScoredVectors
    from stsbench.analysis.length_numbers import Estimates
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Wanted

EDGES = {
    "words": (0, 6, 9, 12, 16, 21, 31),
    "subwords": (0, 8, 11, 14, 19, 25, 37),
    "characters": (0, 30, 45, 60, 80, 105, 155),
}
"""Where bins of sentences' lengths begin, by unit; the last has no end."""

COSINE, NORM, RISE = "cosine", "norm", "rise"

_FEWEST = 10
"""Sentences that an end of the rise is of at least."""

_UNIT = 1e-3
"""Vectors whose lengths are as near to 1 as that were scaled to it."""


class LengthCollapse(AnalysisResult):
    """How alike unrelated sentences are, and how long their vectors, by the sentences' length."""

    name = "length-collapse"
    title = "Length collapse"
    question = "do longer sentences look more alike, whatever they say?"
    look_for = "a rise whose interval leaves out 0: long sentences lie together"

    @property
    def unit(self) -> str:
        """What length is counted in."""
        return str(self.frame["unit"].iloc[0])

    @property
    def _shown(self) -> pd.DataFrame:
        """The rows of all tasks together; of a model with one task, of that."""
        return headline(self.frame)

    def table(self) -> Tables:
        """Return the bins of all tasks together, and the rise of each task."""
        shown = self._shown
        rows = []
        for (model, group), part in shown[shown["measure"] != RISE].groupby(["model", "group"], sort=False):
            row: dict[str, Any] = {"model": model, self.unit: group, "sentences": part["sentences"].iloc[0]}
            for measure in (COSINE, NORM):
                value, low, high = part.loc[part["measure"] == measure, ["value", "low", "high"]].iloc[0]
                row |= {measure: value, f"{measure}: interval": interval(low, high, 3)}
            rows.append(row)
        rises = self.frame[self.frame["measure"] == RISE]
        limits = [interval(low, high, 3) for low, high in zip(rises["low"], rises["high"], strict=True)]
        return Tables(
            [
                Table(
                    pd.DataFrame(rows).astype({"sentences": "Int64"}),
                    f"Mean cosine of unrelated sentences, and the vectors' length, by length in {self.unit}",
                    3,
                    notes=self.notes,
                ),
                Table(
                    rises[["model", "task", "group", "value"]]
                    .assign(interval=limits)
                    .rename(columns={"group": "bins", "value": "rise"}),
                    "The rise of the cosine from the shortest sentences to the longest",
                    3,
                ),
            ]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers are of, and what a reader could take for a finding that is none."""
        shown = self._shown
        notes = [
            "Of every two distinct sentences of a bin that no chain of pairs joins: exact, none is sampled. "
            "Intervals are of new sentences; those of a chain depend on each other. Longer sentences may be of "
            "fewer subjects, too: compare models on the same sentences."
        ]
        for model, part in shown[shown["measure"] == NORM].groupby("model", sort=False):
            if part["value"].notna().any() and (abs(part["value"].dropna() - 1) < _UNIT).all():
                notes.append(f"{model}: its vectors are scaled to length 1, which says nothing.")
            if zero := int(part["zero"].sum()):
                notes.append(f"{model}: {zero:,} zero vectors are left out.")
        return tuple(notes)

    def numbers(self) -> dict[str, float]:
        """Return cosine and norm of each bin, and the rise, of all tasks together."""
        return {
            f"{row['measure']}, {row['group']}": float(row["value"])
            for row in self._shown.dropna(subset=["value"]).to_dict("records")
        }

    def plot(self) -> "Figure":
        """Draw the mean cosine of unrelated sentences over their length, with intervals."""
        rows = self._shown
        rows = rows[rows["measure"] == COSINE].assign(place=lambda frame: frame["group"])
        palette = colours(list(rows["model"]))
        with style():
            figure = new_figure()
            axes = figure.subplots()
            draw_by_model(axes, rows, palette)
            axes.set_xlabel(f"length of both ({self.unit})")
            axes.set_ylabel("mean cosine of unrelated")
            legend_above(figure, axes)
        return figure


def length_collapse(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    tasks: Sequence[str] = (),
    length: str = "words",
    bins: Sequence[int] = (),
    data: Sequence[str | Path] = (),
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> LengthCollapse:
    """Measure how alike unrelated sentences are, and how long their vectors, by the sentences' length.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: the tasks to look at, with commas; by default all that a run has, for models the seven STS tasks, or
            the sample.
        length: how length is measured: in `words` (whitespace tokens as released), `subwords` or `characters`.
        bins: where the bins of length begin, from 0 and rising, such as `0,8,16,32`.
        data: files with the sentences of runs on pairs of your own; repeatable. Records hold no sentences.
        intervals: how intervals are computed; sentences depend on each other that a chain of pairs joins.
        data_dirs: folders to look for data in.
        progress: told how far it is.

    Returns:
        One row per model, task, measure and group (a bin of lengths), with `sentences`, `value`, `low`, `high`:
        `cosine`, the mean over all pairs of distinct sentences of the bin that no chain of scored pairs joins;
        `norm`, the mean Euclidean length of the bin's vectors; and `rise`: the cosine of the last bin less that of
        the first, of those with at least 10 sentences. `all tasks` are the sentences of all tasks together. `zero`
        are vectors without direction, which are left out; `unit` is the length unit.

    Raises:
        UserError: if a run lacks a task or knows no lengths in the unit, all vectors have one direction, or no bin
            has two unrelated sentences.

    >>> collapse = length_collapse(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> collapse.frame.loc[collapse.frame["measure"] == "cosine", "group"].tolist()[:3]
    ['0-5', '6-8', '9-11']
    """
    from stsbench.analysis.inputs import analysable, scored_vectors

    if length not in THRESHOLDS:
        raise UserError(f"unknown length unit {length!r}: {suggestion(length, THRESHOLDS)}")
    lengths = Lengths(length, edges=tuple(bins) or EDGES[length])
    subjects = analysable(runs)
    models = scored_vectors(subjects, tasks, data=data, data_dirs=data_dirs, progress=progress)
    return LengthCollapse(length_collapse_frame(models, lengths, intervals))


def length_collapse_frame(
    models: "Mapping[str, Sequence[ScoredVectors]]", lengths: Lengths, intervals: "Intervals | None" = None
) -> pd.DataFrame:
    """Measure the length collapse of several models' vectors of the tasks' sentences; see `length_collapse`."""
    from stsbench.analysis.length_numbers import Estimates
    from stsbench.scoring.settings import Intervals

    rows: list[dict[str, Any]] = []
    for model, tasks in models.items():
        for task in tasks:
            task.require_directions(model)
        parts = [(task.task, _sentences(task, lengths)) for task in tasks]
        if len(tasks) > 1:
            parts.append((ALL_TASKS, _together([part for _, part in parts])))
        for name, sentences in parts:
            estimates = Estimates(intervals or Intervals())
            measured = list(_measured(sentences, lengths, estimates))
            if all(pd.isna(row["value"]) for row in measured if row["measure"] == COSINE):
                raise UserError(
                    f"{name} has no two unrelated sentences of like length with vectors of {model} that are not "
                    "zero: choose larger tasks with --tasks, or wider bins with --bins."
                )
            rows += [{"model": model, "task": name, "unit": lengths.unit} | row for row in measured]
    columns = ["model", "task", "measure", "group", "unit", "sentences", "value", "low", "high", "zero"]
    return pd.DataFrame(rows, columns=columns)


class _Sentences(NamedTuple):
    """m distinct sentences: vectors (m, d), and of each its length, its chain of pairs and its id."""

    vectors: "NDArray[np.floating[Any]]"
    lengths: "NDArray[np.float64]"
    chains: "NDArray[np.intp]"
    ids: "NDArray[np.uint64]"

    def take(self, chosen: "NDArray[Any]") -> "_Sentences":
        return _Sentences(*(column[chosen] for column in self))


def _sentences(task: "ScoredVectors", lengths: Lengths) -> _Sentences:
    of_sentences = np.empty(len(task.vectors))
    of_sentences[task.left], of_sentences[task.right] = lengths.sides(task.pairs)
    return _Sentences(task.vectors, of_sentences, task.chains, task.ids)


def _together(parts: Sequence[_Sentences]) -> _Sentences:
    """Return the sentences of several tasks, each once."""
    joined = _Sentences(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return joined.take(np.unique(joined.ids, return_index=True)[1])


def _measured(sentences: _Sentences, lengths: Lengths, estimates: "Estimates") -> Iterator[dict[str, Any]]:
    """Yield cosine and norm of each bin, and the rise."""
    from stsbench.data.shared import FOLDED, SENTENCES
    from stsbench.statistics.influence import Linear
    from stsbench.statistics.similarity import zero_rows

    is_zero = zero_rows(sentences.vectors)
    zero, sentences = sentences.lengths[is_zero], sentences.take(~is_zero)
    block = "sentences"
    estimates.block(block, pd.DataFrame(dict.fromkeys((*SENTENCES, *FOLDED), sentences.chains)))
    cosines: dict[str, Linear] = {}
    for name, (first, last) in lengths.bins.items():
        inside = (first <= sentences.lengths) & (sentences.lengths <= last)
        count = int(inside.sum())
        vectors = sentences.vectors[inside].astype(np.float64)
        norms = np.linalg.norm(vectors, axis=1)
        value, of_cosine = unrelated_cosine(vectors / norms[:, np.newaxis], sentences.chains[inside])
        terms = {measure: np.zeros(len(inside)) for measure in (COSINE, NORM)}
        mean = norms.mean() if count else np.nan
        terms[COSINE][inside], terms[NORM][inside] = of_cosine, (norms - mean) / max(count, 1)
        about = {"group": name, "sentences": count}
        about["zero"] = int(((first <= zero) & (zero <= last)).sum())
        for measure, number in ((COSINE, value), (NORM, float(mean))):
            estimate = Linear(number, {block: terms[measure]})
            yield about | {"measure": measure} | estimates.limits(estimate, count)
            if measure == COSINE and count >= _FEWEST and not np.isnan(number):
                cosines[name] = estimate
    if len(cosines) > 1:
        shortest, *_, longest = cosines
        rise = cosines[longest] - cosines[shortest]
        about = {
            "measure": RISE,
            "group": f"{longest} less {shortest}",
            "sentences": len(sentences.ids),
            "zero": 0,
        }
        yield about | estimates.limits(rise, len(sentences.ids))


def unrelated_cosine(
    units: "NDArray[np.float64]", groups: "NDArray[np.intp]"
) -> "tuple[float, NDArray[np.float64]]":
    """Return the mean cosine of all pairs of different groups, and what each vector contributes to first order.

    No pair is looked at: the products of all ordered pairs sum to the squared length of the sum of the vectors,
    those inside a group to that of the group's sum.

    Args:
        units: (n, d) vectors of length 1.
        groups: (n,) whole numbers.

    Returns:
        The mean, NaN where all are of one group, and (n,) terms, which sum to 0.

    >>> import numpy as np
    >>> round(unrelated_cosine(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]), np.array([0, 0, 1]))[0], 12)
    0.4
    """
    if not len(units):
        return float("nan"), np.empty(0)
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    of_groups = np.add.reduceat(units[np.argsort(codes, kind="stable")], starts, axis=0)
    products = units @ of_groups.sum(axis=0) - np.einsum("ij,ij->i", units, of_groups[codes])
    others = len(units) - sizes[codes]
    if not others.any():
        return float("nan"), np.full(len(units), np.nan)
    mean = float(products.sum() / others.sum())
    return mean, 2 * (products - mean * others) / others.sum()


@dataclass(frozen=True)
class LengthCollapseCommand(CommandWithIntervals):
    """Measure length collapse: do longer sentences look more alike, whatever they mean?

    The mean cosine of unrelated sentences of similar length, and the norm of the vectors, by sentence length.

    Examples:
    * `stsbench length-collapse runs/a runs/b --figure collapse.svg`
    * `stsbench length-collapse --model minilm --tasks sample --length subwords --json`
    """

    verb = staticmethod(length_collapse)
    result = LengthCollapse
    of_pairs = True

    tasks: Tasks = None
    length: Length = "words"
    bins: Bins = None
    data: OwnTexts = None
    data_dirs: DataDirs = None

    def keywords(self) -> dict[str, Any]:
        """Return the options as `length_collapse` takes them."""
        return super().keywords() | {"bins": numbers(self.bins, "--bins", "0,8,16,32")}
