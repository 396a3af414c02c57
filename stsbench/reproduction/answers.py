"""What trainings over seeds say of a paper's claims: supported, contradicted or undecided, by which test.

Each claim comes down to differences that have to be above 0 (the one row less the other, or that less the points
that the claim asks for). Their variance is of other seeds and other pairs where the pairs are known (see
`statistics.seeds`), of seeds alone where not; the interval is Student's, so two or three seeds decide what is
plain and nothing else. A claim is supported if every difference is above 0 at the level. It is contradicted if one
is below, after Holm's correction: among many differences one would be below by chance. One run says nothing of a
method: what rests on one is undecided. A checkpoint beside itself, used otherwise, has no seed to differ by.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from stsbench.base.errors import UserError
from stsbench.comparison.aligned import AlignedScores, aligned_scores, shown_interval
from stsbench.records.record import RunRecord
from stsbench.reproduction.table_plan import TableClaim
from stsbench.statistics.dependence import DEPENDENCE, Dependence, Variance
from stsbench.statistics.power import seeds_needed
from stsbench.statistics.seeds import Runs, interaction_of, mean_variance
from stsbench.statistics.significance import holm

Verdict = Literal["supported", "contradicted", "undecided", "not answered"]

LEVEL = 0.95

_NO_VARIANCE = Variance(0.0, 0.0, math.inf)

_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Numbers:
    """What was measured for one cell of a table: a number for each seed.

    Attributes:
        values: by seed (0 for a checkpoint): scores x 100, or what an analysis says.
        runs: the records that the values are of, by seed; empty where they are of no record's task.
        task: what the records call the task or average.
        error: standard error of the only value over pairs, as an analysis gives it; NaN for unknown.
        training: what the values come from: cells that share it are of the same trainings.
        checkpoint: the public checkpoint that the only value is of; empty where it was trained.
    """

    values: Mapping[int, float]
    runs: Mapping[int, RunRecord] = field(default_factory=dict)
    task: str = ""
    error: float = math.nan
    training: str = ""
    checkpoint: str = ""

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(list(self.values.values())))

    @property
    def sd(self) -> float:
        """The sample standard deviation over seeds; NaN for one."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else math.nan


@dataclass(frozen=True)
class ClaimedDifference:
    """One difference that a claim asks to be above 0.

    Attributes:
        of: what is above what, for a reader.
        value: in points.
        low: lower limit of its interval, and `high`: the upper; NaN where no error is known.
        p: two-sided.
        seeds: how many runs the two sides have, the smaller number.
        over: what the error is of: `seeds and pairs`, `seeds`, `pairs`; or why none is known.
        needed: seeds of each that would decide a difference of this size with 80 % power; 0 for no number, None
            for unknown.
        is_one_run: whether a side is one run of its method, so that this answers nothing of the method.
    """

    of: str
    value: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    seeds: int = 1
    over: str = ""
    needed: int | None = None
    is_one_run: bool = False


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
        needs = [found.needed for found in self.differences if not found.low > 0]
        known = [need for need in needs if need is not None]
        if self.verdict != "undecided" or not known:
            return None
        return 0 if 0 in known else max(known)

    @property
    def evidence(self) -> str:
        """What it rests on, in words."""
        if self.decisive is None:
            return self.why
        found = self.decisive
        limits = "" if math.isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
        runs = f", {found.seeds} seeds each" if found.over.startswith("seeds") else ""
        # No minus before what is rounded to 0.
        return f"{found.of}: {round(found.value, 2) + 0.0:+.2f}{limits} ({found.over}{runs})"

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
    def told(self) -> str:
        """The verdict, behind the scale that it is for where that is not the paper's."""
        at = (
            "" if self.scale in {"", "paper"} or self.verdict == "not answered" else f"at the scale {self.scale}: "
        )
        return f"{at}{self.verdict}"

    @property
    def sentence(self) -> str:
        """The claim, the answer, and what it rests on."""
        evidence = self.evidence.replace("the gap", "The gap", 1) if self.claim.smaller_gap else self.evidence
        why = f", as {self.why}" if self.why and self.decisive is not None else ""
        told = f"{self.claim.says[0].upper()}{self.claim.says[1:]}: {self.told}{why}. {evidence}."
        return f"{told} To decide it: {self.decides}." if self.decides else told


class Comparer:
    """The differences between cells, with the error that both seeds and pairs bring.

    Args:
        interval: how pairs that share sentences are seen.
        level: of the intervals.
    """

    def __init__(self, interval: Dependence = DEPENDENCE, level: float = LEVEL) -> None:
        self.dependence: Dependence = interval
        self.level = level
        self.notes: list[str] = []

    def difference(
        self, of: str, a: Numbers, b: Numbers, *, margin: float = 0.0, sign: int = 1
    ) -> ClaimedDifference:
        """Return `sign` times (a less b), less a margin, with its interval.

        Two rows of the same trainings are compared seed by seed.
        """
        value = sign * (a.mean - b.mean) - margin
        if a.training and a.training == b.training:
            return self._by_seed(
                of, value, [a.values[seed] - b.values[seed] for seed in a.values if seed in b.values]
            )
        sizes = (len(a.values), len(b.values))
        seeds = min(sizes)
        aligned = self._aligned(a, b)
        if sizes == (1, 1):
            return self._of_one_run_each(of, value, a, b, aligned)
        if seeds < 2:
            why = "no error is known: one run says nothing of how far a seed carries"
            return ClaimedDifference(of, value, seeds=seeds, over=why)
        scores = [np.array(list(side.values.values())) for side in (a, b)]
        interactions, over_pairs = [0.0, 0.0], _NO_VARIANCE
        if aligned is not None:
            matrix = 1e4 * aligned.covariance(self.dependence)
            places = (slice(0, sizes[0]), slice(sizes[0], sum(sizes)))
            interactions = [interaction_of(matrix[place, place]) for place in places]
            weights = np.repeat([1 / sizes[0], -1 / sizes[1]], sizes)
            over_pairs = _scaled(aligned.variance_of(weights, self.dependence))
        methods = [Runs(side, both) for side, both in zip(scores, interactions, strict=True)]
        found = mean_variance(methods, over_pairs)
        sd = math.sqrt(float(np.mean([side.var(ddof=1) for side in scores])))
        return self._tested(
            of,
            value,
            Variance(found.value, found.value, found.df),
            seeds,
            "seeds and pairs" if aligned is not None else "seeds alone",
            needed=self._needed(value, sd, over_pairs),
        )

    def gap(self, of: str, pairs: Sequence[tuple[Numbers, Numbers]]) -> ClaimedDifference:
        """Return the second pair's difference less the first's: above 0 if the first pair's gap is the smaller."""
        first, second = (
            [a.values[seed] - b.values[seed] for seed in a.values if seed in b.values] for a, b in pairs
        )
        smaller = Numbers(dict(enumerate(first)))
        larger = Numbers(dict(enumerate(second)))
        return self.difference(of, larger, smaller)

    def _by_seed(self, of: str, value: float, differences: Sequence[float]) -> ClaimedDifference:
        size = len(differences)
        if size < 2:
            why = "no error is known: one run says nothing of how far a seed carries"
            return ClaimedDifference(of, value, seeds=size, over=why)
        spread = float(np.var(differences, ddof=1))
        variance = Variance(spread / size, spread / size, size - 1)
        # Of one sample, as of two of half its variance each.
        needed = self._needed(value, math.sqrt(spread / 2), _NO_VARIANCE)
        return self._tested(of, value, variance, size, "seeds, compared seed by seed", needed=needed)

    def _of_one_run_each(
        self, of: str, value: float, a: Numbers, b: Numbers, aligned: AlignedScores | None
    ) -> ClaimedDifference:
        is_one = bool(a.checkpoint) and a.checkpoint == b.checkpoint
        over = (
            "pairs, of one checkpoint"
            if is_one
            else "pairs, of these two checkpoints: of other seeds it says nothing"
        )
        if aligned is not None:
            found = self._tested(of, value, _scaled(aligned.variance_of((1, -1), self.dependence)), 1, over)
        elif math.isnan(squared := a.error**2 + b.error**2):
            found = ClaimedDifference(of, value, over="no error is known")
        else:
            found = self._tested(of, value, Variance(squared, squared, math.inf), 1, over)
        return replace(found, is_one_run=not is_one)

    def _tested(
        self, of: str, value: float, variance: Variance, seeds: int, over: str, *, needed: int | None = None
    ) -> ClaimedDifference:
        if not variance.value > 0:
            return ClaimedDifference(of, value, seeds=seeds, over="no error is known: the runs do not differ")
        df = variance.df if math.isfinite(variance.df) else math.inf
        (low, high), p = shown_interval(value, variance.value, df, self.level)
        return ClaimedDifference(of, value, low, high, p, seeds, over, needed)

    def _needed(self, value: float, sd: float, over_pairs: Variance) -> int:
        if not value or not sd:
            return 0
        return seeds_needed(abs(value), sd, over_pairs, level=self.level) or 0

    def _aligned(self, a: Numbers, b: Numbers) -> AlignedScores | None:
        """Return what each pair contributes to the runs of both; None where that is not known, which is noted."""
        if not a.runs or not b.runs:
            return None
        named = {f"{side} {seed}": run for side, cell in (("a", a), ("b", b)) for seed, run in cell.runs.items()}
        try:
            tasks, _ = aligned_scores(named)
        except UserError as error:
            why = str(error).rstrip(".")
            note = f"what other pairs would change is not known ({why}): errors are over seeds alone."
            if note not in self.notes:
                self.notes.append(note)
            return None
        return next((task for task in tasks if task.task == a.task), None)


def answers(
    claims: Sequence[TableClaim],
    exhibit: str,
    cells: Mapping[tuple[str, str], Numbers],
    printed: Mapping[tuple[str, str], float],
    *,
    headline: str,
    scale: str = "",
    missing: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    silent: str = "",
    comparer: Comparer | None = None,
) -> tuple[Answer, ...]:
    """Answer the claims that a paper makes with a table.

    Args:
        claims: of the table.
        exhibit: which table it is, of those that share the claims.
        cells: what was measured, by row and column.
        printed: what the paper prints, by row and column, x 100.
        headline: the column of a claim that names none.
        scale: which scale they answer for.
        missing: by row, why it was not made.
        labels: by row, what it is called; by default its name.
        columns: by column, what it is called; by default its name.
        silent: why nothing that was measured answers a claim, in which case each says its numbers alone.
        comparer: how cells are compared; by default at 95 %, with dyadic intervals.

    Returns:
        An answer for each claim, in their order.
    """
    how, names = comparer or Comparer(), Names(labels or {}, columns or {})
    found = []
    for claim in claims:
        line = claim.lines[exhibit]
        wanted = list(_comparisons(claim, cells, headline))
        prints = _in_print(claim, printed, headline)
        lacking = _lacking(claim, cells, headline)
        if lacking:
            why = (missing or {}).get(lacking, "it was not made")
            told = f"{names.called(lacking)}: {why.rstrip('.')}"
            found.append(Answer(claim, line, "not answered", in_print=prints, why=told, scale=scale))
            continue
        differences = tuple(_measured(claim, wanted, cells, headline, how=how, names=names))
        verdict, decisive = _verdict(differences, how.level)
        if silent:
            verdict = "not answered"
        found.append(Answer(claim, line, verdict, differences, decisive, prints, why=silent, scale=scale))
    return tuple(found)


_Cell = tuple[str, str]


@dataclass(frozen=True)
class Names:
    """What rows and columns are called."""

    rows: Mapping[str, str]
    columns: Mapping[str, str]

    def called(self, name: str) -> str:
        """Return what a row, or a cell that is named `row, column`, is called."""
        row, comma, column = name.partition(", ")
        return f"{self.rows.get(row, row)}{comma}{self.columns.get(column, column)}"


@dataclass(frozen=True)
class _Comparison:
    """The first cell less the second, times the sign, less the margin, has to be above 0."""

    first: _Cell
    second: _Cell
    margin: float = 0.0
    sign: int = 1


def _cell(name: str, column: str) -> _Cell:
    """Return the cell that a claim names: a row, or `row, column`."""
    row, _, own = name.partition(", ")
    return row, own or column


def _columns(claim: TableClaim, cells: Mapping[_Cell, Numbers], headline: str) -> list[str]:
    if claim.every_column or claim.except_columns:
        return list(dict.fromkeys(column for _, column in cells))
    return [claim.column or headline]


def _comparisons(claim: TableClaim, cells: Mapping[_Cell, Numbers], headline: str) -> Iterator[_Comparison]:
    """Yield what a claim comes down to, of the rows that were made."""
    for column in _columns(claim, cells, headline):
        match claim.relation:
            case "best":
                best = _cell(claim.best, column)
                rivals = [_cell(name, column) for name in claim.among] or [
                    (row, own) for row, own in cells if own == best[1]
                ]
                yield from (_Comparison(best, rival) for rival in rivals if rival != best and rival in cells)
            case "above":
                first, second = (_cell(name, column) for name in claim.above)
                if column in claim.except_columns:
                    first, second = second, first
                yield _Comparison(first, second)
            case "order":
                places = [_cell(name, column) for name in claim.order]
                yield from (_Comparison(a, b) for a, b in pairwise(places))
            case "alike":
                places = [_cell(name, column) for name in claim.alike]
                for number, first in enumerate(places):
                    for second in places[number + 1 :]:
                        yield _Comparison(first, second, -claim.by)
                        yield _Comparison(first, second, -claim.by, -1)
            case "collapses":
                yield _Comparison(_cell(claim.than, column), _cell(claim.collapses, column), claim.by)


def _named(claim: TableClaim, cells: Mapping[_Cell, Numbers], headline: str) -> list[_Cell]:
    """Return the cells that a claim cannot do without: of a best value, the best and one other."""
    columns = _columns(claim, cells, headline)
    rows = [claim.best] if claim.relation == "best" else claim.rows
    return [_cell(row, column) for column in columns for row in rows]


def _lacking(claim: TableClaim, cells: Mapping[_Cell, Numbers], headline: str) -> str:
    """Return the row without which the claim cannot be answered, if it was not made."""
    for row, column in _named(claim, cells, headline):
        if (row, column) not in cells:
            return row if any(own == column for _, own in cells) else f"{row}, {column}"
    if claim.relation == "best" and not list(_comparisons(claim, cells, headline)):
        return next((name for name in claim.among), "what it is compared with")
    return ""


def _measured(
    claim: TableClaim,
    wanted: Sequence[_Comparison],
    cells: Mapping[_Cell, Numbers],
    headline: str,
    *,
    how: Comparer,
    names: Names,
) -> Iterator[ClaimedDifference]:
    if claim.relation == "smaller_gap":
        column = claim.column or headline
        pairs = [(cells[_cell(a, column)], cells[_cell(b, column)]) for a, b in claim.smaller_gap]
        (a, b), (c, d) = ([names.called(row) for row in pair] for pair in claim.smaller_gap)
        yield how.gap(f"the gap of {c} and {d} less that of {a} and {b}", pairs)
        return
    for comparison in wanted:
        first, second = comparison.first, comparison.second
        yield how.difference(
            _in_words(comparison, cells, names),
            cells[first],
            cells[second],
            margin=comparison.margin,
            sign=comparison.sign,
        )


def _in_words(comparison: _Comparison, cells: Mapping[_Cell, Numbers], names: Names) -> str:
    several = len({column for _, column in cells}) > 1
    first, second = (
        f"{names.called(row)} on {names.columns.get(column, column)}" if several else names.called(row)
        for row, column in (comparison.first, comparison.second)
    )
    if comparison.sign < 0:
        first, second = second, first
    margin = comparison.margin
    if margin > 0:
        return f"{first} less {second}, less the {margin:g} asked for"
    return f"{first} less {second}" + (f", and {-margin:g} allowed" if margin < 0 else "")


def _verdict(differences: Sequence[ClaimedDifference], level: float) -> tuple[Verdict, ClaimedDifference | None]:
    """Return the answer, and the difference that it hangs on."""
    known = [found for found in differences if not math.isnan(found.p) and not found.is_one_run]
    if len(known) == len(differences) and all(found.low > 0 for found in known):
        return "supported", min(known, key=lambda found: found.low)
    below = [found for found in known if found.value < 0]
    adjusted = holm([found.p for found in known]).tolist() if known else []
    p_of = {id(found): p for found, p in zip(known, adjusted, strict=True)}
    against = [found for found in below if p_of[id(found)] < 1 - level]
    if against:
        return "contradicted", min(against, key=lambda found: p_of[id(found)])
    unknown = [found for found in differences if found not in known]
    return "undecided", min(known or unknown, key=lambda found: found.value)


def _in_print(claim: TableClaim, printed: Mapping[_Cell, float], headline: str) -> bool | None:
    """Return whether the printed numbers say so themselves, without any error; None where some are not there."""
    if not printed:
        return None
    numbers = {cell: Numbers({0: value}) for cell, value in printed.items()}
    column = claim.column or headline
    if claim.relation == "smaller_gap":
        wanted = [_cell(name, column) for name in claim.rows]
        if any(cell not in printed for cell in wanted):
            return None
        gaps = [printed[_cell(a, column)] - printed[_cell(b, column)] for a, b in claim.smaller_gap]
        return gaps[0] < gaps[1]
    if any(cell not in printed for cell in _named(claim, numbers, headline)):
        return None
    values = [
        one.sign * (printed[one.first] - printed[one.second]) - one.margin
        for one in _comparisons(claim, numbers, headline)
    ]
    return all(value > 0 for value in values) if values else None


def _scaled(variance: Variance) -> Variance:
    """Return the variance of a score x 100."""
    return Variance(1e4 * variance.value, 1e4 * variance.independent, variance.df)


def error_of(low: float, high: float) -> float:
    """Return the standard error that an interval of 95 % comes from.

    >>> round(error_of(-1.96, 1.96), 3)
    1.0
    """
    return (high - low) / (2 * _NORMAL_95)
