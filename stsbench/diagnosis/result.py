"""What `diagnose` returns: the verdict, the settings that matter, every score, the heat map of single choices."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from stsbench.base.files import atomic_path, writing
from stsbench.diagnosis import words
from stsbench.diagnosis.choices import POOLING
from stsbench.diagnosis.claim import Claim
from stsbench.diagnosis.further import Further
from stsbench.diagnosis.grid import Grid, Place
from stsbench.diagnosis.search import Candidate, Search
from stsbench.render.figures import new_figure, save_figure, style
from stsbench.render.result import Result
from stsbench.render.table import Style, Table, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OWN = "your setting"


@dataclass(frozen=True)
class Diagnosis(Result):
    """What explains a claim, or that nothing does.

    Attributes:
        model: the model that was measured, as the person named it.
        search: the claim held against the grid; `search.beyond` against what the lazy axes gave.
        facts: what is published about it, a sentence each.
        notes: what was not tried, and why.
        seconds: how long each stage took.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        further: what the search along the lazy axes tried and took; None where none was needed, or wanted.
    """

    model: str
    search: Search
    facts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    encoding: dict[str, int] = field(default_factory=dict)
    further: Further | None = None

    @property
    def claim(self) -> Claim:
        """What was claimed."""
        return self.search.claim

    @property
    def grid(self) -> Grid:
        """Every score of every setting, as arrays."""
        return self.search.grid

    @property
    def answer(self) -> Search:
        """The search that explains the claim with the fewest changes, in the grid or beyond it."""
        beyond = self.search.beyond
        if self.further is None or not beyond.explanations or self.search.default.fits:
            return self.search
        within = self.search.explanations
        fewer = not within or beyond.explanations[0].best.count < within[0].best.count
        return beyond if fewer else self.search

    @property
    def frame(self) -> pd.DataFrame:
        """Every score of every setting, a row each; see `Grid.frame`.

        What was tried beyond the grid says in the column `variation` what it changes.
        """
        return self.grid.frame

    @property
    def explained(self) -> bool:
        """Whether a setting gives the claim, and not by coincidence alone."""
        return self.search.default.fits or bool(self.answer.explanations)

    @property
    def verdict(self) -> str:
        """Which choice explains the claim in words, or that none does and how far off the nearest is."""
        return words.verdict(self.answer, self.search.beyond if self.further else None)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else to know, as what cannot be told apart, how telling it is, what is published."""
        return (*words.remarks(self.answer), *self.facts, *self.claim.notes)

    def table(self, most: int = 10) -> Tables:
        """Return the settings that a reader should see: the claim, the default, then what explains it.

        Columns: setting, changes (how many choices differ from the default), a column per claimed task, and off,
        the largest difference. Where nothing explains the claim, the nearest settings stand in its place.

        Args:
            most: how many settings to list below the default.
        """
        claimed = {value.task: value.score for value in self.claim.values}
        rows: list[dict[str, Any]] = [{"setting": "claimed", "changes": None, **claimed, "off": None}]
        rows += [
            {
                "setting": ", ".join(change.choice.label_of(change.value) for change in candidate.changes) or OWN,
                "changes": candidate.count,
                **self._scores(candidate),
                "off": candidate.distance,
            }
            for candidate in self._listed(most)
        ]
        return Tables([Table(pd.DataFrame(rows).astype({"changes": "Int64"}), headline="off")])

    def plot(self) -> "Figure":
        """Draw the poolers crossed with every other single choice, coloured by the distance to the claim.

        Settings that give the claim have a frame. Of several claimed numbers, a cell shows the largest difference.
        """
        values = self.claim.values
        title = f"{self.model}: {values[0].task}, claimed {values[0]}"
        if len(values) > 1:
            title = f"{self.model}: the largest difference to the {len(values)} claimed numbers"
        return _heat_map(self.search, title)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole diagnosis but the grid as plain data, scores x 100."""
        search = self.answer
        setting = {axis.name: str(axis.values[axis.default]) for axis in self.grid.axes}
        return {
            "model": self.model,
            "claim": [
                {
                    "task": value.task,
                    "score": value.score,
                    "tolerance": value.tolerance,
                    "stated": dict(value.stated),
                }
                for value in self.claim.values
            ],
            "row": self.claim.row.name if self.claim.row else None,
            "explained": self.explained,
            "verdict": self.verdict,
            "default": self._plain(search.default) | {"setting": setting},
            "explanations": [
                {
                    **self._plain(cause.best),
                    "alike": [self._plain(candidate) for candidate in cause.alike],
                    "chance": search.chance(cause.best.count),
                }
                for cause in search.explanations
            ],
            "nearest": self._plain(search.nearest),
            "nearest_single": self._plain(search.nearest_single),
            "settings": self.search.settings,
            "choices": {axis.name: [str(value) for value in axis.values] for axis in self.grid.axes},
            "further": self.further and self._plain_further(self.further),
            "remarks": list(self.remarks),
            "notes": list(self.notes),
            "seconds": self.seconds,
            "encoding": self.encoding,
        }

    def to(self, style: Style) -> str:
        """Return it as text: the table, but all of it but the grid as `json`; the grid is in `frame`.

        Raises:
            UserError: if there is no such format.
        """
        return super().to(style) if style == "json" else self.table().to(style)

    def save(self, folder: str | Path) -> Path:
        """Write the grid (CSV and Parquet), the diagnosis (JSON) and the heat map (PNG) into a folder.

        Raises:
            UserError: if the folder cannot be written.
        """
        folder = Path(folder).expanduser()
        with writing(folder):
            with atomic_path(folder / "grid.csv") as path:
                self.frame.to_csv(path, index=False)
            with atomic_path(folder / "grid.parquet") as path:
                # As bytes: of an open file pandas takes the name, and pyarrow none that is not UTF-8.
                path.write_bytes(self.frame.to_parquet(index=False))
            with atomic_path(folder / "diagnosis.json") as path:
                path.write_text(self.to("json") + "\n", encoding="utf-8")
        save_figure(self.plot(), folder / "heatmap.png")
        return folder

    def __str__(self) -> str:
        """Return the verdict, the table and the remarks, as a terminal shows them."""
        return "\n".join([self.verdict, "", str(self.table()), *([""] if self.remarks else []), *self.remarks])

    def _repr_html_(self) -> str:
        paragraphs = [f"<p>{escape(sentence, quote=False)}</p>" for sentence in (self.verdict, *self.remarks)]
        return "".join([paragraphs[0], self.table()._repr_html_(), *paragraphs[1:]])

    def _listed(self, most: int) -> Sequence[Candidate]:
        search = self.answer
        candidates = [explanation.best for explanation in search.explanations] or [search.nearest_single]
        if not self.explained and not search.coincidences:
            candidates.append(search.nearest)
        return list(dict.fromkeys([search.default, *candidates]))[: most + 1]

    def _scores(self, candidate: Candidate) -> dict[str, float]:
        return dict(zip(self.claim.tasks, candidate.scores, strict=True))

    def _plain(self, candidate: Candidate) -> dict[str, Any]:
        return {
            "changes": candidate.choices,
            "count": candidate.count,
            "scores": self._scores(candidate),
            "distance": candidate.distance,
            "fits": candidate.fits,
        }

    def _plain_further(self, further: Further) -> dict[str, Any]:
        return {
            "settings": self.search.beyond.settings,
            "tried": list(further.tried),
            "untried": list(further.untried),
            "innocent": list(further.innocent),
            "sentences": further.sentences,
            "seconds": round(further.seconds, 3),
        }


_CELL_WIDTH, _CELL_HEIGHT, _LETTER = 0.36, 0.22, 0.065
_MARGIN_WIDTH, _MARGIN_HEIGHT = 1.1, 0.5
"""Inches: a cell, a letter of a label, and what else stands beside the cells: colour bar and title."""

_LEAST_ROWS = 5
"""The colour bar and its label need some height even where there is a single pooler."""

_MOST_POINTS = 10.0
"""Differences beyond so many points have one colour: what matters is what comes near."""


def _heat_map(search: Search, title: str) -> "Figure":
    """Draw every pooler crossed with every other single choice that makes a difference to the claim.

    The person's own setting is the first row and the first column. Of several claimed numbers, a cell shows the
    one that is farthest off.
    """
    import seaborn as sns
    from matplotlib.patches import Rectangle

    axes, default, values = search.grid.axes, search.grid.default, search.claim.values
    pooling = next(number for number, axis in enumerate(axes) if axis.choice == POOLING)
    singles = _single_changes(search)
    changes = [(axis, value) for axis, value in singles if axis != pooling]
    poolings = [default[pooling], *(value for axis, value in singles if axis == pooling)]
    places = [default, *(_moved(default, axis, value) for axis, value in changes)]
    cells = [[search.at(_moved(place, pooling, value)) for place in places] for value in poolings]
    farthest = [[cell.farthest(values) for cell in row] for row in cells]
    scores = np.array([[score for score, _ in row] for row in farthest])
    differences = np.array([[score - value.score for score, value in row] for row in farthest])
    fits = np.array([[cell.fits for cell in row] for row in cells])
    own, *others = (axes[pooling].values[value] for value in poolings)
    rows = [f"{own} (yours)", *others]
    columns = [OWN, *(axes[axis].choice.label_of(axes[axis].values[value]) for axis, value in changes)]
    shown, spec = (differences, "+z.1f") if len(values) > 1 else (scores, "z.1f")
    largest = min(float(np.nanmax(np.abs(differences), initial=0.01)), _MOST_POINTS)
    width = _MARGIN_WIDTH + _CELL_WIDTH * len(columns) + _LETTER * max(map(len, rows))
    height = _MARGIN_HEIGHT + _CELL_HEIGHT * max(_LEAST_ROWS, len(rows)) + _LETTER * max(map(len, columns))
    with style():
        figure = new_figure(height, least=width)
        panel = figure.subplots()
        sns.heatmap(
            differences,
            ax=panel,
            cmap="RdBu_r",
            center=0,
            vmin=-largest,
            vmax=largest,
            annot=np.array([["" if np.isnan(score) else f"{score:{spec}}" for score in row] for row in shown]),
            fmt="",
            annot_kws={"size": 6},
            linewidths=0.5,
            xticklabels=columns,
            yticklabels=rows,
            cbar_kws={"label": "score less claim"},
        )
        panel.grid(visible=False)
        panel.tick_params(length=0)
        panel.tick_params(axis="x", rotation=90)
        panel.tick_params(axis="y", rotation=0)
        for row, column in np.argwhere(fits):
            frame = Rectangle((column, row), 1, 1, fill=False, edgecolor="black", linewidth=1.5, clip_on=False)
            panel.add_patch(frame)
        changed = [None, *(axis for axis, _ in changes)]
        for column in range(1, len(columns)):
            if changed[column] != changed[column - 1]:
                panel.axvline(column, color="black", linewidth=0.6)
        panel.set_title(title)
    return figure


def _single_changes(search: Search) -> list[tuple[int, int]]:
    """Return each value that differs from the default, with its axis' number, where that matters to the claim."""
    axes = enumerate(zip(search.grid.axes, search.shape, strict=True))
    return [
        (number, value)
        for number, (axis, size) in axes
        for value in range(size)
        if size > 1 and value != axis.default
    ]


def _moved(place: Place, axis: int, value: int) -> Place:
    return (*place[:axis], value, *place[axis + 1 :])
