"""EvalRank: at which rank is a sentence's paraphrase found? (Wang, Kuo and Li 2022, "Just Rank", ACL)

Where the paper leaves something open, this follows its public code: BinWang28/EvalRank-Embedding-Evaluation,
`src/s_data_loader.py` at commit 0334d5b (positive pairs and background), `src/s_evaluation.py` at commit 1ac61a0
(ranks), `src/models/sent_emb/_sentence_bert.py` at commit 7f6e875 (centred vectors, scaled to unit length).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import OfSentences, Row
from stsbench.analysis.inputs import PairVectors
from stsbench.analysis.parameters import parameter
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.render.table import Table, Tables, place
from stsbench.statistics.correlations import spearman
from stsbench.statistics.neighbours import QUERIES_AT_ONCE, directions
from stsbench.statistics.similarity import pair_similarities
from stsbench.statistics.threads import in_threads

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

    >>> ranks = evalrank(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> ranks.frame["pairs"].unique().tolist()
    [126]
    """

    name = "evalrank"
    title = "Finding a sentence's match"
    question = "is a sentence's match found among all sentences?"
    look_for = "an order of models other than Spearman's: scores of pairs are not neighbours"
    examples = (
        "stsbench explain evalrank runs/a runs/b --figure found.svg",
        "stsbench explain evalrank --model minilm --task sample --json",
    )

    share: float = parameter(0.25, "The share of pairs, by gold score, that count as positive.", limits=(0, 1))
    centred: bool = parameter(
        True, "Subtract the mean vector first, as the authors do.", flags=("--centred/--uncentred",)
    )

    def measure(self, model: str, given: PairVectors) -> Iterator[Row]:
        # Among ties, the earlier pairs count as positive.
        positive = np.argsort(-given.gold, kind="stable")[: int(len(given.gold) * self.share)]
        if not len(positive):
            raise UserError(f"--share {self.share:g} selects none of the {len(given.gold)} pairs: give up to 1.")
        # Each distinct text is a sentence, even if a model reads two of them alike.
        _, first = np.unique(given.texts, return_index=True)
        vectors = given.vectors[given.rows[first]]
        left, right = np.split(given.texts, 2)
        there = np.column_stack([left[positive], right[positive]])
        searches = np.unique(np.vstack([there, there[:, ::-1]]), axis=0).astype(np.int64)
        ranks, tied, lost = match_ranks(vectors, searches, centred=self.centred, progress=self.progress)
        about = {
            "mrr": float((1 / ranks).mean()),
            "mean_rank": float(ranks.mean()),
            "tied": float(tied.mean()),
            "lost": int(lost.sum()),
            "spearman": spearman(given.gold, pair_similarities(vectors, left, right)["cosine"]),
            "pairs": len(ranks),
            "sentences": len(vectors),
            "share": self.share,
            "lowest": float(given.gold[positive].min()),
            "centred": self.centred,
        }
        for k in range(1, MOST + 1):
            yield {"k": k, "hits": float((ranks <= k).mean())} | about

    def table(self) -> Tables:
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
        first = self.frame.iloc[0]
        notes = [
            f"{first['pairs']:,} searches among {first['sentences']:,} distinct sentences, for the pairs with a "
            f"gold score of {first['lowest']:g} and above."
        ]
        for row in self.frame.drop_duplicates("model").to_dict("records"):
            if row["tied"]:
                notes.append(
                    f"{row['model']}: in {100 * row['tied']:.1f} % of the searches other sentences tie with the "
                    "match, which is ranked first; such ranks are too good."
                )
            if row["lost"]:
                notes.append(f"{row['model']}: {row['lost']:,} searches with a zero vector get the last rank.")
        return tuple(notes)

    def numbers(self) -> dict[str, float]:
        row, hits = self.frame.iloc[0], self.frame.set_index("k")["hits"]
        numbers = {"MRR": row["mrr"], "Hits@1": hits[1], "Hits@3": hits[3], "mean rank": row["mean_rank"]}
        return {name: float(value) for name, value in numbers.items()}

    place_label = "k"

    def panels(self) -> Mapping[str, pd.DataFrame]:
        hits = 100 * self.frame["hits"]
        rows = self.frame.assign(place=self.frame["k"], value=hits, low=np.nan, high=np.nan)
        return {"match among the first k, %": rows}


def match_ranks(
    vectors: NDArray[np.floating[Any]],
    searches: NDArray[np.int64],
    *,
    centred: bool = True,
    progress: Progress = silent,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Returns the rank of each match: 1 plus the number of other sentences with a higher cosine.

    The query itself is left out; among ties the match is first. Searches with a vector without direction get the
    last rank. Memory does not grow with the number of searches.

    Args:
        vectors: (n, d), one row per sentence, n at least 2.
        searches: (m, 2) rows of queries and matches.
        centred: whether to subtract the mean of the rows first.
        progress: called with the number of searches done.

    Returns:
        (m,) ranks from 1, and masks of tied matches and of searches without direction.

    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    >>> match_ranks(vectors, np.array([[0, 1], [0, 2]]), centred=False)[0].tolist()
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
    lost = np.asarray(~directed[searches].all(axis=1))
    ranks = np.where(lost, len(vectors) - 1, 1 + above.astype(np.int64))
    return ranks, (not_below > above) & ~lost, lost


evalrank = EvalRank.verb
