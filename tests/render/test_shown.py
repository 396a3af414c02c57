"""A figure as the value of a notebook's cell: a PNG with its size and its description."""

from typing import Any

import pytest

from stsbench.render.figures import described, new_figure, style


def test_a_notebook_shows_it_with_a_description_and_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    displayed: list[Any] = []
    monkeypatch.setattr("IPython.display.display", displayed.append)
    figure = new_figure()
    with style():
        figure.add_subplot().set_xlabel("step")
    figure._ipython_display_()
    (image,) = displayed
    data, metadata = image._repr_mimebundle_()
    assert data["image/png"]
    assert metadata == {"image/png": {"alt": "Figure: step", "width": 475}}


def test_it_is_described_by_its_panels_and_names_on_one_line() -> None:
    figure = new_figure()
    left, right = figure.subplots(1, 2)
    left.set_title("loss")
    left.set_xlabel("of\nsteps")
    left.set_ylabel("size")
    right.plot([1], label="a <model>")
    figure.legend()
    assert described(figure) == "Figure: loss: size over of steps; a <model>"
