"""A matplotlib figure as SVG text: the same figure is the same bytes."""

from io import StringIO
from typing import TYPE_CHECKING

from stsbench.render.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def svg_of(figure: "Figure") -> str:
    """Return a figure as SVG, without a date inside."""
    text = StringIO()
    with style():
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
