"""A figure as SVG: its numbers can be asked for, and a page with a strict policy can take it up."""

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from stsbench.render.charts import line
from stsbench.render.figures import new_figure, style, svg_of
from stsbench.render.svg import inline

SVG = "{http://www.w3.org/2000/svg}"


def figure_of(x: list[float], y: list[float], name: str = "minilm", **more: Any) -> Any:
    with style():
        figure = new_figure()
        axes = figure.add_subplot()
        line(axes, name, x, y, "#0072B2", marker="o", **more)
    return figure


def marks_of(svg: str) -> list[ElementTree.Element]:
    return [circle for circle in ElementTree.fromstring(svg).iter(f"{SVG}circle") if circle.get("class") == "mark"]


def test_each_value_is_told_where_it_is_drawn_with_its_interval_and_the_keyboard_reaches_it() -> None:
    figure = figure_of([1, 2, 3], [4.0, 6.0, 5.0], low=[3.5, np.nan, 4], high=[4.5, np.nan, 6])
    svg = svg_of(figure)
    marks = marks_of(svg)
    titles = [mark.findtext(f"{SVG}title") for mark in marks]
    assert titles == ["minilm, 1: 4 (3.5 to 4.5)", "minilm, 2: 6", "minilm, 3: 5 (4 to 6)"]
    assert {mark.get("tabindex") for mark in marks} == {"0"}
    # The dots that matplotlib draws are placed by `use`: a title is to lie on each.
    dots = [
        (float(use.attrib["x"]), float(use.attrib["y"])) for use in ElementTree.fromstring(svg).iter(f"{SVG}use")
    ]
    for mark in marks:
        x, y = float(mark.attrib["cx"]), float(mark.attrib["cy"])
        assert any(abs(x - a) < 0.1 and abs(y - b) < 0.1 for a, b in dots)


def test_a_value_that_is_missing_or_outside_the_axes_is_not_told() -> None:
    figure = figure_of([1, 2, 3], [4.0, np.nan, 5.0])
    figure.axes[0].set_xlim(0, 2.5)
    assert [mark.findtext(f"{SVG}title") for mark in marks_of(svg_of(figure))] == ["minilm, 1: 4"]


def test_of_a_long_curve_a_few_values_are_told_its_ends_among_them() -> None:
    titles = [mark.findtext(f"{SVG}title") for mark in marks_of(svg_of(figure_of([*range(500)], [*range(500)])))]
    assert len(titles) == 16
    assert (titles[0], titles[-1]) == ("minilm, 0: 0", "minilm, 499: 499")


def test_the_drawing_has_no_style_that_a_page_would_forbid() -> None:
    root = ElementTree.fromstring(svg_of(figure_of([1, 2], [1, 2])))
    assert not [each.tag for each in root.iter() if "style" in each.attrib or each.tag == f"{SVG}style"]
    texts = list(root.iter(f"{SVG}text"))
    assert texts
    assert all(each.get("font-size") and each.get("font-family") for each in texts)


def test_figures_in_one_page_share_no_name_and_refer_to_their_own() -> None:
    svg = svg_of(figure_of([1, 2], [1, 2]))
    roots = [ElementTree.fromstring(inline(svg, name)) for name in ("one", "two")]
    names = [{each.attrib["id"] for each in root.iter() if "id" in each.attrib} for root in roots]
    assert names[0]
    assert not names[0] & names[1]
    for root, own in zip(roots, names, strict=True):
        values = [value for each in root.iter() for value in each.attrib.values()]
        referred = {
            value.strip("url()").removeprefix("#") for value in values if value.lstrip("url(").startswith("#")
        }
        # Colours begin with the same sign.
        assert {name for name in referred if "-" in name} <= own


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a\x00b\x1b[2J", 'x" onload="y'])
def test_a_name_is_text_whatever_it_holds(name: str) -> None:
    figure = figure_of([1, 2], [1, 2], name)
    figure.axes[0].set_xlabel(name)
    text = inline(svg_of(figure), "figure")
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert not list(root.iter(f"{SVG}script"))
    assert not [each for each in root.iter() if "onload" in each.attrib]
