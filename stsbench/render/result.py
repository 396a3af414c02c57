"""What every verb returns: one object that readers, machines, notebooks and reports are shown."""

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from stsbench.render.formats import to_json
from stsbench.render.table import Style, Tables

if TYPE_CHECKING:
    import pandas as pd


class Result(ABC):
    """A result: tables for readers, a tidy DataFrame for machines, plain data for JSON.

    Where a picture says it better, a result has `.plot()` too, which returns a matplotlib figure.
    """

    @property
    @abstractmethod
    def frame(self) -> "pd.DataFrame":
        """All of it as a tidy table, a row for each number."""

    @abstractmethod
    def table(self) -> Tables:
        """Return what readers are shown. It prints itself, and `.to("latex")` is one of its formats."""

    def to_dict(self) -> Any:
        """Return it as plain data that JSON can hold: by default the rows of `frame`."""
        return json.loads(to_json(self.frame))

    def to(self, style: Style) -> str:
        """Return it as text: the tables for readers, all of it as `csv` and `json`.

        Raises:
            UserError: if there is no such format.
        """
        if style == "json":
            return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        if style == "csv":
            from stsbench.render.formats import to_csv

            return to_csv(self.frame)
        return self.table().to(style)

    def __str__(self) -> str:
        """Return what a terminal shows."""
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
