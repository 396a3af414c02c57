"""Figures: files, sizes and colours; forest plots and curves; SVG; display in notebooks."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from stsbench.base.errors import UserError
from stsbench.render.charts import curves, draw_by_model, forest, line
from stsbench.render.figures import (
    FORMATS,
    WIDTHS,
    colours,
    described,
    inline,
    keep_colours,
    look,
    new_figure,
    save_figure,
    style,
    svg_of,
)


def drawn():
    with style():
        figure = new_figure()
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label="a & <b>")
        axes.legend()
    return figure


@pytest.mark.parametrize("kind", FORMATS)
def test_a_figure_is_saved_in_the_format_of_its_name_and_twice_the_same(kind: str, tmp_path: Path) -> None:
    first, second = (save_figure(drawn(), tmp_path / f"{name}.{kind}").read_bytes() for name in "ab")
    assert first == second
    assert {"png": b"PNG", "svg": b"<svg", "pdf": b"%PDF"}[kind] in first


def test_a_name_has_one_colour_in_every_figure_and_names_that_would_share_one_differ() -> None:
    names = [f"model {number}" for number in range(7)]
    assert len(set(colours(names).values())) == 7
    assert colours(names)["model 2"] == colours(["model 0", "model 1", "model 2"])["model 2"]
    assert (
        colours(["minilm"]).items() <= colours(["glove", "minilm"]).items() == colours(["minilm", "glove"]).items()
    )
    first, second = next(
        (first, second)
        for first in map(str, range(20))
        for second in map(str, range(20))
        if first != second and colours([first])[first] == colours([second])[second]
    )
    both = colours([first, second])
    assert both[first] != both[second]
    with look("page"):
        keep_colours([first, second])
        assert colours([second]) == {second: both[second]}
    assert colours([second])[second] == both[first]


def test_style_and_size_are_those_of_the_block_and_functions_are_blocks(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    with style():
        assert mpl.rcParams["font.size"] == 8
    assert dict(mpl.rcParams) == before

    @look("page")
    def report() -> float:
        return float(new_figure().get_figwidth())

    assert (new_figure().get_figwidth(), report()) == (WIDTHS["column"], WIDTHS["page"])
    with look("page"), look("column"):
        assert new_figure().get_figwidth() == WIDTHS["column"]
    assert (new_figure().get_figwidth(), new_figure(least=9.0).get_figwidth()) == (WIDTHS["column"], 9.0)
    with pytest.raises(UserError, match="`column` or `page`"), look("poster"):  # type: ignore[arg-type]
        pass
    with pytest.raises(UserError, match=r"end its name in one of \.png, \.svg, \.pdf"):
        save_figure(drawn(), tmp_path / "figure.docx")
    assert not list(tmp_path.iterdir())


def rows(**columns: list[Any]) -> pd.DataFrame:
    table = {
        "label": ["STS16", "Avg."],
        "series": ["", ""],
        "value": [1.0, -0.5],
        "low": [0.5, -1.5],
        "high": [1.5, 0.5],
        "filled": [True, False],
        "summary": [False, True],
    }
    return pd.DataFrame(table | columns)


def lines(figure: Any) -> list[tuple[list[float], list[float]]]:
    (axes,) = figure.axes
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]


def test_each_row_has_its_interval_and_value_from_the_top() -> None:
    figure = forest(rows(), "a very long name of a model less an even longer name of another", reference=0.0)
    (axes,) = figure.axes
    assert lines(figure)[1:] == [([0.5, 1.5], [0, 0]), ([1.0], [0]), ([-1.5, 0.5], [1, 1]), ([-0.5], [1])]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["STS16", "Avg."]
    assert axes.get_ylim() == (1.5, -0.5)
    assert axes.lines[0].get_xdata() == [0.0, 0.0]
    assert "\n" in axes.get_xlabel()  # folded, not cut
    # Not real: hollow; a summary: a diamond.
    first, last = axes.lines[2], axes.lines[4]
    assert (first.get_marker(), last.get_marker()) == ("o", "D")
    assert first.get_markerfacecolor() == first.get_markeredgecolor()
    assert last.get_markerfacecolor() == "white"


def test_series_stand_side_by_side_in_colours_of_their_own_with_one_legend_entry_each() -> None:
    table = rows(label=["STS16", "STS16"], series=["one", "two"])
    figure = forest(table, "mean")
    (axes,) = figure.axes
    heights = [line.get_ydata()[0] for line in axes.lines[:4]]
    assert heights == pytest.approx([-0.15, -0.15, 0.15, 0.15])
    assert axes.lines[0].get_color() != axes.lines[2].get_color()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two"]


def test_the_seeds_of_a_method_share_its_colour_and_one_legend_entry() -> None:
    points = pd.DataFrame({"step": [0, 1], "value": [1.0, 2.0]})
    figure = curves(
        dict.fromkeys(["a-seed1", "a-seed2", "other"], points), "loss", {"a-seed1": "a", "a-seed2": "a"}
    )
    first, second, other = (line.get_color() for line in figure.axes[0].lines)
    assert first == second != other
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "other"]


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


def test_missing_and_clipped_values_have_no_title_and_a_long_curve_has_few() -> None:
    figure = figure_of([1, 2, 3], [4.0, np.nan, 5.0])
    figure.axes[0].set_xlim(0, 2.5)
    assert [mark.findtext(f"{SVG}title") for mark in marks_of(svg_of(figure))] == ["minilm, 1: 4"]
    titles = [mark.findtext(f"{SVG}title") for mark in marks_of(svg_of(figure_of([*range(500)], [*range(500)])))]
    assert len(titles) == 16
    assert (titles[0], titles[-1]) == ("minilm, 0: 0", "minilm, 499: 499")


def test_figures_in_one_page_have_no_styles_share_no_name_and_refer_to_their_own() -> None:
    svg = svg_of(figure_of([1, 2], [1, 2]))
    # A page's policy forbids styles.
    drawing = ElementTree.fromstring(svg)
    assert not [each.tag for each in drawing.iter() if "style" in each.attrib or each.tag == f"{SVG}style"]
    texts = list(drawing.iter(f"{SVG}text"))
    assert texts
    assert all(each.get("font-size") and each.get("font-family") for each in texts)
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


def test_it_is_described_by_its_panels_and_names_on_one_line() -> None:
    figure = new_figure()
    left, right = figure.subplots(1, 2)
    left.set_title("loss")
    left.set_xlabel("of\nsteps")
    left.set_ylabel("size")
    right.plot([1], label="a <model>")
    figure.legend()
    assert described(figure) == "Figure: loss: size over of steps; a <model>"


@pytest.mark.parametrize(("places", "shown"), [(5, 5), (13, 13), (14, 7), (25, 13), (60, 12)])
def test_many_places_along_an_axis_have_few_labels(places: int, shown: int) -> None:
    rows = pd.DataFrame({"model": "a", "place": [f"{n / 20:g}" for n in range(places)], "value": 0.5})
    with style():
        axes = new_figure().subplots()
        draw_by_model(axes, rows.assign(low=np.nan, high=np.nan), {"a": "black"})
    assert [label.get_text() for label in axes.get_xticklabels()][:2] == ["0", f"{-(-places // 13) / 20:g}"]
    assert len(axes.get_xticks()) == shown
