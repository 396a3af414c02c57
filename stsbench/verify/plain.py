"""Results as data that JSON can hold."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """Return nested data with None for every number that JSON has not.

    >>> plain({"p": float("nan"), "rows": (1.0,)})
    {'p': None, 'rows': [1.0]}
    """
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
