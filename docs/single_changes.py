"""What each single choice of the protocol costs a model: the table in `why-numbers-differ.md`.

STSBENCH_DATA=data/senteval python docs/single_changes.py
"""

import sys

import stsbench as sb
from stsbench.diagnosis.choices import AVERAGE_OF
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
    tasks = [task for task in grid.scores if task != "sample"]
    for number, axis in enumerate(grid.axes):
        for place, value in enumerate(axis.values):
            # An average of one task alone says nothing of a choice; the sample is another measurement.
            if axis.changes[place] != 1 or (axis.choice == AVERAGE_OF and len(value.tasks) == 1):
                continue
            setting = (*grid.default[:number], place, *grid.default[number + 1 :])
            average = grid.value(AVERAGE, setting)
            moved = {task: grid.value(task, setting) - grid.value(task, grid.default) for task in tasks}
            most = max(moved, key=lambda task: abs(moved[task]))
            farthest = f"{most} {moved[most]:+.2f}" if abs(moved[most]) >= 0.005 else ""
            phrase = axis.choice.phrase_of(value)
            lines.append(f"| {phrase} | {average:.2f} | {average - default:+.2f} | {farthest} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table(sb.diagnose(sys.argv[1] if len(sys.argv) > 1 else "minilm", 0.0, further=0).grid)))
