"""Small pictures of a task's pairs: similarity over gold score, darker where more pairs lie."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.records.labels import task_labels
from stsbench.records.record import RunRecord
from stsbench.render.table import Picture
from stsbench.scoring.kinds import statistic_of

_COLUMNS, _ROWS = 24, 16
"""Cells of a picture, each three pixels wide and high."""

_SHADES = (0.15, 0.3, 0.5, 0.75, 1.0)
"""How opaque a cell is, from the emptiest to the fullest."""

_COLOUR = "#4a90c8"
"""To be seen on white and on black."""


def pictures(record: RunRecord, prefix: str) -> Mapping[str, Picture]:
    """Return a picture of each task whose pairs have a similarity and a gold score, by the task's label.

    Args:
        record: one without items has none.
        prefix: of the files' names.
    """
    try:
        tables = record.rows_by_score() if not record.is_imported else {}
    except UserError:
        return {}
    drawn = {}
    for number, (label, score) in enumerate(zip(task_labels(record.scores), record.scores, strict=True), 1):
        if score.key not in tables or not score.about.by_similarity or score.training is not None:
            continue
        table, column = tables[score.key], statistic_of(score).columns[0]
        gold, similarity = (table[name].to_numpy(np.float64) for name in ("gold", column))
        if np.ptp(gold) and np.ptp(similarity):
            svg = draw(gold, similarity)
            alt = (
                f"{label}: the {len(gold):,} pairs' similarity, from {similarity.min():.2f} to "
                f"{similarity.max():.2f}, over their gold score, from {gold.min():g} to {gold.max():g}"
            )
            drawn[label] = Picture(f"{prefix}-{number}", alt, svg)
    return drawn


def draw(gold: NDArray[np.float64], similarity: NDArray[np.float64]) -> str:
    """Return the pairs, (n,) each, as SVG: gold score to the right, similarity upwards.

    A cell's shade goes by the logarithm of the number of its pairs: a few far off are to be seen beside many.

    >>> draw(np.array([0.0, 5.0]), np.array([0.1, 0.9])).count("M")
    2
    """
    counts, _, _ = np.histogram2d(gold, similarity, bins=(_COLUMNS, _ROWS))
    levels = np.ceil(len(_SHADES) * np.log1p(counts) / np.log1p(counts.max())).astype(int)
    paths = []
    for level, shade in enumerate(_SHADES, 1):
        cells = "".join(f"M{x} {_ROWS - 1 - y}h1v1h-1z" for x, y in np.argwhere(levels == level))
        if cells:
            paths.append(f'<path fill="{_COLOUR}" fill-opacity="{shade:g}" d="{cells}"/>')
    size = f'width="{3 * _COLUMNS}" height="{3 * _ROWS}" viewBox="0 0 {_COLUMNS} {_ROWS}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} shape-rendering="crispEdges">{"".join(paths)}</svg>\n'
