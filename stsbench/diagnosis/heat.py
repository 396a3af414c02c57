"""The part of a grid that fits on a page: every pooler, crossed with every other single choice."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stsbench.base.files import atomic_path, told_as_unwritable
from stsbench.diagnosis.grid import POOLING
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.search import Candidate, Search
from stsbench.diagnosis.words import label
from stsbench.render.figures import new_figure, save_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OWN = "your setting"


@dataclass(frozen=True)
class Heat:
    """What a heat map shows.

    Attributes:
        rows: the poolers, the person's own first.
        columns: the person's own setting, then every setting with one other choice.
        groups: for each column the choice that it changes; empty for the first.
        scores: (rows, columns) what each gives: of several claimed numbers, that which is farthest off.
        differences: (rows, columns) the same less what is claimed; NaN where there is no score.
        fits: (rows, columns) whether it gives the whole claim.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    scores: NDArray[np.float64]
    differences: NDArray[np.float64]
    fits: NDArray[np.bool_]


def heat_of(search: Search) -> Heat:
    """Return the poolers crossed with every other single choice that makes a difference to the claim."""
    axes, default = search.grid.axes, search.grid.default
    free = [number for number, size in enumerate(search.shape) if size > 1]
    columns = [("", OWN, default)]
    for number in free:
        axis = axes[number]
        if axis.name != POOLING:
            others = [value for value in range(len(axis.values)) if value != axis.default]
            columns += [
                (axis.name, label(axis.name, axis.values[value]), _moved(default, number, value))
                for value in others
            ]
    poolings = next(axis for axis in axes if axis.name == POOLING)
    place = axes.index(poolings)
    order = [poolings.default, *(p for p in range(len(poolings.values)) if p != poolings.default)]
    rows = order if place in free else order[:1]
    cells = [[search.at(_moved(column, place, row)) for _, _, column in columns] for row in rows]
    worst = np.array([[_worst(search, cell) for cell in row] for row in cells])
    return Heat(
        rows=tuple(poolings.values[row] + (" (yours)" if row == order[0] else "") for row in rows),
        columns=tuple(label for _, label, _ in columns),
        groups=tuple(group for group, _, _ in columns),
        scores=worst[..., 0],
        differences=worst[..., 1],
        fits=np.array([[cell.fits for cell in row] for row in cells]),
    )


def _worst(search: Search, cell: Candidate) -> tuple[float, float]:
    differences = [score - value.score for score, value in zip(cell.scores, search.claim.values, strict=True)]
    worst = int(np.argmax(np.abs(differences)))
    return cell.scores[worst], differences[worst]


def _moved(place: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*place[:axis], value, *place[axis + 1 :])


_CELL_WIDTH, _CELL_HEIGHT, _LETTER = 0.36, 0.22, 0.065
_MARGIN_WIDTH, _MARGIN_HEIGHT = 1.1, 0.5
"""Inches: a cell, a letter of a label, and what else stands beside the cells: colour bar and title."""

_LEAST_ROWS = 5
_MOST_POINTS = 10.0
"""Differences beyond so many points have one colour: what matters is what comes near."""


def figure(diagnosis: Diagnosis) -> "Figure":
    """Draw the poolers crossed with every other single choice, coloured by the distance to the claim.

    Settings that give the claim have a frame. Of several claimed numbers, a cell shows the largest difference.
    """
    heat = heat_of(diagnosis.search)
    with style():
        drawn = new_figure(
            _MARGIN_WIDTH + _CELL_WIDTH * len(heat.columns) + _LETTER * max(map(len, heat.rows)),
            # The colour bar and its label need some height even where there is a single pooler.
            _MARGIN_HEIGHT
            + _CELL_HEIGHT * max(_LEAST_ROWS, len(heat.rows))
            + _LETTER * max(map(len, heat.columns)),
        )
        axes = drawn.subplots()
        _draw_cells(axes, heat, several=len(diagnosis.claim.values) > 1)
        axes.set_title(_title(diagnosis))
    return drawn


def draw(diagnosis: Diagnosis, path: str | Path) -> Path:
    """Draw a diagnosis into a file; see `figure`.

    Raises:
        UserError: if the ending of the name is unknown, or the file cannot be written.
    """
    return save_figure(figure(diagnosis), path)


def save(diagnosis: Diagnosis, folder: str | Path) -> Path:
    """Write the grid (CSV and Parquet), the diagnosis (JSON) and the heat map (PNG) into a folder.

    Raises:
        UserError: if the folder cannot be written.
    """
    folder = Path(folder).expanduser()
    table = diagnosis.grid.table()
    with told_as_unwritable(folder):
        with atomic_path(folder / "grid.csv") as path:
            table.to_csv(path, index=False)
        with atomic_path(folder / "grid.parquet") as path:
            table.to_parquet(path, index=False)
        with atomic_path(folder / "diagnosis.json") as path:
            path.write_text(json.dumps(diagnosis.as_dict(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    draw(diagnosis, folder / "heatmap.png")
    return folder


def _draw_cells(axes: "Axes", heat: Heat, *, several: bool) -> None:
    import seaborn as sns
    from matplotlib.patches import Rectangle

    shown = heat.differences if several else heat.scores
    largest = float(np.nanmax(np.abs(heat.differences), initial=0.01))
    sns.heatmap(
        heat.differences,
        ax=axes,
        cmap="RdBu_r",
        center=0,
        vmin=-min(largest, _MOST_POINTS),
        vmax=min(largest, _MOST_POINTS),
        annot=np.array(
            [["" if np.isnan(x) else f"{x:{'+z' if several else 'z'}.1f}" for x in row] for row in shown]
        ),
        fmt="",
        annot_kws={"size": 6},
        linewidths=0.5,
        xticklabels=heat.columns,
        yticklabels=heat.rows,
        cbar_kws={"label": "score less claim"},
    )
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.tick_params(axis="x", rotation=90)
    axes.tick_params(axis="y", rotation=0)
    for row, column in np.argwhere(heat.fits):
        axes.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor="black", linewidth=1.5, clip_on=False))
    for column in range(1, len(heat.columns)):
        if heat.groups[column] != heat.groups[column - 1]:
            axes.axvline(column, color="black", linewidth=0.6)


def _title(diagnosis: Diagnosis) -> str:
    values = diagnosis.claim.values
    if len(values) > 1:
        return f"{diagnosis.model}: the largest difference to the {len(values)} claimed numbers"
    return f"{diagnosis.model}: {values[0].task}, claimed {values[0]}"
