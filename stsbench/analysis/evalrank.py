"""EvalRank: does a model find a sentence's match among all? (Wang, Kuo and Li 2022, "Just Rank", ACL).

Where the paper leaves something open, this is what its public code does: BinWang28/EvalRank-Embedding-Evaluation,
`src/s_data_loader.py` at commit 0334d5b (positive pairs and background), `src/s_evaluation.py` at commit 1ac61a0
(ranks), `src/models/sent_emb/_sentence_bert.py` at commit 7f6e875 (centred vectors, scaled to unit length).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisCommand, AnalysisResult
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import DataDirs, Split, Task, Text
from stsbench.render.charts import line
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.analysis.geometry import PairVectors
    from stsbench.scoring.subjects import Wanted

SHARE = 0.25
"""Of the pairs of a data set, how many are positive: those with the highest gold scores."""

MOST = 15
"""Hits are counted up to this rank, as in the authors' code."""

_SAME_COSINE = 1e-9
"""Cosines that are no further apart than that are one: rounding decides no rank."""


class EvalRank(AnalysisResult):
    """At which rank models find the matches of sentences."""

    name = "evalrank"
    title = "Finding a sentence's match"
    question = "is a sentence's match found among all sentences?"
    look_for = "an order of models other than Spearman's: scores of pairs are not neighbours"

    def table(self) -> Tables:
        """Return a row for each model: MRR, hits and Spearman x 100, and the mean rank."""
        rows = self.frame.drop_duplicates("model")
        hits = {k: self.frame.loc[self.frame["k"] == k, "hits"].to_numpy() for k in (1, 3)}
        table = rows[["model"]].assign(
            MRR=100 * rows["mrr"],
            **{f"Hits@{k}": 100 * values for k, values in hits.items()},
            **{"mean rank": rows["mean_rank"], "Spearman": 100 * rows["spearman"]},
        )
        caption = f"EvalRank x 100{place(self.frame)}, Spearman of the cosines of all pairs beside it"
        return Tables([Table(table, caption, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """What the ranks are of, and what keeps them from being as they should."""
        first = self.frame.iloc[0]
        vectors = "centred vectors" if first["centred"] else "vectors as they are"
        notes = [
            f"{first['pairs']:,} searches for the other sentence of a positive pair, among {first['sentences']:,} "
            f"distinct sentences, by the cosine of {vectors}; positive are the {100 * first['share']:g} % of the "
            f"pairs with the highest gold scores ({first['lowest']:g} and above)."
        ]
        for row in self.frame.drop_duplicates("model").to_dict("records"):
            if row["tied"]:
                notes.append(
                    f"{row['model']}: in {100 * row['tied']:.1f} % of the searches other sentences have the very "
                    "cosine of the match, which is ranked before them: such ranks flatter."
                )
            if row["lost"]:
                notes.append(
                    f"{row['model']}: {row['lost']:,} searches have a vector without direction, and the last rank."
                )
        return tuple(notes)

    def numbers(self) -> dict[str, float]:
        """Return the mean reciprocal rank, hits at 1 and 3, and the mean rank."""
        row = self.frame.iloc[0]
        hits = self.frame.set_index("k")["hits"]
        return {
            "MRR": float(row["mrr"]),
            "Hits@1": float(hits[1]),
            "Hits@3": float(hits[3]),
            "mean rank": float(row["mean_rank"]),
        }

    def plot(self) -> "Figure":
        """Draw the share of the searches whose match is among the first k."""
        palette = colours(list(self.frame["model"]))
        with style():
            figure = new_figure()
            axes = figure.subplots()
            for model, part in self.frame.groupby("model", sort=False):
                words = [f"k {k}" for k in part["k"]]
                drawn: dict[str, Any] = {"places": words, "marker": "o", "markersize": 2.5}
                line(axes, str(model), part["k"], 100 * part["hits"], palette[str(model)], **drawn)
            axes.set_xlabel("k")
            axes.set_ylabel("match among the first k, %")
            axes.set_xticks(range(1, MOST + 1, 2))
            legend_above(figure, axes)
        return figure


def evalrank(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    task: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    share: float = SHARE,
    centred: bool = True,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> EvalRank:
    """Look for each sentence's match among all sentences of a task, and tell at which rank it is found.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        task: the task whose pairs are looked at; by default `STS-B`, or the sample where its data is not here.
        split: the split to use; by default all that the task has, as the authors took STS-B.
        text: the text to use: `senteval` (tokenised, lower-cased) or `raw`.
        share: the share of the pairs, those with the highest gold scores, that are positive; above 0, up to 1.
        centred: whether to subtract the mean vector of all sentences first, as the authors' code does.
        data_dirs: folders to look for data in.
        progress: told how far it is.

    Returns:
        One row per model and `k` (1 to 15), with `hits`: the share of the searches whose match is at rank k or
        before. Of the model: `mrr` (the mean of 1 / rank), `mean_rank`, `tied` (the share of the searches in which
        another sentence has the match's cosine), `lost` (searches from or for a vector without direction),
        `spearman` of all pairs' cosines and gold scores. Of the task: `pairs` (searches), `sentences`, `share`,
        `lowest` (the lowest gold score of a positive pair), `centred`, `task`, `split` and `text`.

    Raises:
        UserError: if the data is missing, the share holds no pair, or a sentence was never encoded and the model
            is not here.

    >>> ranks = evalrank(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> ranks.frame["pairs"].unique().tolist()
    [126]
    """
    from stsbench.analysis.geometry import PairVectors
    from stsbench.analysis.inputs import analysable, task_vectors
    from stsbench.data.sentences import sentences_in

    if not 0 < share <= 1:
        raise UserError(f"a share of {share:g} of the pairs: give one above 0 and up to 1, such as {SHARE}.")
    data, models = task_vectors(analysable(runs), task, split, text, data_dirs=data_dirs, progress=progress)
    gold = data.pairs["gold"].to_numpy(float)
    if not len(highest(gold, share)):
        raise UserError(f"{share:g} of the {len(gold)} pairs of {data.task} is none: give a larger --share.")
    # A text counts once, however often it occurs; two texts that a model reads alike are two.
    numbers, _ = pd.factorize(np.array(sentences_in(data), dtype=object))
    _, first = np.unique(numbers, return_index=True)
    left, right = np.split(numbers, 2)
    pairs = {
        name: PairVectors(vectors[rows[first]], left, right, gold) for name, (vectors, rows) in models.items()
    }
    frame = evalrank_frame(pairs, share=share, centred=centred, progress=progress)
    return EvalRank(frame.assign(task=data.task, split=data.split, text=data.text))


def evalrank_frame(
    models: "Mapping[str, PairVectors]",
    *,
    share: float = SHARE,
    centred: bool = True,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Look for each positive pair's second sentence from its first, and for the first from the second."""
    from stsbench.statistics.correlations import spearman
    from stsbench.statistics.similarity import pair_similarities

    rows: list[dict[str, Any]] = []
    for model, pairs in models.items():
        positive = highest(pairs.gold, share)
        searches = both_ways(pairs.left[positive], pairs.right[positive])
        matches = match_ranks(pairs.vectors, searches, centred=centred, progress=progress)
        cosines = pair_similarities(pairs.vectors, pairs.left, pairs.right)["cosine"]
        about = {
            "mrr": float((1 / matches.ranks).mean()),
            "mean_rank": float(matches.ranks.mean()),
            "tied": float(matches.tied.mean()),
            "lost": int(matches.lost.sum()),
            "spearman": spearman(pairs.gold, cosines),
            "pairs": len(matches.ranks),
            "sentences": len(pairs.vectors),
            "share": share,
            "lowest": float(pairs.gold[positive].min()),
            "centred": centred,
        }
        rows += [
            {"model": model, "k": k, "hits": float((matches.ranks <= k).mean())} | about
            for k in range(1, MOST + 1)
        ]
    return pd.DataFrame(rows)


def highest(gold: "NDArray[np.float64]", share: float) -> "NDArray[np.intp]":
    """Return which pairs have the highest gold scores: a share of them, of equal scores the earlier ones.

    >>> import numpy as np
    >>> highest(np.array([1.0, 5.0, 4.0, 5.0]), 0.5).tolist()
    [1, 3]
    """
    order: NDArray[np.intp] = np.argsort(-gold, kind="stable")[: int(len(gold) * share)]
    return order


def both_ways(left: "NDArray[np.integer[Any]]", right: "NDArray[np.integer[Any]]") -> "NDArray[np.int64]":
    """Return each pair in both directions, each direction once: (m, 2), from a sentence to its match.

    >>> import numpy as np
    >>> both_ways(np.array([0, 1, 2]), np.array([1, 0, 2])).tolist()
    [[0, 1], [1, 0], [2, 2]]
    """
    there = np.column_stack([left, right])
    return np.unique(np.vstack([there, there[:, ::-1]]), axis=0).astype(np.int64)


class MatchRanks(NamedTuple):
    """Of m searches: the (m,) `ranks` of the matches, from 1; which are `tied` with another; which were `lost`."""

    ranks: "NDArray[np.int64]"
    tied: "NDArray[np.bool_]"
    lost: "NDArray[np.bool_]"


def match_ranks(
    vectors: "NDArray[np.floating[Any]]",
    searches: "NDArray[np.int64]",
    *,
    centred: bool = True,
    progress: Progress = silent,
) -> MatchRanks:
    """Return at which rank each search finds its match: 1 and how many other sentences have a higher cosine.

    The sentence that is searched from is not among those. Of equal cosines the match comes first. A search from or
    for a vector without direction ends at the last rank. Memory does not grow with the searches.

    Args:
        vectors: (n, d), a row for each sentence, n at least 2.
        searches: (m, 2) rows: from where, and for which.
        centred: whether the mean of the rows is taken off first.
        progress: told how many searches are done.

    >>> import numpy as np
    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    >>> match_ranks(vectors, np.array([[0, 1], [0, 2]]), centred=False).ranks.tolist()
    [2, 1]
    """
    from stsbench.statistics.neighbours import QUERIES_AT_ONCE, directions
    from stsbench.statistics.threads import in_threads

    units, directed = directions(vectors, centred=centred)

    def counted(start: int) -> "NDArray[np.intp]":
        """Return for some searches how many sentences are above the match, and how many are not below it."""
        queries, matches = searches[start : start + QUERIES_AT_ONCE].T
        cosines = units[queries] @ units.T
        places = np.arange(len(queries))
        of_match = cosines[places, matches][:, np.newaxis]
        cosines[places, queries] = cosines[places, matches] = -np.inf
        above, not_below = cosines > of_match + _SAME_COSINE, cosines >= of_match - _SAME_COSINE
        return np.stack([np.count_nonzero(chosen, axis=1) for chosen in (above, not_below)])

    counts: list[NDArray[np.intp]] = []
    starts = range(0, len(searches), QUERIES_AT_ONCE)
    for start, block in zip(starts, in_threads(counted, starts), strict=True):
        counts.append(block)
        progress("searches", start + block.shape[1], len(searches))
    above, not_below = np.hstack(counts) if counts else np.zeros((2, 0), dtype=np.int64)
    ranks, tied = 1 + above.astype(np.int64), not_below > above
    lost = np.asarray(~directed[searches].all(axis=1))
    ranks[lost] = len(vectors) - 1
    return MatchRanks(ranks, tied & ~lost, lost)


@dataclass(frozen=True)
class EvalRankCommand(AnalysisCommand):
    """Rank each sentence's paraphrase among all STS-B sentences (EvalRank).

    Mean reciprocal rank, hits at 1 and 3 (Wang, Kuo and Li, 2022). A model with a better Spearman does not
    always find more.

    Examples:
    * `stsbench evalrank runs/a runs/b --figure found.svg`
    * `stsbench evalrank --model minilm --task sample --json`
    """

    verb = staticmethod(evalrank)
    result = EvalRank

    task: Task = None
    split: Split = None
    text: Text = "senteval"
    share: Annotated[
        float, typer.Option(min=0, max=1, help="The share of pairs, by gold score, that count as positive.")
    ] = SHARE
    centred: Annotated[
        bool, typer.Option("--centred/--uncentred", help="Subtract the mean vector first, as the authors do.")
    ] = True
    data_dirs: DataDirs = None
