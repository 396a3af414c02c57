"""Which of its parts each step of a training takes: the contrastive objective and tasks, together or in phases.

It follows from the seed and the number of the step alone, so a resumed training need not remember it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from stsbench.statistics.draws import generator
from stsbench.training.recipe import Recipe
from stsbench.training.tasks import CONTRASTIVE, Phase


@dataclass(frozen=True, eq=False)
class Timetable:
    """Which parts each step takes.

    Attributes:
        turns: for each part (steps,): the how-manieth turn of its own a step is, from 0; -1 where it is none.
        ends: the step behind each phase.
        paces: the steps of an epoch of each phase.
    """

    turns: Mapping[str, NDArray[np.int64]]
    ends: tuple[int, ...]
    paces: tuple[int, ...]

    @property
    def steps(self) -> int:
        """Optimiser steps in all."""
        return self.ends[-1]

    def turn(self, part: str, step: int) -> int | None:
        """Return which turn of a part a step is, both counted from 0; None if the step does not take it."""
        turn = int(self.turns[part][step])
        return None if turn < 0 else turn

    def epoch(self, step: int) -> float:
        """Return how many epochs the first `step` steps are, phase after phase."""
        epochs, start = 0.0, 0
        for end, pace in zip(self.ends, self.paces, strict=True):
            if step <= end:
                return epochs + (step - start) / pace
            epochs, start = epochs + (end - start) / pace, end
        return epochs


def make_timetable(recipe: Recipe, sizes: Mapping[str, int]) -> Timetable:
    """Return the timetable of a recipe."""
    phases = recipe.phases or (Phase(takes=(CONTRASTIVE, *recipe.tasks)),)
    paces = [sizes[_pace(phase, sizes)] for phase in phases]
    lengths = [pace * (phase.epochs or recipe.optimiser.epochs) for phase, pace in zip(phases, paces, strict=True)]
    taken = [
        _taken(recipe, number, length, {part: _rate(recipe, part, pace, sizes) for part in phase.takes})
        for number, (phase, length, pace) in enumerate(zip(phases, lengths, paces, strict=True))
    ]
    turns = {}
    for part in sizes:
        rows = zip(taken, lengths, strict=True)
        takes = np.concatenate([of_phase.get(part, np.zeros(length, bool)) for of_phase, length in rows])
        turns[part] = np.where(takes, np.cumsum(takes) - 1, -1)
    return Timetable(turns, tuple(accumulate(lengths)), tuple(paces))


def _pace(phase: Phase, sizes: Mapping[str, int]) -> str:
    """Return whose rows an epoch of a phase passes over."""
    if phase.epoch_of is not None:
        return phase.epoch_of
    return CONTRASTIVE if CONTRASTIVE in phase.takes else max(phase.takes, key=lambda part: sizes[part])


def _taken(recipe: Recipe, phase: int, steps: int, rates: Mapping[str, float]) -> dict[str, NDArray[np.bool_]]:
    """Return for each part of a phase, named by its number, (steps,): whether a step takes it."""
    draws = {part: generator(recipe.seed, "turns", str(phase), part).random(steps) for part in rates}
    taken = {part: draws[part] < rate for part, rate in rates.items()}
    # A step that nothing falls to takes one part, drawn in proportion to the rates.
    idle = np.flatnonzero(~np.any(list(taken.values()), axis=0))
    if len(idle):
        chances = np.array(list(rates.values()))
        drawn = generator(recipe.seed, "idle turns", str(phase)).choice(
            len(chances), size=len(idle), p=chances / chances.sum()
        )
        for place, part in enumerate(rates):
            taken[part][idle[drawn == place]] = True
    return taken


def _rate(recipe: Recipe, part: str, pace: int, sizes: Mapping[str, int]) -> float:
    """Return the chance that a step takes a part."""
    if part == CONTRASTIVE:
        return 1.0
    rate = recipe.tasks[part].rate
    return min(1.0, sizes[part] / pace) if rate == "once" else rate
