"""Retrieval by query: what each query's found documents are worth, by ir-measures, as MTEB takes it.

ir-measures asks trec_eval (pytrec_eval), which MTEB asks too. It sorts documents by their scores in single
precision, and those of one score by their ids, the last first. MTEB has its reciprocal rank from a sort of its
own, of the scores as they are: for it trec_eval is given the places of that order.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.data.qrels import Qrels, Ranking

IdenticalIds = Literal["keep", "drop"]
"""Whether a document that has its query's id counts."""

_NAMES = {"ndcg": "nDCG", "map": "AP", "mrr": "RR", "recall": "R", "precision": "P", "hit_rate": "Success"}
"""MTEB's names of the measures, and those of ir-measures."""

NDCG = "ndcg_at_10"


@dataclass(frozen=True)
class Measure:
    """A measure of one query's documents, such as nDCG of the best ten: `ndcg_at_10`, as MTEB spells it."""

    name: str
    cutoff: int

    @classmethod
    def named(cls, text: str) -> "Measure":
        """Return the measure of a name; `nDCG@10` is one, too.

        Raises:
            UserError: if there is none.

        >>> Measure.named("nDCG@10"), str(Measure.named("recall_at_100"))
        (Measure(name='ndcg', cutoff=10), 'recall_at_100')
        """
        read = re.fullmatch(rf"({'|'.join(_NAMES)})(?:_at_|@)([1-9]\d{{0,4}})", text.lower().replace("-", "_"))
        if read is None:
            known = ", ".join(f"{name}_at_K" for name in _NAMES)
            raise UserError(f"--metric {text}: retrieval is measured by {known}, of the best K documents.")
        return cls(read[1], int(read[2]))

    def __str__(self) -> str:
        return f"{self.name}_at_{self.cutoff}"

    def by_query(self, ranking: Ranking, qrels: Qrels) -> dict[str, float]:
        """Return the measure of each query of the qrels; 0 of one for which nothing was found.

        Raises:
            UserError: if ir-measures is not installed.
        """
        require("retrieval", f"{self}, a measure of retrieval,")
        import ir_measures

        measure = getattr(ir_measures, _NAMES[self.name])
        if self.name == "mrr":
            # Of ir-measures' own reciprocal ranks, those with a cutoff order ties by ids the other way round.
            ranking = {query: _places(found) for query, found in ranking.items()}
        else:
            measure @= self.cutoff
        found = ir_measures.pytrec_eval.iter_calc([measure], dict(qrels), dict(ranking))
        values = {each.query_id: float(each.value) for each in found}
        if self.name == "mrr":
            return {query: value if value * self.cutoff > 1 - 1e-9 else 0.0 for query, value in values.items()}
        return values


def _places(found: Mapping[str, float]) -> dict[str, float]:
    """Return the documents with falling numbers in the order in which MTEB ranks them."""
    order = sorted(found.items(), key=lambda scored: (scored[1], scored[0]), reverse=True)
    return {document: float(-place) for place, (document, _) in enumerate(order)}
