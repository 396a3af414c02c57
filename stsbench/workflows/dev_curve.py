"""The dev curve: the dev score over a training, beside the curve that the ESimCSE authors published."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.published.measured import logged_dev_scores, logged_systems
from stsbench.render.figures import colours, new_figure, save_figure, style
from stsbench.training.recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_REFERENCE = "esimcse-bert-base"
_PUBLISHED_TASK = "STS-B:dev"


def dev_curve(log: list[dict[str, Any]]) -> "pd.DataFrame":
    """Return the dev scores of a training log.

    Returns:
        Columns `step`, `dev` (Spearman from -1 to 1), and `alignment` and `uniformity` if they were computed.
    """
    import pandas as pd

    rows = [line for line in log if line["kind"] == "dev" and line["dev"] is not None]
    columns = [name for name in ("step", "dev", "alignment", "uniformity") if all(name in row for row in rows)]
    return pd.DataFrame(rows, columns=columns)


def published_curve(recipe: Recipe) -> tuple[str, "pd.DataFrame"] | None:
    """Return the authors' curve to draw beside a recipe's, and the system it is of.

    It is that of the same system where there is one, else that of ESimCSE with BERT-base; None where the recipe
    selects on another task.
    """
    if recipe.selection.task != _PUBLISHED_TASK:
        return None
    own = recipe.name.removesuffix("-released")
    system = own if own in logged_systems() else _REFERENCE
    return system, logged_dev_scores(system)


def draw_dev_curve(log: list[dict[str, Any]], recipe: Recipe, steps: int, folder: Path) -> list[Path]:
    """Draw the dev curve of a training into `dev-curve.png` and `.svg`; return the two.

    Args:
        log: its lines.
        recipe: that it followed.
        steps: that it took.
        folder: to write into.
    """
    with style():
        figure = _draw(dev_curve(log), recipe, steps)
    return [save_figure(figure, folder / f"dev-curve.{ending}") for ending in ("png", "svg")]


def _draw(curve: "pd.DataFrame", recipe: Recipe, steps: int) -> "Figure":
    figure = new_figure()
    axes = figure.subplots()
    published = published_curve(recipe)
    names = [recipe.name, *([published[0]] if published else [])]
    palette = colours(names)
    share, score = (100 * curve["step"] / steps).to_numpy(), (100 * curve["dev"]).to_numpy()
    axes.plot(
        share, score, color=palette[recipe.name], marker=".", markersize=3, label=f"{recipe.name}, {steps} steps"
    )
    if len(score) > 1:  # the first is the base's, before any step
        best = 1 + int(score[1:].argmax())
        axes.plot(share[best], score[best], marker="o", markersize=5, fillstyle="none", color=palette[recipe.name])
        axes.annotate(
            f"{score[best]:.2f}",
            (share[best], score[best]),
            textcoords="offset points",
            xytext=(0, 5),
            ha="center",
            fontsize=7,
        )
    if published is not None:
        system, theirs = published
        axes.plot(
            100 * theirs["step"] / theirs["step"].max(),
            100 * theirs["STS-B"],
            color=palette[system],
            linewidth=0.8,
            label=f"{system}, the authors' log",
        )
    axes.set_xlabel("share of the training (%)")
    axes.set_ylabel(f"Spearman x 100, {recipe.selection.task}")
    axes.margins(y=0.15)
    axes.legend(loc="lower right")
    return figure
