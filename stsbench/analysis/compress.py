"""Compression: the smallest vectors that keep the score, with fewer dimensions and fewer bits per number."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stsbench.analysis.base import OfTasks, Row, in_columns
from stsbench.analysis.compress_numbers import NO_WORSE, Compression, PairedVectors, compressed_rows, folded_of
from stsbench.analysis.inputs import scored_sentences
from stsbench.analysis.parameters import INTERVALS, LARGEST, OWN_DATA, SEED, parameter
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.base.words import listed
from stsbench.data.corpus import load_corpus
from stsbench.data.shared import SENTENCES, folded_ids
from stsbench.render.figures import colours, legend_above, new_figure, shortened, style
from stsbench.render.table import Table, Tables, interval
from stsbench.scoring.settings import MARGIN, Intervals, require_margin
from stsbench.scoring.subjects import Subject, vectors_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = ["model", "dimensions", "kept"]
_TIES = ["tied", "score", "expected", "lowest", "highest"]


class Compress(OfTasks):
    """Find the smallest vectors that keep the score: fewer dimensions, fewer bits per number.

    Dimensions (all, half, ... 16; leading, random or principal components) by number format (fp32, fp16, int8,
    binary), each with its difference to the full vectors, and the smallest vector within the margin. The figure
    shows the score against the bytes per vector.

    Returns:
        One row per model, task (`Avg.` is their mean), `dimensions`, `kept` (`all`, `leading`, `random`, `PCA`)
        and `stored` format, with `similarity`, `bytes` per vector, and x 100 the `score`, its `difference` to the
        full vectors in fp32 with `low` and `high`, and over all ways to break ties the mean (`expected`), `lowest`
        and `highest` Spearman; `tied` is the percentage of pairs with a tied similarity. Random dimensions have
        means over the draws, and the scores' standard deviation as `spread`. `verdict` is `no worse`, `worse` or
        `cannot tell`, as for `stsbench check --margin`, each tested separately, or `undefined`. Other columns:
        `metric`, `corpus`, `calibration` and `left_out` (numbers of sentences), and `margin`.

    Raises:
        UserError: if vectors have too few dimensions, the corpus too few other sentences, or a score is undefined.

    >>> small = compress(lambda texts: [[len(s), s.count("e"), s.count("t")] for s in texts], tasks=["sample"])
    >>> small.frame.loc[small.frame["kept"] == "all", ["stored", "bytes"]].values.tolist()
    [['fp32', 12], ['fp16', 6], ['int8', 3], ['binary', 1]]
    """

    name = "compress"
    title = "Compression"
    question = "how small can a vector be?"
    look_for = "the fewest bytes that are no worse than all of them; a random half that loses little"
    examples = (
        "stsbench compress runs/minilm-avg-sts --figure bytes.svg",
        "stsbench compress runs/a runs/b --corpus wiki.txt --sizes 256,128,64 --margin 1",
        "stsbench compress --model minilm --tasks sample --json",
    )

    sizes: Sequence[int] = parameter(
        (),
        "The numbers of dimensions to keep, with commas; by default half, ... 16.",
        example="256,128,64",
        limits=(-LARGEST, LARGEST),
    )
    corpus: str | Path = parameter("sample", "The distractors: a file with one sentence a line, or `sample`.")
    draws: int = parameter(5, "Draws of random dimensions.", limits=(1, 100))
    seed = SEED
    similarity: Any = parameter(
        "cosine", "`cosine` or `dot` (binary vectors use the Hamming distance).", choices=("cosine", "dot")
    )
    margin: float | None = parameter(
        None, "The loss in points that is allowed; 0.5 by default.", kind=float, limits=(0, 100)
    )
    data = OWN_DATA
    intervals: Intervals | None = INTERVALS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, PairedVectors]:
        """Returns the vectors of the tasks' pairs and of other sentences."""
        require_margin(self._margin)
        self.constants = {"corpus": Path(self.corpus).name}
        others = load_corpus(self.corpus)
        options: Row = {"data": self.data, "data_dirs": self.data_dirs, "progress": self.progress}
        return {
            name: _paired_vectors(name, subject, self.tasks, others, **options)
            for name, subject in subjects.items()
        }

    @property
    def _margin(self) -> float:
        return MARGIN if self.margin is None else self.margin

    def measure(self, model: str, given: PairedVectors) -> Iterator[Row]:
        """Yields every smaller vector with its score and difference."""
        how = Compression(tuple(self.sizes), self.draws, self.seed, self.similarity, self._margin, self.how)
        return compressed_rows(model, given, how)

    def table(self) -> Tables:
        """Returns the smallest vectors within the margin, scores, differences, and ranges of ties."""
        rows = self.headline
        first = rows.iloc[0]
        what = f"{str(first['metric']).capitalize()} x 100, {listed(list(dict.fromkeys(rows['task'])))}"
        similarity = rows.loc[rows["similarity"] != "hamming", "similarity"].iloc[0]
        cells = [_difference_cell(row) for row in rows.to_dict("records")]
        # Only binary vectors have many ties; their number depends mostly on the number of dimensions.
        ties = rows[(rows["similarity"] == "hamming") & rows["kept"].isin(["all", "leading"])]
        ties = ties[[*_CELL, *_TIES]].rename(columns={"tied": "tied pairs %", "score": "Spearman"}).dropna()
        tables = [
            Table(
                self.smallest,
                f"The smallest vectors within {first['margin']:g} points of the full ones",
            ),
            Table(_wide(rows, rows["score"]), f"{what}: by {similarity}, of binary vectors by Hamming"),
            Table(
                _wide(rows, cells), "Difference to the full vectors in fp32, with its interval", notes=self.notes
            ),
            Table(ties, "Ties of binary vectors: Spearman x 100, and over all ways to break ties"),
        ]
        return Tables(table for table in tables if len(table.frame))

    @property
    def smallest(self) -> pd.DataFrame:
        """The smallest vector within the margin, by model and kept dimensions."""
        rows = self.headline
        full = rows.groupby("model")["bytes"].transform("max")
        rows = rows.assign(
            share=100 * rows["bytes"] / full, interval=list(map(interval, rows["low"], rows["high"]))
        )
        passing = rows[rows["verdict"] == NO_WORSE].sort_values(["bytes", "score"], ascending=[True, False])
        best = passing.groupby(["model", "kept"], sort=False).head(1)
        columns = [*_CELL, "stored", "bytes", "share", "score", "difference", "interval"]
        return best.sort_index()[columns].rename(columns={"share": "% of full"}).reset_index(drop=True)

    def numbers(self) -> dict[str, float]:
        """Returns the fewest bytes within the margin, and the loss of half of the dimensions in fp32."""
        rows, smallest = self.headline, self.smallest
        named = {"fewest bytes no worse": float(smallest["bytes"].min())} if len(smallest) else {}
        sizes = sorted(set(rows["dimensions"]), reverse=True)
        half = rows[(rows["dimensions"] == sizes[min(1, len(sizes) - 1)]) & (rows["stored"] == "fp32")]
        return named | {
            f"{row['kept']} {row['dimensions']}, difference": float(row["difference"])
            for row in half.to_dict("records")
        }

    @property
    def notes(self) -> tuple[str, ...]:
        first = self.frame.iloc[0]
        notes = [
            f"*: within {first['margin']:g} points (each tested separately). ±: standard deviation over "
            "random draws."
        ]
        for row in self.frame.drop_duplicates("model").to_dict("records"):
            name, left_out = row["model"], row["left_out"]
            also = f" ({left_out:,} sentences of the tasks are left out)" if left_out else ""
            notes.append(
                f"{name}: int8 ranges and principal components are fitted on {row['calibration']:,} sentences of "
                f"{row['corpus']}{also}."
            )
            of_model = self.frame[self.frame["model"] == name]
            sizes = set(of_model["dimensions"])
            lacking = sizes - set(of_model.loc[of_model["kept"] == "PCA", "dimensions"])
            if lacking:
                notes.append(
                    f"{name}: these sentences vary in fewer than {min(lacking):,} directions, which limits PCA."
                )
        return tuple(notes)

    def plot(self) -> "Figure":
        """Draws the score against bytes, a panel per model, with a curve for each number format."""
        rows = self.headline
        models = list(dict.fromkeys(rows["model"]))
        with style():
            figure = new_figure(height=0.5 + 2.1 * len(models))
            panels = figure.subplots(len(models), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
            for axes, model in zip(panels, models, strict=True):
                _draw(axes, rows[rows["model"] == model])
                if len(models) > 1:
                    axes.set_title(shortened(str(model), 52), loc="left", fontsize=7)
                axes.set_ylabel(f"{rows['metric'].iloc[0].capitalize()} × 100")
            panels[-1].set_xlabel("bytes a vector")
            legend_above(figure, panels[0])
        return figure


def _wide(rows: pd.DataFrame, cells: Any) -> pd.DataFrame:
    """Returns cells by number format: a row for each model, number of dimensions and kept dimensions."""
    return in_columns(rows.assign(cell=cells), _CELL, "stored", "cell").reset_index()


def _difference_cell(row: dict[Any, Any]) -> str:
    if isnan(row["difference"]):
        return ""
    spread = "" if isnan(row["spread"]) else f" ±{row['spread']:.2f}"
    mark = "*" if row["verdict"] == NO_WORSE else ""
    return " ".join(filter(None, [f"{row['difference']:+z.2f}{mark}", interval(row["low"], row["high"])])) + spread


def _draw(axes: "Axes", rows: pd.DataFrame) -> None:
    """Draws a model's scores against the bytes per vector."""
    pareto = rows.sort_values(["bytes", "score"], ascending=[True, False])
    pareto = pareto[pareto["score"] > pareto["score"].cummax().shift(fill_value=float("-inf"))]
    axes.plot(pareto["bytes"], pareto["score"], color="0.8", linewidth=4, label="best for its bytes", zorder=1)
    full = rows[rows["kept"] == "all"]
    palette = colours(["leading", "random", "PCA"])
    for kept, colour in palette.items():
        for number, (stored, part) in enumerate(rows[rows["kept"] == kept].groupby("stored", sort=False)):
            ends = part if kept == "PCA" else full[full["stored"] == stored]
            curve = part.merge(ends, how="outer").sort_values("bytes")
            label = kept if number == 0 else f"_{kept}"
            axes.plot(curve["bytes"], curve["score"], color=colour, marker="o", markersize=2, lw=0.9, label=label)
            if kept == "random":
                low, high = (part["score"] + side * part["spread"] for side in (-1, 1))
                axes.fill_between(part["bytes"], low, high, color=colour, alpha=0.2, lw=0)
    for row in full.dropna(subset="score").to_dict("records"):
        place = (row["bytes"], row["score"])
        axes.annotate(row["stored"], place, (0, 4), textcoords="offset points", ha="center", fontsize=6)
    margin = full["margin"].iloc[0]
    dotted: dict[str, Any] = {
        "color": "0.4",
        "linewidth": 0.8,
        "linestyle": ":",
        "label": f"{margin:g} points less",
    }
    axes.axhline(full["score"].iloc[0] - margin, **dotted)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.08, y=0.1)


def _paired_vectors(
    name: str,
    subject: Subject,
    tasks: Sequence[str],
    others: Sequence[str],
    *,
    data: Sequence[str | Path],
    data_dirs: Sequence[str | Path],
    progress: Progress,
) -> PairedVectors:
    """Returns the vectors of a model's pairs, and of other sentences for calibration."""
    record, scored, texts = scored_sentences(
        name, subject, tasks, data=data, data_dirs=data_dirs, progress=progress
    )
    if record.model.use.whiten is not None:
        raise UserError(
            f"the vectors of {name} are whitened by each task's own sentences, so other sentences have no "
            "comparable "
            "vectors: fit a whitening with `stsbench fit`, and measure that."
        )
    ids = [np.stack([task.pairs[side] for side in SENTENCES]) for task in scored]
    numbers, places = np.unique(np.concatenate(ids, axis=1), return_inverse=True)
    seen = np.isin(folded_ids(others), folded_of(scored))
    calibration = [text for text, is_seen in zip(others, seen.tolist(), strict=True) if not is_seen]
    sentences = [texts[number] for number in numbers.tolist()]
    vectors, rows = vectors_of(subject, [*sentences, *calibration], progress)
    of_pairs, of_others = rows[: len(numbers)], rows[len(numbers) :]
    ends = np.cumsum([of_task.shape[1] for of_task in ids])[:-1]
    by_task = np.split(of_pairs[places.reshape(2, -1)], ends, axis=1)
    return PairedVectors(scored, vectors, by_task, vectors[of_others], int(seen.sum()))


compress = Compress.verb
