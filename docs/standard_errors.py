"""Standard errors by each way to see pairs that share sentences: the table of the page on error bars.

python docs/standard_errors.py runs/mpnet runs/minilm > reports/examples/tables/standard-errors.md
"""

import sys

import numpy as np

from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.records.labels import labels
from stsbench.records.store import load_run
from stsbench.statistics import Dependence

METHODS: tuple[Dependence, ...] = ("independent", "dyadic", "components")


def rows(task: AlignedScores, names: list[str]) -> list[str]:
    """Return a row for each model and one for their difference: the score x 100, and its standard errors."""
    weights = {name: np.eye(len(names))[place] for place, name in enumerate(names)}
    if len(names) == 2:
        weights["difference"] = np.array([-1.0, 1.0])
    lines = []
    for number, (name, weight) in enumerate(weights.items()):
        errors = {method: 100 * task.estimate(weight, method).variance.standard_error for method in METHODS}
        score = 100 * float(weight @ task.scores)
        shown = f"{score:+.2f}" if name == "difference" else f"{score:.2f}"
        cells = [f"{errors[method]:.2f}" for method in METHODS]
        ratio = f"{errors['dyadic'] / errors['independent']:.2f}"
        lines.append("| " + " | ".join([task.task if number == 0 else "", name, shown, *cells, ratio]) + " |")
    return lines


if __name__ == "__main__":
    records = [load_run(path) for path in sys.argv[1:]]
    names = list(labels(records))
    tasks, notes = aligned_scores(dict(zip(names, records, strict=True)))
    header = ["task", "", "score", *METHODS, "dyadic / independent"]
    print("| " + " | ".join(header) + " |")
    print("| --- | --- |" + " ---: |" * (len(header) - 2))
    print("\n".join(row for task in tasks for row in rows(task, names)))
    print(*notes, sep="\n", file=sys.stderr)
