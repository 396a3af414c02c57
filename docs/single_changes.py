"""What each single choice of the protocol costs a model: the table in `why-numbers-differ.md`.

STSBENCH_DATA=data/senteval python docs/single_changes.py
"""

import sys

import stsbench as sb
from stsbench.diagnosis.grid import AVERAGE_OF, Grid
from stsbench.diagnosis.words import phrase
from stsbench.records.record import AVERAGE


def table(grid: Grid) -> list[str]:
    """Return a row for each setting that differs from the default in one choice, in Markdown.

    The average, how far it is from the default's, and the task that moves most.
    """
    own = grid.value(AVERAGE, grid.default)
    lines = [
        "| one change | average | difference | most of all |",
        "| --- | ---: | ---: | --- |",
        f"| none | {own:.2f} | | |",
    ]
    tasks = [task for task in grid.scores if task != "sample"]
    for number, axis in enumerate(grid.axes):
        for value, name in enumerate(axis.values):
            # An average of one task alone says nothing of a choice; the sample is another measurement.
            if axis.costs[value] != 1 or (axis.name == AVERAGE_OF and (" alone" in name or "sample" in name)):
                continue
            place = (*grid.default[:number], value, *grid.default[number + 1 :])
            average = grid.value(AVERAGE, place)
            moved = {task: grid.value(task, place) - grid.value(task, grid.default) for task in tasks}
            most = max(moved, key=lambda task: abs(moved[task]))
            told = f"{most} {moved[most]:+.2f}" if abs(moved[most]) >= 0.005 else ""
            lines.append(f"| {phrase(axis.name, name)} | {average:.2f} | {average - own:+.2f} | {told} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table(sb.diagnose(sys.argv[1] if len(sys.argv) > 1 else "minilm", 0.0).grid)))
