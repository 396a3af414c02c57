"""EvalRank: at which rank is a sentence's paraphrase found? (Wang, Kuo and Li 2022, "Just Rank", ACL)

Where the paper leaves something open, this follows its code: BinWang28/EvalRank-Embedding-Evaluation at commit
0334d5b (pairs and background), 1ac61a0 (ranks) and 7f6e875 (centred vectors, scaled to unit length).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import OfSentences, Row
from stsbench.analysis.inputs import Answer, PairVectors, parameter
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.render.table import Table, Tables, note_of, place
from stsbench.statistics.correlations import spearman
from stsbench.statistics.neighbours import QUERIES_AT_ONCE, directions, pair_similarities

MOST = 15
"""The largest rank up to which hits are counted, as in the authors' code."""

_SAME_COSINE = 1e-9  # Cosines that differ by no more are tied, so that rounding decides no rank


class EvalRank(OfSentences):
    """Rank each sentence's paraphrase among all STS-B sentences (EvalRank).

    Mean reciprocal rank, hits at 1 and 3. A model with a better Spearman does not always find more.

    Returns:
        One row per model and `k` (1 to 15): `hits`, the share of searches whose match has rank k or better. Of the
        model `mrr` (the mean of 1 / rank), `mean_rank`, the share of matches `tied` with another sentence, `lost`
        searches (a vector without direction), and `spearman` of all pairs. Also the number of searches (`pairs`),
        `sentences`, `share`, the `lowest` gold score of a positive pair, and `centred`.

    >>> from stsbench import evalrank
    >>> ranks = evalrank(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> ranks.frame["pairs"].unique().tolist()
    [126]
    """

    answer = Answer("How often is a match found first?", ".0%", rows={"k": 1}, column="hits")
    place_label = "k"
    name = "evalrank"
    title = "Finding a sentence's match"

    share: float = parameter(0.25, "The share of pairs, by gold score, that count as positive.", limits=(0, 1))
    centred: bool = parameter(
        True, "Subtract the mean vector first, as the authors do.", flags=("--centred/--uncentred",)
    )

    def measure(self, model: str, given: PairVectors) -> Iterator[Row]:
        # Among ties, the earlier pairs count as positive.
        positive = np.argsort(-given.gold, kind="stable")[: int(len(given.gold) * self.share)]
        if not len(positive):
            raise UserError(f"--share {self.share:g} selects none of the {len(given.gold)} pairs: give up to 1.")
        # Each distinct text is a sentence, even if a model tokenises two of them identically.
        _, first = np.unique(given.texts, return_index=True)
        vectors = given.vectors[given.rows[first]]
        left, right = np.split(given.texts, 2)
        pairs = np.column_stack([left[positive], right[positive]])
        searches = np.unique(np.vstack([pairs, pairs[:, ::-1]]), axis=0).astype(np.int64)
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

    @property
    def _summary(self) -> pd.DataFrame:
        hits = {f"Hits@{k}": self.frame.loc[self.frame["k"] == k, "hits"].to_numpy() for k in (1, 3)}
        names = {"mrr": "MRR", "mean_rank": "mean rank", "spearman": "Spearman"}
        return self.frame.drop_duplicates("model").rename(columns=names).assign(**hits)

    def table(self) -> Tables:
        table = self._summary[["model", "MRR", "Hits@1", "Hits@3", "mean rank", "Spearman"]]
        table = table.assign(**{name: 100 * table[name] for name in ("MRR", "Hits@1", "Hits@3", "Spearman")})
        caption = f"EvalRank x 100{place(self.frame)}, and Spearman of the cosines of all pairs"
        return Tables([Table(table, caption, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        rows = self._summary
        searched = "{pairs:,} searches among {sentences:,} distinct sentences".format_map(rows.iloc[0])
        notes = [f"{searched}, for the pairs with a gold score of {rows['lowest'].iloc[0]:g} and above."]
        if (tied := 100 * rows["tied"].max()) > 0:
            notes.append(f"Up to {tied:.1f} % of the matches tie with others and rank first: scores are too high.")
        lost = rows.set_index("model")["lost"]
        return (*notes, *note_of("Searches with a zero vector, which get the last rank", lost[lost > 0]))

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
    last rank. `searches` are (m, 2) rows of queries and matches in `vectors`, of which `centred` subtracts the
    mean. Also returns (m,) masks of tied matches and of searches without direction.

    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    >>> match_ranks(vectors, np.array([[0, 1], [0, 2]]), centred=False)[0].tolist()
    [2, 1]
    """
    units, directed = directions(vectors, centred=centred)
    above, not_below = np.empty((2, len(searches)), dtype=np.int64)
    for start in range(0, len(searches), QUERIES_AT_ONCE):
        block = slice(start, start + QUERIES_AT_ONCE)
        queries, matches = searches[block].T
        cosines, places = units[queries] @ units.T, np.arange(len(queries))
        of_match = cosines[places, matches][:, np.newaxis]
        cosines[places, queries] = cosines[places, matches] = -np.inf
        above[block] = np.count_nonzero(cosines > of_match + _SAME_COSINE, axis=1)
        not_below[block] = np.count_nonzero(cosines >= of_match - _SAME_COSINE, axis=1)
        progress("searches", start + len(queries), len(searches))
    lost = np.asarray(~directed[searches].all(axis=1))
    return np.where(lost, len(vectors) - 1, 1 + above), (not_below > above) & ~lost, lost
