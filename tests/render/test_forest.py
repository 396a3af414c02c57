"""Forest plots: every row is drawn where it belongs."""

from typing import Any

import pandas as pd
import pytest

from stsbench.render.charts import curves, forest


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


def test_series_stand_side_by_side_in_colours_of_their_own_with_one_legend_entry_each() -> None:
    table = rows(label=["STS16", "STS16"], series=["one", "two"])
    figure = forest(table, "mean")
    (axes,) = figure.axes
    heights = [line.get_ydata()[0] for line in axes.lines[:4]]
    assert heights == pytest.approx([-0.15, -0.15, 0.15, 0.15])
    assert axes.lines[0].get_color() != axes.lines[2].get_color()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two"]


def test_a_long_label_is_folded_and_not_cut() -> None:
    (axes,) = forest(rows(), "a very long name of a model less an even longer name of another model").axes
    assert "\n" in axes.get_xlabel()


def test_the_seeds_of_a_method_share_its_colour_and_one_legend_entry() -> None:
    points = pd.DataFrame({"step": [0, 1], "value": [1.0, 2.0]})
    figure = curves(
        dict.fromkeys(["a-seed1", "a-seed2", "other"], points), "loss", {"a-seed1": "a", "a-seed2": "a"}
    )
    first, second, other = (line.get_color() for line in figure.axes[0].lines)
    assert first == second != other
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "other"]
