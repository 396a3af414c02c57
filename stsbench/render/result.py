"""The base class of all results: one object for readers, programs, notebooks and reports."""

import json
from abc import ABC, abstractmethod
from typing import Any

import pandas as pd

from stsbench.render.formats import to_csv, to_json
from stsbench.render.table import Style, Tables


class Result(ABC):
    """A result: tables for readers, a tidy DataFrame for programs, plain data for JSON.

    Some results also have `.plot()`, which returns a matplotlib figure.
    """

    @property
    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """The result as a tidy DataFrame, one number per row."""

    @abstractmethod
    def table(self) -> Tables:
        """Returns the tables for readers, which print themselves; `.to("latex")` is one of their formats."""

    def to_dict(self) -> Any:
        """Returns the result as plain data for JSON, by default the rows of `frame`."""
        return json.loads(to_json(self.frame))

    def to(self, style: Style) -> str:
        """Returns the result as text: the tables for readers, or all of it as `csv` or `json`."""
        if style == "json":
            return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        if style == "csv":
            return to_csv(self.frame)
        return self.table().to(style)

    def __str__(self) -> str:
        """Returns what a terminal shows."""
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
