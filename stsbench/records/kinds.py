"""The kinds of tasks, as tables, labels and cards describe them.

How a kind is scored is a file in `stsbench.scoring.kinds`. Code that reads records does not branch on the kind: it
looks up one of these properties.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    """A kind of task.

    Attributes:
        name: its name in a record.
        average: the name of the mean over its tasks; empty if there is none.
        unit: the plural noun for its items.
        words: its name in a sentence.
        caption: the caption of its headlines in a report; `{}` is the statistic.
        statistics: the statistics in a table of all numbers, the headline first; empty for the headline only.
        printed: the statistic in papers' tables, if it is not the headline.
        below: a statistic that papers print in a row below the headline (`devacc`).
        below_caption: its caption in a report.
        lowest: the least possible headline; the greatest is 1.
        rounded: whether its scores have two decimals of a percent by protocol, so that their mean has, too.
        columns: the columns of the items table that only some kinds have, with what they hold.
        by_similarity: whether gold scores are compared with a similarity, which the signature names.
        has_text: whether its items are sentences.
        suffix: what a label adds to the task's name.
        on_the_hub: the Hub's name for its type of task.
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
"""The types of the items table's columns."""

_COMPARED: Mapping[str, str] = {
    "gold": NUMBER,
    **{f"{unit}_{side}": COUNT for unit in ("words", "characters", "subwords") for side in "ab"},
    **dict.fromkeys(("identical", "zero"), FLAG),
}
"""The columns of compared pairs."""

STS = "sts"
TRANSFER = "transfer"
SUPERVISED = "supervised"
PAIR_CLASSIFICATION = "pair-classification"
GIVEN = "given"

AVERAGE = "Avg."
TRANSFER_AVERAGE = "Avg. transfer"

ALL_TASKS = "all tasks"
"""The name of the mean over tasks, and of all their pairs together; no task has it."""

KINDS: Mapping[str, Kind] = {
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
"""By name, in the order of a record's scores."""

AVERAGES = tuple(kind.average for kind in KINDS.values() if kind.average)
"""The names of the means over tasks; no task has one of them."""
