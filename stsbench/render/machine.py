"""Tables for programs: CSV and JSON, in full precision and with text as it is."""

import json
import math
from typing import TYPE_CHECKING, Any

from stsbench.render.cells import is_missing

if TYPE_CHECKING:
    import pandas as pd


def to_csv(frame: "pd.DataFrame") -> str:
    r"""Return a table as CSV (RFC 4180) with a header; a missing value is an empty field.

    Every number has the digits that read back as the same float64.

    Args:
        frame: the table; its index is not written.

    Example:
        >>> import pandas as pd
        >>> to_csv(pd.DataFrame({"Model": ["a,b", "c"], "Avg.": [0.1, float("nan")]}))
        'Model,Avg.\r\n"a,b",0.1\r\nc,'
    """
    return frame.to_csv(index=False, lineterminator="\r\n").removesuffix("\r\n")


def to_json(frame: "pd.DataFrame") -> str:
    """Return a table as a JSON list of records; what JSON has no number for is null.

    Every number has the digits that read back as the same float64. Missing values and infinities are null.

    Args:
        frame: the table; its index is not written.

    Example:
        >>> import pandas as pd
        >>> print(to_json(pd.DataFrame({"Model": ["MiniLM"], "Avg.": [float("nan")]})))
        [
          {
            "Model": "MiniLM",
            "Avg.": null
          }
        ]
    """
    records = [
        {str(name): _plain(value) for name, value in record.items()} for record in frame.to_dict(orient="records")
    ]
    return json.dumps(records, indent=2, allow_nan=False, default=str)


def _plain(value: Any) -> Any:
    if is_missing(value) or (isinstance(value, float) and math.isinf(value)):
        return None
    return value
