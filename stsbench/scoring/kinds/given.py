"""Items that another tool scored: a table of `task, item, score`, and of groups whose items depend on each other.

The headline is the mean of the scores. What the tool measured, on what and how, nobody says here.
"""

from dataclasses import dataclass
from typing import ClassVar

from stsbench.data.tables import StsData
from stsbench.records.kinds import GIVEN
from stsbench.records.parts import Number
from stsbench.scoring.intervals import interval_of
from stsbench.scoring.settings import Settings
from stsbench.scoring.statistic import Mean
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Vectors


@dataclass(frozen=True)
class GivenItems:
    """Items with the scores that they were given: there are no sentences, and no vectors are wanted."""

    data: StsData
    given: Items

    kind: ClassVar[str] = GIVEN
    is_trained: ClassVar[bool] = False

    def sentences(self) -> list[str]:
        """Return none."""
        return []

    def demand_scorable(self) -> None:
        """Any items have a mean."""

    def meaning(self, settings: Settings) -> Meaning:
        """Return what the headline means: the mean over all items."""
        return Meaning("all", "all", "mean", GIVEN)

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        """Return the items as they were given."""
        return self.given

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Return the mean of the scores."""
        interval, support = interval_of(Mean(), rows.scored, how.intervals)
        number = Number(statistic="mean", value=support.value, items=len(rows.scored), interval=interval)
        return Numbers((number,), support)
