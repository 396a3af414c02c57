"""The figure of every analysis on invented numbers; `tests/render/test_every_figure.py` looks at them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from stsbench.analysis import ANALYSES
from stsbench.analysis.compress import Compress
from stsbench.analysis.compress_numbers import PairedVectors
from stsbench.analysis.density import Density
from stsbench.analysis.dimensions import Dimensions
from stsbench.analysis.evalrank import EvalRank
from stsbench.analysis.geometry import Geometry
from stsbench.analysis.hubness import Hubness
from stsbench.analysis.inputs import PairVectors, ScoredVectors
from stsbench.analysis.length_bias import LengthBias
from stsbench.analysis.length_collapse import LengthCollapse
from stsbench.analysis.pair_kinds import COST, PairKinds
from stsbench.analysis.probes import ProbedTriples, Probes
from stsbench.analysis.repetition_bias import RepetitionBias
from stsbench.analysis.retrieve import Retrieve, find_neighbours
from stsbench.analysis.spectrum import Spectrum
from stsbench.analysis.stability import Retyped, Stability
from stsbench.analysis.ties import Ties
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.scoring.statistic import Correlation
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.dependence import Sharing

NAMES = ("minilm", "organisation/a-rather-long-checkpoint-name (dimensions 64)", "glove")


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


def sentences(pairs: int) -> dict[str, PairVectors]:
    rows, gold = np.arange(2 * pairs), np.linspace(0, 5, pairs)
    return {name: PairVectors(vectors(seed), rows, gold, rows) for seed, name in enumerate(NAMES)}


def probe() -> Any:
    rng = np.random.default_rng(0)
    cosines = {name: {seed: tuple(rng.uniform(0, 1, size=(2, 30))) for seed in range(5)} for name in NAMES}
    return RepetitionBias().compute(cosines)


def probed() -> Any:
    rng = np.random.default_rng(0)
    kinds = [kind for kind in ("negation", "a kind whose name is long", "typo") for _ in range(8)]
    texts = [str(number) for number in range(24)]
    return Probes().compute(
        {name: ProbedTriples(*rng.uniform(0, 1, size=(2, 24)), kinds, texts) for name in NAMES}
    )


def neighbours() -> Any:
    found = {name: find_neighbours(name, vectors(seed)[:2], [vectors(seed)], 5) for seed, name in enumerate(NAMES)}
    analysis = Retrieve(query=["short", "a query " * 20])
    analysis.sentences = {number: str(number) for number in range(60)}
    return analysis.compute(found)


def retyped() -> Any:
    rng = np.random.default_rng(0)
    changed = {"typos 5 %": 0.5, "lower case": 1.0}
    of = {name: rng.normal(size=(3, 9)) for name in NAMES}
    return Stability().compute(
        {
            name: Retyped(np.arange(9.0), seeds[0], dict(zip(changed, seeds[1:], strict=True)), changed, APART)
            for name, seeds in of.items()
        }
    )


def scored(seed: int) -> list[ScoredTask]:
    return [ScoredTask("made", Correlation("spearman", "all", "cosine"), pairs(seed), (0, 5))]


def compressed() -> Any:
    rows = np.random.default_rng(0).integers(0, 60, size=(2, 200))
    models = {
        name: PairedVectors(scored(seed), vectors(seed), [rows], vectors(9)) for seed, name in enumerate(NAMES)
    }
    analysis = Compress(sizes=(6, 3))
    analysis.constants = {"corpus": "sample"}
    return analysis.compute(models)


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


APART = Sharing.independent(9)


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


FIGURES: dict[str, Callable[[], Any]] = {
    "length-bias": lambda: LengthBias().compute(models()).plot(),
    "pair-kinds": lambda: errors().plot(),
    "length-collapse": lambda: LengthCollapse().compute(of_tasks()).plot(),
    "dimensions": lambda: Dimensions().compute(of_tasks()).plot(),
    "hubness": lambda: Hubness(k=3).compute(of_tasks()).plot(),
    "geometry": lambda: Geometry().compute(sentences(20)).plot(),
    "geometry, a path": lambda: Geometry().compute(sentences(20)).plot(path=2),
    "spectrum": lambda: Spectrum().compute(sentences(30)).plot(),
    "density": lambda: Density().compute(models()).plot(),
    "evalrank": lambda: EvalRank().compute(sentences(30)).plot(),
    "compress": lambda: compressed().plot(),
    "ties": lambda: Ties().compute(models()).plot(),
    "repetition-bias": lambda: probe().plot(),
    "stability": lambda: retyped().plot(),
    "probes": lambda: probed().plot(),
    "retrieve": lambda: neighbours().plot(),
}


def test_the_figure_of_every_analysis_is_looked_at() -> None:
    assert set(ANALYSES) <= set(FIGURES)
