"""Retrieval: the documents nearest to each query, found by exact search, and measures of their order.

Documents are encoded and searched in blocks, so that memory does not grow with their number.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError, require
from stsbench.data.qrels import Qrels, Ranking, RetrievalData
from stsbench.records.kinds import KINDS, RETRIEVAL
from stsbench.records.signature import Signature
from stsbench.scoring.settings import Settings
from stsbench.scoring.statistic import ItemsEstimate, MeanShare
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Vectors, item_columns
from stsbench.statistics.geometry import unit_rows
from stsbench.statistics.neighbours import DECIMALS, Nearest, nearest, zero_rows

KEPT: Final = 100
"""The number of documents per query in a record, unless the measure needs more."""

BLOCK = 8192
"""Documents whose vectors are in memory at once."""

_MEASURES = {"ndcg": "nDCG", "map": "AP", "mrr": "RR", "recall": "R", "precision": "P", "hit_rate": "Success"}
"""The names of the measures in ir-measures, by MTEB's names."""

NDCG, *OTHERS = KINDS[RETRIEVAL].statistics
"""The default measure, as in BEIR and MTEB, and those that every record contains in addition to the headline's."""


@dataclass(frozen=True)
class Measure:
    """A measure of the best documents of a query, such as nDCG of the best ten, computed as MTEB does.

    ir-measures and MTEB both use trec_eval, which sorts documents by their scores in single precision and equal
    scores by descending id. MTEB's reciprocal rank sorts scores in double precision; here trec_eval gets the ranks
    of that order instead of the scores.
    """

    name: str
    cutoff: int

    @classmethod
    def named(cls, text: str) -> "Measure":
        """Parses the name of a measure; raises a UserError for another name.

        >>> Measure.named("nDCG@10"), str(Measure.named("recall_at_100"))
        (Measure(name='ndcg', cutoff=10), 'recall_at_100')
        """
        match = re.fullmatch(rf"({'|'.join(_MEASURES)})(?:_at_|@)([1-9]\d{{0,4}})", text.lower().replace("-", "_"))
        if match is None:
            known = ", ".join(f"{name}_at_K" for name in _MEASURES)
            raise UserError(f"--metric {text}: unknown measure of retrieval; choose from {known}.")
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.name}_at_{self.cutoff}"

    def by_query(self, ranking: Ranking, qrels: Qrels) -> dict[str, float]:
        """Returns the measure of each query in the qrels; 0 for a query without documents. Needs ir-measures."""
        require("retrieval", f"{self}, a measure of retrieval,")
        import ir_measures

        measure = getattr(ir_measures, _MEASURES[self.name])
        is_reciprocal_rank = self.name == "mrr"
        if is_reciprocal_rank:
            # With a cutoff ir-measures does not use trec_eval and orders ties by ascending id.
            ranking = {query: _ranks(documents) for query, documents in ranking.items()}
        else:
            measure @= self.cutoff
        results = ir_measures.pytrec_eval.iter_calc([measure], dict(qrels), dict(ranking))
        values = {result.query_id: float(result.value) for result in results}
        if is_reciprocal_rank:
            return {query: value if value * self.cutoff > 1 - 1e-9 else 0.0 for query, value in values.items()}
        return values


def _ranks(documents: Mapping[str, float]) -> dict[str, float]:
    """Returns negated ranks of the documents, in MTEB's order."""
    order = sorted(documents.items(), key=lambda scored: (scored[1], scored[0]), reverse=True)
    return {document: float(-rank) for rank, (document, _) in enumerate(order)}


@dataclass(frozen=True)
class Retrieval:
    """Queries whose relevant documents are searched among all documents."""

    data: RetrievalData

    kind: ClassVar[str] = RETRIEVAL
    is_trained: ClassVar[bool] = False
    sides: ClassVar[int] = 2
    streams: ClassVar[bool] = True
    pairs: ClassVar[None] = None

    def sentences(self) -> list[str]:
        return list(self.data.queries.values())

    def demand_scorable(self) -> None:
        require("retrieval", f"{NDCG}, a measure of retrieval,")

    def meaning(self, settings: Settings) -> Meaning:
        protocol = settings.protocol
        if protocol.similarity not in {"cosine", "dot"}:
            raise UserError(f"--similarity {protocol.similarity}: documents are searched by cosine or dot.")
        metric = NDCG if protocol.metric == "spearman" else str(Measure.named(protocol.metric))
        return Meaning(self.data.split, "all", metric, protocol.similarity)

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        meaning, data = self.meaning(settings), self.data
        measure = Measure.named(meaning.metric)
        size, queries, waited = max(KEPT, measure.cutoff), vectors.of_sentences, 0.0
        # A zero vector has no neighbours.
        usable = np.flatnonzero(~zero_rows(queries))

        def encoded() -> Iterator[NDArray[np.floating]]:
            nonlocal waited
            began = time.perf_counter()
            for block in map(vectors.encode, data.blocks(BLOCK)):
                waited += time.perf_counter() - began
                yield block
                began = time.perf_counter()
            waited += time.perf_counter() - began

        began = time.perf_counter()
        near = search(queries[usable], encoded(), size + data.drops_identical, meaning.similarity)
        searched = time.perf_counter() - began - waited
        ids, ranking = list(data.queries), dict[str, dict[str, float]]()
        for query, rows, scores in zip([ids[place] for place in usable], *near, strict=True):
            scored = zip([data.documents[row] for row in rows], scores.round(DECIMALS).tolist(), strict=True)
            kept = [pair for pair in scored if pair[0] != query or not data.drops_identical]
            # In the order of trec_eval.
            ranking[query] = dict(sorted(kept[:size], key=itemgetter(1, 0), reverse=True))
        texts = list(data.queries.values())
        sides: list[Any] = [texts, [None] * len(texts)]
        columns = item_columns(RETRIEVAL, data, data.split, [""] * len(texts), ids, sides=sides)
        for name, of in {"score": measure, **{name: Measure.named(name) for name in OTHERS}}.items():
            values = of.by_query(ranking, data.qrels)
            columns[name] = np.array([values[query] for query in ids])
        columns["retrieved"] = [json.dumps(ranking.get(query, {})) for query in ids]
        columns["judged"] = [json.dumps(data.qrels[query]) for query in ids]
        cost = {"documents": len(data.documents), "queries": len(texts)}
        cost["index_bytes"] = len(data.documents) * queries.shape[1] * queries.itemsize
        cost["search_microseconds"] = round(1e6 * searched)
        return Items(pd.DataFrame(columns), cost=cost)

    @staticmethod
    def statistic(_: Signature) -> MeanShare:
        return MeanShare()

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Returns the mean over queries of the headline's measure and of the other measures."""
        headline = how.signature.metric
        columns = {headline: "score", **{name: name for name in OTHERS if name != headline}}
        means = {
            name: ItemsEstimate.of(MeanShare(column), rows.scored, how.intervals)
            for name, column in columns.items()
        }
        return Numbers(tuple(mean.number(name) for name, mean in means.items()), means[headline])


def search(
    queries: NDArray[np.floating], blocks: Iterable[NDArray[np.floating]], k: int, similarity: str = "cosine"
) -> Nearest:
    """Returns the k nearest of n vectors to each of q queries, exactly, in the memory of one block.

    Args:
        queries: (q, d) vectors; for cosine none is zero.
        blocks: the (n, d) matrix of the vectors, some rows at a time; zero vectors are never neighbours.
        k: number of neighbours; of fewer, all.
        similarity: `cosine` or `dot`.

    >>> documents = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    >>> search(np.array([[1.0, 0.0]]), [documents[:2], documents[2:]], 2).rows.tolist()
    [[1, 2]]
    """
    is_cosine = similarity == "cosine"

    def scaled(part: NDArray[np.floating]) -> NDArray[np.float64]:
        return unit_rows(part) if is_cosine else part.astype(np.float64)

    def numbered() -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        first = 0
        for part in blocks:
            usable = np.flatnonzero(~zero_rows(part))
            yield first + usable, scaled(part[usable])
            first += len(part)

    return nearest(scaled(queries), numbered(), k, highest=1.0 if is_cosine else np.inf)
