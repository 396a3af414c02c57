"""Compression: the smallest vectors that keep the score, with fewer dimensions and fewer bits per number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import OfVectors, Row
from stsbench.analysis.inputs import CORPUS, SEED, Answer, parameter, with_overall
from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.cli.options import LARGEST
from stsbench.data.corpus import load_corpus
from stsbench.data.tables import FOLDED, folded_ids, shared_ids
from stsbench.render.table import Table, Tables, in_columns, interval, intervals_of, note_of
from stsbench.scoring.settings import MARGIN, require_margin
from stsbench.scoring.subjects import ScoredTask, Subject, vectors_of
from stsbench.statistics.correlations import correlate_task
from stsbench.statistics.estimate import Estimate, judge_loss
from stsbench.statistics.geometry import (
    BITS,
    Kind,
    Numbers,
    Vectors,
    bytes_of,
    principal_of,
    ranges_of,
    similarities_by_choice,
    stored,
)
from stsbench.statistics.influence import Floats, Linear, task_terms
from stsbench.statistics.neighbours import in_threads
from stsbench.statistics.ranks import ties_of
from stsbench.statistics.seeds import generator

ALL, LEADING, RANDOM, PCA = "all", "leading", "random", "PCA"
"""The kept dimensions: all, the first, random ones, or the largest principal components."""

WITHIN = "within margin"

SMALLEST = 16
"""The smallest default number of dimensions."""


class PairedVectors(NamedTuple):
    """The vectors (m, d) of a model's pairs, with the rows (2, n) of both sides, the tasks one after the other.

    For calibration there are vectors (c, d) of the sentences of a corpus that are in no task.
    """

    tasks: Sequence[ScoredTask]
    vectors: Vectors
    rows: NDArray[np.int64]
    calibration: Vectors


class Cell(NamedTuple):
    """A smaller vector."""

    dimensions: int
    kept: str
    stored: Numbers


class Scores(NamedTuple):
    """The scores (k, tasks) of a smaller vector over k draws of its dimensions; one unless they are random.

    It also has the (n,) terms of the mean score, by task.
    """

    values: Floats
    terms: list[Floats]


class Compress(OfVectors):
    """Find the smallest vectors that keep the score: fewer dimensions, fewer bits per number.

    Dimensions (all, half, ... 16; leading, random or principal components) by number format (fp32, fp16, int8,
    binary), each with its difference to the full vectors, and the smallest vector within the margin. The figure
    shows the least loss for each number of bytes.

    Returns:
        One row per model, task (`Avg.` is their mean), `dimensions`, `kept` (`all`, `leading`, `random`, `PCA`)
        and `stored` format: `similarity`, `bytes`, and x 100 the `score`, its `difference` to the full vectors
        in fp32 with `low` and `high`. Random dimensions have means over the draws, and their scores' `spread`
        (standard deviation). `verdict` is that of `stsbench check --margin`. Also `corpus`,
        `calibration` (the number of its sentences that are in no task), and `margin`.

    >>> from stsbench import compress
    >>> small = compress(lambda texts: [[len(s), s.count("e"), s.count("t")] for s in texts], tasks=["sample"])
    >>> small.frame.loc[small.frame["kept"] == "all", ["stored", "bytes"]].values.tolist()
    [['fp32', 12], ['fp16', 6], ['int8', 3], ['binary', 1]]
    """

    answer = Answer("How many bytes are enough?", ".0f", "bytes", {"verdict": WITHIN}, "bytes", "min")
    place_label = "bytes per vector"
    reference = 0
    title = "Compression"

    sizes: Sequence[int] = parameter(
        (),
        "The numbers of dimensions to keep, with commas; by default half, ... 16.",
        kind=int,
        example="256,128,64",
        limits=(-LARGEST, LARGEST),
    )
    corpus = CORPUS
    draws: int = parameter(5, "Draws of random dimensions.", limits=(1, 100))
    seed = SEED
    margin: float = parameter(MARGIN, "The loss in points that is allowed.", limits=(0, 100))

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, PairedVectors]:
        require_margin(self.margin)
        self.constants = {"corpus": Path(self.corpus).name}
        others = load_corpus(self.corpus)
        return {name: self._paired_vectors(name, subject, others) for name, subject in subjects.items()}

    def _paired_vectors(self, name: str, subject: Subject, others: Sequence[str]) -> PairedVectors:
        record, tasks = self.scored(name, subject)
        if record.model.use.whiten is not None:
            raise UserError(
                f"the vectors of {name} are whitened by each task's own sentences, so other sentences have no "
                "comparable vectors: fit a whitening with `stsbench fit`, and measure that."
            )
        embedded = self.embedded(record, subject, tasks)
        pairs = np.concatenate([of_task.rows.reshape(2, -1) for of_task in embedded], axis=1)
        scored = np.concatenate([task.pairs[side] for task in tasks for side in FOLDED])
        calibration = np.array(others, dtype=object)[~shared_ids(folded_ids(others), scored).mask].tolist()
        of_others = vectors_of(subject, calibration, self.progress).each()
        return PairedVectors(tasks, embedded[0].vectors, pairs, of_others)

    def measure(self, model: str, given: PairedVectors) -> Iterator[Row]:
        sizes = sizes_of(given.vectors.shape[1], self.sizes, model)
        needed = max(sizes[-1] + 1, 2)
        if len(given.calibration) < needed:
            raise UserError(
                f"{sizes[-1]} principal components need {needed} sentences outside the tasks, but the corpus has "
                f"{len(given.calibration)}: name a longer file with --corpus."
            )
        scores = scores_of(given, sizes, self.draws, self.seed)
        full, *_ = scores.values()
        for task, value in zip(given.tasks, full.values[0], strict=True):
            if np.isnan(value):
                raise UserError(
                    f"{model} has no score on {task.task} (its similarities are constant): leave it out."
                )
            self.estimates.block(task.task, task.pairs)
        about = {"calibration": len(given.calibration), "margin": self.margin}
        for cell, small in scores.items():
            size = {"similarity": kind_of(cell.stored), "bytes": bytes_of(cell.dimensions, cell.stored)}
            for row in self._compared([task.task for task in given.tasks], small, full):
                yield {"task": row.pop("task")} | cell._asdict() | size | row | about

    def _compared(self, names: Sequence[str], small: Scores, full: Scores) -> Iterator[Row]:
        """Yields the score of a smaller vector and its difference to the full ones, by task and on average."""
        tasks = {
            name: (small.values[:, place], full.values[0, place], {name: small.terms[place] - full.terms[place]})
            for place, name in enumerate(names)
        }
        how = self.estimates.intervals
        for task, (values, of_full, terms) in with_overall(tasks, _average).items():
            row: Row = {"task": task, "score": 100 * float(values.mean())}
            row["spread"] = 100 * float(values.std(ddof=1)) if len(values) > 1 else nan
            difference = Linear(float(values.mean() - of_full), terms)
            row |= {"difference": 100 * difference.value, "low": nan, "high": nan, "verdict": ""}
            if how.interval is not None:
                estimate = Estimate(difference.value, self.estimates.spread(difference))
                low, high, _ = estimate.interval(how.level)
                verdict, *_ = judge_loss(replace(estimate, value=-estimate.value), self.margin / 100, how.level)
                row |= {"low": 100 * low, "high": 100 * high}
                row["verdict"] = "undefined" if isnan(estimate.value) else verdict
            yield row

    def table(self) -> Tables:
        rows = self.headline
        differences = rows.assign(cell=[_difference_cell(row) for row in rows.to_dict("records")])
        keys, margin = ["model", "dimensions", "kept"], self.frame["margin"].iloc[0]
        tables = [
            Table(self.smallest, f"The smallest vectors within {margin:g} points of the full ones"),
            Table(
                in_columns(differences, keys, "stored", "cell"),
                f"Difference x 100 to the full vectors in fp32, {listed(list(dict.fromkeys(rows['task'])))}",
                notes=self.notes,
            ),
        ]
        return Tables(table for table in tables if len(table.frame))

    @property
    def smallest(self) -> pd.DataFrame:
        """The smallest vector within the margin, by model and kept dimensions."""
        rows = self.headline
        full = rows.groupby("model")["bytes"].transform("max")
        rows = rows.assign(share=100 * rows["bytes"] / full, interval=intervals_of(rows))
        passing = rows[rows["verdict"] == WITHIN].sort_values(["bytes", "score"], ascending=[True, False])
        best = passing.groupby(["model", "kept"], sort=False).head(1).sort_index()
        columns = ["model", "dimensions", "kept", "stored", "bytes", "share", "score", "difference", "interval"]
        return best[columns].rename(columns={"share": "% of full"}).reset_index(drop=True)

    @property
    def notes(self) -> tuple[str, ...]:
        margin = self.frame["margin"].iloc[0]
        notes = [f"*: within {margin:g} points (each tested separately). ±: standard deviation over random draws."]
        rows = self.frame.drop_duplicates("model").set_index("model")
        lead = f"Sentences of {rows['corpus'].iloc[0]} that int8 ranges and principal components are fitted on"
        return (*notes, *note_of(lead, rows["calibration"]))

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.headline.sort_values(["bytes", "score"], ascending=[True, False])
        best = rows.drop_duplicates(["model", "bytes"])
        return {"least loss for its bytes": best.assign(place=best["bytes"], value=best["difference"])}


def _average(tasks: Sequence[tuple[Floats, float, dict[str, Floats]]]) -> tuple[Floats, float, dict[str, Floats]]:
    values, of_full, terms = zip(*tasks, strict=True)
    shares = {name: of_task / len(tasks) for of in terms for name, of_task in of.items()}
    return np.mean(values, axis=0), float(np.mean(of_full)), shares


def _difference_cell(row: Mapping[Any, Any]) -> str:
    if isnan(row["difference"]):
        return ""
    spread = "" if isnan(row["spread"]) else f" ±{row['spread']:.2f}"
    mark = "*" if row["verdict"] == WITHIN else ""
    return " ".join(filter(None, [f"{row['difference']:+z.2f}{mark}", interval(row["low"], row["high"])])) + spread


def sizes_of(width: int, chosen: Sequence[int], name: str) -> list[int]:
    """Returns the numbers of dimensions to keep, the largest first: all, and the chosen ones or halves."""
    for size in chosen:
        if not 1 <= size <= width:
            raise UserError(f"--sizes {size}: the vectors of {name} have {width} dimensions; give 1 to {width}.")
    halves = [width // 2**power for power in range(1, width.bit_length()) if width // 2**power > SMALLEST]
    return sorted({width, *(chosen or [*halves, min(SMALLEST, width)])}, reverse=True)


def kind_of(numbers: Numbers) -> Kind:
    """Returns how vectors in a number format are compared."""
    return "hamming" if numbers == "binary" else "cosine"


def scores_of(model: PairedVectors, sizes: Sequence[int], draws: int, seed: int) -> dict[Cell, Scores]:
    """Returns the scores of every smaller vector, the largest first; sizes above the rank have no components.

    `sizes` starts with all dimensions; `draws` is the number of draws of random ones.
    """
    # One at a time, because busy cores slow down a decomposition in several threads.
    (principal,) = in_threads(principal_of, [model.calibration])
    width, rank = sizes[0], principal.directions.shape[1]
    orders = [generator(seed, "compress", str(draw)).permutation(width) for draw in range(draws)]
    choices = {(width, ALL): [np.arange(width)]}
    choices |= {(size, LEADING): [np.arange(size)] for size in sizes[1:]}
    choices |= {(size, RANDOM): [order[:size] for order in orders] for size in sizes[1:]}
    scores = _scores(model, choices)
    if components := {(size, PCA): [np.arange(size)] for size in sizes if size <= rank}:
        turned = model._replace(vectors=principal.of(model.vectors), calibration=principal.of(model.calibration))
        scores |= _scores(turned, components)
    kinds = (ALL, LEADING, RANDOM, PCA)
    return dict(sorted(scores.items(), key=lambda item: (-item[0].dimensions, kinds.index(item[0].kept))))


def _scores(
    model: PairedVectors, choices: Mapping[tuple[int, str], Sequence[NDArray[np.int64]]]
) -> dict[Cell, Scores]:
    """Returns the scores of some choices of dimensions in each number format."""
    draws = [chosen for of_choice in choices.values() for chosen in of_choice]
    masks = np.zeros((len(draws), model.vectors.shape[1]), dtype=bool)
    for mask, chosen in zip(masks, draws, strict=True):
        mask[chosen] = True
    ends = list(accumulate([len(task.pairs) for task in model.tasks]))[:-1]
    places = list(pairwise([0, *accumulate(map(len, choices.values()))]))
    ranges, (left, right) = ranges_of(model.calibration), model.rows
    subsets = [pd.factorize(task.pairs["subset"])[0] for task in model.tasks]

    def in_format(numbers: Numbers) -> dict[Cell, Scores]:
        codes = stored(model.vectors, numbers, ranges)
        values = similarities_by_choice(codes, left, right, masks, kind_of(numbers))
        by_task = np.split(values, ends, axis=1)
        return {
            Cell(size, kept, numbers): _scored(model.tasks, subsets, [of_task[start:end] for of_task in by_task])
            for (size, kept), (start, end) in zip(choices, places, strict=True)
        }

    return {cell: scores for part in in_threads(in_format, tuple(BITS)) for cell, scores in part.items()}


def _scored(
    tasks: Sequence[ScoredTask], subsets: Sequence[NDArray[np.int64]], similarities: Sequence[Floats]
) -> Scores:
    """Returns the scores of k draws, given (n,) codes of subsets and (k, n) similarities by task."""
    values, terms = [], []
    for task, codes, draws in zip(tasks, subsets, similarities, strict=True):
        gold = task.pairs["gold"].to_numpy()
        metric, aggregation = task.statistic.metric, task.statistic.aggregation
        if metric == "spearman":
            values.append([ties_of(gold, draw, codes, aggregation).score for draw in draws])
        else:
            values.append([correlate_task(gold, draw, codes, metric)[aggregation] for draw in draws])
        terms.append(np.mean([task_terms(gold, draw, codes, metric, aggregation) for draw in draws], axis=0))
    return Scores(np.array(values).T, terms)
