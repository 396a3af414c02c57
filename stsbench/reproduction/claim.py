"""What a paper says with a table: a relation between rows, and where in the paper it stands."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from stsbench.reproduction.scales import PlanPart

RELATIONS = ("best", "above", "order", "alike", "collapses", "smaller_gap")


class TableClaim(PlanPart):
    """What a paper says with a table. One of the relations is given.

    Rows are named as in the table; where each column is a training of its own, a cell is `row, column`.

    Attributes:
        name: of the claim, among those of its plan.
        says: the claim in a sentence of ours.
        lines: where the paper makes it: by exhibit, the line of its text.
        column: which column it is about; empty for the plan's headline.
        best: the row that is the best, of `among` (empty for all).
        above: two rows, the first of which is above the second.
        order: rows from the highest to the lowest.
        alike: rows that differ by less than `by` points.
        collapses: a row that is at least `by` points below the row `than`.
        smaller_gap: two pairs of rows: the first less the second of the first pair is smaller than of the other.
        among: the rows that `best` is the best of.
        than: see `collapses`.
        by: points.
        except_columns: where `above` is about all columns, those where the second row is above the first.
        every_column: whether `above` is about every column of the table.
    """

    name: str
    says: str
    lines: Mapping[str, int]
    column: str = ""
    best: str = ""
    above: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    collapses: str = ""
    smaller_gap: tuple[tuple[str, str], ...] = ()
    among: tuple[str, ...] = ()
    than: str = ""
    by: float = Field(0.0, ge=0)
    except_columns: tuple[str, ...] = ()
    every_column: bool = False

    @model_validator(mode="after")
    def _one_relation(self) -> Self:
        given = [name for name in RELATIONS if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"claim {self.name}: give one of {', '.join(RELATIONS)}, not {given or 'none'}")
        if (self.collapses or self.alike) and not self.by:
            raise ValueError(f"claim {self.name}: say by how many points (`by`)")
        if bool(self.collapses) != bool(self.than):
            raise ValueError(f"claim {self.name}: `collapses` and `than` go together")
        if self.above and len(self.above) != 2:
            raise ValueError(f"claim {self.name}: `above` names two rows")
        if self.smaller_gap and len(self.smaller_gap) != 2:
            raise ValueError(f"claim {self.name}: `smaller_gap` names two pairs of rows")
        return self

    @property
    def relation(self) -> str:
        """Which relation it is."""
        return next(name for name in RELATIONS if getattr(self, name))

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows that it names."""
        pairs = [row for pair in self.smaller_gap for row in pair]
        named = (self.best, *self.above, *self.order, *self.alike, self.collapses, self.than, *self.among, *pairs)
        return tuple(dict.fromkeys(filter(None, named)))
