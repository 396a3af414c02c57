"""No text of a figure is cut off or covered, in either size and with any names."""

import inspect
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from gallery import MADE, drawn
from matplotlib.backends.backend_agg import FigureCanvasAgg

import stsbench
from stsbench.analysis.base import Analysis
from stsbench.render.figures import WIDTHS, look
from stsbench.render.table import Result

DRAWN_BY_FUNCTIONS = {"Sweep", "Training"}
"""The gallery calls what they draw by: their figures are those of `sweep` and `train`."""


def below(kind: type) -> set[type]:
    return {kind, *(each for direct in kind.__subclasses__() for each in below(direct))}


def test_the_figure_of_every_result_is_looked_at() -> None:
    for module in walk_packages(stsbench.__path__, "stsbench."):
        import_module(module.name)
    kinds = {kind for kind in below(Result) if kind.__module__.startswith("stsbench.") and hasattr(kind, "plot")}
    known = {type(make()).__name__ for make in MADE.values()} | DRAWN_BY_FUNCTIONS
    # Of analyses a test beside their figures says so.
    others = {kind for kind in kinds if not issubclass(kind, Analysis) and not inspect.isabstract(kind)}
    assert {kind.__name__ for kind in others} <= known


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("name", MADE)
def test_a_figure_is_as_wide_as_asked_and_holds_all_that_is_written_in_it(name: str, size: Any) -> None:
    with look(size):
        figure = drawn(MADE[name]())
    assert figure.get_figwidth() == pytest.approx(WIDTHS[size])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [text for axes in figure.axes for text in axes.texts]
    texts += [label for axes in figure.axes for label in (axes.xaxis.label, axes.yaxis.label, axes.title)]
    texts += [axes._left_title for axes in figure.axes]
    ticks = [
        tick
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_ticklabels(which="both")
    ]
    assert not [tick for tick in ticks if "$" in tick.get_text()]
    in_legends = [entry for legend in figure.legends for entry in legend.get_texts()]
    assert in_legends or "long names" not in name
    for text in [*texts, *in_legends]:
        if text.get_text():
            box = text.get_window_extent(renderer)
            frame = figure.bbox.padded(1)
            assert frame.contains(box.x0, box.y0), text
            assert frame.contains(box.x1, box.y1), text
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        assert not any(box.overlaps(axes.get_window_extent(renderer)) for axes in figure.axes)
