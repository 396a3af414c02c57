"""Alignment and uniformity, and their plane (SimCSE 2021, figures 2 and 3)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.records.record import RunRecord
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, place
from stsbench.scoring.subjects import Subject, Wanted, named_subjects
from stsbench.scoring.tasks import sentences_of
from stsbench.scoring.vectors import read_pairs_of, vectors_of
from stsbench.statistics.geometry import alignment, mean_cosine, uniformity
from stsbench.statistics.similarity import zero_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MEANING = "lower is better; mean cosine over all pairs of sentences"


@dataclass(frozen=True)
class PairVectors:
    """The sentences of scored pairs as vectors.

    Attributes:
        vectors: (m, d) one row per distinct sentence.
        left: (n,) row of each pair's first sentence.
        right: (n,) row of each pair's second sentence.
        gold: (n,) gold scores.
    """

    vectors: NDArray[np.floating[Any]]
    left: NDArray[np.integer[Any]]
    right: NDArray[np.integer[Any]]
    gold: NDArray[np.float64]

    @property
    def sentences(self) -> NDArray[np.integer[Any]]:
        """The (2n,) rows of all sentences: first sides, then second sides."""
        return np.concatenate([self.left, self.right])


def geometry_frame(
    models: Mapping[str, PairVectors],
    scores: Mapping[str, float] | None = None,
    *,
    positive: float = 4.0,
    distinct: bool = False,
    t: float = 2.0,
    alpha: float = 2.0,
    progress: Progress = silent,
) -> "pd.DataFrame":
    """Measure alignment, uniformity and the mean cosine of random pairs.

    Args:
        models: vectors of the same pairs by model.
        scores: STS score x 100 by model, for those that have one.
        positive: pairs whose gold score is above are positive pairs.
        distinct: whether a sentence that occurs several times counts once in uniformity and mean cosine; by
            default it counts each time, as in a script that takes all sentences of the file.
        t: of uniformity.
        alpha: of alignment.
        progress: told how far uniformity is.

    Returns:
        One row per model: `alignment`, `uniformity`, `mean_cosine`, `sts` (NaN without a score), `positive_pairs`,
        `sentences`, `zero_sentences` (zero vectors have no direction: they are left out, and so are their pairs).
        A number that is not defined, for want of pairs, is NaN.
    """
    import pandas as pd

    rows = []
    for model, pairs in models.items():
        usable = ~zero_rows(pairs.vectors)
        sentences = pairs.sentences
        zero = int((~usable[sentences]).sum())
        sentences = sentences[usable[sentences]]
        if distinct:
            sentences = np.unique(sentences)
        close = (pairs.gold > positive) & usable[pairs.left] & usable[pairs.right]
        everything = pairs.vectors[sentences]
        left, right = pairs.vectors[pairs.left[close]], pairs.vectors[pairs.right[close]]
        enough = len(sentences) > 1
        rows.append(
            {
                "model": model,
                "alignment": alignment(left, right, alpha=alpha) if close.any() else float("nan"),
                "uniformity": uniformity(everything, t=t, progress=progress) if enough else float("nan"),
                "mean_cosine": mean_cosine(everything) if enough else float("nan"),
                "sts": (scores or {}).get(model, float("nan")),
                "positive_pairs": int(close.sum()),
                "sentences": len(sentences),
                "zero_sentences": zero,
            }
        )
    return pd.DataFrame(rows)


def views(frame: "pd.DataFrame") -> list[Table]:
    """Return the table for readers.

    Args:
        frame: what `geometry_frame` returned.
    """
    table = frame.rename(
        columns={
            "mean_cosine": "mean cosine",
            "sts": "STS",
            "positive_pairs": "positive pairs",
            "zero_sentences": "zero vectors",
        }
    )
    table = table.drop(columns=["task", "split", "text"], errors="ignore")
    table = table.drop(columns=[name for name in ("STS",) if table[name].isna().all()])
    table = table.drop(columns=[name for name in ("zero vectors",) if not table[name].any()])
    return [Table(table, f"Alignment and uniformity{place(frame)} ({_MEANING})", 3)]


def figure(frame: "pd.DataFrame", *, path: int = 0) -> "Figure":
    """Draw models in the plane of uniformity and alignment, their STS scores in brackets.

    Args:
        frame: what `geometry_frame` returned.
        path: how many of the last rows are one model at points of its training, joined in order (SimCSE, figure
            2).
    """
    known = frame.dropna(subset=["alignment", "uniformity"])
    along = set(frame["model"].tail(path)) if path else set()
    palette = colours([*(model for model in frame["model"] if model not in along), "path"])
    with style():
        drawn = new_figure(height=2.6)
        axes = drawn.subplots()
        if along:
            steps = known[known["model"].isin(along)]
            axes.plot(
                steps["uniformity"],
                steps["alignment"],
                color=palette["path"],
                marker="o",
                markersize=2.5,
                zorder=1,
            )
            # The names between would lie over each other: the ends say where it goes from and to.
            for end, next_to_it in ((steps.iloc[0], steps.iloc[1:2]), (steps.iloc[-1], steps.iloc[-2:-1])):
                is_lower = (next_to_it["alignment"] > end["alignment"]).any()
                axes.annotate(
                    end["model"],
                    (end["uniformity"], end["alignment"]),
                    xytext=(0, -11 if is_lower else 5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7,
                )
            axes.margins(0.2)
        for _, row in known[~known["model"].isin(along)].iterrows():
            score = "" if np.isnan(row["sts"]) else f" ({row['sts']:.2f})"
            label, colour = f"{row['model']}{score}", palette[row["model"]]
            axes.scatter(row["uniformity"], row["alignment"], color=colour, s=24, zorder=2, label=label)
        axes.set_xlabel("uniformity (lower is better)")
        axes.set_ylabel("alignment (lower is better)")
        legend_above(drawn, axes)
    return drawn


def geometry(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    task: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    positive: float = 4.0,
    distinct: bool = False,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Measure alignment, uniformity and the mean cosine of random pairs for runs or models.

    Args:
        runs: records or their folders (their model's vectors come from the cache); or encoders, or what `load`
            makes one of.
        task: whose sentences; by default STS-B, or the sample where its data is not here.
        split: by default all that the task has, as SimCSE's authors took STS-B.
        text: the text variant.
        positive: pairs whose gold score is above are positive pairs.
        distinct: whether a sentence that occurs several times counts once.
        data_dirs: folders to look for data in.
        progress: told how far it is.
        options: how to load models, as in `load`.

    Returns:
        One row per model; see `stsbench.analysis.geometry.geometry`. `task`, `split` and `text` say of what, and
        `sts` is a run's own score x 100: the average, or else that of this task, where it has one.

    Raises:
        UserError: if the data is missing, or a sentence was never encoded and the model is not here.

    >>> geometry(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")["sentences"].tolist()
    [504]
    """
    subjects = named_subjects(runs, **options)
    data = read_pairs_of(task, split, text, data_dirs)
    texts, gold = sentences_of(data), data.pairs["gold"].to_numpy(float)
    models = {}
    for name, subject in subjects.items():
        vectors, rows = vectors_of(subject, texts, progress)
        left, right = np.split(rows, 2)
        models[name] = PairVectors(vectors, left, right, gold)
    found = {name: score_beside(subject, data.task) for name, subject in subjects.items()}
    scores = {name: score for name, score in found.items() if score is not None}
    frame = geometry_frame(models, scores, positive=positive, distinct=distinct, progress=progress)
    return frame.assign(task=data.task, split=data.split, text=data.text)


def score_beside(subject: Subject, task: str) -> float | None:
    """Return the score x 100 to name beside the geometry of a task's sentences.

    That is a run's average, or its score of this very task: another task's would mislead.
    """
    if not isinstance(subject, RunRecord):
        return None
    scored = subject.average or next((one for one in subject.tasks if one.task == task), None)
    return None if scored is None or scored.score is None else 100 * scored.score


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a training run, in the order of the last number in their names.

    Args:
        folder: one that `stsbench train` made, or any whose folders are checkpoints.

    Raises:
        UserError: if there are none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     for step in (1000, 250):
    ...         (Path(made) / f"step-{step}").mkdir()
    ...         _ = (Path(made) / f"step-{step}" / "config.json").write_text("{}")
    ...     [path.name for path in checkpoints_in(Path(made))]
    ['step-250', 'step-1000']
    """
    from stsbench.training.state import RunFolder

    folder = folder.expanduser().resolve()
    kept = RunFolder(folder).checkpoints
    folder = kept if kept.is_dir() else folder
    found = [path.parent for path in folder.glob("*/config.json")]
    found += [path.parent for path in folder.glob("*/modules.json") if path.parent not in found]
    if not found:
        raise UserError(f"{folder} has no checkpoints in it: name the folder whose folders are checkpoints.")
    return sorted(found, key=lambda path: (int((re.findall(r"\d+", path.name) or ["0"])[-1]), path.name))
