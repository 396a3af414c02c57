"""Every figure that stsbench draws, on invented numbers and with names of every length.

    python tests/support/gallery.py FOLDER [column|page]

writes them all as PNG, to be looked at side by side; the tests hold that nothing in them is cut or covered.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from stsbench.analysis.density import Density, density_frame
from stsbench.analysis.evalrank import EvalRank, evalrank_frame
from stsbench.analysis.geometry import Geometry, PairVectors, geometry_frame
from stsbench.analysis.length_bias import LengthBias
from stsbench.analysis.length_numbers import length_bias_frame
from stsbench.analysis.repetition_bias import RepetitionBias, repetition_frame
from stsbench.analysis.retrieve import Retrieval, find_neighbours, neighbours_frame
from stsbench.analysis.spectrum import Spectrum, spectrum_frame
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.diagnosis.choices import POOLING
from stsbench.diagnosis.claim import read_claim
from stsbench.diagnosis.grid import Axis, Grid
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.search import Search
from stsbench.judging.best_of import BestOf, best_of
from stsbench.judging.comparison import Comparison, Difference
from stsbench.judging.rank import RankedScore, RankedTask, RankResult
from stsbench.judging.seeds import SeedsComparison, SeedsDifference
from stsbench.published.catalogue import exhibits
from stsbench.published.measured import logged_dev_scores
from stsbench.render.charts import curves
from stsbench.render.figures import FigureSize, look, save_figure
from stsbench.reports.training import seed_figure
from stsbench.reproduction.reproduced import Cost, Reproduction
from stsbench.reproduction.table_plan import plan_of
from stsbench.reproduction.tables import ReproducedCell
from stsbench.scoring.settings import Intervals
from stsbench.sweeps.cells import axis_figure
from stsbench.training.recipe_files import read_recipe
from stsbench.training.result import draw_dev_curve

NAMES = ("minilm", "organisation/a-rather-long-checkpoint-name (dimensions 64)", "glove")
FEW = Intervals()


def pairs(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    gold = rng.uniform(0, 5, size=200)
    about = {"task": "made", "split": "test", "text": "made", "subset": "made", "gold": gold}
    cosine = np.clip(gold / 5 + rng.normal(0, 0.2, size=200), -1, 1)
    ids = dict.fromkeys((*SENTENCES, *FOLDED), np.arange(200, dtype=np.uint64))
    return pd.DataFrame(about | ids | {"cosine": cosine, "words_a": rng.integers(1, 30, size=200), "words_b": 10})


def vectors(seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(60, 12)) + 0.1 * seed


def plane() -> Any:
    left, right, gold = np.arange(20), np.arange(20, 40), np.full(20, 4.5)
    named = {name: PairVectors(vectors(seed), left, right, gold) for seed, name in enumerate(NAMES)}
    return geometry_frame(named, dict.fromkeys(NAMES, 78.87))


def ranked() -> Any:
    left, right, gold = np.arange(30), np.arange(30, 60), np.linspace(0, 5, 30)
    return evalrank_frame({name: PairVectors(vectors(seed), left, right, gold) for seed, name in enumerate(NAMES)})


def probe() -> Any:
    rng = np.random.default_rng(0)
    cosines = {name: [tuple(rng.uniform(0, 1, size=(2, 30))) for _ in range(5)] for name in NAMES}
    return repetition_frame(cosines, range(5), FEW)


def neighbours() -> Any:
    found = {name: find_neighbours(name, vectors(seed)[:2], [vectors(seed)], 5) for seed, name in enumerate(NAMES)}
    return neighbours_frame(found, ["short", "a query " * 20], [str(number) for number in range(60)])


def tables() -> dict[str, pd.DataFrame]:
    return {name: pairs(seed) for seed, name in enumerate(NAMES)}


TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.")


def comparison() -> Any:
    rows = [
        Difference("sts", task, "", 1000, 70.0, 71.0, 1.0 + n / 3, n / 3, 2.0 + n / 3, 0.01, 0.1, 0, 0.04)
        for n, task in enumerate(TASKS)
    ]
    return Comparison(*NAMES[:2], tuple(rows), 0.95)


def over_seeds(names: tuple[str, ...]) -> Any:
    rows = [
        SeedsDifference("sts", task, 3, 70.0 + n, 69.0 + n, 71.5 + n, 5, 5, 71.0 + n, 70.0 + n, 72.0 + n, 3)
        for n, task in enumerate(TASKS)
    ]
    return SeedsComparison(*names[:2], tuple(rows), 0.95)


def ranking(count: int) -> Any:
    names = [*NAMES, *(f"model {n}" for n in range(count))][:count]
    rows = tuple(
        RankedScore(name, 80 - n / 2, 79 - n / 2, 81 - n / 2, n + 1, max(1, n - 1), min(count, n + 3), "abc", 0.5)
        for n, name in enumerate(names)
    )
    task = RankedTask("sts", "Avg.", 1000, rows, ((1.0,) * count,) * count)
    return RankResult(tuple(names), (task,), True, "max", "dyadic", 0.95, 10, 0)


def reproduced(rows: dict[str, float]) -> Any:
    cells = tuple(
        ReproducedCell(row, "STS-B", printed, 80.0 + n / 5, 0.1, 70, 90, "seeds", 3)
        for n, (row, printed) in enumerate(rows.items())
    )
    cost = Cost(jobs=1, planned=1, failed=0, steps=1, hours=0.1, threads=1)
    table = "simcse-slides-dropout"
    return Reproduction(exhibits()[table], plan_of(table), "laptop", cells, (), cost, Path(), {})


def cells(axis: str, values: list[Any], others: tuple[str, ...]) -> Any:
    rows = [
        {"cell": "", axis: value, "method": method, "measure": "STS-B", "mean": 70 + n + m / 2}
        | {"low": 69.5 + n + m / 2, "high": 70.5 + n + m / 2}
        for m, method in enumerate(others)
        for n, value in enumerate(values)
    ]
    return axis_figure(pd.DataFrame(rows), [axis, *(["method"] if len(others) > 1 else [])], axis, "STS-B")


def diagnosis() -> Any:
    poolings = ("avg", "cls", "cls_before_pooler", "avg_first_last")
    axes = (Axis(POOLING, poolings),)
    values = {"STS16": np.linspace(60, 80, len(poolings))}
    return Diagnosis("toy", Search(Grid(axes, values), read_claim("80.00").about(("STS16",))))


def dev_curve() -> Any:
    steps = np.arange(0, 1001, 125)
    log = pd.DataFrame({"step": steps, "loss": np.nan, "dev": 0.6 + 0.2 * (1 - np.exp(-steps / 300))})
    return draw_dev_curve(log, read_recipe("esimcse-bert-base"), 1000)


def trainings() -> Any:
    points = {
        name: pd.DataFrame({"step": np.arange(0, 1000, 50), "value": 60 + n + np.log1p(np.arange(20))})
        for n, name in enumerate(("minilm-seed1", "minilm-seed2", "glove"))
    }
    return curves(points, "dev score × 100", {"minilm-seed1": "minilm", "minilm-seed2": "minilm"})


def logged() -> Any:
    log = logged_dev_scores("esimcse-bert-base")
    points = {
        str(task): pd.DataFrame({"step": log["step"], "value": 100 * log[task]}) for task in log if task != "step"
    }
    return curves(points, "Spearman × 100")


MADE: dict[str, Callable[[], Any]] = {
    "length-bias": lambda: LengthBias(length_bias_frame(tables(), {"made": (0, 5)}, intervals=FEW)),
    "geometry": lambda: Geometry(plane()),
    "geometry, a path": lambda: Geometry(plane(), path=2),
    "spectrum": lambda: Spectrum(spectrum_frame({name: vectors(seed) for seed, name in enumerate(NAMES)})),
    "density": lambda: Density(density_frame(tables())),
    "evalrank": lambda: EvalRank(ranked()),
    "repetition-bias": lambda: RepetitionBias(probe()),
    "retrieve": lambda: Retrieval(neighbours()),
    "length-bias, one model": lambda: LengthBias(
        length_bias_frame(dict([*tables().items()][:1]), {"made": (0, 5)}, intervals=FEW)
    ),
    "compare": comparison,
    "compare, seeds": lambda: over_seeds(("simcse", "esimcse")),
    "compare, seeds of long names": lambda: over_seeds(NAMES[1:]),
    "rank": lambda: ranking(4),
    "rank, many": lambda: ranking(60),
    "best-of": lambda: best_of("unsup-simcse-bert-base"),
    "best-of, checkpoints": lambda: BestOf("a training", "STS-B:dev", tuple(np.linspace(70, 80, 125))),
    "reproduce, row by row": lambda: reproduced({"dropout-0.0": 64.9, "dropout-0.1": 79.1, "fixed-0.1": 45.2}),
    "reproduce, along an axis": lambda: reproduced(
        {"dropout-0.0": 64.9, "dropout-0.1": 79.1, "dropout-0.2": 78.2}
    ),
    "sweep, numbers": lambda: cells("rate", [0.1, 0.3, 0.5], ("simcse", "esimcse")),
    "sweep, words": lambda: cells("checkpoint", ["unsup-simcse-bert-base", "a short one", "glove"], ("",)),
    "diagnose": diagnosis,
    "train": dev_curve,
    "report, trainings": trainings,
    "report, a published log": logged,
    "report, seeds": lambda: seed_figure(
        {"unsup-simcse-bert-base": [75.0, 75.4, 76.1, 74.8], "esimcse": [77.0, 77.2]},
        {NAMES[0]: 76.2, "glove": 76.3},
    ),
}
"""Results and figures, by what they are."""


def drawn(made: Any) -> Any:
    """Return the figure of what was made, which may be one."""
    return made if hasattr(made, "savefig") else made.plot()


if __name__ == "__main__":
    size = cast(FigureSize, sys.argv[2] if len(sys.argv) > 2 else "column")
    with look(size):
        for name, make in MADE.items():
            print(
                save_figure(drawn(make()), Path(sys.argv[1]) / f"{name.replace(', ', '-').replace(' ', '-')}.png")
            )
