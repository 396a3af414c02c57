"""A figure that a notebook shows where it is the value of a cell, with a text for those who do not see it."""

from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

_PIXELS_PER_INCH = 144
"""Half as large again as CSS has an inch: the 8 points of a figure are then as large as the text around it."""


class ShownFigure(Figure):
    """A matplotlib figure of no window, which Jupyter would else tell of by its size alone."""

    def _ipython_display_(self) -> None:
        from IPython.display import Image, display

        from stsbench.render.figures import style

        png = BytesIO()
        with style():
            self.savefig(png, format="png")
        width = round(self.get_figwidth() * _PIXELS_PER_INCH)
        display(Image(png.getvalue(), format="png", width=width, alt=described(self)))


def described(figure: Any) -> str:
    """Return what a figure shows in words: the axes of each panel, and the names in its legends.

    >>> figure = ShownFigure()
    >>> axes = figure.add_subplot()
    >>> _ = axes.set_xlabel("step"), axes.set_ylabel("loss"), axes.plot([1, 2], label="minilm"), axes.legend()
    >>> described(figure)
    'Figure: loss over step; minilm'
    """
    panels = []
    for axes in figure.axes:
        x, y, title = axes.get_xlabel(), axes.get_ylabel(), axes.get_title()
        over = f"{y} over {x}" if x and y else x or y
        panels.append(": ".join(filter(None, (title, over))))
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    names = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    told = "; ".join([*filter(None, panels), *([", ".join(names)] if names else [])])
    return f"Figure: {' '.join(told.split())}"
