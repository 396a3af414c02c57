"""The catalogue of the kinds of tasks: how records, tables, labels and model cards describe each.

To add a kind, add an entry here and a file in `stsbench.scoring.kinds`. Code that reads records does not branch on
the kind but looks up one of these properties.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

TEXT, NUMBER, COUNT, ID, FLAG = "text", "float64", "whole numbers", "uint64", "true or false"
"""The types of the items table's columns."""

STS = "sts"
TRANSFER = "transfer"
SUPERVISED = "supervised"
PAIR_CLASSIFICATION = "pair-classification"
GIVEN = "given"
RETRIEVAL = "retrieval"

AVERAGE = "Avg."
TRANSFER_AVERAGE = "Avg. transfer"

ALL_TASKS = "all tasks"
"""The name of the mean over tasks, and of all their pairs together; no task has it."""

BESIDE_TASKS = (
    *("model", "rank", "ranks", "groups", "first", "to first", "best of", "setting", "changes", "off"),
    *("difference", "interval", "group", "compared by", "row", "source", "task", "items", "all"),
)
"""Columns of tables that have a column per task; a task of this name is labelled `model [2]`."""

ITEMS = "items.parquet"

KEY = ("kind", "task", "split", "text")
"""The columns that identify the score a row belongs to; held-out rows of a trained task have another split."""

COLUMNS = {
    **dict.fromkeys((*KEY, "subset", "item_id"), TEXT),
    **dict.fromkeys(("sentence_a", "sentence_b", "folded_a", "folded_b"), ID),
}
"""The columns that all rows have, with their types; a kind of task adds its own (`Kind.columns`)."""

_MISSING = {"i": -1, "b": False}
"""The values for missing whole numbers and truth values; missing floats are NaN."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of task.

    Attributes:
        name: its name in a record.
        scored_by: the file and class in `stsbench.scoring.kinds`, such as `sts.StsPairs`.
        suffix: the suffix of a data set's name that selects this kind (`STS-B:supervised`).
        average: the name of the mean over its tasks; empty if there is none.
        unit: the plural noun for its items.
        words: its name in a sentence.
        caption: the caption of its headlines in a report; `{}` is the statistic.
        statistics: the statistics in a table of all numbers, the headline first; empty for the headline only.
        printed: the statistic in papers' tables, if it is not the headline.
        below: a statistic that papers print in a row below the headline (`devacc`).
        below_caption: its caption in a report.
        lowest: the least possible headline; the greatest is 1.
        rounded: whether papers round its scores to two decimals of a percent before they average them.
        columns: the columns of the items table that only some kinds have, with their types.
        by_similarity: whether items have gold scores and a column of the similarity that the signature names.
        has_text: whether pages look up the sentences of its items in the data.
        on_the_hub: the Hub's name for this type of task.
    """

    name: str
    scored_by: str
    suffix: str = ""
    average: str = ""
    unit: str = "pairs"
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
    on_the_hub: str = "semantic-similarity"


_RANKED = ("mrr_at_10", "recall_at_100", "map_at_100")
_COMPARED = {
    "gold": NUMBER,
    **{f"{unit}_{side}": COUNT for unit in ("words", "characters", "subwords") for side in "ab"},
    **dict.fromkeys(("identical", "zero"), FLAG),
}
"""The columns of pairs whose vectors are compared."""

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name=STS,
            scored_by="sts.StsPairs",
            average=AVERAGE,
            words="STS",
            caption="STS tasks: {} x 100",
            columns=_COMPARED,
            by_similarity=True,
        ),
        Kind(
            name=TRANSFER,
            scored_by="classification.Classification",
            average=TRANSFER_AVERAGE,
            unit="items",
            words="transfer",
            caption="Transfer tasks: accuracy on test, in percent",
            statistics=("acc", "devacc", "f1"),
            below="devacc",
            below_caption="Transfer tasks: accuracy on dev, in percent (as MoCoSE prints it)",
            lowest=0.0,
            rounded=True,
            columns={"label": TEXT, "prediction": TEXT, "correct": NUMBER, "fold": COUNT},
            on_the_hub="text-classification",
        ),
        Kind(
            name=SUPERVISED,
            scored_by="relatedness.Relatedness",
            suffix=":supervised",
            words="supervised",
            caption="Relatedness tasks with a trained regressor: Pearson x 100",
            statistics=("pearson", "spearman"),
            printed="spearman",
            columns={"gold": NUMBER},
            by_similarity=True,
        ),
        Kind(
            name=PAIR_CLASSIFICATION,
            scored_by="sts.PairClassification",
            average="Avg. pair classification",
            words="pair classification",
            caption="Pair classification: average precision x 100",
            statistics=("ap", "accuracy"),
            lowest=0.0,
            columns=_COMPARED,
            by_similarity=True,
            on_the_hub="pair-classification",
        ),
        Kind(
            name=RETRIEVAL,
            scored_by="retrieval.Retrieval",
            average="Avg. retrieval",
            unit="queries",
            words="retrieval",
            caption="Retrieval: {} x 100",
            statistics=("ndcg_at_10", *_RANKED),
            lowest=0.0,
            columns=dict.fromkeys(("score", *_RANKED), NUMBER) | {"retrieved": TEXT, "judged": TEXT},
            on_the_hub="information-retrieval",
        ),
        Kind(
            name=GIVEN,
            scored_by="given.GivenItems",
            average="Avg. given",
            unit="items",
            words="given",
            caption="Items of other tools: mean score x 100",
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


def join_items(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Returns the rows of several tasks as one table, with the columns of all of them.

    Missing values are NaN, -1 among whole numbers, False among truth values.

    >>> rated, counted = pd.DataFrame({"raters": [1.5]}), pd.DataFrame({"words_a": [3]})
    >>> join_items([rated, counted]).to_dict(orient="list")
    {'raters': [1.5, nan], 'words_a': [-1, 3]}
    """
    kinds = {str(name): dtype.kind for table in tables for name, dtype in table.dtypes.items()}
    defaults = {name: _MISSING[kind] for name, kind in kinds.items() if kind in _MISSING}
    filled = [table.assign(**{name: defaults[name] for name in defaults if name not in table}) for table in tables]
    return pd.concat(filled, ignore_index=True)[list(kinds)]
