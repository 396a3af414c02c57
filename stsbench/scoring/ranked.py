"""Retrieval measures of single queries, computed by ir-measures in the way MTEB does.

ir-measures and MTEB both use trec_eval, which sorts documents by their scores in single precision and equal scores
by descending id. MTEB's reciprocal rank sorts scores in double precision; here trec_eval gets the ranks of that
order instead of the scores.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.data.qrels import Qrels, Ranking

IdenticalIds = Literal["keep", "drop"]
"""Whether documents with the id of their query count."""

_NAMES = {"ndcg": "nDCG", "map": "AP", "mrr": "RR", "recall": "R", "precision": "P", "hit_rate": "Success"}
"""The names of the measures in ir-measures, by MTEB's names."""

NDCG = "ndcg_at_10"


@dataclass(frozen=True)
class Measure:
    """A measure of the best documents of a query, such as nDCG of the best ten."""

    name: str
    cutoff: int

    @classmethod
    def named(cls, text: str) -> "Measure":
        """Parses the name of a measure.

        Raises:
            UserError: if there is no such measure.

        >>> Measure.named("nDCG@10"), str(Measure.named("recall_at_100"))
        (Measure(name='ndcg', cutoff=10), 'recall_at_100')
        """
        match = re.fullmatch(rf"({'|'.join(_NAMES)})(?:_at_|@)([1-9]\d{{0,4}})", text.lower().replace("-", "_"))
        if match is None:
            known = ", ".join(f"{name}_at_K" for name in _NAMES)
            raise UserError(f"--metric {text}: unknown measure of retrieval; choose from {known}.")
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.name}_at_{self.cutoff}"

    def by_query(self, ranking: Ranking, qrels: Qrels) -> dict[str, float]:
        """Returns the measure of each query in the qrels; 0 for a query without documents.

        Raises:
            UserError: if ir-measures is not installed.
        """
        require("retrieval", f"{self}, a measure of retrieval,")
        import ir_measures

        measure = getattr(ir_measures, _NAMES[self.name])
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
