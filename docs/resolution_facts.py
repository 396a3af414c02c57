"""Measure the standard errors of encoders, and how the errors of two correlate.

python docs/resolution_facts.py RUN ...

Writes `stsbench/published/entries/measured/encoders`, the data of the notebook "The field, read again", which says
how the committed runs were made. Each run is a record of the seven test sets and of STS-B's development set
(`stsbench run --tasks sts,STS-B:dev`). Its folder names the encoder: the name up to the first hyphen is its family
(encoders with the same weights, or trained from them), and names that differ only in a last digit are seeds of one
training. all-mpnet-base-v2 and its correlation with all-MiniLM-L6-v2 are from the table of the page on error bars,
with its two decimals.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from stsbench.judging.aligned import AlignedScores, aligned_scores, with_average
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run

MEASURED = Path(__file__).resolve().parents[1] / "stsbench" / "published" / "entries" / "measured" / "encoders"
ERROR_BARS = Path(__file__).resolve().parents[1] / "reports" / "examples" / "tables" / "standard-errors.md"
DEV, AVERAGE = "STS-B:dev", "Avg. STS"

Facts = tuple[pd.DataFrame, pd.DataFrame]
"""The tables of `published.catalogue`: `encoder_errors` and `error_correlations`."""


def facts(runs: Mapping[str, RunRecord]) -> Facts:
    """Return standard errors and correlations of some runs."""
    errors, correlations = [], []
    tasks, names = measured_tasks(runs), list(runs)
    for (place, name), task in ((one, task) for one in enumerate(names) for task in tasks):
        error = task.estimate(np.eye(len(names))[place], "dyadic").variance.standard_error
        errors.append((name, task.task, round(100 * float(task.scores[place]), 2), round(100 * error, 3)))
    for (a, b), task in ((pair, task) for pair in combinations(range(len(names)), 2) for task in tasks):
        weights = np.eye(len(names))
        df = task.estimate(weights[a] - weights[b], "dyadic").variance.df
        correlations.append((names[a], names[b], task.task, round(correlation(task, a, b), 3), round(df, 1)))
    return _tables(errors, correlations)


def _tables(errors: Sequence[tuple[object, ...]], correlations: Sequence[tuple[object, ...]]) -> Facts:
    return (
        pd.DataFrame(errors, columns=["encoder", "task", "score", "error"]),
        pd.DataFrame(correlations, columns=["a", "b", "task", "correlation", "df"]),
    )


def measured_tasks(runs: Mapping[str, RunRecord]) -> list[AlignedScores]:
    """Return the seven test sets, their average and the development set."""
    aligned, _ = aligned_scores(runs)
    named = [replace(task, task=task.task.removesuffix(":test")) for task in aligned if not task.is_average]
    *tests, average = with_average([task for task in named if task.task != DEV])
    return [*tests, replace(average, task=AVERAGE), *(task for task in named if task.task == DEV)]


def correlation(task: AlignedScores, a: int, b: int) -> float:
    """Return the correlation r of two models' errors: V(a - b) = V(a) + V(b) - 2 r sqrt(V(a) V(b))."""
    weights = np.eye(len(task.scores))
    of_a, of_b, of_both = (
        task.estimate(row, "dyadic").variance.value for row in (*weights[[a, b]], weights[a] - weights[b])
    )
    return float((of_a + of_b - of_both) / (2 * np.sqrt(of_a * of_b)))


def printed_pair(page: str) -> Facts:
    """Return the two encoders of the page on error bars."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"
    ]
    head = next(place for place, line in enumerate(cells) if line[:3] == ["task", "", "score"])
    place = cells[head].index("dyadic")
    lines = [line for line in cells[head + 2 :] if len(line) == len(cells[head])]
    errors, correlations = [], []
    for first, second, difference in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        task = first[0].replace("Avg.", AVERAGE)
        a, b, d = (float(line[place]) for line in (first, second, difference))
        errors += [(line[1], task, float(line[2]), float(line[place])) for line in (first, second)]
        r = round((a * a + b * b - d * d) / (2 * a * b), 2)
        correlations.append((first[1], second[1], task, r, math.inf))
    return _tables(errors, correlations)


def main(folders: Sequence[str]) -> None:
    """Write the two tables for these runs."""
    errors, correlations = facts({Path(folder).name: load_run(folder) for folder in folders})
    page, page_correlations = printed_pair(ERROR_BARS.read_text(encoding="utf-8"))
    # Measured here, all-MiniLM-L6-v2 has more decimals than on the page.
    page = page[~page["encoder"].isin(errors["encoder"])]
    pd.concat([page, errors]).to_csv(MEASURED / "errors.csv", index=False)
    pd.concat([correlations, page_correlations]).to_csv(MEASURED / "correlations.csv", index=False)


if __name__ == "__main__":
    main(sys.argv[1:])
