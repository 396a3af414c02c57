"""Geometry: alignment and uniformity, and their plane (SimCSE 2021, figures 2 and 3)."""

import re
from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from stsbench.analysis.base import OfSentences, Row
from stsbench.analysis.inputs import PairVectors
from stsbench.analysis.parameters import parameter
from stsbench.base.errors import UserError
from stsbench.base.files import files_in
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import LARGEST
from stsbench.published.measured import reference_geometry
from stsbench.records.kinds import STS
from stsbench.records.record import RunRecord
from stsbench.render.figures import add_tooltips, colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place
from stsbench.scoring.subjects import Subject
from stsbench.statistics.geometry import alignment, mean_cosine, uniformity
from stsbench.statistics.similarity import zero_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KEPT = Path("training", "checkpoints")
"""The folder of the checkpoints in the folder of a training run."""

_SAME_POINT = 1e-4


def checkpoints_in(folder: str | Path) -> list[Path]:
    """Returns the checkpoints below a folder, or of the training run in it, by the last number in their names."""
    folder = Path(folder).expanduser().resolve()
    folder = folder / _KEPT if (folder / _KEPT).is_dir() else folder
    folders = folder.iterdir() if folder.is_dir() else ()
    checkpoints = [path for path in folders if files_in(path, "config.json", "modules.json")]
    if not checkpoints:
        raise UserError(f"{folder} contains no checkpoints: name the folder whose subfolders are checkpoints.")
    return sorted(checkpoints, key=lambda path: (int((re.findall(r"\d+", path.name) or ["0"])[-1]), path.name))


class Geometry(OfSentences):
    """Measure alignment, uniformity and the mean cosine of random pairs on the sentences of STS-B.

    The figure shows uniformity against alignment, with each run's STS score in brackets.

    Returns:
        One row per model, with `alignment`, `uniformity`, `mean_cosine`, `sts` (a run's score x 100: its average,
        or else its score on this task), `positive_pairs`, `sentences` and `zero_sentences` (zero vectors have no
        direction; they and their pairs are left out). Numbers without pairs are NaN. `task`, `split` and `text`
        name the pairs.

    >>> plane = geometry(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> plane.frame["sentences"].tolist()
    [504]
    """

    name = "geometry"
    title = "Alignment and uniformity"
    question = "are positive pairs close, and all sentences spread out?"
    look_for = "both numbers lower than those of the base model"
    examples = (
        "stsbench explain geometry runs/a runs/b --figure plane.png",
        "stsbench explain geometry --model minilm --task sample --json",
        "stsbench explain geometry --path runs/my-training --figure path.svg",
    )

    path: Any = parameter(
        None,
        "A training run or a folder of its checkpoints, drawn as a path.",
        kind=Path,
        models=checkpoints_in,
    )
    positive: float = parameter(
        4.0, "Pairs with a gold score above this are positive.", limits=(-LARGEST, LARGEST)
    )
    distinct: bool = parameter(False, "Count a sentence once, however often it occurs.", flags=("--distinct",))

    steps = 0
    """The number of last rows that are checkpoints of a path."""

    scores: Mapping[str, float] = {}
    """STS scores x 100 by model."""

    _gold_range: tuple[float, float] | None = None

    def run(self, runs: Any = None, progress: Progress = silent) -> Self:
        """Measures runs and models, then the checkpoints of the path."""
        checkpoints = checkpoints_in(self.path) if isinstance(self.path, str | Path) else list(self.path or [])
        self.steps = len(checkpoints)
        if checkpoints:
            named = runs if isinstance(runs, list | tuple) else [] if runs is None else [runs]
            runs = [*named, *checkpoints]
        return super().run(runs, progress)

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, PairVectors]:
        vectors = super().inputs(subjects)
        scores = {name: score_beside(subject, self.constants["task"]) for name, subject in subjects.items()}
        self.scores = {name: score for name, score in scores.items() if score is not None}
        return vectors

    def measure(self, model: str, given: PairVectors) -> Iterator[Row]:
        usable = ~zero_rows(given.vectors)
        sentences = given.rows[usable[given.rows]]
        zero = len(given.rows) - len(sentences)
        if self.distinct:
            sentences = np.unique(sentences)
        close = (given.gold > self.positive) & usable[given.left] & usable[given.right]
        left, right = given.vectors[given.left[close]], given.vectors[given.right[close]]
        vectors, enough = given.vectors[sentences], len(sentences) > 1
        self._gold_range = given.gold.min(), given.gold.max()
        yield {
            "alignment": alignment(left, right) if close.any() else float("nan"),
            "uniformity": uniformity(vectors, progress=self.progress) if enough else float("nan"),
            "mean_cosine": mean_cosine(vectors) if enough else float("nan"),
            "sts": self.scores.get(model, float("nan")),
            "positive_pairs": int(close.sum()),
            "sentences": len(sentences),
            "zero_sentences": zero,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        if self._gold_range is None or self._gold_range[1] > self.positive:
            return ()
        low, high = self._gold_range
        return (
            f"No alignment: no pair has a gold score above {self.positive:g}; they are {low:g} to {high:g}. Set "
            "--positive.",
        )

    def table(self) -> Tables:
        heads = {"sts": "STS", "zero_sentences": "zero vectors"}
        table = self.frame.drop(columns=["task", "split", "text"], errors="ignore")
        table = table.rename(columns=lambda name: heads.get(name, name.replace("_", " ")))
        if table["STS"].isna().all():
            table = table.drop(columns="STS")
        if not table["zero vectors"].any():
            table = table.drop(columns="zero vectors")
        meaning = "lower is better; mean cosine over all pairs of sentences"
        caption = f"Alignment and uniformity{place(self.frame)} ({meaning})"
        return Tables([Table(table, caption, 3, notes=self.notes)])

    def numbers(self) -> dict[str, float]:
        row = self.frame.iloc[0]
        return {name.replace("_", " "): float(row[name]) for name in ("alignment", "uniformity", "mean_cosine")}

    def plot(self) -> "Figure":
        """Draws models in the plane of uniformity and alignment, with their STS scores in brackets."""
        known = self.frame.dropna(subset=["alignment", "uniformity"])
        path = known[known["model"].isin(self.frame["model"].tail(self.steps))] if self.steps else known.head(0)
        others = known[~known["model"].isin(path["model"])]
        palette = colours([*others["model"], "path"])
        with style():
            figure = new_figure(height=2.6)
            axes = figure.subplots()
            if len(path):
                colour = palette["path"]
                axes.plot(
                    path["uniformity"], path["alignment"], color=colour, marker="o", markersize=2.5, zorder=1
                )
                for word, face, end in (("from", "white", path.iloc[0]), ("to", colour, path.iloc[-1])):
                    _draw_point(axes, f"{word} {end['model']}", end, facecolors=face, edgecolors=colour, zorder=2)
            for _, row in others.iterrows():
                score = "" if isnan(row["sts"]) else f" ({row['sts']:.2f})"
                _draw_point(axes, f"{row['model']}{score}", row, color=palette[row["model"]], zorder=2)
            if len(self.frame) == 1 and "task" in self.frame:
                _draw_references(axes, self.frame.iloc[0])
            # Ticks of close models have many digits, which need room.
            axes.locator_params(axis="x", nbins=4)
            axes.set_xlabel("uniformity (lower is better)")
            axes.set_ylabel("alignment (lower is better)")
            axes.margins(0.2 if len(path) else 0.12)
            legend_above(figure, axes)
        return figure


def _draw_point(axes: "Axes", label: str, point: "pd.Series[Any]", **look: Any) -> None:
    x, y = float(point["uniformity"]), float(point["alignment"])
    axes.scatter(x, y, s=24, label=label, **look)
    add_tooltips(axes, [x], [y], [f"{label}: uniformity {x:.3f}, alignment {y:.3f}"])


def _draw_references(axes: "Axes", model: "pd.Series[Any]") -> None:
    """Draws measured models next to a single one, for comparison."""
    points = reference_geometry(model["task"], model["split"], model["text"])
    for (_, point), marker in zip(points.iterrows(), ("o", "s", "D", "^"), strict=False):
        is_same = all(abs(point[name] - model[name]) < _SAME_POINT for name in ("uniformity", "alignment"))
        if not is_same:
            label = f"{point['model']} (for reference)"
            _draw_point(axes, label, point, facecolors="none", edgecolors="0.4", marker=marker, zorder=1)


def score_beside(subject: Subject, task: str) -> float | None:
    """Returns a run's average x 100, or else its score on the task; None for models without either."""
    if not isinstance(subject, RunRecord):
        return None
    scored = subject.average(STS) or next((score for score in subject.scores_of(STS) if score.task == task), None)
    return None if scored is None or scored.value is None else 100 * scored.value


geometry = Geometry.verb
