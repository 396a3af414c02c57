"""The dev curve: the dev score over a training, beside the curve that the ESimCSE authors published."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.published.measured import logged_dev_scores, logged_systems
from stsbench.render.charts import curves
from stsbench.render.figures import COLUMN_WIDTH, colours, new_figure, save_figure, style
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import read_recipe

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from stsbench.training.train import Training

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


def figure(trainings: "Training | str | Path | Sequence[Training | str | Path]") -> "Figure":
    """Draw the dev scores of one or several trainings over their steps.

    Args:
        trainings: what `train` returned, or the folders of trainings, whose names the curves get.

    Raises:
        UserError: if a folder holds no log.
    """
    from stsbench.training.log import read_log
    from stsbench.training.state import RunFolder
    from stsbench.training.train import Training

    points, tasks = {}, []
    for one in [trainings] if isinstance(trainings, Training | str | Path) else trainings:
        folder = RunFolder(one.folder if isinstance(one, Training) else Path(one).expanduser())
        scores = dev_curve(read_log(folder.log))
        name = folder.path.resolve().name
        points[name] = scores.assign(value=100 * scores["dev"])
        tasks.append(read_recipe(folder.recipe).selection.task)
    return curves(points, f"Spearman × 100, {' and '.join(dict.fromkeys(tasks))}")


def published_curve(recipe: Recipe) -> tuple[str, "pd.DataFrame"] | None:
    """Return the authors' curve to draw beside a recipe's, and the system it is of.

    It is that of the same system where there is one, else that of ESimCSE with BERT-base; None where the recipe
    selects on another task.
    """
    if recipe.selection.task != _PUBLISHED_TASK:
        return None
    system = _system(recipe) if _system(recipe) in logged_systems() else _REFERENCE
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
    published = published_curve(recipe)
    # Another system starts elsewhere: in one panel the two scales would flatten each other.
    apart = published is not None and published[0] != _system(recipe)
    figure = new_figure(width=(2 if apart else 1) * COLUMN_WIDTH)
    panels = figure.subplots(1, 2 if apart else 1, squeeze=False)[0]
    ours, authors = colours(["ours", "authors"]).values()

    share, score = (100 * curve["step"] / steps).to_numpy(), (100 * curve["dev"]).to_numpy()
    label = f"{recipe.name}, {steps} steps"
    panels[0].plot(share, score, color=ours, marker=".", markersize=3, label=label)
    if len(score) > 1:  # the first is the base's, before any step
        best = 1 + int(score[1:].argmax())
        mark = {"color": ours, "marker": "o", "fillstyle": "none", "linestyle": "none"}
        panels[0].plot(share[best], score[best], **mark, label=f"best, {score[best]:.2f}")
    if published is not None:
        system, log = published
        label = f"{system}, the authors' log, best {100 * log['STS-B'].max():.2f}"
        panels[-1].plot(
            100 * log["step"] / log["step"].max(), 100 * log["STS-B"], color=authors, linewidth=0.8, label=label
        )
    for axes in panels:
        axes.set_xlabel("share of the training (%)")
        axes.set_ylabel(f"Spearman x 100, {recipe.selection.task}")
        # Above the panel, where no line can run through it.
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _system(recipe: Recipe) -> str:
    """Return the published system that a recipe is, if it is one."""
    return recipe.name.removesuffix("-released")
