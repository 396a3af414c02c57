"""Effect of each single choice of the protocol on a model's score: the table of the page on why numbers differ.

STSBENCH_DATA=data/senteval python docs/single_changes.py > reports/examples/tables/choices.md
"""

import sys
from math import isnan

import stsbench as sb
from stsbench.diagnosis.axes import AVERAGE_OF
from stsbench.diagnosis.grid import Grid
from stsbench.records.kinds import AVERAGE


def table(grid: Grid) -> list[str]:
    """Return a row for each setting that differs from the default in one choice, in Markdown.

    The average, how far it is from the default's, and the task that moves most.
    """
    default = grid.value(AVERAGE, grid.default)
    lines = [
        "| one change | average | difference | most of all |",
        "| --- | ---: | ---: | --- |",
        f"| none | {default:.2f} | | |",
    ]
    for number, axis in enumerate(grid.axes):
        for place, value in enumerate(axis.values):
            setting = (*grid.default[:number], place, *grid.default[number + 1 :])
            average = grid.value(AVERAGE, setting)
            # Scaling alone does not change the cosine; one task is not an average.
            if not place or isnan(average) or (axis.name == AVERAGE_OF and len(value.tasks) == 1):
                continue
            moved = {task: grid.value(task, setting) - grid.value(task, grid.default) for task in grid.scores}
            most = max(moved, key=lambda task: abs(moved[task]))
            farthest = f"{most} {moved[most]:+.2f}" if abs(moved[most]) >= 0.005 else ""
            lines.append(f"| {axis.label_of(value)} | {average:.2f} | {average - default:+.2f} | {farthest} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table(sb.diagnose(sys.argv[1] if len(sys.argv) > 1 else "minilm", 0.0, budget=0).grid)))
