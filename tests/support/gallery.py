"""Every figure that stsbench draws, on invented numbers and with names of every length."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stsbench.judging.comparison import Comparison
from stsbench.judging.rank import RankResult
from stsbench.judging.seeds import Method, SeedsComparison
from stsbench.published.catalogue import exhibits
from stsbench.render.charts import curves
from stsbench.reports.training import seed_figure
from stsbench.reproduction.reproduced import Cost, ReproducedCell, Reproduction
from stsbench.reproduction.table_plan import plan_of
from stsbench.sweeps.result import axis_figure
from stsbench.training.recipe import read_recipe
from stsbench.training.train import draw_dev_curve

sys.path.append(str(Path(__file__).resolve().parents[1] / "analysis"))
from test_figures_fit import FIGURES, NAMES

TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.")


def comparison():
    rows = [
        {"kind": "sts", "task": task, "subset": "", "difference": 1.0 + n / 3, "low": n / 3, "high": 2.0 + n / 3}
        | {"verdict": "better" if task == "Avg." else "undecided"}
        for n, task in enumerate(TASKS)
    ]
    return Comparison(*NAMES[:2], pd.DataFrame(rows), 0.95)


def over_seeds(names):
    rows = [
        {"task": task, "a": Method(3, 70.0 + n, lowest=69.0 + n, highest=71.5 + n)}
        | {"b": Method(5, 71.0 + n, lowest=70.0 + n, highest=72.0 + n)}
        for n, task in enumerate(TASKS)
    ]
    return SeedsComparison(*names[:2], pd.DataFrame(rows), 0.95)


def ranking(count):
    names = [*NAMES, *(f"model {n}" for n in range(count))][:count]
    rows = [
        {"kind": "sts", "task": "Avg.", "model": name, "score": 80 - n / 2, "low": 79 - n / 2, "high": 81 - n / 2}
        | {"best": max(1, n - 1), "worst": min(count, n + 3)}
        for n, name in enumerate(names)
    ]
    p = {"Avg.": ((1.0,) * count,) * count}
    return RankResult(tuple(names), pd.DataFrame(rows), p, True, "dyadic", 0.95, 10)


def reproduced(rows):
    cells = tuple(
        ReproducedCell(row, "STS-B", printed, 80.0 + n / 5, 0.1, 70, 90, "seeds", 3)
        for n, (row, printed) in enumerate(rows.items())
    )
    cost = Cost(jobs=1, planned=1, failed=0, steps=1, hours=0.1, threads=1)
    table = "simcse-slides-dropout"
    return Reproduction(exhibits()[table], plan_of(table), "laptop", cells, (), cost, Path(), {})


def cells(axis, values, others):
    rows = [
        {"place": value, "series": method, "filled": True, "value": 70 + n + m / 2}
        | {"low": 69.5 + n + m / 2, "high": 70.5 + n + m / 2}
        for m, method in enumerate(others)
        for n, value in enumerate(values)
    ]
    return axis_figure(pd.DataFrame(rows), axis, "STS-B")


def dev_curve():
    steps = np.arange(0, 1001, 125)
    log = pd.DataFrame({"step": steps, "loss": np.nan, "dev": 0.6 + 0.2 * (1 - np.exp(-steps / 300))})
    return draw_dev_curve(log, read_recipe("esimcse-bert-base"), 1000)


def trainings():
    points = {
        name: pd.DataFrame({"step": np.arange(0, 1000, 50), "value": 60 + n + np.log1p(np.arange(20))})
        for n, name in enumerate(("minilm-seed1", "minilm-seed2", "glove"))
    }
    return curves(points, "dev score × 100", {"minilm-seed1": "minilm", "minilm-seed2": "minilm"})


MADE: dict[str, Callable[[], Any]] = {
    **FIGURES,
    "compare": comparison,
    "compare, seeds": lambda: over_seeds(("simcse", "esimcse")),
    "compare, seeds of long names": lambda: over_seeds(NAMES[1:]),
    "rank": lambda: ranking(4),
    "rank, many": lambda: ranking(60),
    "reproduce, row by row": lambda: reproduced({"dropout-0.0": 64.9, "dropout-0.1": 79.1, "fixed-0.1": 45.2}),
    "reproduce, along an axis": lambda: reproduced(
        {"dropout-0.0": 64.9, "dropout-0.1": 79.1, "dropout-0.2": 78.2}
    ),
    "sweep, numbers": lambda: cells("rate", [0.1, 0.3, 0.5], ("simcse", "esimcse")),
    "sweep, words": lambda: cells("checkpoint", ["unsup-simcse-bert-base", "a short one", "glove"], ("",)),
    "train": dev_curve,
    "report, trainings": trainings,
    "report, seeds": lambda: seed_figure(
        {"unsup-simcse-bert-base": [75.0, 75.4, 76.1, 74.8], "esimcse": [77.0, 77.2]},
        {NAMES[0]: 76.2, "glove": 76.3},
    ),
}
"""Results and figures, by what they are."""


def drawn(made):
    """Return the figure of what was made, which may be one."""
    return made if hasattr(made, "savefig") else made.plot()
