"""Figures: the same bytes twice, the format that the name says, the person's own style untouched."""

from pathlib import Path

import matplotlib as mpl
import pytest

from stsbench.base.errors import UserError
from stsbench.render.figures import (
    FORMATS,
    WIDTHS,
    colours,
    keep_colours,
    look,
    new_figure,
    save_figure,
    style,
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


def test_another_ending_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"end its name in one of \.png, \.svg, \.pdf"):
        save_figure(drawn(), tmp_path / "figure.docx")
    assert not list(tmp_path.iterdir())


def test_the_style_ends_with_its_block() -> None:
    before = dict(mpl.rcParams)
    with style():
        assert mpl.rcParams["font.size"] == 8
    assert dict(mpl.rcParams) == before


def test_a_name_has_one_colour_and_the_first_seven_differ() -> None:
    names = [f"model {number}" for number in range(7)]
    assert len(set(colours(names).values())) == 7
    assert colours(names)["model 2"] == colours(["model 0", "model 1", "model 2"])["model 2"]


def test_a_model_has_its_colour_in_every_figure_whoever_else_is_in_it() -> None:
    assert colours(["minilm"])["minilm"] == colours(["minilm", "glove"])["minilm"]
    assert colours(["glove", "minilm"]) == colours(["minilm", "glove"])


def test_two_models_that_would_have_one_colour_have_two_and_in_a_report_always_the_same_two() -> None:
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


def test_a_figure_has_the_size_of_the_block_that_it_is_made_in_and_functions_are_blocks() -> None:
    @look("page")
    def report() -> float:
        return float(new_figure().get_figwidth())

    assert (new_figure().get_figwidth(), report()) == (WIDTHS["column"], WIDTHS["page"])
    with look("page"), look("column"):
        assert new_figure().get_figwidth() == WIDTHS["column"]
    assert new_figure().get_figwidth() == WIDTHS["column"]


def test_what_is_wider_than_a_page_stays_as_wide() -> None:
    assert new_figure(least=9.0).get_figwidth() == 9.0


def test_a_size_that_there_is_not_is_refused() -> None:
    with pytest.raises(UserError, match="choose `column` or `page`"), look("poster"):  # type: ignore[arg-type]
        pass
