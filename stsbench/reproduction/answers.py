"""What trainings over seeds say of a paper's claims: supported, contradicted or undecided, by which test.

Each claim comes down to differences that have to be above 0 (the one row less the other, or that less the points
that the claim asks for; see `differences`). A claim is supported if every difference is above 0 at the level. It
is contradicted if one is below, after Holm's correction: among many differences one would be below by chance. One
run says nothing of a method: what rests on one is undecided. A checkpoint beside itself, used otherwise, has no
seed to differ by.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

from stsbench.reproduction.differences import ClaimedDifference, Comparer, Numbers
from stsbench.reproduction.table_plan import Names, TableClaim
from stsbench.statistics.significance import holm

NO_NAMES = Names({}, {})
"""Rows and columns are called by their names."""

Verdict = Literal["supported", "contradicted", "undecided", "not answered"]


@dataclass(frozen=True)
class Answer:
    """What was found about a claim.

    Attributes:
        claim: the claim.
        line: the line of the paper's text that makes it.
        verdict: the answer.
        differences: what it rests on; empty where it is not answered.
        decisive: the difference that it hangs on: the least certain, or the one that contradicts; None where
            there is none.
        in_print: whether the printed numbers say so themselves; None where they are not there.
        why: why it is not answered.
        scale: which scale it answers for.
    """

    claim: TableClaim
    line: int
    verdict: Verdict
    differences: tuple[ClaimedDifference, ...] = ()
    decisive: ClaimedDifference | None = None
    in_print: bool | None = None
    why: str = ""
    scale: str = ""

    @property
    def needed(self) -> int | None:
        """How many seeds of each would decide it: the most that an open difference takes; 0 if no number would."""
        needs = [difference.needed for difference in self.differences if not difference.low > 0]
        known = [need for need in needs if need is not None]
        if self.verdict != "undecided" or not known:
            return None
        return 0 if 0 in known else max(known)

    @property
    def evidence(self) -> str:
        """What it rests on, in words."""
        if self.decisive is None:
            return self.why
        rests = self.decisive
        limits = "" if math.isnan(rests.low) else f" [{rests.low:.2f}, {rests.high:.2f}]"
        runs = f", {rests.seeds} seeds each" if rests.over.startswith("seeds") else ""
        # No minus before what is rounded to 0.
        return f"{rests.of}: {round(rests.value, 2) + 0.0:+.2f}{limits} ({rests.over}{runs})"

    @property
    def decides(self) -> str:
        """What would decide it, in words; empty where it is decided."""
        if self.verdict == "not answered" and self.decisive is not None:
            return "at least two seeds of each at the scale laptop or paper"
        if self.verdict != "undecided":
            return ""
        if self.needed is None:
            return "at least two seeds of each"
        if not self.needed:
            return "no number of seeds on these pairs, at a difference of this size"
        return f"about {self.needed} seeds of each, at a difference of this size"

    @property
    def verdict_at_scale(self) -> str:
        """The verdict, behind the scale that it is for where that is not the paper's."""
        plain = self.scale in {"", "paper"} or self.verdict == "not answered"
        return self.verdict if plain else f"at the scale {self.scale}: {self.verdict}"

    @property
    def sentence(self) -> str:
        """The claim, the answer, and what it rests on."""
        evidence = self.evidence.replace("the gap", "The gap", 1) if self.claim.smaller_gap else self.evidence
        why = f", as {self.why}" if self.why and self.decisive is not None else ""
        says = f"{self.claim.says[0].upper()}{self.claim.says[1:]}"
        decides = f" To decide it: {self.decides}." if self.decides else ""
        return f"{says}: {self.verdict_at_scale}{why}. {evidence}.{decides}"


def answers(
    claims: Sequence[TableClaim],
    exhibit: str,
    cells: Mapping[tuple[str, str], Numbers],
    printed: Mapping[tuple[str, str], float],
    *,
    headline: str,
    scale: str = "",
    missing: Mapping[str, str] | None = None,
    names: Names = NO_NAMES,
    silent: str = "",
    comparer: Comparer | None = None,
) -> tuple[Answer, ...]:
    """Answer the claims that a paper makes with a table, in their order.

    `cells` and `printed` are by row and column, x 100; `missing` says by row why it was not made. A claim that
    names no column is about the headline. Where a scale is `silent`, each claim says its numbers alone, and why.
    """
    comparer = comparer or Comparer()
    answered = []
    for claim in claims:
        line, in_print = claim.lines[exhibit], _in_print(claim, printed, headline)
        if lacking := _lacking(claim, cells, headline):
            why = f"{names.called(lacking)}: {(missing or {}).get(lacking, 'it was not made').rstrip('.')}"
            answered.append(Answer(claim, line, "not answered", in_print=in_print, why=why, scale=scale))
            continue
        comparisons = _comparisons(claim, cells, headline)
        differences = tuple(comparison.measured(cells, comparer, names) for comparison in comparisons)
        verdict, decisive = _verdict(differences, comparer.level)
        if silent:
            verdict = "not answered"
        answered.append(Answer(claim, line, verdict, differences, decisive, in_print, silent, scale))
    return tuple(answered)


Cell = tuple[str, str]
"""A cell of a table: its row and its column."""


@dataclass(frozen=True)
class _Comparison:
    """The first cell less the second, times the sign, less the margin, has to be above 0."""

    first: Cell
    second: Cell
    margin: float = 0.0
    sign: int = 1

    def in_print(self, printed: Mapping[Cell, float]) -> float:
        """Return the difference of printed numbers."""
        return self.sign * (printed[self.first] - printed[self.second]) - self.margin

    def measured(self, cells: Mapping[Cell, Numbers], comparer: Comparer, names: Names) -> ClaimedDifference:
        """Return the difference of measured numbers, with its error."""
        of, first, second = self._in_words(cells, names), cells[self.first], cells[self.second]
        return comparer.difference(of, first, second, margin=self.margin, sign=self.sign)

    def _in_words(self, cells: Collection[Cell], names: Names) -> str:
        several = len({column for _, column in cells}) > 1
        first, second = (
            f"{names.called(row)} on {names.columns.get(column, column)}" if several else names.called(row)
            for row, column in (self.first, self.second)[:: self.sign]
        )
        if self.margin > 0:
            return f"{first} less {second}, less the {self.margin:g} asked for"
        return f"{first} less {second}" + (f", and {-self.margin:g} allowed" if self.margin < 0 else "")


@dataclass(frozen=True)
class _Gaps:
    """The gap of the pair `larger`, less the gap of the pair `smaller`, has to be above 0."""

    smaller: tuple[Cell, Cell]
    larger: tuple[Cell, Cell]
    rows: tuple[tuple[str, str], ...]

    def in_print(self, printed: Mapping[Cell, float]) -> float:
        """Return the difference of printed numbers."""
        smaller, larger = (printed[a] - printed[b] for a, b in (self.smaller, self.larger))
        return larger - smaller

    def measured(self, cells: Mapping[Cell, Numbers], comparer: Comparer, names: Names) -> ClaimedDifference:
        """Return the difference of measured numbers, with its error."""
        (a, b), (c, d) = ([names.called(row) for row in pair] for pair in self.rows)
        pairs = [(cells[first], cells[second]) for first, second in (self.smaller, self.larger)]
        return comparer.gap(f"the gap of {c} and {d} less that of {a} and {b}", pairs)


def _cell(name: str, column: str) -> Cell:
    """Return the cell that a claim names: a row, or `row, column`."""
    row, _, own = name.partition(", ")
    return row, own or column


def _columns(claim: TableClaim, cells: Collection[Cell], headline: str) -> list[str]:
    if claim.every_column or claim.except_columns:
        return list(dict.fromkeys(column for _, column in cells))
    return [claim.column or headline]


def _comparisons(claim: TableClaim, cells: Collection[Cell], headline: str) -> "list[_Comparison] | list[_Gaps]":
    """Return the comparisons that a claim comes down to, among the cells that exist."""
    if claim.relation == "smaller_gap":
        column = claim.column or headline
        smaller, larger = ((_cell(a, column), _cell(b, column)) for a, b in claim.smaller_gap)
        return [_Gaps(smaller, larger, claim.smaller_gap)]
    columns = _columns(claim, cells, headline)
    return [comparison for column in columns for comparison in _in_column(claim, cells, column)]


def _in_column(claim: TableClaim, cells: Collection[Cell], column: str) -> list[_Comparison]:
    """Return the comparisons that a claim about rows comes down to in a column."""
    if claim.relation == "best":
        best = _cell(claim.best, column)
        rivals = [_cell(name, column) for name in claim.among] or [cell for cell in cells if cell[1] == best[1]]
        return [_Comparison(best, rival) for rival in rivals if rival != best and rival in cells]
    if claim.relation == "collapses":
        return [_Comparison(_cell(claim.than, column), _cell(claim.collapses, column), claim.by)]
    places = [_cell(name, column) for name in getattr(claim, claim.relation)]
    if claim.relation == "alike":
        pairs = combinations(places, 2)
        return [_Comparison(first, second, -claim.by, sign) for first, second in pairs for sign in (1, -1)]
    if claim.above and column in claim.except_columns:
        places.reverse()
    return [_Comparison(first, second) for first, second in pairwise(places)]


def _named(claim: TableClaim, cells: Collection[Cell], headline: str) -> list[Cell]:
    """Return the cells that a claim needs; of a best value, the best one alone."""
    columns = _columns(claim, cells, headline)
    rows = [claim.best] if claim.relation == "best" else claim.rows
    return [_cell(row, column) for column in columns for row in rows]


def _lacking(claim: TableClaim, cells: Collection[Cell], headline: str) -> str:
    """Return the row without which the claim cannot be answered, if it was not made."""
    for row, column in _named(claim, cells, headline):
        if (row, column) not in cells:
            return row if any(own == column for _, own in cells) else f"{row}, {column}"
    if claim.relation == "best" and not _comparisons(claim, cells, headline):
        return next(iter(claim.among), "what it is compared with")
    return ""


def _in_print(claim: TableClaim, printed: Mapping[Cell, float], headline: str) -> bool | None:
    """Return whether the printed numbers say so themselves, without any error; None where some are not there."""
    if not printed or any(cell not in printed for cell in _named(claim, printed, headline)):
        return None
    comparisons = _comparisons(claim, printed, headline)
    return all(comparison.in_print(printed) > 0 for comparison in comparisons) if comparisons else None


def _verdict(differences: Sequence[ClaimedDifference], level: float) -> tuple[Verdict, ClaimedDifference | None]:
    """Return the answer, and the difference that it hangs on."""
    known = [of for of in differences if not math.isnan(of.p) and not of.is_one_run]
    if len(known) == len(differences) and all(of.low > 0 for of in known):
        return "supported", min(known, key=lambda of: of.low)
    adjusted = holm([of.p for of in known]).tolist() if known else []
    against = [(p, of) for p, of in zip(adjusted, known, strict=True) if of.value < 0 and p < 1 - level]
    if against:
        return "contradicted", min(against, key=lambda pair: pair[0])[1]
    return "undecided", min(known or differences, key=lambda of: of.value)
