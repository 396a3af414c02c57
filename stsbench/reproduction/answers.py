"""Answers to a paper's claims from trainings over seeds: supported, contradicted or undecided.

A claim is a set of differences that must be above 0 (a row minus another, possibly minus points that the claim
names). It is supported if the interval of every difference is above 0, and contradicted if one is significantly
below 0 after Holm's correction over all of them. One run is no evidence about a method, so a claim that rests on
one is undecided; two uses of one checkpoint are compared over pairs.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple

import pandas as pd

from stsbench.reproduction.differences import ClaimedDifference, Comparer, Numbers
from stsbench.reproduction.table_plan import Names, TableClaim
from stsbench.statistics import LEVEL
from stsbench.statistics.estimate import holm

Verdict = Literal["supported", "contradicted", "undecided", "not answered"]

NOT_ANSWERED: Literal["not answered"] = "not answered"

Cell = tuple[str, str]
"""A row and a column."""


@dataclass(frozen=True)
class Answer:
    """The answer to a claim.

    Attributes:
        claim: the claim.
        line: the line of the paper's text that makes it.
        verdict: the answer.
        differences: the differences that must be above 0; empty if a row is missing.
        decisive: the least certain difference, or the one that contradicts; None if there is none.
        in_print: whether the printed numbers support the claim; None if some are missing.
        why: why it is not answered.
        scale: the scale that it holds for.
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
        """How many seeds of each row would decide it; 0 if no number would, None if decided or unknown."""
        needs = [difference.needed for difference in self.differences if not difference.low > 0]
        known = [need for need in needs if need is not None]
        if self.verdict != "undecided" or not known:
            return None
        return 0 if 0 in known else max(known)

    @property
    def evidence(self) -> str:
        """The decisive difference with its interval, or why there is none."""
        if self.decisive is None:
            return self.why
        difference = self.decisive
        limits = "" if math.isnan(difference.low) else f" [{difference.low:.2f}, {difference.high:.2f}]"
        runs = f", {difference.seeds} seeds each" if difference.over.startswith("seeds") else ""
        # Adding 0.0 turns -0.00 into 0.00.
        return f"{difference.of}: {round(difference.value, 2) + 0.0:+.2f}{limits} ({difference.over}{runs})"

    @property
    def decides(self) -> str:
        """The runs that would decide it; empty if it is decided."""
        if self.verdict == NOT_ANSWERED and self.decisive is not None:
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
        """The verdict, with its scale if that is not the paper's."""
        is_plain = self.scale in {"", "paper"} or self.verdict == NOT_ANSWERED
        return self.verdict if is_plain else f"at the scale {self.scale}: {self.verdict}"

    @property
    def sentence(self) -> str:
        """The claim, the answer and its evidence."""
        evidence = self.evidence.replace("the gap", "The gap", 1) if self.claim.smaller_gap else self.evidence
        why = f", because {self.why}" if self.why and self.decisive is not None else ""
        claim = f"{self.claim.says[0].upper()}{self.claim.says[1:]}"
        decides = f" To decide it: {self.decides}." if self.decides else ""
        return f"{claim}: {self.verdict_at_scale}{why}. {evidence}.{decides}"

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data; None for unknown."""
        differences = [asdict(difference).items() for difference in self.differences]
        return {
            "name": self.claim.name,
            "says": self.claim.says,
            "relation": self.claim.relation,
            "line": self.line,
            "in_print": self.in_print,
            "verdict": self.verdict,
            "scale": self.scale,
            "evidence": self.evidence,
            "seeds_needed": self.needed,
            "differences": [{key: None if pd.isna(value) else value for key, value in of} for of in differences],
        }


def answers(
    claims: Sequence[TableClaim],
    exhibit: str,
    cells: Mapping[Cell, Numbers],
    printed: Mapping[Cell, float],
    *,
    headline: str,
    scale: str = "",
    missing: Mapping[str, str],
    names: Names,
    silent: str = "",
    comparer: Comparer,
) -> tuple[Answer, ...]:
    """Answers the claims that a paper makes with a table, in their order.

    Args:
        claims: the claims.
        exhibit: the name of the table or figure.
        cells: our numbers, x 100.
        printed: the printed numbers, x 100.
        headline: the column of claims that name none.
        scale: the scale that the answers hold for.
        missing: why rows are missing.
        names: labels of rows and columns.
        silent: why claims are not answered at this scale; differences are still computed.
        comparer: computes the differences.
    """
    answered = []
    for claim in claims:
        line, in_print = claim.lines[exhibit], _in_print(claim, printed, headline)
        if lacking := _first_missing(claim, cells, headline):
            why = f"{names.called(lacking)}: {missing.get(lacking, 'it was not made').rstrip('.')}"
            answered.append(Answer(claim, line, NOT_ANSWERED, in_print=in_print, why=why, scale=scale))
            continue
        differences = tuple(
            _measured(compared, cells, comparer, names) for compared in _comparisons(claim, cells, headline)
        )
        verdict, decisive = _verdict(differences)
        if silent:
            verdict = NOT_ANSWERED
        answered.append(Answer(claim, line, verdict, differences, decisive, in_print, silent, scale))
    return tuple(answered)


class _Comparison(NamedTuple):
    """The first cell minus the second minus the margin must be above 0.

    With `gap`, a further pair of cells: the difference of the first pair minus the difference of that pair.
    """

    first: Cell
    second: Cell
    margin: float = 0.0
    gap: tuple[Cell, Cell] | None = None


def _comparisons(claim: TableClaim, cells: Collection[Cell], headline: str) -> list[_Comparison]:
    if claim.relation == "smaller_gap":
        column = claim.column or headline
        smaller, larger = ((_cell(a, column), _cell(b, column)) for a, b in claim.smaller_gap)
        return [_Comparison(*larger, gap=smaller)]
    columns = _columns(claim, cells, headline)
    return [comparison for column in columns for comparison in _in_column(claim, cells, column)]


def _in_column(claim: TableClaim, cells: Collection[Cell], column: str) -> list[_Comparison]:
    if claim.relation == "best":
        best = _cell(claim.best, column)
        rivals = [_cell(name, column) for name in claim.among] or [cell for cell in cells if cell[1] == best[1]]
        return [_Comparison(best, rival) for rival in rivals if rival != best and rival in cells]
    places = [_cell(name, column) for name in getattr(claim, claim.relation)]
    if claim.relation == "alike":
        pairs = [pair for both in combinations(places, 2) for pair in (both, both[::-1])]
        return [_Comparison(first, second, -claim.by) for first, second in pairs]
    return [_Comparison(first, second, claim.by) for first, second in pairwise(places)]


def _cell(name: str, column: str) -> Cell:
    """Returns the cell that a claim names: a row, or `row, column`."""
    row, _, named = name.partition(", ")
    return row, named or column


def _columns(claim: TableClaim, cells: Collection[Cell], headline: str) -> list[str]:
    if claim.every_column:
        return list(dict.fromkeys(column for _, column in cells))
    return [claim.column or headline]


def _required(claim: TableClaim, cells: Collection[Cell], headline: str) -> list[Cell]:
    """Returns the cells that a claim needs; for a best row, that row alone."""
    rows = [claim.best] if claim.relation == "best" else claim.rows
    return [_cell(row, column) for column in _columns(claim, cells, headline) for row in rows]


def _first_missing(claim: TableClaim, cells: Collection[Cell], headline: str) -> str:
    """Returns the first missing row, or `row, column`, that a claim needs; empty if none is missing."""
    for row, column in _required(claim, cells, headline):
        if (row, column) not in cells:
            return row if any(other == column for _, other in cells) else f"{row}, {column}"
    if claim.relation == "best" and not _comparisons(claim, cells, headline):
        return next(iter(claim.among), "any other row")
    return ""


def _in_print(claim: TableClaim, printed: Mapping[Cell, float], headline: str) -> bool | None:
    """Returns whether the printed numbers support a claim, ignoring errors; None if some are missing."""
    if not printed or any(cell not in printed for cell in _required(claim, printed, headline)):
        return None
    comparisons = _comparisons(claim, printed, headline)
    differences = [printed[of.first] - printed[of.second] - of.margin for of in comparisons]
    gaps = [printed[of.gap[0]] - printed[of.gap[1]] if of.gap else 0.0 for of in comparisons]
    return all(a > b for a, b in zip(differences, gaps, strict=True)) if comparisons else None


def _measured(
    of: _Comparison, cells: Mapping[Cell, Numbers], comparer: Comparer, names: Names
) -> ClaimedDifference:
    first, second = cells[of.first], cells[of.second]
    if of.gap is not None:
        a, b, c, d = (names.called(row) for row, _ in (*of.gap, of.first, of.second))
        pair = cells[of.gap[0]], cells[of.gap[1]]
        return comparer.gap(f"the gap of {c} and {d} less that of {a} and {b}", (first, second), pair)
    several = len({column for _, column in cells}) > 1
    above, below = (
        f"{names.called(row)} on {names.columns.get(column, column)}" if several else names.called(row)
        for row, column in (of.first, of.second)
    )
    text = f"{above} less {below}"
    if of.margin > 0:
        text += f", less the {of.margin:g} of the claim"
    if of.margin < 0:
        text += f", and {-of.margin:g} allowed"
    return comparer.difference(text, first, second, margin=of.margin)


def _verdict(differences: Sequence[ClaimedDifference]) -> tuple[Verdict, ClaimedDifference | None]:
    """Returns the answer and the decisive difference."""
    known = [of for of in differences if not math.isnan(of.p) and not of.is_one_run]
    if len(known) == len(differences) and all(of.low > 0 for of in known):
        return "supported", min(known, key=lambda of: of.low)
    adjusted = holm([of.p for of in known]).tolist() if known else []
    against = [(p, of) for p, of in zip(adjusted, known, strict=True) if of.value < 0 and p < 1 - LEVEL]
    if against:
        return "contradicted", min(against, key=lambda pair: pair[0])[1]
    return "undecided", min(known or differences, key=lambda of: of.value)
