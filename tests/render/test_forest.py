"""Forest plots: every row is drawn where it belongs."""

from typing import Any

import pandas as pd
import pytest

from stsbench.render.charts import forest


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
    figure = forest(rows(), "difference", reference=0.0)
    (axes,) = figure.axes
    assert lines(figure)[1:] == [([0.5, 1.5], [0, 0]), ([1.0], [0]), ([-1.5, 0.5], [1, 1]), ([-0.5], [1])]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["STS16", "Avg."]
    assert axes.get_ylim() == (1.5, -0.5)
    assert axes.lines[0].get_xdata() == [0.0, 0.0]


def test_what_is_not_real_is_hollow_and_the_summary_a_diamond() -> None:
    (axes,) = forest(rows(), "difference").axes
    first, last = axes.lines[1], axes.lines[3]
    assert (first.get_marker(), last.get_marker()) == ("o", "D")
    assert first.get_markerfacecolor() == first.get_markeredgecolor()
    assert last.get_markerfacecolor() == "white"


def test_series_stand_side_by_side_in_colours_of_their_own_named_beside_their_first_marks() -> None:
    table = rows(label=["STS16", "STS16"], series=["one", "two"])
    figure = forest(table, "mean")
    (axes,) = figure.axes
    heights = [line.get_ydata()[0] for line in axes.lines[:4]]
    assert heights == pytest.approx([-0.15, -0.15, 0.15, 0.15])
    assert axes.lines[0].get_color() != axes.lines[2].get_color()
    assert not figure.legends
    names = {text.get_text(): text.xy for text in axes.texts}
    assert names == {"one": (1.5, pytest.approx(-0.15)), "two": (0.5, pytest.approx(0.15))}


def test_a_long_label_is_folded_and_not_cut() -> None:
    (axes,) = forest(rows(), "a very long name of a model less an even longer name of another model").axes
    assert "\n" in axes.get_xlabel()
