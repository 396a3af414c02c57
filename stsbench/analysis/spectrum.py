"""The spectrum of sentence vectors: how many directions a model uses (MoCoSE 2022, figure 7)."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisCommand, AnalysisResult
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import DataDirs, Split, Task, Text
from stsbench.render.charts import line, plain_logarithms
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.scoring.subjects import Wanted

TOP = (1, 5, 10)
SINGULAR, RANK, SHARE = "singular value", "effective rank", "top share"
ISOSCORE, PARTITION = "isoscore", "partition isotropy"

_AT_ODDS = (
    "A higher isotropy is not better by itself: vectors that lie in clusters are not isotropic, and classes are "
    "told apart by clusters (Mickus et al. 2024)."
)


class Spectrum(AnalysisResult):
    """The singular values of models' sentence vectors, and what they amount to."""

    name = "spectrum"
    title = "Spectrum"
    question = "how many directions are in use?"
    look_for = "a steep fall, a low effective rank, a large top-1 share: a narrow cone"

    def table(self) -> Tables:
        """Return the summary numbers; the singular values are for the figure."""
        numbers = self.frame[self.frame["measure"] != SINGULAR]
        names = [_named(row) for row in numbers.to_dict("records")]
        wide = numbers.assign(name=names).pivot_table(
            index=["model", "dimensions", "centred"], columns="name", values="value", sort=False, dropna=False
        )
        wide = wide.dropna(how="all").reset_index()
        order = [RANK, *(f"top {k} share" for k in TOP), PARTITION, ISOSCORE]
        table = wide[["model", "dimensions", "centred", *order]]
        table = table.assign(centred=table["centred"].map({True: "yes", False: "no"}))
        caption = f"Spectrum of the normalised sentence vectors{place(self.frame)}"
        return Tables([Table(table, caption, 3, notes=(_AT_ODDS,))])

    def numbers(self) -> dict[str, float]:
        """Return what the singular values amount to, uncentred and centred."""
        named: dict[str, float] = {}
        for row in self.frame[self.frame["measure"] != SINGULAR].to_dict("records"):
            name = _named(row)
            named[f"{name}, centred" if row["centred"] else name] = float(row["value"])
        return named

    def plot(self) -> "Figure":
        """Draw each model's singular values in order, divided by the largest: uncentred solid, centred dashed."""
        palette = colours(list(self.frame["model"]))
        curves = self.frame[(self.frame["measure"] == SINGULAR) & (self.frame["value"] > 1e-6)]
        with style():
            figure = new_figure()
            axes = figure.subplots()
            for (model, centred), part in curves.groupby(["model", "centred"], sort=False):
                # A label that begins with an underscore is none to matplotlib: one name for both lines.
                label, dashes = (f"_{model}, centred", "--") if centred else (str(model), "-")
                line(axes, label, part["k"], part["value"], palette[str(model)], linestyle=dashes)
            axes.set_yscale("log")
            plain_logarithms(axes.yaxis)
            axes.set_xlabel("singular value, in order (dashed: centred)")
            axes.set_ylabel("size (largest = 1)")
            legend_above(figure, axes)
        return figure


def _named(row: Mapping[Hashable, Any]) -> str:
    """Return what the number of a row is called."""
    return f"top {row['k']} share" if row["measure"] == SHARE else str(row["measure"])


def spectrum(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    task: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Spectrum:
    """Measure the singular values of the sentence vectors of runs or models, and what they amount to.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        task: the task whose sentences are looked at; by default `STS-B`, or the sample where its data is not here.
        split: the split to use; by default all that the task has.
        text: the text to use: `senteval` (tokenised, lower-cased) or `raw`.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Returns:
        One row per model, `centred`, `measure` and `k`, with its `value`. Measures: `singular value` (the k-th,
        divided by the largest), `effective rank`, `top share` (of the squares, in the first k directions),
        `partition isotropy` and, for centred vectors, `isoscore`. `sentences` and `dimensions` say of how many,
        `task`, `split` and `text` of what.

    Raises:
        UserError: if the data is missing, all vectors are zero, or a sentence was never encoded and the model is
            not here.

    >>> values = spectrum(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> values.frame.loc[values.frame["measure"] == "singular value", "k"].unique().tolist()
    [1, 2, 3]
    """
    from stsbench.analysis.inputs import analysable, task_vectors

    data, models = task_vectors(analysable(runs), task, split, text, data_dirs=data_dirs, progress=progress)
    frame = spectrum_frame({name: vectors.each() for name, vectors in models.items()})
    return Spectrum(frame.assign(task=data.task, split=data.split, text=data.text))


def spectrum_frame(models: "Mapping[str, NDArray[np.floating[Any]]]") -> pd.DataFrame:
    """Measure the spectrum of several models' (n, d) sentence vectors, as they are and centred; see `spectrum`.

    The vectors are L2-normalised first; zero vectors are left out.
    """
    from stsbench.statistics.geometry import unit_rows
    from stsbench.statistics.similarity import zero_rows

    rows = []
    for model, vectors in models.items():
        units = unit_rows(vectors[~zero_rows(vectors)])
        if not len(units):
            raise UserError(f"{model} gives every sentence a zero vector: nothing is known of them.")
        about = {"model": model, "sentences": len(units), "dimensions": vectors.shape[1]}
        rows += [about | {"centred": False} | row for row in _measures(units, centred=False)]
        units -= units.mean(axis=0)
        rows += [about | {"centred": True} | row for row in _measures(units, centred=True)]
    return pd.DataFrame(rows)


def _measures(matrix: "NDArray[np.float64]", *, centred: bool) -> Iterator[dict[str, Any]]:
    from stsbench.statistics.geometry import (
        effective_rank,
        iso_score,
        partition_isotropy,
        principal_axes,
        top_share,
    )

    axes = principal_axes(matrix)
    values = axes.values
    largest = values[0] if values[0] > 0 else 1.0
    for k, value in enumerate(values / largest, 1):
        yield {"measure": SINGULAR, "k": k, "value": float(value)}
    yield {"measure": RANK, "k": 0, "value": effective_rank(values)}
    for directions in TOP:
        yield {"measure": SHARE, "k": directions, "value": top_share(values, directions)}
    if centred:
        yield {"measure": ISOSCORE, "k": 0, "value": iso_score(values, matrix.shape[1])}
    yield {"measure": PARTITION, "k": 0, "value": partition_isotropy(matrix, axes)}


@dataclass(frozen=True)
class SpectrumCommand(AnalysisCommand):
    """Measure the singular values of the sentence vectors of STS-B, and their effective rank.

    Effective rank, shares of the top directions, isotropy; uncentred and centred. The figure shows the singular
    values in order; JSON and CSV contain all of them.

    Examples:
    * `stsbench spectrum runs/a runs/b --figure spectrum.pdf`
    * `stsbench spectrum --model minilm --task sample --csv`
    """

    verb = staticmethod(spectrum)
    result = Spectrum

    task: Task = None
    split: Split = None
    text: Text = "senteval"
    data_dirs: DataDirs = None
