"""EvalRank: at which rank is a sentence's paraphrase found? (Wang, Kuo and Li 2022, "Just Rank", ACL)

Where the paper leaves something open, this follows its public code: BinWang28/EvalRank-Embedding-Evaluation,
`src/s_data_loader.py` at commit 0334d5b (positive pairs and background), `src/s_evaluation.py` at commit 1ac61a0
(ranks), `src/models/sent_emb/_sentence_bert.py` at commit 7f6e875 (centred vectors, scaled to unit length).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.base import OfSentences, Row
from stsbench.analysis.inputs import PairVectors
from stsbench.analysis.parameters import parameter
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.render.charts import line
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables, place
from stsbench.statistics.correlations import spearman
from stsbench.statistics.neighbours import QUERIES_AT_ONCE, directions
from stsbench.statistics.similarity import pair_similarities
from stsbench.statistics.threads import in_threads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 15
"""The largest rank up to which hits are counted, as in the authors' code."""

_SAME_COSINE = 1e-9
"""Cosines that differ by no more are tied, so that rounding decides no rank."""


class EvalRank(OfSentences):
    """Rank each sentence's paraphrase among all STS-B sentences (EvalRank).

    Mean reciprocal rank, hits at 1 and 3 (Wang, Kuo and Li, 2022). A model with a better Spearman does not
    always find more.

    Returns:
        One row per model and `k` (1 to 15), with `hits`, the share of searches whose match has rank k or better.
        Of the model: `mrr` (the mean of 1 / rank), `mean_rank`, `tied` (the share of searches in which another
        sentence ties with the match), `lost` (searches with a vector without direction), and `spearman` of all
        pairs. Of the task: `pairs` (the number of searches), `sentences`, `share`, `lowest` (the lowest gold score
        of a positive pair), `centred`, `task`, `split` and `text`.

    Raises:
        UserError: if the data is missing, or the share selects no pair.

    >>> ranks = evalrank(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> ranks.frame["pairs"].unique().tolist()
    [126]
    """

    name = "evalrank"
    title = "Finding a sentence's match"
    question = "is a sentence's match found among all sentences?"
    look_for = "an order of models other than Spearman's: scores of pairs are not neighbours"
    examples = (
        "stsbench evalrank runs/a runs/b --figure found.svg",
        "stsbench evalrank --model minilm --task sample --json",
    )

    share: float = parameter(0.25, "The share of pairs, by gold score, that count as positive.", limits=(0, 1))
    centred: bool = parameter(
        True, "Subtract the mean vector first, as the authors do.", flags=("--centred/--uncentred",)
    )

    def measure(self, model: str, given: PairVectors) -> Iterator[Row]:
        """Yields the hits at each rank."""
        positive = highest(given.gold, self.share)
        if not len(positive):
            raise UserError(
                f"--share {self.share:g} selects none of the {len(given.gold)} pairs: give a larger number, up "
                "to 1."
            )
        # Each distinct text is a sentence, even if a model reads two of them alike.
        _, first = np.unique(given.texts, return_index=True)
        vectors = given.vectors[given.rows[first]]
        left, right = np.split(given.texts, 2)
        matches = match_ranks(
            vectors,
            both_ways(left[positive], right[positive]),
            centred=self.centred,
            progress=self.progress,
        )
        about = {
            "mrr": float((1 / matches.ranks).mean()),
            "mean_rank": float(matches.ranks.mean()),
            "tied": float(matches.tied.mean()),
            "lost": int(matches.lost.sum()),
            "spearman": spearman(given.gold, pair_similarities(vectors, left, right)["cosine"]),
            "pairs": len(matches.ranks),
            "sentences": len(vectors),
            "share": self.share,
            "lowest": float(given.gold[positive].min()),
            "centred": self.centred,
        }
        for k in range(1, MOST + 1):
            yield {"k": k, "hits": float((matches.ranks <= k).mean())} | about

    def table(self) -> Tables:
        """Returns MRR, hits and Spearman x 100, and the mean rank."""
        rows = self.frame.drop_duplicates("model")
        hits = {k: self.frame.loc[self.frame["k"] == k, "hits"].to_numpy() for k in (1, 3)}
        table = rows[["model"]].assign(
            MRR=100 * rows["mrr"],
            **{f"Hits@{k}": 100 * values for k, values in hits.items()},
            **{"mean rank": rows["mean_rank"], "Spearman": 100 * rows["spearman"]},
        )
        caption = f"EvalRank x 100{place(self.frame)}, and Spearman of the cosines of all pairs"
        return Tables([Table(table, caption, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        """The searches, and ties and zero vectors."""
        first = self.frame.iloc[0]
        notes = [
            f"{first['pairs']:,} searches among {first['sentences']:,} distinct sentences, for the pairs "
            "with a gold "
            f"score of {first['lowest']:g} and above."
        ]
        for row in self.frame.drop_duplicates("model").to_dict("records"):
            if row["tied"]:
                notes.append(
                    f"{row['model']}: in {100 * row['tied']:.1f} % of the searches other sentences tie with the "
                    "match, "
                    "which is ranked first; such ranks are too good."
                )
            if row["lost"]:
                notes.append(f"{row['model']}: {row['lost']:,} searches with a zero vector get the last rank.")
        return tuple(notes)

    def numbers(self) -> dict[str, float]:
        """Returns the mean reciprocal rank, hits at 1 and 3, and the mean rank."""
        row, hits = self.frame.iloc[0], self.frame.set_index("k")["hits"]
        numbers = {"MRR": row["mrr"], "Hits@1": hits[1], "Hits@3": hits[3], "mean rank": row["mean_rank"]}
        return {name: float(value) for name, value in numbers.items()}

    def plot(self) -> "Figure":
        """Draws the share of searches whose match is among the first k."""
        palette = colours(list(self.frame["model"]))
        with style():
            figure = new_figure()
            axes = figure.subplots()
            for model, part in self.frame.groupby("model", sort=False):
                drawn: dict[str, Any] = {"places": [f"k {k}" for k in part["k"]], "marker": "o", "markersize": 2.5}
                line(axes, str(model), part["k"], 100 * part["hits"], palette[str(model)], **drawn)
            axes.set_xlabel("k")
            axes.set_ylabel("match among the first k, %")
            axes.set_xticks(range(1, MOST + 1, 2))
            legend_above(figure, axes)
        return figure


def highest(gold: NDArray[np.float64], share: float) -> NDArray[np.intp]:
    """Returns a share of the pairs, those with the highest gold scores; among ties, the earlier ones.

    >>> highest(np.array([1.0, 5.0, 4.0, 5.0]), 0.5).tolist()
    [1, 3]
    """
    order: NDArray[np.intp] = np.argsort(-gold, kind="stable")[: int(len(gold) * share)]
    return order


def both_ways(left: NDArray[np.integer[Any]], right: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Returns the distinct searches of pairs in both directions, (m, 2), from a sentence to its match.

    >>> both_ways(np.array([0, 1, 2]), np.array([1, 0, 2])).tolist()
    [[0, 1], [1, 0], [2, 2]]
    """
    there = np.column_stack([left, right])
    return np.unique(np.vstack([there, there[:, ::-1]]), axis=0).astype(np.int64)


class MatchRanks(NamedTuple):
    """Results of m searches: (m,) `ranks` from 1, and masks of `tied` matches and of `lost` searches."""

    ranks: NDArray[np.int64]
    tied: NDArray[np.bool_]
    lost: NDArray[np.bool_]


def match_ranks(
    vectors: NDArray[np.floating[Any]],
    searches: NDArray[np.int64],
    *,
    centred: bool = True,
    progress: Progress = silent,
) -> MatchRanks:
    """Returns the rank of each match: 1 plus the number of other sentences with a higher cosine.

    The query itself is left out; among ties the match is first. Searches with a vector without direction get the
    last rank. Memory does not grow with the number of searches.

    Args:
        vectors: (n, d), one row per sentence, n at least 2.
        searches: (m, 2) rows of queries and matches.
        centred: whether to subtract the mean of the rows first.
        progress: called with the number of searches done.

    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    >>> match_ranks(vectors, np.array([[0, 1], [0, 2]]), centred=False).ranks.tolist()
    [2, 1]
    """
    units, directed = directions(vectors, centred=centred)

    def counted(start: int) -> NDArray[np.intp]:
        """Counts for each search the sentences above the match, and those not below it."""
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
    above, not_below = np.hstack(counts)
    ranks, tied = 1 + above.astype(np.int64), not_below > above
    lost = np.asarray(~directed[searches].all(axis=1))
    ranks[lost] = len(vectors) - 1
    return MatchRanks(ranks, tied & ~lost, lost)


evalrank = EvalRank.verb
