"""What the tasks' pairs resolve, measured on the encoders at hand: the facts behind `published show --resolution`.

python docs/resolution_facts.py RUN ... > stsbench/published/entries/measured/resolution.json

Each run is a record of the seven test sets and of STS-B's development set (`stsbench run --tasks sts,STS-B:dev`).
An encoder is called as its run's folder: up to the first hyphen that is its family (kin share weights, or the
weights that they were trained from), and names that differ in a last digit alone are seeds of one training. How
the runs of the committed file were made is in `docs/field.md`. The pair of all-mpnet-base-v2 and
all-MiniLM-L6-v2, of which one record is not at hand, is read from the table in `docs/error-bars.md`, which has
two decimals.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from stsbench.judging.aligned import AlignedScores, aligned_scores, with_average
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run

ERROR_BARS = Path(__file__).with_name("error-bars.md")
DEV, AVERAGE = "STS-B:dev", "Avg. STS"


def facts(runs: Mapping[str, RunRecord]) -> dict[str, Any]:
    """Return by task scores and standard errors x 100 of each encoder, and what `_of_two` says of each two."""
    tasks = measured_tasks(runs)
    names = list(runs)
    encoders = {name: {task.task: _of_one(task, place) for task in tasks} for place, name in enumerate(names)}
    pairs = [
        [names[a], names[b], {task.task: _of_two(task, a, b) for task in tasks}]
        for a, b in combinations(range(len(names)), 2)
    ]
    return {"encoders": encoders, "pairs": pairs}


def measured_tasks(runs: Mapping[str, RunRecord]) -> list[AlignedScores]:
    """Return the seven test sets, their average and the development set, as all runs were scored on them."""
    aligned, _ = aligned_scores(runs)
    named = [replace(task, task=task.task.removesuffix(":test")) for task in aligned if not task.is_average]
    *tests, average = with_average([task for task in named if task.task != DEV])
    return [*tests, replace(average, task=AVERAGE), *(task for task in named if task.task == DEV)]


def correlation(task: AlignedScores, a: int, b: int) -> float:
    """Return the correlation of two models' errors on a task, of its dependent pairs.

    It is the one with which their standard errors give that of their difference, as `compare` and `plan` have it:
    V(a - b) = V(a) + V(b) - 2 r sqrt(V(a) V(b)).
    """
    weights = np.eye(len(task.scores))
    of_a, of_b, of_both = (
        task.variance_of(row, "dyadic").value for row in (*weights[[a, b]], weights[a] - weights[b])
    )
    return float((of_a + of_b - of_both) / (2 * np.sqrt(of_a * of_b)))


def _of_two(task: AlignedScores, a: int, b: int) -> list[float]:
    """Return the correlation of two models' errors, and the degrees of freedom of their difference."""
    weights = np.eye(len(task.scores))
    return [round(correlation(task, a, b), 3), round(task.variance_of(weights[a] - weights[b], "dyadic").df, 1)]


def _of_one(task: AlignedScores, place: int) -> list[float]:
    variance = task.variance_of(np.eye(len(task.scores))[place], "dyadic")
    return [round(100 * float(task.scores[place]), 2), round(100 * variance.standard_error, 3)]


def printed_pair(page: str) -> tuple[dict[str, dict[str, list[float]]], list[Any]]:
    """Return the two encoders of the table in `error-bars.md`, and their correlations."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"
    ]
    head = next(place for place, line in enumerate(cells) if line[:3] == ["task", "", "score"])
    place = cells[head].index("dyadic")
    lines = [line for line in cells[head + 2 :] if len(line) == len(cells[head])]
    encoders: dict[str, dict[str, list[float]]] = {}
    correlations = {}
    for first, second, difference in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        task = first[0].replace("Avg.", AVERAGE)
        a, b, d = (float(line[place]) for line in (first, second, difference))
        for line in (first, second):
            encoders.setdefault(line[1], {})[task] = [float(line[2]), float(line[place])]
        correlations[task] = [round((a * a + b * b - d * d) / (2 * a * b), 2), None]
    return encoders, [*encoders, correlations]


def as_json(found: Mapping[str, Any]) -> str:
    """Return the facts with a line for each encoder and each pair."""
    encoders = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(tasks)}" for name, tasks in found["encoders"].items()
    )
    pairs = ",\n".join(f"  {json.dumps(pair)}" for pair in found["pairs"])
    return f'{{"encoders": {{\n{encoders}\n}}, "pairs": [\n{pairs}\n]}}\n'


def main(folders: Sequence[str]) -> str:
    """Return the file for these runs."""
    found = facts({Path(folder).name: load_run(folder) for folder in folders})
    encoders, pair = printed_pair(ERROR_BARS.read_text(encoding="utf-8"))
    # What was measured here goes before what the page has rounded.
    return as_json({"encoders": encoders | found["encoders"], "pairs": [*found["pairs"], pair]})


if __name__ == "__main__":
    print(main(sys.argv[1:]), end="")
