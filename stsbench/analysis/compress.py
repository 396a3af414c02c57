"""`compress`: how small can a vector be? Fewer dimensions and fewer bits a number, from one encoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer

from stsbench.analysis.result import AnalysisResult, CommandWithIntervals, headline, in_columns
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed, suggestion
from stsbench.cli.options import DataDirs, OwnTexts, Seed, Tasks, numbers
from stsbench.render.figures import colours, legend_above, new_figure, shortened, style
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from stsbench.analysis.compress_numbers import PairedVectors
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Subject, Wanted

SIMILARITIES = ("cosine", "dot")

_CELL = ["model", "dimensions", "kept"]
_TIES = ["tied", "score", "expected", "lowest", "highest"]


class Compressed(AnalysisResult):
    """The scores of models' vectors, made smaller in every way that was tried."""

    name = "compress"
    title = "Compression"
    question = "how small can a vector be?"
    look_for = "the fewest bytes that are no worse than all of them; a random half that loses little"

    def table(self) -> Tables:
        """Return the smallest vectors that are no worse, scores, differences, and what ties leave open."""
        rows = self.headline
        first = rows.iloc[0]
        what = f"{str(first['metric']).capitalize()} x 100, {listed(list(dict.fromkeys(rows['task'])))}"
        similarity = rows.loc[rows["similarity"] != "hamming", "similarity"].iloc[0]
        cells = [_difference_cell(row) for row in rows.to_dict("records")]
        # Of bits alone there are many, and how many dimensions decides more than which.
        ties = rows[(rows["similarity"] == "hamming") & rows["kept"].isin(["all", "leading"])]
        ties = ties[[*_CELL, *_TIES]].rename(columns={"tied": "tied pairs %", "score": "Spearman"}).dropna()
        tables = [
            Table(
                self.smallest,
                f"The smallest vectors that are no worse by {first['margin']:g} points, of each kind that has one",
            ),
            Table(_wide(rows, rows["score"]), f"{what}: by {similarity}, of binary vectors by Hamming"),
            Table(
                _wide(rows, cells), "Difference to the full vectors in fp32, with its interval", notes=self._notes
            ),
            Table(ties, "Ties of binary vectors: Spearman x 100, and over all ways of breaking them"),
        ]
        return Tables(table for table in tables if len(table.frame))

    @property
    def headline(self) -> pd.DataFrame:
        """The rows of each model's average over its tasks, or of its only task."""
        return headline(self.frame)

    @property
    def smallest(self) -> pd.DataFrame:
        """The vector of the fewest bytes that is no worse than the full one, by model and what is kept."""
        from stsbench.analysis.compress_numbers import NO_WORSE

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
        """Return the fewest bytes that are no worse, and what half of the dimensions lose in fp32."""
        rows, smallest = self.headline, self.smallest
        named = {"fewest bytes no worse": float(smallest["bytes"].min())} if len(smallest) else {}
        sizes = sorted(set(rows["dimensions"]), reverse=True)
        half = rows[(rows["dimensions"] == sizes[min(1, len(sizes) - 1)]) & (rows["stored"] == "fp32")]
        return named | {
            f"{row['kept']} {row['dimensions']}, difference": float(row["difference"])
            for row in half.to_dict("records")
        }

    @property
    def _notes(self) -> tuple[str, ...]:
        first = self.frame.iloc[0]
        notes = [
            f"*: no worse by {first['margin']:g} points, each tested by itself. ±: standard deviation over the "
            "draws of random dimensions; the rest is of their mean."
        ]
        for row in self.frame.drop_duplicates("model").to_dict("records"):
            name, left_out = row["model"], row["left_out"]
            also = f"; {left_out:,} that the tasks have, too, are left out" if left_out else ""
            notes.append(
                f"{name}: int8's ranges and principal components are of {row['calibration']:,} sentences of "
                f"{row['corpus']}{also}."
            )
            of_model = self.frame[self.frame["model"] == name]
            sizes = set(of_model["dimensions"])
            lacking = sizes - set(of_model.loc[of_model["kept"] == "PCA", "dimensions"])
            if lacking:
                notes.append(
                    f"{name}: those sentences vary in fewer than {min(lacking):,} directions, so there are not as "
                    "many principal components."
                )
        return tuple(notes)

    def plot(self) -> "Figure":
        """Draw score against bytes, a panel a model: a curve for each way to store a number, and the best ones."""
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
    """Return cells by the number that is stored: a row for each model, number of dimensions and what is kept."""
    return in_columns(rows.assign(cell=cells), _CELL, "stored", "cell").reset_index()


def _difference_cell(row: "dict[Any, Any]") -> str:
    import math

    if math.isnan(row["difference"]):
        return ""
    spread = "" if math.isnan(row["spread"]) else f" ±{row['spread']:.2f}"
    mark = "*" if row["verdict"] == "no worse" else ""
    return " ".join(filter(None, [f"{row['difference']:+z.2f}{mark}", interval(row["low"], row["high"])])) + spread


def _draw(axes: "Axes", rows: pd.DataFrame) -> None:
    """Draw a model's scores over the bytes of a vector."""
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


def compress(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    tasks: Sequence[str] = (),
    sizes: Sequence[int] = (),
    corpus: str | Path = "sample",
    draws: int = 5,
    seed: int = 0,
    similarity: str = "cosine",
    margin: float | None = None,
    data: Sequence[str | Path] = (),
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Compressed:
    """Score the vectors of runs or models with fewer dimensions and fewer bits a number, from one encoding.

    Kept are the first dimensions, random ones, or the largest principal components; a number is stored in fp32,
    fp16, int8 or one bit. Ranges of int8 and principal components are fitted on other sentences than the tasks'.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of, which are measured first.
        tasks: the tasks to look at, with commas; by default all that a run has, for models the seven STS tasks, or
            the sample.
        sizes: how many dimensions to keep, with commas; by default a half, a quarter and so on down to 16. All of
            them are there in any case.
        corpus: the other sentences: a file with one sentence a line, or `sample` for the sample's. Those that a
            task has, too, are left out.
        draws: how many times random dimensions are drawn.
        seed: of these draws.
        similarity: how vectors of fp32, fp16 and int8 are compared: by `cosine` or `dot`. Binary ones are compared
            by Hamming's distance.
        margin: how many points a smaller vector may lose; 0.5 by default.
        data: files with the sentences of runs on pairs of your own; repeatable. Records hold no sentences.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Returns:
        One row per model, task (`Avg.` is their mean), `dimensions`, `kept` (`all`, `leading`, `random`, `PCA`)
        and `stored`, with `similarity`, `bytes` a vector, and x 100 the `score`, its `difference` to all
        dimensions in fp32 with the limits `low` and `high`, and over all ways of breaking ties the mean
        (`expected`), `lowest` and `highest` Spearman; `tied` is the share of pairs, in percent, whose similarity
        another pair has. Of random dimensions all are means over the draws, and `spread` is the scores' standard
        deviation. `verdict` is `no worse`, `worse` or `cannot tell`, as of `stsbench check --margin`, each
        tested by itself, or `undefined`. `metric`, `corpus`, `calibration` and `left_out` (sentences), and
        `margin` say how.

    Raises:
        UserError: if a model has fewer dimensions than asked for, too few other sentences are there, a score is
            not defined, or a sentence was never encoded and the model is not here.

    >>> small = compress(lambda texts: [[len(s), s.count("e"), s.count("t")] for s in texts], tasks=["sample"])
    >>> small.frame.loc[small.frame["kept"] == "all", ["stored", "bytes"]].values.tolist()
    [['fp32', 12], ['fp16', 6], ['int8', 3], ['binary', 1]]
    """
    from stsbench.analysis.compress_numbers import Compression, compress_frame
    from stsbench.analysis.inputs import analysable
    from stsbench.data.corpus import load_corpus
    from stsbench.scoring.settings import MARGIN, Intervals, require_margin

    margin = MARGIN if margin is None else margin
    require_margin(margin)
    if similarity not in SIMILARITIES:
        raise UserError(f"vectors compared by {similarity!r}: {suggestion(similarity, SIMILARITIES)}")
    how = Compression(tuple(sizes), draws, seed, similarity, margin, intervals or Intervals())  # type: ignore[arg-type]
    others = load_corpus(corpus)
    models = {
        name: _paired_vectors(name, subject, tasks, others, data=data, data_dirs=data_dirs, progress=progress)
        for name, subject in analysable(runs).items()
    }
    return Compressed(compress_frame(models, how).assign(corpus=Path(corpus).name))


def _paired_vectors(
    name: str,
    subject: "Subject",
    tasks: Sequence[str],
    others: Sequence[str],
    *,
    data: Sequence[str | Path],
    data_dirs: Sequence[str | Path],
    progress: Progress,
) -> "PairedVectors":
    """Return the vectors of a model's pairs, and those of other sentences that no task has."""
    from stsbench.analysis.compress_numbers import PairedVectors, folded_of
    from stsbench.analysis.inputs import scored_sentences
    from stsbench.data.shared import SENTENCES, folded_ids
    from stsbench.scoring.subjects import vectors_of

    record, scored, texts = scored_sentences(
        name, subject, tasks, data=data, data_dirs=data_dirs, progress=progress
    )
    if record.model.use.whiten is not None:
        raise UserError(
            f"the vectors of {name} are whitened by each task's own sentences, and other sentences have none like "
            "them: fit a whitening with `stsbench fit`, and measure that."
        )
    ids = [np.stack([task.pairs[side] for side in SENTENCES]) for task in scored]
    numbers, places = np.unique(np.concatenate(ids, axis=1), return_inverse=True)
    seen = np.isin(folded_ids(others), folded_of(scored))
    calibration = [text for text, is_seen in zip(others, seen.tolist(), strict=True) if not is_seen]
    sentences = [texts[number] for number in numbers.tolist()]
    vectors, rows = vectors_of(subject, [*sentences, *calibration], progress, data_dirs=data_dirs)
    of_pairs, of_others = rows[: len(numbers)], rows[len(numbers) :]
    ends = np.cumsum([each.shape[1] for each in ids])[:-1]
    by_task = np.split(of_pairs[places.reshape(2, -1)], ends, axis=1)
    return PairedVectors(scored, vectors, by_task, vectors[of_others], int(seen.sum()))


@dataclass(frozen=True)
class CompressCommand(CommandWithIntervals):
    """Find the smallest vectors that keep the score: fewer dimensions, fewer bits per number.

    Dimensions (all, half, ... 16; leading, random or principal components) by number format (fp32, fp16, int8,
    binary), each with its difference to the full vectors, and the smallest vector within the margin. The figure
    shows the score against the bytes per vector.

    Examples:
    * `stsbench compress runs/minilm-avg-sts --figure bytes.svg`
    * `stsbench compress runs/a runs/b --corpus wiki.txt --sizes 256,128,64 --margin 1`
    * `stsbench compress --model minilm --tasks sample --json`
    """

    verb = staticmethod(compress)
    result = Compressed
    of_pairs = True

    tasks: Tasks = None
    sizes: Annotated[
        str | None, typer.Option(help="The numbers of dimensions to keep, with commas; by default half, ... 16.")
    ] = None
    corpus: Annotated[str, typer.Option(help="The distractors: a file with one sentence a line, or `sample`.")] = (
        "sample"
    )
    draws: Annotated[int, typer.Option(min=1, max=100, help="Draws of random dimensions.")] = 5
    seed: Seed = 0
    similarity: Annotated[
        str, typer.Option(help="`cosine` or `dot` (binary vectors use the Hamming distance).")
    ] = "cosine"
    margin: Annotated[
        float | None, typer.Option(min=0, max=100, help="The loss in points that is allowed; 0.5 by default.")
    ] = None
    data: OwnTexts = None
    data_dirs: DataDirs = None

    def keywords(self) -> dict[str, Any]:
        """Return the options as `compress` takes them."""
        return super().keywords() | {"sizes": numbers(self.sizes, "--sizes", "256,128,64")}
