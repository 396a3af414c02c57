"""Figures: the same bytes twice, the format that the name says, the person's own style untouched."""

from pathlib import Path

import matplotlib as mpl
import pytest

from stsbench.base.errors import UserError
from stsbench.render.figures import FORMATS, colours, new_figure, save_figure, style


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
