"""Effect of each single choice of the protocol on a model's score: the table of the page on why numbers differ.

STSBENCH_DATA=data/senteval python docs/single_changes.py > reports/examples/tables/choices.md
"""

import sys
from collections.abc import Sequence
from math import isnan

import numpy as np

import stsbench as sb
from stsbench.diagnosis.axes import Mean
from stsbench.diagnosis.search import Grid
from stsbench.records.kinds import AVERAGE


def value(grid: Grid, task: str, place: Sequence[int]) -> float:
    """Return the score of a task, or the average, for one setting: a choice without effect has one value."""
    scores = grid.of(task)
    return float(scores[tuple(np.minimum(place, np.array(scores.shape) - 1))])


def table(grid: Grid) -> list[str]:
    """Return a row for each setting that differs from the default in one choice, in Markdown.

    The average, how far it is from the default's, and the task that moves most.
    """
    own = (0,) * len(grid.axes)
    default = value(grid, AVERAGE, own)
    lines = [
        "| one change | average | difference | most of all |",
        "| --- | ---: | ---: | --- |",
        f"| none | {default:.2f} | | |",
    ]
    for number, axis in enumerate(grid.axes):
        for place, choice in enumerate(axis.values):
            setting = (*own[:number], place, *own[number + 1 :])
            average = value(grid, AVERAGE, setting)
            # Scaling alone does not change the cosine; one task is not an average.
            if not place or isnan(average) or (isinstance(choice, Mean) and len(choice.tasks) == 1):
                continue
            moved = {task: value(grid, task, setting) - value(grid, task, own) for task in grid.scores}
            most = max(moved, key=lambda task: abs(moved[task]))
            farthest = f"{most} {moved[most]:+.2f}" if abs(moved[most]) >= 0.005 else ""
            lines.append(f"| {axis.label_of(choice)} | {average:.2f} | {average - default:+.2f} | {farthest} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table(sb.diagnose(sys.argv[1] if len(sys.argv) > 1 else "minilm", 0.0, budget=0).grid)))
