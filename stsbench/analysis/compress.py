"""Compression: the smallest vectors that keep the score, with fewer dimensions and fewer bits per number."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import OfTexts, Row, in_columns, intervals_of
from stsbench.analysis.compress_numbers import (
    TIES,
    WITHIN,
    PairedVectors,
    Scores,
    kind_of,
    scores_of,
    sizes_of,
    verdict_on,
)
from stsbench.analysis.estimates import Estimates
from stsbench.analysis.parameters import CORPUS, SEED, parameter
from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.cli.options import LARGEST
from stsbench.data.corpus import load_corpus
from stsbench.data.shared import FOLDED, SENTENCES, folded_ids
from stsbench.records.kinds import AVERAGE
from stsbench.render.table import Table, Tables, interval
from stsbench.scoring.settings import MARGIN, require_margin
from stsbench.scoring.subjects import Subject, vectors_of
from stsbench.statistics.compression import bytes_of
from stsbench.statistics.estimate import Estimate
from stsbench.statistics.influence import Linear

Floats = NDArray[np.float64]

_CELL = ["model", "dimensions", "kept"]


class Compress(OfTexts):
    """Find the smallest vectors that keep the score: fewer dimensions, fewer bits per number.

    Dimensions (all, half, ... 16; leading, random or principal components) by number format (fp32, fp16, int8,
    binary), each with its difference to the full vectors, and the smallest vector within the margin. The figure
    shows the least loss for each number of bytes.

    Returns:
        One row per model, task (`Avg.` is their mean), `dimensions`, `kept` (`all`, `leading`, `random`, `PCA`)
        and `stored` format, with `similarity`, `bytes` per vector, and x 100 the `score`, its `difference` to the
        full vectors in fp32 with `low` and `high`, and over all ways to break ties the mean (`expected`), `lowest`
        and `highest` Spearman; `tied` is the percentage of pairs with a tied similarity. Random dimensions have
        means over the draws, and the scores' standard deviation as `spread`. `verdict` is `within margin`, `worse`
        or `undecided`, as for `stsbench check --margin`, each tested separately, or `undefined`. Other columns:
        `metric`, `corpus`, `calibration` and `left_out` (numbers of sentences), and `margin`.

    >>> small = compress(lambda texts: [[len(s), s.count("e"), s.count("t")] for s in texts], tasks=["sample"])
    >>> small.frame.loc[small.frame["kept"] == "all", ["stored", "bytes"]].values.tolist()
    [['fp32', 12], ['fp16', 6], ['int8', 3], ['binary', 1]]
    """

    name = "compress"
    title = "Compression"
    question = "how small can a vector be?"
    look_for = "the fewest bytes within the margin; a random half that loses little"
    examples = (
        "stsbench explain compress runs/minilm-avg-sts --figure bytes.svg",
        "stsbench explain compress runs/a runs/b --corpus wiki.txt --sizes 256,128,64 --margin 1",
        "stsbench explain compress --model minilm --tasks sample --json",
    )

    place_label = "bytes per vector"
    reference = 0

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
    similarity: Any = parameter(
        "cosine", "`cosine` or `dot` (binary vectors use the Hamming distance).", choices=("cosine", "dot")
    )
    margin: float = parameter(MARGIN, "The loss in points that is allowed.", limits=(0, 100))

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, PairedVectors]:
        require_margin(self.margin)
        self.constants = {"corpus": Path(self.corpus).name}
        others = load_corpus(self.corpus)
        return {name: self._paired_vectors(name, subject, others) for name, subject in subjects.items()}

    def _paired_vectors(self, name: str, subject: Subject, others: Sequence[str]) -> PairedVectors:
        """Returns the vectors of a model's pairs, and of other sentences for calibration."""
        record, scored, texts = self.texts(name, subject)
        if record.model.use.whiten is not None:
            raise UserError(
                f"the vectors of {name} are whitened by each task's own sentences, so other sentences have no "
                "comparable vectors: fit a whitening with `stsbench fit`, and measure that."
            )
        ids = [np.stack([task.pairs[side] for side in SENTENCES]) for task in scored]
        numbers, places = np.unique(np.concatenate(ids, axis=1), return_inverse=True)
        in_tasks = np.concatenate([task.pairs[side] for task in scored for side in FOLDED])
        seen = np.isin(folded_ids(others), in_tasks)
        calibration = [text for text, is_seen in zip(others, seen.tolist(), strict=True) if not is_seen]
        sentences = [texts[number] for number in numbers.tolist()]
        vectors, rows = vectors_of(subject, [*sentences, *calibration], self.progress)
        ends = np.cumsum([of_task.shape[1] for of_task in ids])[:-1]
        by_task = np.split(rows[: len(numbers)][places.reshape(2, -1)], ends, axis=1)
        return PairedVectors(scored, vectors, by_task, vectors[rows[len(numbers) :]], int(seen.sum()))

    def measure(self, model: str, given: PairedVectors) -> Iterator[Row]:
        sizes = sizes_of(given.vectors.shape[1], self.sizes, model)
        needed = max(sizes[-1] + 1, 2)
        if len(given.calibration) < needed:
            left_out = f" ({given.left_out:,} more are in the tasks)" if given.left_out else ""
            raise UserError(
                f"{sizes[-1]} principal components take {needed} other sentences, but the corpus has "
                f"{len(given.calibration)}{left_out}: name a longer file with --corpus."
            )
        scores = scores_of(given, sizes, self.draws, self.seed, self.similarity)
        full, *_ = scores.values()
        estimates = Estimates(self._how)
        for task, value in zip(given.tasks, full.values[0].tolist(), strict=True):
            if np.isnan(value):
                raise UserError(
                    f"{model} has no score on {task.task} (its similarities are constant): leave it out."
                )
            estimates.block(task.task, task.pairs)
        about = {
            "metric": given.tasks[0].statistic.metric,
            "calibration": len(given.calibration),
            "left_out": given.left_out,
            "margin": self.margin,
        }
        for cell, small in scores.items():
            similarity = kind_of(cell.stored, self.similarity)
            size = {"similarity": similarity, "bytes": bytes_of(cell.dimensions, cell.stored)}
            for row in self._compared([task.task for task in given.tasks], small, full, estimates):
                yield {"task": row.pop("task")} | cell._asdict() | size | row | about

    def _compared(self, tasks: Sequence[str], small: Scores, full: Scores, estimates: Estimates) -> Iterator[Row]:
        """Yields the score of a smaller vector and its difference to the full ones, by task and on average."""
        lost = [of_small - of_full for of_small, of_full in zip(small.terms, full.terms, strict=True)]
        for place, task in enumerate(tasks):
            terms = {task: lost[place]}
            row = self._difference(small.values[:, place], full.values[0, place], terms, estimates)
            yield {"task": task} | row | _in_points(small.ties[place])
        if len(tasks) > 1:
            terms = {task: of_task / len(tasks) for task, of_task in zip(tasks, lost, strict=True)}
            row = self._difference(small.values.mean(axis=1), full.values[0].mean(), terms, estimates)
            ties = {name: float(np.mean([of_task[name] for of_task in small.ties])) for name in small.ties[0]}
            yield {"task": AVERAGE} | row | _in_points(ties)

    def _difference(self, values: Floats, full: float, terms: Mapping[str, Floats], estimates: Estimates) -> Row:
        difference = Linear(float(values.mean() - full), terms)
        row = {
            "score": 100 * float(values.mean()),
            "spread": 100 * float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
            "difference": 100 * difference.value,
        }
        if self._how.interval is None:
            return row | {"low": float("nan"), "high": float("nan"), "verdict": ""}
        estimate = Estimate(difference.value, estimates.spread(difference))
        low, high, _ = estimate.interval(self._how.level)
        verdict = verdict_on(estimate, self.margin / 100, self._how.level)
        return row | {"low": 100 * low, "high": 100 * high, "verdict": verdict}

    def table(self) -> Tables:
        rows = self.headline
        first = rows.iloc[0]
        what = f"{str(first['metric']).capitalize()} x 100, {listed(list(dict.fromkeys(rows['task'])))}"
        similarity = rows.loc[rows["similarity"] != "hamming", "similarity"].iloc[0]
        cells = [_difference_cell(row) for row in rows.to_dict("records")]
        tables = [
            Table(self.smallest, f"The smallest vectors within {first['margin']:g} points of the full ones"),
            Table(_wide(rows, rows["score"]), f"{what}: by {similarity}, of binary vectors by Hamming"),
            Table(
                _wide(rows, cells), "Difference to the full vectors in fp32, with its interval", notes=self.notes
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
        best = passing.groupby(["model", "kept"], sort=False).head(1)
        columns = [*_CELL, "stored", "bytes", "share", "score", "difference", "interval"]
        return best.sort_index()[columns].rename(columns={"share": "% of full"}).reset_index(drop=True)

    def numbers(self) -> dict[str, float]:
        rows, smallest = self.headline, self.smallest
        named = {"fewest bytes within the margin": float(smallest["bytes"].min())} if len(smallest) else {}
        sizes = sorted(set(rows["dimensions"]), reverse=True)
        half = rows[(rows["dimensions"] == sizes[min(1, len(sizes) - 1)]) & (rows["stored"] == "fp32")]
        return named | {
            f"{row['kept']} {row['dimensions']}, difference": float(row["difference"])
            for row in half.to_dict("records")
        }

    @property
    def notes(self) -> tuple[str, ...]:
        margin = self.frame["margin"].iloc[0]
        notes = [f"*: within {margin:g} points (each tested separately). ±: standard deviation over random draws."]
        for model, rows in self.frame.groupby("model", sort=False):
            first = rows.iloc[0]
            also = f" ({first['left_out']:,} sentences of the tasks are left out)" if first["left_out"] else ""
            notes.append(
                f"{model}: int8 ranges and principal components are fitted on {first['calibration']:,} sentences "
                f"of {first['corpus']}{also}."
            )
            if lacking := set(rows["dimensions"]) - set(rows.loc[rows["kept"] == "PCA", "dimensions"]):
                notes.append(
                    f"{model}: these sentences vary in fewer than {min(lacking):,} directions, which limits PCA."
                )
        return tuple(notes)

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.headline.sort_values(["bytes", "score"], ascending=[True, False])
        best = rows.drop_duplicates(["model", "bytes"])
        return {"least loss for its bytes": best.assign(place=best["bytes"], value=best["difference"])}


def _wide(rows: pd.DataFrame, cells: Any) -> pd.DataFrame:
    return in_columns(rows.assign(cell=cells), _CELL, "stored", "cell")


def _in_points(ties: Mapping[str, float]) -> Row:
    return {name: 100 * ties.get(name, float("nan")) for name in TIES}


def _difference_cell(row: dict[Any, Any]) -> str:
    if isnan(row["difference"]):
        return ""
    spread = "" if isnan(row["spread"]) else f" ±{row['spread']:.2f}"
    mark = "*" if row["verdict"] == WITHIN else ""
    return " ".join(filter(None, [f"{row['difference']:+z.2f}{mark}", interval(row["low"], row["high"])])) + spread


compress = Compress.verb
