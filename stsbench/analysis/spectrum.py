"""Spectrum: how many directions do sentence vectors use? (MoCoSE 2022, figure 7)"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.base import OfSentences, Row
from stsbench.analysis.inputs import Answer, PairVectors
from stsbench.base.errors import UserError
from stsbench.render.charts import line, plain_logarithms
from stsbench.render.figures import Figure, colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, in_columns, place
from stsbench.statistics.geometry import (
    effective_rank,
    iso_score,
    partition_isotropy,
    principal_axes,
    top_share,
    unit_rows,
)
from stsbench.statistics.neighbours import zero_rows

TOP = (1, 5, 10)
SINGULAR, RANK, SHARE = "singular value", "effective rank", "top share"
ISOSCORE, PARTITION = "isoscore", "partition isotropy"

_AT_ODDS = (
    "Higher isotropy alone is not better: clustered vectors are anisotropic, and clusters separate classes "
    "(Mickus et al. 2024)."
)


class Spectrum(OfSentences):
    """Measure the singular values of the sentence vectors of STS-B, and their effective rank.

    Effective rank, shares of the top directions, isotropy; uncentred and centred. The figure shows the singular
    values in order; JSON and CSV contain all of them.

    Returns:
        One row per model, `centred`, `measure` and `k`, with its `value`: `singular value` (the k-th, divided
        by the largest), `effective rank`, `top share` (of the squares, in the first k directions), `partition
        isotropy` and, centred, `isoscore`. Vectors are normalised; zero vectors are left out. Also `sentences`,
        `dimensions`.

    >>> from stsbench import spectrum
    >>> values = spectrum(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> values.frame.loc[values.frame["measure"] == "singular value", "k"].unique().tolist()
    [1, 2, 3]
    """

    answer = Answer("How many directions are used?", ".0f", rows={"measure": RANK, "centred": False})

    def measure(self, model: str, given: PairVectors) -> Iterator[Row]:
        vectors = given.vectors[given.rows]
        units = unit_rows(vectors[~zero_rows(vectors)])
        if not len(units):
            raise UserError(f"{model} gives every sentence a zero vector.")
        about = {"sentences": len(units), "dimensions": vectors.shape[1]}
        for centred in (False, True):
            if centred:
                units -= units.mean(axis=0)
            yield from (about | {"centred": centred} | row for row in _measures(units, centred=centred))

    def table(self) -> Tables:
        rows = self.frame[self.frame["measure"] != SINGULAR]
        names = rows["measure"].where(rows["measure"] != SHARE, "top " + rows["k"].astype(str) + " share")
        wide = in_columns(rows.assign(name=names), ["model", "dimensions", "centred"], "name", "value")
        order = [RANK, *(f"top {k} share" for k in TOP), PARTITION, ISOSCORE]
        table = wide[["model", "dimensions", "centred", *order]]
        table = table.assign(centred=table["centred"].map({True: "yes", False: "no"}))
        caption = f"Spectrum of the normalised sentence vectors{place(self.frame)}"
        return Tables([Table(table, caption, 3, notes=(_AT_ODDS,))])

    def plot(self) -> Figure:
        """Draws each model's singular values relative to the largest: uncentred solid, centred dashed."""
        palette = colours(list(self.frame["model"]))
        curves = self.frame[(self.frame["measure"] == SINGULAR) & (self.frame["value"] > 1e-6)]
        with style():
            figure = new_figure()
            axes = figure.subplots()
            for (model, centred), part in curves.groupby(["model", "centred"], sort=False):
                # matplotlib leaves labels with a leading underscore out of the legend.
                label, dashes = (f"_{model}, centred", "--") if centred else (str(model), "-")
                line(axes, label, part["k"], part["value"], palette[str(model)], linestyle=dashes)
            axes.set_yscale("log")
            plain_logarithms(axes.yaxis)
            axes.set_xlabel("singular value, in order (dashed: centred)")
            axes.set_ylabel("size (largest = 1)")
            legend_above(figure, axes)
        return figure


def _measures(matrix: NDArray[np.float64], *, centred: bool) -> Iterator[Row]:
    axes = principal_axes(matrix)
    values = axes.values
    for k, value in enumerate(values / (values[0] or 1.0), 1):
        yield {"measure": SINGULAR, "k": k, "value": float(value)}
    yield {"measure": RANK, "k": 0, "value": effective_rank(values)}
    for directions in TOP:
        yield {"measure": SHARE, "k": directions, "value": top_share(values, directions)}
    if centred:
        yield {"measure": ISOSCORE, "k": 0, "value": iso_score(values, matrix.shape[1])}
    yield {"measure": PARTITION, "k": 0, "value": partition_isotropy(matrix, axes)}
