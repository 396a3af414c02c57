"""How a reader sees an analysis: a few tables, each with its caption."""

from math import isnan
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd


class View(NamedTuple):
    """A table for readers: what it shows, in words, and with how many digits after the point."""

    caption: str
    table: "pd.DataFrame"
    decimals: int = 2


def interval(low: float, high: float, decimals: int = 2) -> str:
    """Return the limits of an interval as text, empty where there are none.

    >>> interval(-0.123, 4.5), interval(float("nan"), float("nan"))
    ('[-0.12, 4.50]', '')
    """
    return "" if isnan(low) or isnan(high) else f"[{low:z.{decimals}f}, {high:z.{decimals}f}]"


def place(frame: "pd.DataFrame") -> str:
    """Return what a table was measured on, for its caption: task, split and text where it has them.

    >>> import pandas as pd
    >>> place(pd.DataFrame({"task": ["STS-B"], "split": ["all"]})), place(pd.DataFrame({"model": ["a"]}))
    (' on STS-B, split all', '')
    """
    if "task" not in frame or frame.empty:
        return ""
    told = [f"{name} {frame[name].iloc[0]}" for name in ("split", "text") if name in frame]
    return " on " + ", ".join([str(frame["task"].iloc[0]), *told])
