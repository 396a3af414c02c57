"""Nothing that is written in a figure is cut off at its edge or covered by the legend, however long names are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from stsbench.analysis import ANALYSES
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
from stsbench.analysis.repetition_bias import RepetitionBias, repetition_frame
from stsbench.analysis.retrieve import Retrieval, find_neighbours, neighbours_frame
from stsbench.analysis.spectrum import Spectrum, spectrum_frame
from stsbench.data.shared import FOLDED, SENTENCES
from stsbench.scoring.settings import Intervals

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
    "length-bias": lambda: LengthBias(length_bias_frame(tables(), {"made": (0, 5)}, intervals=FEW)).plot(),
    "length-collapse": lambda: LengthCollapse(collapse()).plot(),
    "dimensions": lambda: Dimensions(dimensions_frame(of_tasks())).plot(),
    "hubness": lambda: Hubs(hubness_frame(of_tasks(), 3)).plot(),
    "geometry": lambda: Geometry(plane()).plot(),
    "geometry, a path": lambda: Geometry(plane(), path=2).plot(),
    "spectrum": lambda: Spectrum(spectrum_frame({name: vectors(seed) for seed, name in enumerate(NAMES)})).plot(),
    "density": lambda: Density(density_frame(tables())).plot(),
    "evalrank": lambda: EvalRank(ranked()).plot(),
    "repetition-bias": lambda: RepetitionBias(probe()).plot(),
    "retrieve": lambda: Retrieval(neighbours()).plot(),
}


def test_the_figure_of_every_analysis_is_looked_at() -> None:
    assert set(ANALYSES) <= set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_column_wide_and_holds_all_that_is_written_in_it(name: str) -> None:
    drawn = FIGURES[name]()
    assert drawn.get_figwidth() == pytest.approx(3.3)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    renderer = canvas.get_renderer()
    edge = drawn.bbox
    texts = [text for axes in drawn.axes for text in axes.texts]
    texts += [label for axes in drawn.axes for label in (axes.xaxis.label, axes.yaxis.label, axes.title)]
    texts += [axes._left_title for axes in drawn.axes]
    ticks = [tick for axes in drawn.axes for axis in (axes.xaxis, axes.yaxis) for tick in axis.get_ticklabels()]
    assert not [tick for tick in ticks if "$" in tick.get_text()]
    for text in [*texts, *(entry for legend in drawn.legends for entry in legend.get_texts())]:
        if text.get_text():
            box = text.get_window_extent(renderer)
            assert box.x0 >= edge.x0 - 1, text
            assert box.x1 <= edge.x1 + 1, text
            assert box.y0 >= edge.y0 - 1, text
            assert box.y1 <= edge.y1 + 1, text
    for legend in drawn.legends:
        box = legend.get_window_extent(renderer)
        assert not any(box.overlaps(axes.get_window_extent(renderer)) for axes in drawn.axes)
