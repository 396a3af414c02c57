"""The items table of a record: one row per scored pair, sentence or query, in a Parquet file."""

from collections.abc import Sequence

import pandas as pd

from stsbench.records.kinds import ID, TEXT

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


def join_items(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of several tasks as one table, with the columns of all of them.

    Missing values are NaN, -1 among whole numbers, False among truth values.

    >>> rated, counted = pd.DataFrame({"raters": [1.5]}), pd.DataFrame({"words_a": [3]})
    >>> join_items([rated, counted]).to_dict(orient="list")
    {'raters': [1.5, nan], 'words_a': [-1, 3]}
    """
    kinds = {str(name): dtype.kind for table in tables for name, dtype in table.dtypes.items()}
    defaults = {name: _MISSING[kind] for name, kind in kinds.items() if kind in _MISSING}
    filled = [table.assign(**{name: defaults[name] for name in defaults if name not in table}) for table in tables]
    return pd.concat(filled, ignore_index=True)[list(kinds)]
