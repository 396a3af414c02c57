"""The base class of what judging returns: tables, one sentence with the answer, and remarks."""

import html
import json
import math
from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd
from pydantic_core import to_json

from stsbench.render.result import Result
from stsbench.render.text import one_line


@dataclass(frozen=True, eq=False)
class Judgement(Result):
    """A result whose answer is a sentence. It is shown as legend, tables, remarks and sentence.

    Attributes:
        notes: what limits the answer.
    """

    notes: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer."""

    @property
    def legend(self) -> list[str]:
        """What the tables' letters and columns mean, one line each."""
        return []

    @property
    def remarks(self) -> list[str]:
        """What limits the answer, one line each."""
        return [f"note: {note}" for note in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain data; undefined numbers are None."""
        data = {"sentence": self.sentence} | asdict(self)
        text = to_json(data, inf_nan_mode="null", fallback=lambda frame: frame.to_dict("records"))
        plain: dict[str, Any] = json.loads(text)
        return plain

    def __str__(self) -> str:
        """Returns what a terminal shows."""
        texts = (self.legend, self.remarks, self.sentence.splitlines())
        legend, remarks, answer = ("\n".join(map(one_line, lines)) for lines in texts)
        return "\n\n".join(filter(None, [legend, *map(str, self.table()), remarks, answer]))

    def _repr_html_(self) -> str:
        texts = (self.legend, self.remarks, self.sentence.splitlines())
        legend, remarks, answer = ("<br>".join(map(html.escape, lines)) for lines in texts)
        return f"<p>{legend}</p>{self.table()._repr_html_()}<p>{remarks}</p><p>{answer}</p>"


@dataclass(frozen=True, eq=False)
class OfTwo(Judgement):
    """A judgement of two models or methods, named A and B; `b` is empty if there is only one.

    Attributes:
        rows: a row per task; after the tasks of a kind a row for their average.
    """

    a: str
    b: str
    rows: pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """One row per task and average."""
        return self.rows

    @property
    def legend(self) -> list[str]:
        """Which is A and which is B."""
        return [f"{letter}: {name}" for letter, name in (("A", self.a), ("B", self.b)) if name]


def records(rows: pd.DataFrame) -> list[Any]:
    """Returns rows as named tuples."""
    return list(rows.itertuples(index=False))


def p_text(p: float) -> str | None:
    """Returns a p-value with three digits, or None if it is undefined.

    >>> p_text(0.0312), p_text(0.0002), p_text(float("nan"))
    ('0.031', '<0.001', None)
    """
    if math.isnan(p):
        return None
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
