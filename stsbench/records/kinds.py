"""The kinds of tasks, as data: what a table, a label or a card needs to know of them.

What a kind does (name its sentences, turn their vectors into items, and items into numbers) is a file in
`stsbench.scoring.kinds`. Nothing that reads a record asks which kind a score is of: it asks for one of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Kind:
    """A kind of task.

    Attributes:
        name: as a record says it.
        average: what the plain mean over its tasks is called; empty where nobody takes one.
        unit: the plural noun for its items.
        words: what the kind is called in a sentence.
        caption: what a report calls the table of its headlines; `{}` is the statistic.
        statistics: what a table of all numbers shows, the headline first; empty for the headline alone.
        printed: the statistic that papers' tables of such tasks hold, where it is another than the headline.
        below: what follows the headline in a row of its own, where papers print it (`devacc`).
        below_caption: what a report calls the table of that.
        lowest: the least that a headline can be; the most is 1.
        rounded: whether the scores of its tasks have two decimals of a percent by their protocol, so that their
            mean has too.
        columns: of the items table that its rows fill, besides those that all rows have, with what they hold.
        by_similarity: whether gold scores are held against a similarity, whose column the signature names.
        has_text: whether its items are sentences, whose numbers the items table holds.
        suffix: what a label says after the task's name.
        on_the_hub: the kind of task by which the Hub knows such a score.
    """

    name: str
    average: str
    unit: str
    words: str
    caption: str
    statistics: tuple[str, ...] = ()
    printed: str = ""
    below: str = ""
    below_caption: str = ""
    lowest: float = -1.0
    rounded: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    by_similarity: bool = False
    has_text: bool = True
    suffix: str = ""
    on_the_hub: str = "semantic-similarity"


TEXT, NUMBER, COUNT, ID, FLAG = "text", "float64", "whole numbers", "uint64", "true or false"
"""What columns of the items table hold."""

_COMPARED: Mapping[str, str] = {
    "gold": NUMBER,
    **{f"{unit}_{side}": COUNT for unit in ("words", "characters", "subwords") for side in "ab"},
    **dict.fromkeys(("identical", "zero"), FLAG),
}
"""The columns of pairs whose vectors are compared."""

STS = "sts"
TRANSFER = "transfer"
SUPERVISED = "supervised"
PAIR_CLASSIFICATION = "pair-classification"
GIVEN = "given"

AVERAGE = "Avg."
TRANSFER_AVERAGE = "Avg. transfer"

ALL_TASKS = "all tasks"
"""What the mean over tasks, and all of their pairs together, are called where tasks are: no task is."""

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind(STS, AVERAGE, "pairs", "STS", "STS tasks: {} x 100", columns=_COMPARED, by_similarity=True),
            Kind(
                TRANSFER,
                TRANSFER_AVERAGE,
                "items",
                "transfer",
                "Transfer tasks: accuracy on test, in percent",
                statistics=("acc", "devacc", "f1"),
                below="devacc",
                below_caption="Transfer tasks: accuracy on dev, in percent (as MoCoSE prints it)",
                lowest=0.0,
                rounded=True,
                columns={"label": TEXT, "prediction": TEXT, "correct": NUMBER, "fold": COUNT},
                on_the_hub="text-classification",
            ),
            Kind(
                SUPERVISED,
                "",
                "pairs",
                "supervised",
                "Relatedness tasks with a trained regressor: Pearson x 100",
                statistics=("pearson", "spearman"),
                printed="spearman",
                columns={"gold": NUMBER},
                by_similarity=True,
                suffix=":supervised",
            ),
            Kind(
                PAIR_CLASSIFICATION,
                "Avg. pair classification",
                "pairs",
                "pair classification",
                "Pair classification: average precision x 100",
                statistics=("ap", "accuracy"),
                lowest=0.0,
                columns=_COMPARED,
                by_similarity=True,
                on_the_hub="pair-classification",
            ),
            Kind(
                GIVEN,
                "Avg. given",
                "items",
                "given",
                "Items of other tools: mean score x 100",
                lowest=-float("inf"),
                columns={"score": NUMBER},
                has_text=False,
                on_the_hub="other",
            ),
        )
    }
)
"""By name, in the order in which a record holds them."""

AVERAGES = tuple(kind.average for kind in KINDS.values() if kind.average)
"""What means over tasks are called: no task is."""
