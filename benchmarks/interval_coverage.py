"""Whether the intervals and tests hold: their coverage and size on scores of which the truth is known.

    STSBENCH_DATA=path/to/senteval python benchmarks/interval_coverage.py [--cells 'task-*'] [--simulations 2000]

Draws scores on the real graphs of the STS tasks (`synthetic_tasks.py`), computes each interval as the package
does, and counts how often it holds the truth. A cell of the tables (a task, how sentences act, how strongly) is a
JSON file in `interval_coverage/`; a finished one is not run again, so that a study that was cut short goes on.
`--table` writes the page of the documentation and a table of all results; without it the page is printed.
"""

import argparse
import fnmatch
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from interval_tables import page, rows, write_rows
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from synthetic_tasks import ANNOTATION, HIGHEST, LOWEST, SHARED_ERROR, TASKS, Effects, Task, World, read_tasks

from stsbench.base.files import atomic_path
from stsbench.statistics import Dependence
from stsbench.statistics.correlations import CORRELATIONS, Aggregation, Metric, average_ranks, correlate_task
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.estimate import williams
from stsbench.statistics.influence import TERMS, mean_terms, task_terms
from stsbench.statistics.intervals import (
    correlation_interval,
    lower_bound,
    plain_interval,
    share_interval,
    two_sided_p,
    upper_bound,
)
from stsbench.statistics.seeds import generator

Floats = NDArray[np.float64]

HERE = Path(__file__).parent
CELLS = HERE / "interval_coverage"
DOCS = HERE.parent / "docs" / "reference" / "coverage.md"

SIMULATIONS = 2000
METHODS: tuple[Dependence, ...] = ("dyadic", "components", "independent")
FEW = (4, 5, 6, 8, 10, 15, 20, 30, 49, 60, 100)
ITEMS = (12, 20, 48, 100, 500)


@dataclass(frozen=True)
class Cell:
    """A cell of the tables: what is drawn, and how often."""

    name: str
    kind: str
    simulations: int = SIMULATIONS
    options: dict[str, Any] = field(default_factory=dict)


class Tally:
    """Counts, by name: each is (how often it held, of how many)."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = defaultdict(list)

    def add(self, name: str, value: float) -> None:
        self._values[name].append(float(value))

    def shares(self) -> dict[str, list[float | None]]:
        """Return the mean of each and how many values it is of; a NaN (no interval) counts for neither."""
        means: dict[str, list[float | None]] = {}
        for name, values in self._values.items():
            there = np.array(values)[~np.isnan(values)]
            means[name] = [float(f"{there.mean():.6g}") if len(there) else None, len(there)]
        return means

    def mean(self, name: str) -> float:
        return float(np.mean(self._values[name]))

    def spread(self, name: str) -> float:
        return float(np.std(self._values[name]))


def all_cells() -> Iterator[Cell]:
    """Return every cell of the study, in the order of the tables."""
    worlds: list[tuple[Effects, float]] = [
        ("none", 0.0),
        ("both", 0.4),
        ("both", 0.8),
        ("hub", 0.4),
        ("hub", 0.7),
        ("hub", 0.9),
        ("topic", 0.1),
        ("topic", 0.3),
    ]
    for task in TASKS:
        for effects, strength in worlds:
            yield Cell(
                f"task-{task}-{effects}-{strength}",
                "task",
                options={"task": task, "effects": effects, "strength": strength},
            )
    for effects, strength in (worlds[0], worlds[2], worlds[4], worlds[6]):
        yield Cell(f"average-{effects}-{strength}", "average", options={"effects": effects, "strength": strength})
    for task, aggregation, metric in (
        ("STS12", "mean", "spearman"),
        ("STS12", "wmean", "spearman"),
        ("STS16", "mean", "spearman"),
        ("STS16", "wmean", "spearman"),
        ("STS12", "all", "pearson"),
        ("STS16", "all", "pearson"),
        ("STS-B", "all", "pearson"),
    ):
        options = {"task": task, "effects": "hub", "strength": 0.7, "aggregation": aggregation, "metric": metric}
        yield Cell(f"score-{task}-{aggregation}-{metric}", "task", options=options)
    for metric, levels, star, rhos in (
        ("spearman", 0, 1, (0.0, 0.5, 0.8, 0.95, 0.99)),
        ("spearman", 6, 1, (0.0, 0.5, 0.8, 0.9)),
        ("pearson", 0, 1, (0.0, 0.5, 0.8, 0.95, 0.99)),
        ("spearman", 0, 4, (0.0, 0.5, 0.8, 0.95)),
        ("kendall", 0, 1, (0.0, 0.5, 0.8, 0.95)),
        ("kendall", 0, 4, (0.0, 0.5, 0.8, 0.95)),
    ):
        for rho in rhos:
            few = {"metric": metric, "levels": levels, "star": star, "rho": rho}
            yield Cell(f"few-{metric}-{levels}-{star}-{rho}", "few", options=few)
    for rho in (0.5, 0.8, 0.95):
        yield Cell(f"two-{rho}", "two", options={"rho": rho})
    for cluster in (1, 4):
        for share in (0.5, 0.8, 0.95, 0.99):
            yield Cell(f"share-{cluster}-{share}", "share", options={"cluster": cluster, "share": share})


def task_cell(
    cell: Cell,
    data: Path,
    task: str,
    effects: Effects,
    strength: float,
    aggregation: Aggregation = "all",
    metric: Metric = "spearman",
) -> dict[str, Any]:
    """Return how the methods do on one task: one model, two equally good ones, and a better one."""
    shape, sharing, _ = read_tasks(data)[task]
    world = World((shape,), sharing, effects, strength)
    return _pairs(cell, world, {"": sharing}, aggregation, metric)


def average_cell(cell: Cell, data: Path, effects: Effects, strength: float) -> dict[str, Any]:
    """Return how the methods do on the average of the seven tasks, which share sentences."""
    shapes, _, folded = zip(*read_tasks(data).values(), strict=True)
    joined = Sharing.join(folded)
    named = [(sharing, f"{number} ") for number, sharing in enumerate(folded)]
    apart = Sharing.join(
        [Sharing(task.first, task.second, np.char.add(name, task.nodes.astype(str))) for task, name in named]
    )
    return _pairs(
        cell, World(shapes, joined, effects, strength), {"": joined, " by task": apart}, "all", "spearman"
    )


def _pairs(
    cell: Cell,
    world: World,
    sharings: dict[str, Sharing],
    aggregation: Aggregation,
    metric: Metric,
) -> dict[str, Any]:
    pairs = world.sharing.pairs
    # A gain that the tests find about half of the time.
    gain = 1.5 / math.sqrt(pairs)
    truth, better = (
        float(np.mean([task.true_score(gained, metric, aggregation) for task in world.tasks]))
        for gained in (0.0, gain)
    )
    single = len(world.tasks) == 1
    rng = generator(0, "coverage", cell.name)
    tally = Tally()
    for _ in range(cell.simulations):
        gold, similarities = world.draw([0.0, 0.0, gain], rng)
        scores, between = _scores(world, gold, similarities, aggregation, metric)
        terms = [_terms(world, gold, row, aggregation, metric) for row in similarities]
        tally.add("score", scores[0])
        tally.add("difference", scores[1] - scores[0])
        for suffix, sharing in sharings.items():
            for method in METHODS if not suffix else METHODS[:1]:
                one, equal, gained = (
                    variance(row, sharing, method) for row in (terms[0], terms[1] - terms[0], terms[2] - terms[0])
                )
                if single:
                    limits = correlation_interval(scores[0], one, pairs, metric=metric)
                else:
                    limits = plain_interval(scores[0], one)
                name = method + suffix
                tally.add(f"coverage {name}", limits.low <= truth <= limits.high)
                tally.add(f"width {name}", limits.high - limits.low)
                tally.add(f"size {name}", two_sided_p(scores[1] - scores[0], equal) < 0.05)
                tally.add(f"power {name}", two_sided_p(scores[2] - scores[0], gained) < 0.05)
                # A gate whose margin is the true loss may pass, or fail, in one case of twenty.
                tally.add(f"above {name}", upper_bound(scores[2] - scores[0], gained) < better - truth)
                tally.add(f"below {name}", lower_bound(scores[2] - scores[0], gained) > better - truth)
                tally.add(f"df {name}", one.df)
                if method == "independent":
                    tally.add("independent one", one.value)
                    tally.add("independent difference", equal.value)
                if method == "dyadic" and not suffix:
                    tally.add("ratio estimated", one.ratio)
                    tally.add("floored", one.value <= one.independent)
        if single and aggregation == "all":
            for name, other in (("size", 1), ("power", 2)):
                test = williams(scores[0], scores[other], between[other], pairs, ranks=metric == "spearman")
                tally.add(f"{name} williams", test.p_value < 0.05)
    return {
        "pairs": pairs,
        "truth": truth,
        "gain": better - truth,
        "ratio": tally.spread("score") / math.sqrt(tally.mean("independent one")),
        "ratio of differences": tally.spread("difference") / math.sqrt(tally.mean("independent difference")),
        "results": tally.shares(),
    }


def _scores(
    world: World, gold: Floats, similarities: Floats, aggregation: Aggregation, metric: Metric
) -> tuple[list[float], list[float]]:
    """Return each model's mean score over the tasks, and its mean correlation with the first model."""
    by_task = []
    for task, part in zip(world.tasks, world.slices, strict=True):
        if aggregation == "all":
            sides = [gold[part], *similarities[:, part]]
            # Ranked once for all correlations, which are those of `spearman`.
            matrix = np.corrcoef([average_ranks(side) for side in sides] if metric == "spearman" else sides)
            by_task.append(matrix[:2, 1:])
        else:
            rows = [correlate_task(gold[part], row[part], task.codes, metric) for row in similarities]
            scores = [row[aggregation] for row in rows]
            by_task.append(np.array([scores, [math.nan] * len(scores)]))
    mean = np.mean(by_task, axis=0)
    return mean[0].tolist(), mean[1].tolist()


def _terms(world: World, gold: Floats, similarity: Floats, aggregation: Aggregation, metric: Metric) -> Floats:
    """Return the terms of a model's mean score over the tasks."""
    terms = np.empty(len(gold))
    for task, part in zip(world.tasks, world.slices, strict=True):
        of_task = task_terms(gold[part], similarity[part], task.codes, metric, aggregation)
        terms[part] = of_task / len(world.tasks)
    return terms


def few_cell(cell: Cell, data: Path, metric: Metric, levels: int, star: int, rho: float) -> dict[str, Any]:
    """Return how the interval of a correlation does from few pairs: apart, or in stars around a sentence."""
    del data
    rng = generator(0, "coverage", cell.name)
    truth = _true_correlation(metric, levels, rho)
    by_pairs = {}
    for pairs in FEW:
        if pairs < 2 * star:
            continue
        hubs = np.arange(pairs) // star
        sharing = Sharing.of(hubs, pairs + np.arange(pairs))
        tally = Tally()
        for _ in range(cell.simulations):
            latent, error = (_of_hubs(hubs, 0.7 if star > 1 else 0.0, rng) for _ in range(2))
            other = rho * latent + math.sqrt(1 - rho * rho) * error
            gold = np.floor(_normal_share(latent) * levels) if levels else latent
            value = CORRELATIONS[metric](gold, other)
            if math.isnan(value):
                # No correlation, no interval: all gold scores are equal.
                tally.add("none", 1)
                continue
            terms = TERMS[metric](gold, other)
            for method in METHODS[:1] if star == 1 else METHODS:
                limits = correlation_interval(value, variance(terms, sharing, method), pairs, metric=metric)
                tally.add(f"coverage {method}", limits.low <= truth <= limits.high if limits.exists else math.nan)
                tally.add(f"width {method}", limits.high - limits.low)
            tally.add("none", not limits.exists)
        by_pairs[str(pairs)] = tally.shares()
    return {"truth": truth, "results": by_pairs}


def two_cell(cell: Cell, data: Path, rho: float) -> dict[str, Any]:
    """Return how often tests of two equally good models find a difference from few pairs that share nothing."""
    del data
    rng = generator(0, "coverage", cell.name)
    by_pairs = {}
    for pairs in FEW:
        sharing, tally = Sharing.of(np.arange(pairs)), Tally()
        for _ in range(cell.simulations):
            gold, common = rng.standard_normal((2, pairs))
            errors = math.sqrt(SHARED_ERROR) * common
            errors = errors + math.sqrt(1 - SHARED_ERROR) * rng.standard_normal((2, pairs))
            sides = [average_ranks(side) for side in (gold, *(rho * gold + math.sqrt(1 - rho * rho) * errors))]
            matrix: Floats = np.asarray(np.corrcoef(sides))
            first, second, between = matrix[0, 1], matrix[0, 2], matrix[1, 2]
            terms = TERMS["spearman"](gold, sides[2]) - TERMS["spearman"](gold, sides[1])
            tally.add("size dyadic", two_sided_p(second - first, variance(terms, sharing)) < 0.05)
            test = williams(float(first), float(second), float(between), pairs, ranks=True)
            tally.add("size williams", test.p_value < 0.05)
        by_pairs[str(pairs)] = tally.shares()
    return {"results": by_pairs}


def _true_correlation(metric: Metric, levels: int, rho: float) -> float:
    if not levels:
        of_normal = {
            "pearson": rho,
            "spearman": 6 / math.pi * math.asin(rho / 2),
            "kendall": 2 / math.pi * math.asin(rho),
        }
        return of_normal[metric]
    edges = ndtri(np.arange(1, levels) / levels)
    shape = Task("few", np.zeros(levels, dtype=np.intp), (np.arange(float(levels)),), (edges,), np.zeros(1))
    return shape.true_score(rho / math.sqrt(1 - ANNOTATION) - (LOWEST + HIGHEST) / 2, metric)


def _of_hubs(hubs: NDArray[np.intp], strength: float, rng: np.random.Generator) -> Floats:
    effects = rng.standard_normal(hubs.max() + 1)[hubs]
    noise = rng.standard_normal(len(hubs))
    values: Floats = math.sqrt(strength) * effects + math.sqrt(1 - strength) * noise
    return values


def _normal_share(values: Floats) -> Floats:
    shares: Floats = ndtr(values)
    return shares


def share_cell(cell: Cell, data: Path, cluster: int, share: float) -> dict[str, Any]:
    """Return how the interval of an accuracy does: items apart, or in clusters that are right together."""
    del data
    rng = generator(0, "coverage", cell.name)
    by_items = {}
    for items in ITEMS:
        hubs = np.arange(items) // cluster
        sharing = Sharing.of(hubs, items + np.arange(items))
        tally = Tally()
        for _ in range(cell.simulations):
            right = (_of_hubs(hubs, 0.5 if cluster > 1 else 0.0, rng) < ndtri(share)).astype(np.float64)
            of_share = variance(mean_terms(right), sharing)
            value = float(right.mean())
            for name, limits in (
                ("share", share_interval(value, of_share, items)),
                ("plain", plain_interval(value, of_share)),
            ):
                tally.add(f"coverage {name}", limits.exists and limits.low <= share <= limits.high)
                tally.add(f"width {name}", limits.high - limits.low)
        by_items[str(items)] = tally.shares()
    return {"results": by_items}


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "task": task_cell,
    "average": average_cell,
    "few": few_cell,
    "two": two_cell,
    "share": share_cell,
}


def finished(cell: Cell) -> dict[str, Any] | None:
    """Return what a cell gave, or None if it was not run as it is now, with at least as many draws."""
    file = CELLS / f"{cell.name}.json"
    if not file.is_file():
        return None
    stored: dict[str, Any] = json.loads(file.read_text())
    enough = stored["cell"]["simulations"] >= cell.simulations
    return stored if enough and stored["cell"]["options"] == cell.options else None


def run(cell: Cell, data: Path) -> None:
    """Run a cell and write its file."""
    start = time.perf_counter()
    figures = KINDS[cell.kind](cell, data, **cell.options)
    seconds = round(time.perf_counter() - start, 1)
    text = json.dumps({"cell": asdict(cell), "seconds": seconds, **figures}, indent=1)
    CELLS.mkdir(exist_ok=True)
    with atomic_path(CELLS / f"{cell.name}.json") as file:
        file.write_text(text + "\n")
    print(f"{cell.name}: {seconds} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", action="append", help="names of cells, with * and ?; all by default")
    parser.add_argument("--simulations", type=int, help="draws of each cell, in place of its own number")
    parser.add_argument("--data", type=Path, help="folder in SentEval's layout (default: STSBENCH_DATA)")
    parser.add_argument(
        "--table", type=Path, nargs="?", const=DOCS, help="write the page here, with a table of results"
    )
    parser.add_argument("--only-table", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    cells = list(all_cells())
    if options.simulations:
        cells = [Cell(cell.name, cell.kind, options.simulations, cell.options) for cell in cells]
    data = options.data or Path(os.environ.get("STSBENCH_DATA", HERE.parent / "data" / "senteval"))
    chosen = [cell for cell in cells if any(fnmatch.fnmatch(cell.name, word) for word in options.cells or ["*"])]
    for cell in chosen:
        if not options.only_table and finished(cell) is None:
            run(cell, data)
    results = rows((cell.name, cell.kind, cell.options, finished(cell)) for cell in cells)
    if options.table:
        with atomic_path(options.table) as file:
            file.write_text(page(results), encoding="utf-8")
        with atomic_path(options.table.with_suffix(".csv")) as file:
            write_rows(results, file)
    else:
        print(page(results))


if __name__ == "__main__":
    main()
