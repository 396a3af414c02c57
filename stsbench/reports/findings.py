"""What is worth a reader's time in a report: numbers that stand out after correction for all that were looked at.

Looked at are each task against the published models of the run's average (`standing`), and each kind of pair
(`analysis.pair_kinds`): its shift and its cost. Of all of them together, and of all runs, Holm's correction says
which stand out. `docs/definitions/pair-kinds.md` writes down the rules.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from stsbench.analysis.pair_kinds import COST, SHIFT, PairKinds
from stsbench.render.section import Pointer
from stsbench.render.table import interval
from stsbench.reports.standing import STANDING, Standing, residuals
from stsbench.statistics.significance import holm

MOST = 5
"""So many findings stand at the top of a report, shared by its runs."""


class Observation(NamedTuple):
    """Something that was looked at.

    Attributes:
        text: what was found, in a sentence with its number and interval.
        to: where to read on.
        run: whose.
        about: what it is of: of several findings about one feature of pairs the heaviest is told.
        worth: what findings are ordered by: of a task the points, of pairs the share of the rank error.
        p: the p-value of there being nothing.
        is_task: whether it is of a task among published models.
        is_worth_telling: False for what is no news to a reader, though it counts among what was looked at.
    """

    text: str
    to: str
    run: str
    about: str
    worth: float
    p: float
    is_task: bool = False
    is_worth_telling: bool = True


def findings(
    standings: Mapping[str, Sequence[Standing]], kinds: PairKinds | None, level: float
) -> tuple[Pointer, ...]:
    """Return what stands out as sentences, and in how many numbers was looked; nothing where in none.

    Args:
        standings: by run, where it stands among published models.
        kinds: of the same runs; None where they were not analysed.
        level: of the intervals; 1 less it is what Holm's correction keeps the error below.
    """
    looked = [finding for run, places in standings.items() for finding in _tasks(run, places, level)]
    if kinds is not None:
        looked += _kinds(kinds.headline, level, several=len(standings) > 1)
    looked = [finding for finding in looked if finding.p == finding.p]
    if not looked:
        return ()
    adjusted = holm([finding.p for finding in looked])
    kept = [finding for finding, p in zip(looked, adjusted, strict=True) if p < 1 - level]
    share = max(1, MOST // len(standings))
    told = [finding for run in standings for finding in _chosen([of for of in kept if of.run == run], share)]
    many = f"of {len(looked)} numbers that were looked at"
    count = f"{len(kept)} {many} stand" if len(kept) != 1 else f"1 {many} stands"
    text = f"{count} out after Holm's correction over all of them at {100 * (1 - level):.2g} %."
    return *(Pointer(finding.text, finding.to) for finding in told), Pointer(text, _FURTHER)


_FURTHER = PairKinds.name


def _chosen(kept: Sequence[Observation], most: int) -> list[Observation]:
    """Return the findings of a run that are told: of tasks at most half, where those of pairs fill the rest."""
    heaviest: dict[str, Observation] = {}
    for finding in sorted(kept, key=lambda finding: -finding.worth):
        if finding.is_worth_telling:
            heaviest.setdefault(finding.about, finding)
    tasks = [finding for finding in heaviest.values() if finding.is_task]
    pairs = [finding for finding in heaviest.values() if not finding.is_task]
    of_tasks = tasks[: max(most // 2, most - len(pairs))]
    return [*of_tasks, *pairs[: most - len(of_tasks)]]


def _tasks(run: str, places: Sequence[Standing], level: float) -> list[Observation]:
    return [
        Observation(
            f"{run} is {abs(of.value):.2f} points {'above' if of.value > 0 else 'below'} models of its average on "
            f"{of.task} ({_limits(*of.limits[:2], level, 2)}, {of.models} published models).",
            STANDING,
            run,
            of.task,
            abs(of.value),
            of.p,
            is_task=True,
        )
        for of in residuals(places, level)
    ]


def _kinds(over: pd.DataFrame, level: float, *, several: bool) -> list[Observation]:
    """Return the findings of kinds of pairs. That a kind costs less than its share is no news."""
    looked = []
    for row in over.to_dict("records"):
        value, low, high, name = row["value"], row["low"], row["high"], row["kind"]
        pairs = f"{row['model']}: pairs with {name}" if several else f"Pairs with {name}"
        if row["measure"] == SHIFT:
            way = "high" if value > 0 else "low"
            told = f"{pairs} are ranked {abs(value):.1f} points too {way} among pairs of like gold score"
        else:
            told = f"{pairs} hold {value:.2f} times their share of the rank error"
        told += f" ({_limits(low, high, level, 1 if row['measure'] == SHIFT else 2)})."
        is_news = row["measure"] != COST or value > 1
        looked.append(
            Observation(
                told, _FURTHER, row["model"], row["feature"], row["weight"], row["p"], is_worth_telling=is_news
            )
        )
    return looked


def _limits(low: float, high: float, level: float, decimals: int) -> str:
    """Return an interval in words: of what is said to be below or too low, how far."""
    low, high = (-high, -low) if high < 0 else (low, high)
    return f"{100 * level:g} % {interval(low, high, decimals)}"
