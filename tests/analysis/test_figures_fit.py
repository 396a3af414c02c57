"""The figure of every analysis on invented numbers; `tests/render/test_every_figure.py` looks at them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from stsbench.analysis import ANALYSES
from stsbench.analysis.compress import Compressed
from stsbench.analysis.compress_numbers import Compression, PairedVectors, compress_frame
from stsbench.analysis.density import Density, density_frame
from stsbench.analysis.dimensions import Dimensions, dimensions_frame
from stsbench.analysis.evalrank import EvalRank, evalrank_frame
from stsbench.analysis.geometry import Geometry, PairVectors, geometry_frame
from stsbench.analysis.hubness import Hubs, hubness_frame
from stsbench.analysis.inputs import ScoredVectors
from stsbench.analysis.length_bias import LengthBias
from stsbench.analysis.length_collapse import EDGES, LengthCollapse, length_collapse_frame
from stsbench.analysis.length_measures import Lengths
from stsbench.analysis.length_numbers import length_bias_frame
from stsbench.analysis.pair_kinds import COST, PairKinds
from stsbench.analysis.probes import Cosines, Probes, probes_frame
from stsbench.analysis.repetition_bias import RepetitionBias, repetition_frame
from stsbench.analysis.retrieve import Retrieval, find_neighbours, neighbours_frame
from stsbench.analysis.spectrum import Spectrum, spectrum_frame
from stsbench.analysis.stability import Stability, stability_frame
from stsbench.analysis.ties import TieRanges, ties_frame
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.scoring.settings import Intervals
from stsbench.scoring.statistic import Correlation
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.dependence import Sharing

NAMES = ("minilm", "organisation/a-rather-long-checkpoint-name (dimensions 64)", "glove")
FEW = Intervals()


def pairs(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    gold = rng.uniform(0, 5, size=200)
    about = {"task": "made", "split": "test", "text": "made", "subset": "made", "gold": gold}
    cosine = np.clip(gold / 5 + rng.normal(0, 0.2, size=200), -1, 1)
    ids = dict.fromkeys((*SENTENCES, *FOLDED), np.arange(200, dtype=np.uint64))
    words = {"words_a": rng.integers(1, 30, size=200), "words_b": 10}
    return pd.DataFrame(about | ids | {"cosine": cosine} | words)


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


def probed() -> Any:
    rng = np.random.default_rng(0)
    kinds = [kind for kind in ("negation", "a kind whose name is long", "typo") for _ in range(8)]
    cosines = {name: Cosines(*rng.uniform(0, 1, size=(2, 24))) for name in NAMES}
    return probes_frame(cosines, kinds, [str(number) for number in range(24)], FEW)


def neighbours() -> Any:
    found = {name: find_neighbours(name, vectors(seed)[:2], [vectors(seed)], 5) for seed, name in enumerate(NAMES)}
    return neighbours_frame(found, ["short", "a query " * 20], {number: str(number) for number in range(60)})


def scored(seed: int) -> list[ScoredTask]:
    return [ScoredTask("made", Correlation("spearman", "all", "cosine"), pairs(seed), (0, 5))]


def compressed() -> Any:
    rows = np.random.default_rng(0).integers(0, 60, size=(2, 200))
    models = {
        name: PairedVectors(scored(seed), vectors(seed), [rows], vectors(9)) for seed, name in enumerate(NAMES)
    }
    return compress_frame(models, Compression((6, 3))).assign(corpus="sample")


def errors() -> PairKinds:
    kinds = (
        "a gold score in the highest fifth",
        "at least 75 % of their words shared",
        "different numbers in both",
    )
    about = {"task": "all tasks", "measure": COST, "value": 1.0, "low": 0.5, "high": 2.5}
    return PairKinds(pd.DataFrame([{"model": name, "kind": kind} | about for name in NAMES for kind in kinds]))


def models() -> dict[str, list[ScoredTask]]:
    return {name: scored(seed) for seed, name in enumerate(NAMES)}


APART = (Sharing.independent(9), Intervals())


def of_tasks() -> dict[str, list[ScoredVectors]]:
    left, right = np.arange(30), np.arange(30, 60)
    ids, chains = np.arange(60, dtype=np.uint64), np.tile(np.arange(30), 2)
    of = {name: pairs(seed).head(30) for seed, name in enumerate(NAMES)}
    return {
        name: [
            ScoredVectors(task, of[name], vectors(seed) + 0.5, left, right, ids, chains)
            for task in ("STS12", "a-task-of-a-long-name", "SICK-R")
        ]
        for seed, name in enumerate(NAMES)
    }


def collapse() -> Any:
    return length_collapse_frame(of_tasks(), Lengths(edges=EDGES["words"]), FEW)


FIGURES: dict[str, Callable[[], Any]] = {
    "length-bias": lambda: LengthBias(length_bias_frame(models(), intervals=FEW)).plot(),
    "pair-kinds": lambda: errors().plot(),
    "length-collapse": lambda: LengthCollapse(collapse()).plot(),
    "dimensions": lambda: Dimensions(dimensions_frame(of_tasks())).plot(),
    "hubness": lambda: Hubs(hubness_frame(of_tasks(), 3)).plot(),
    "geometry": lambda: Geometry(plane()).plot(),
    "geometry, a path": lambda: Geometry(plane(), path=2).plot(),
    "spectrum": lambda: Spectrum(spectrum_frame({name: vectors(seed) for seed, name in enumerate(NAMES)})).plot(),
    "density": lambda: Density(density_frame({name: pairs(seed) for seed, name in enumerate(NAMES)})).plot(),
    "evalrank": lambda: EvalRank(ranked()).plot(),
    "compress": lambda: Compressed(compressed()).plot(),
    "ties": lambda: TieRanges(ties_frame(models())).plot(),
    "repetition-bias": lambda: RepetitionBias(probe()).plot(),
    "stability": lambda: Stability(
        pd.concat(
            [
                stability_frame(np.arange(9.0), seeds[0], {"typos 5 %": seeds[1], "lower case": seeds[2]}, *APART)
                for seeds in np.random.default_rng(0).normal(size=(len(NAMES), 3, 9))
            ],
            keys=NAMES,
            names=["model"],
        ).reset_index()
    ).plot(),
    "probes": lambda: Probes(probed()).plot(),
    "retrieve": lambda: Retrieval(neighbours()).plot(),
}


def test_the_figure_of_every_analysis_is_looked_at() -> None:
    assert set(ANALYSES) <= set(FIGURES)
