"""The items table of a record: one row per scored pair, sentence or query, in a Parquet file."""

from collections.abc import Sequence

import pandas as pd

from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.records.kinds import ID, TEXT

ITEMS = "items.parquet"

KEY = ("kind", "task", "split", "text")
"""The columns that tell which score a row belongs to; rows of a trained task's other splits are those held out."""

COLUMNS = {**dict.fromkeys((*KEY, "subset", "item_id"), TEXT), **dict.fromkeys((*SENTENCES, *FOLDED), ID)}
"""The columns that all rows have, with what they hold; a kind of task adds its own (`Kind.columns`)."""

_MISSING = {"i": -1, "b": False}
"""What stands for a missing whole number or truth value; missing floats are NaN."""


def join_items(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of several tasks as one table, with the columns of all of them.

    What a task lacks is NaN in its rows: -1 among whole numbers, False among truth values.

    >>> rated, counted = pd.DataFrame({"raters": [1.5]}), pd.DataFrame({"words_a": [3]})
    >>> join_items([rated, counted]).to_dict(orient="list")
    {'raters': [1.5, nan], 'words_a': [-1, 3]}
    """
    kinds = {str(name): dtype.kind for table in tables for name, dtype in table.dtypes.items()}
    defaults = {name: _MISSING[kind] for name, kind in kinds.items() if kind in _MISSING}
    filled = [table.assign(**{name: defaults[name] for name in defaults if name not in table}) for table in tables]
    return pd.concat(filled, ignore_index=True)[list(kinds)]
