"""Alignment and uniformity, and their plane (SimCSE 2021, figures 2 and 3)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisCommand, AnalysisResult
from stsbench.base.errors import UserError
from stsbench.base.files import files_in
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import LARGEST, DataDirs, Split, Task, Text
from stsbench.render.figures import add_tooltips, colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from stsbench.encoders.protocol import Encoder
    from stsbench.encoders.use import Use
    from stsbench.scoring.subjects import Subject, Wanted

_KEPT = Path("training", "checkpoints")
"""Where the folder of a training has the checkpoints that were kept."""

_SAME_POINT = 1e-4


class Geometry(AnalysisResult):
    """Where models lie in the plane of alignment and uniformity.

    Args:
        frame: what `geometry` describes, a row a model.
        path: how many of its last rows are one model at points of its training, in order.
        notes: what keeps a number from being defined.
    """

    name = "geometry"
    title = "Alignment and uniformity"
    question = "are positive pairs close, and all sentences spread out?"
    look_for = "both numbers lower than those of the base model"

    def __init__(self, frame: pd.DataFrame, path: int = 0, notes: Sequence[str] = ()) -> None:
        super().__init__(frame)
        self.path = path
        self.notes = tuple(notes)

    def table(self) -> Tables:
        """Return a row for each model."""
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
        """Return alignment, uniformity and mean cosine."""
        row = self.frame.iloc[0]
        return {name.replace("_", " "): float(row[name]) for name in ("alignment", "uniformity", "mean_cosine")}

    def plot(self, path: int | None = None) -> "Figure":
        """Draw models in the plane of uniformity and alignment, their STS scores in brackets.

        Args:
            path: how many of the last rows are joined in order (SimCSE, figure 2); by default the checkpoints that
                `geometry` was given as a path.
        """
        path = self.path if path is None else path
        along = set(self.frame["model"].tail(path)) if path else set()
        palette = colours([*(model for model in self.frame["model"] if model not in along), "path"])
        known = self.frame.dropna(subset=["alignment", "uniformity"])
        with style():
            figure = new_figure(height=2.6)
            axes = figure.subplots()
            if along:
                _draw_path(axes, known[known["model"].isin(along)], palette["path"])
            for _, row in known[~known["model"].isin(along)].iterrows():
                score = "" if isnan(row["sts"]) else f" ({row['sts']:.2f})"
                label, colour = f"{row['model']}{score}", palette[row["model"]]
                axes.scatter(row["uniformity"], row["alignment"], color=colour, s=24, zorder=2, label=label)
                _tell_point(axes, label, row)
            if len(self.frame) == 1:
                _draw_references(axes, self.frame)
            # Of models that lie close to each other the ticks have many digits, of which few have room.
            axes.locator_params(axis="x", nbins=4)
            axes.set_xlabel("uniformity (lower is better)")
            axes.set_ylabel("alignment (lower is better)")
            axes.margins(0.12)
            legend_above(figure, axes)
        return figure


def _tell_point(axes: "Axes", name: str, point: "pd.Series[Any]") -> None:
    x, y = float(point["uniformity"]), float(point["alignment"])
    add_tooltips(axes, [x], [y], [f"{name}: uniformity {x:.3f}, alignment {y:.3f}"])


def _draw_references(axes: "Axes", frame: pd.DataFrame) -> None:
    """Draw measured points beside an only one, which by itself would say nothing."""
    from stsbench.published.measured import reference_geometry

    model = frame.iloc[0]
    if not {"task", "split", "text"} <= set(frame.columns):
        return
    points = reference_geometry(model["task"], model["split"], model["text"])
    for (_, point), marker in zip(points.iterrows(), ("o", "s", "D", "^"), strict=False):
        apart = max(abs(point[name] - model[name]) for name in ("uniformity", "alignment"))
        if apart < _SAME_POINT:
            continue  # it is this very model
        label = f"{point['model']} (for reference)"
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": "0.4", "s": 24, "zorder": 1}
        axes.scatter(point["uniformity"], point["alignment"], marker=marker, label=label, **look)
        _tell_point(axes, label, point)


def _draw_path(axes: "Axes", steps: pd.DataFrame, colour: str) -> None:
    axes.plot(steps["uniformity"], steps["alignment"], color=colour, marker="o", markersize=2.5, zorder=1)
    # The ends say where it goes from and to.
    for word, face, end in (("from", "white", steps.iloc[0]), ("to", colour, steps.iloc[-1])):
        label = f"{word} {end['model']}"
        _tell_point(axes, label, end)
        axes.scatter(
            end["uniformity"], end["alignment"], facecolors=face, edgecolors=colour, s=24, zorder=2, label=label
        )
    axes.margins(0.2)


def geometry(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    path: "str | Path | Sequence[Encoder] | None" = None,
    task: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    positive: float = 4.0,
    distinct: bool = False,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Geometry:
    """Measure alignment, uniformity and the mean cosine of random pairs for runs or models.

    Args:
        runs: records or their folders (their model's vectors come from the cache); or encoders, or what `load`
            makes one of.
        path: a training run, a folder of its checkpoints, or loaded ones. They follow `runs` and are drawn as a
            path.
        task: the task whose sentences are looked at; by default `STS-B`, or the sample where its data is not here.
        split: the split to use; by default all that the task has, as SimCSE's authors took STS-B.
        text: the text to use: `senteval` (tokenised, lower-cased) or `raw`.
        positive: the gold score above which pairs are positive pairs.
        distinct: whether to count a sentence once, however often it occurs.
        data_dirs: folders to look for data in.
        progress: told how far it is.

    Returns:
        One row per model, with `alignment`, `uniformity`, `mean_cosine`, `sts` (a run's own score x 100: the
        average, or else that of this task, where it has one), `positive_pairs`, `sentences`, `zero_sentences`
        (zero vectors have no direction: they are left out, and so are their pairs). A number that is not defined,
        for want of pairs, is NaN. `task`, `split` and `text` name the pairs.

    Raises:
        UserError: if the data is missing, or a sentence was never encoded and the model is not here.

    >>> plane = geometry(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> plane.frame["sentences"].tolist()
    [504]
    """
    from stsbench.analysis.inputs import analysable, task_vectors

    checkpoints = checkpoints_in(path) if isinstance(path, str | Path) else list(path or [])
    subjects = analysable(runs, checkpoints)
    data, models = task_vectors(subjects, task, split, text, data_dirs=data_dirs, progress=progress)
    gold = data.pairs["gold"].to_numpy(float)
    pairs = {}
    for name, (vectors, rows) in models.items():
        left, right = np.split(rows, 2)
        pairs[name] = PairVectors(vectors, left, right, gold)
    scores = {name: score_beside(subject, data.task) for name, subject in subjects.items()}
    known = {name: score for name, score in scores.items() if score is not None}
    frame = geometry_frame(pairs, known, positive=positive, distinct=distinct, progress=progress)
    notes = []
    if not (gold > positive).any():
        notes.append(
            f"No alignment: no pair of {data.task} has a gold score above {positive:g}; they are {gold.min():g} "
            f"to {gold.max():g}. Set --positive."
        )
    return Geometry(frame.assign(task=data.task, split=data.split, text=data.text), len(checkpoints), notes)


def score_beside(subject: "Subject", task: str) -> float | None:
    """Return the score x 100 to name beside the geometry of a task's sentences.

    That is a run's average, or its score of this very task: another task's would mislead.
    """
    from stsbench.records.kinds import STS
    from stsbench.records.record import RunRecord

    if not isinstance(subject, RunRecord):
        return None
    scored = subject.average(STS) or next((score for score in subject.scores_of(STS) if score.task == task), None)
    return None if scored is None or scored.value is None else 100 * scored.value


def checkpoints_in(folder: str | Path) -> list[Path]:
    """Return the checkpoints of a training run, in the order of the last number in their names.

    The folder is one that `stsbench train` made, or any whose folders are checkpoints.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     for step in (1000, 250):
    ...         (Path(made) / f"step-{step}").mkdir()
    ...         _ = (Path(made) / f"step-{step}" / "config.json").write_text("{}")
    ...     [path.name for path in checkpoints_in(made)]
    ['step-250', 'step-1000']
    """
    folder = Path(folder).expanduser().resolve()
    folder = folder / _KEPT if (folder / _KEPT).is_dir() else folder
    folders = folder.iterdir() if folder.is_dir() else ()
    checkpoints = [path for path in folders if files_in(path, "config.json", "modules.json")]
    if not checkpoints:
        raise UserError(f"{folder} has no checkpoints in it: name the folder whose folders are checkpoints.")
    return sorted(checkpoints, key=lambda path: (int((re.findall(r"\d+", path.name) or ["0"])[-1]), path.name))


@dataclass(frozen=True)
class PairVectors:
    """The n pairs of a task: vectors, a row for each distinct sentence; the rows of each pair; the gold scores."""

    vectors: "NDArray[np.floating[Any]]"
    left: "NDArray[np.integer[Any]]"
    right: "NDArray[np.integer[Any]]"
    gold: "NDArray[np.float64]"


def geometry_frame(
    models: Mapping[str, PairVectors],
    scores: Mapping[str, float] | None = None,
    *,
    positive: float = 4.0,
    distinct: bool = False,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Measure alignment, uniformity and the mean cosine of random pairs; see `geometry`.

    `models` are vectors of the same pairs by model, `scores` the STS scores x 100 of those that have one.
    """
    from stsbench.statistics.geometry import alignment, mean_cosine, uniformity
    from stsbench.statistics.similarity import zero_rows

    rows = []
    for model, pairs in models.items():
        usable = ~zero_rows(pairs.vectors)
        occurring = np.concatenate([pairs.left, pairs.right])
        sentences = occurring[usable[occurring]]
        zero = len(occurring) - len(sentences)
        if distinct:
            sentences = np.unique(sentences)
        close = (pairs.gold > positive) & usable[pairs.left] & usable[pairs.right]
        left, right = pairs.vectors[pairs.left[close]], pairs.vectors[pairs.right[close]]
        everything = pairs.vectors[sentences]
        enough = len(sentences) > 1
        rows.append(
            {
                "model": model,
                "alignment": alignment(left, right) if close.any() else float("nan"),
                "uniformity": uniformity(everything, progress=progress) if enough else float("nan"),
                "mean_cosine": mean_cosine(everything) if enough else float("nan"),
                "sts": (scores or {}).get(model, float("nan")),
                "positive_pairs": int(close.sum()),
                "sentences": len(sentences),
                "zero_sentences": zero,
            }
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class GeometryCommand(AnalysisCommand):
    """Measure alignment, uniformity and the mean cosine of random pairs on the sentences of STS-B.

    The figure shows uniformity against alignment, with each run's STS score in brackets.

    Examples:
    * `stsbench geometry runs/a runs/b --figure plane.png`
    * `stsbench geometry --model minilm --task sample --json`
    * `stsbench geometry --path runs/my-training --figure path.svg`
    """

    verb = staticmethod(geometry)
    result = Geometry

    def models(self, use: "Use") -> dict[str, Any]:
        """Returns the checkpoints of the path, loaded."""
        from stsbench.encoders.load import load_with

        return {"path": [load_with(path, use) for path in checkpoints_in(self.path)]} if self.path else {}

    path: Annotated[
        Path | None, typer.Option(help="A training run or a folder of its checkpoints, drawn as a path.")
    ] = None
    task: Task = None
    split: Split = None
    text: Text = "senteval"
    positive: Annotated[
        float, typer.Option(min=-LARGEST, max=LARGEST, help="Pairs with a gold score above this are positive.")
    ] = 4.0
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Count a sentence once, however often it occurs.")
    ] = False
    data_dirs: DataDirs = None
