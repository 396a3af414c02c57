"""Pair classification: sentence pairs with two labels, separated by their similarity.

As MTEB defines it: average precision, and the accuracy at the best threshold, which is chosen on the same pairs.
"""

from dataclasses import dataclass
from typing import ClassVar

from stsbench.base.errors import UserError
from stsbench.records.kinds import PAIR_CLASSIFICATION
from stsbench.records.signature import Signature
from stsbench.scoring.kinds.sts import ComparedPairs
from stsbench.scoring.settings import Settings
from stsbench.scoring.statistic import AveragePrecision, ItemsEstimate, ThresholdAccuracy
from stsbench.scoring.task import Meaning, Numbers, Rows, Scoring


@dataclass(frozen=True)
class PairClassification(ComparedPairs):
    """Sentence pairs with the labels 1 (positive) and 0."""

    kind: ClassVar[str] = PAIR_CLASSIFICATION

    def demand_scorable(self) -> None:
        labels = sorted(set(self.data.pairs["gold"].tolist()))
        where = f"{self.data.task}, split {self.data.split}, text {self.data.text},"
        for label in labels:
            if label not in {0, 1}:
                raise UserError(
                    f"{where} has the score {label:g}, but average precision needs the labels 0 and 1: leave out "
                    "--metric ap, or give labels."
                )
        if len(labels) < 2:
            raise UserError(f"{where} has only one label: average precision needs both 0 and 1.")

    def meaning(self, settings: Settings) -> Meaning:
        return Meaning(self.data.split, "all", "ap", settings.protocol.similarity)

    @staticmethod
    def statistic(signature: Signature) -> AveragePrecision:
        return AveragePrecision(signature.similarity)

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Returns average precision, and the accuracy at the best threshold."""
        similarity = how.signature.similarity
        precision = ItemsEstimate.of(AveragePrecision(similarity), rows.scored, how.intervals)
        accuracy = ItemsEstimate.of(ThresholdAccuracy(similarity), rows.scored, how.intervals)
        return Numbers((precision.number("ap"), accuracy.number("accuracy")), precision)
