"""How a model came about: the loss and the dev score over the steps, from the log beside its record."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.judging.published import known_checkpoint
from stsbench.published.measured import logged_dev_scores, logged_systems, source
from stsbench.render.figures import curves as draw
from stsbench.render.figures import svg_of
from stsbench.render.section import Filled, ReportFigure, Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs
from stsbench.reports.seeds import methods
from stsbench.training.log import LOG, log_frame, read_log

if TYPE_CHECKING:
    import pandas as pd


def training(runs: Runs) -> Filled:
    """Return the curves of the runs that have a training log beside their record, and of published logs."""
    own: dict[str, pd.DataFrame] = {}
    missing = []
    for label, record in runs.items():
        if record.folder is None or not (record.folder / LOG).is_file():
            continue
        try:
            own[label] = log_frame(read_log(record.folder / LOG))
        except (UserError, ValueError) as error:
            missing.append(f"training of {label}: its {LOG} cannot be read ({error})")
    parts = []
    if own:
        curves = {label: _points(log, "dev") for label, log in own.items()}
        losses = {label: _points(log, "loss") for label, log in own.items()}
        seeds_of = {label: method for method, group in methods(runs).items() for label in group}
        parts.append(
            Section(
                "training-own",
                "Trained here",
                tables=(Table(_summary(own), "Training in numbers", name="training-summary"),),
                figures=(
                    _drawn("training-dev", "Dev score over training", curves, "dev score × 100", seeds_of),
                    _drawn("training-loss", "Training loss", losses, "loss", seeds_of),
                ),
            )
        )
    parts += _published(runs)
    return Filled(Section("training", "Training curves", parts=tuple(parts)), tuple(missing))


def _points(log: "pd.DataFrame", name: str) -> "pd.DataFrame":
    points = log[["step", name]].dropna().rename(columns={name: "value"})
    return points.assign(value=100 * points["value"]) if name == "dev" else points


def _summary(logs: "dict[str, pd.DataFrame]") -> "pd.DataFrame":
    import pandas as pd

    rows = []
    for label, log in logs.items():
        dev, loss = _points(log, "dev"), _points(log, "loss")
        best = int(dev["value"].to_numpy().argmax()) if len(dev) else None
        rows.append(
            {
                "model": label,
                "steps": int(log["step"].max()),
                "best dev x 100": None if best is None else dev["value"].iloc[best],
                "at step": None if best is None else int(dev["step"].iloc[best]),
                "last loss": f"{loss['value'].iloc[-1]:.4g}" if len(loss) else None,
            }
        )
    return pd.DataFrame(rows)


def _published(runs: Runs) -> list[Section]:
    """Return the dev curves that authors published, of the systems that are reported on."""
    import pandas as pd

    known = [known_checkpoint(record) for record in runs.values()]
    systems = [entry.system for entry in known if entry is not None and entry.system in logged_systems()]
    if not systems:
        return []
    said = source("training-logs")
    figures = []
    for system in dict.fromkeys(systems):
        log = logged_dev_scores(system)
        tasks = [str(name) for name in log if name != "step"]
        curves = {task: pd.DataFrame({"step": log["step"], "value": 100 * log[task]}) for task in tasks}
        title = f"Dev scores in the authors' log of {system}"
        figures.append(_drawn(f"training-{system}", title, curves, "Spearman × 100"))
    text = f"{said.title}. {said.note} {said.address}"
    return [Section("training-published", "Published training logs", (text,), figures=tuple(figures))]


def _drawn(
    name: str,
    caption: str,
    curves: "dict[str, pd.DataFrame]",
    label: str,
    seeds_of: Mapping[str, str] | None = None,
) -> ReportFigure:
    ends = "; ".join(
        f"{of} from {points['value'].iloc[0]:.4g} to {points['value'].iloc[-1]:.4g}"
        for of, points in curves.items()
        if len(points)
    )
    return ReportFigure(name, caption, f"Curve over steps: {ends}", svg_of(draw(curves, label, seeds_of)))
