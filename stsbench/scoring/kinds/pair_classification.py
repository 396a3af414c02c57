"""Pair classification: pairs that belong together or not, told apart by their similarity.

As MTEB defines it: average precision, and the accuracy at the best threshold, which is chosen on the same pairs.
"""

from dataclasses import dataclass
from typing import ClassVar

from stsbench.base.errors import UserError
from stsbench.records.kinds import PAIR_CLASSIFICATION
from stsbench.records.signature import Signature
from stsbench.scoring.kinds.sts import ComparedPairs
from stsbench.scoring.settings import Settings
from stsbench.scoring.statistic import AveragePrecision, ThresholdAccuracy, number_of
from stsbench.scoring.task import Meaning, Numbers, Rows, Scoring


@dataclass(frozen=True)
class PairClassification(ComparedPairs):
    """Sentence pairs with the labels 1 (they belong together) and 0."""

    kind: ClassVar[str] = PAIR_CLASSIFICATION

    def demand_scorable(self) -> None:
        labels = sorted(set(self.data.pairs["gold"].tolist()))
        where = f"{self.data.task}, split {self.data.split}, text {self.data.text},"
        for label in labels:
            if label not in {0, 1}:
                raise UserError(
                    f"{where} has the score {label:g}: pairs are classified by the labels 0 and 1; measure their "
                    "correlation, or give labels."
                )
        if len(labels) < 2:
            raise UserError(f"{where} has one label alone: pairs are classified where both 0 and 1 occur.")

    def meaning(self, settings: Settings) -> Meaning:
        return Meaning(self.data.split, "all", "ap", settings.protocol.similarity)

    @staticmethod
    def statistic(signature: Signature) -> AveragePrecision:
        return AveragePrecision(signature.similarity)

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Return average precision, and the accuracy at the best threshold."""
        similarity = how.signature.similarity
        precision, support = number_of("ap", AveragePrecision(similarity), rows.scored, how.intervals)
        accuracy, _ = number_of("accuracy", ThresholdAccuracy(similarity), rows.scored, how.intervals)
        return Numbers((precision, accuracy), support)
