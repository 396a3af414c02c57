"""Alignment and uniformity, and their plane (SimCSE 2021, figures 2 and 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.views import View, place
from stsbench.foundation.progress import Progress, silent
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.statistics import zero_rows
from stsbench.statistics.alignment import alignment
from stsbench.statistics.uniformity import mean_cosine, uniformity

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


def geometry(
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


def views(frame: "pd.DataFrame") -> list[View]:
    """Return the table for readers.

    Args:
        frame: what `geometry` returned.
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
    return [View(f"Alignment and uniformity{place(frame)} ({_MEANING})", table, 3)]


def figure(frame: "pd.DataFrame", *, path: int = 0) -> "Figure":
    """Draw models in the plane of uniformity and alignment, their STS scores in brackets.

    Args:
        frame: what `geometry` returned.
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
