"""Training curves from the logs next to records, and the spread of scores over seeds."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.judging.published import checkpoint_of_run
from stsbench.judging.runs import group_seeds
from stsbench.judging.seeds import compare_seeds
from stsbench.published.catalogue import seeded_systems, seeds, source
from stsbench.records.kinds import STS
from stsbench.records.record import RunRecord
from stsbench.render.charts import curves
from stsbench.render.figures import add_tooltips, colours, legend_above, new_figure, shortened, style, svg_of
from stsbench.render.page import Filled, ReportFigure, Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs
from stsbench.training.log import LOG, log_frame, read_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def training(runs: Runs) -> Filled:
    """Returns the curves of runs with a training log next to their record."""
    logs: dict[str, pd.DataFrame] = {}
    missing = []
    for label, record in runs.items():
        if record.folder is None or not (record.folder / LOG).is_file():
            continue
        try:
            logs[label] = log_frame(read_log(record.folder / LOG))
        except (UserError, ValueError) as error:
            missing.append(f"training of {label}: its {LOG} cannot be read ({error})")
    if not logs:
        return Filled(Section("training", "Training curves"), tuple(missing))
    scores, losses = ({label: _points(log, name) for label, log in logs.items()} for name in ("dev", "loss"))
    methods, _ = group_seeds(runs)
    seeds_of = {label: method for method, group in methods.items() for label in group}
    figures = (
        _drawn("training-dev", "Dev score over training", scores, "dev score × 100", seeds_of),
        _drawn("training-loss", "Training loss", losses, "loss", seeds_of),
    )
    tables = (Table(_summary(logs), "Training in numbers", name="training-summary"),)
    return Filled(Section("training", "Training curves", tables=tables, figures=figures), tuple(missing))


def _points(log: pd.DataFrame, name: str) -> pd.DataFrame:
    points = log[["step", name]].dropna().rename(columns={name: "value"})
    return points.assign(value=100 * points["value"]) if name == "dev" else points


def _summary(logs: "dict[str, pd.DataFrame]") -> pd.DataFrame:
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


def _drawn(
    name: str, caption: str, points: "dict[str, pd.DataFrame]", label: str, seeds_of: Mapping[str, str]
) -> ReportFigure:
    ends = "; ".join(
        f"{of} from {curve['value'].iloc[0]:.4g} to {curve['value'].iloc[-1]:.4g}"
        for of, curve in points.items()
        if len(curve)
    )
    return ReportFigure(name, caption, f"Curve over steps: {ends}", svg_of(curves(points, label, seeds_of)))


def seed_distributions(runs: Runs) -> Filled:
    """Returns the spread over seeds of runs that differ in name by `seed<number>`, and of known reproductions."""
    methods, notes = group_seeds(runs)
    missing = [f"seeds: {note}" for note in notes]
    tables, spreads = [], {}
    for number, (method, group) in enumerate(methods.items(), 1):
        try:
            spread = compare_seeds({method: group})
        except UserError as error:
            missing.append(f"seeds of {method}: {error}")
            continue
        frame = spread.frame[["task", "a_runs", "a_mean", "a_sd", "a_lowest", "a_highest"]]
        frame = frame.rename(columns=lambda name: name.removeprefix("a_"))
        caption = f"{method} over {len(group)} seeds"
        tables.append(Table(frame, caption, name=f"seeds-{number}", notes=spread.notes))
        if averages := [100 * value for run in group.values() if (value := _sts_average(run)) is not None]:
            spreads[method] = averages
    figures = [_dot_figure("seeds-own", "STS average over seeds", spreads, {})] if spreads else []
    here = Section("seeds-own-runs", "Runs with several seeds", tables=tuple(tables), figures=tuple(figures))
    return Filled(Section("seeds", "Seeds", parts=(here, *_seeds_elsewhere(runs))), tuple(missing))


def _sts_average(run: RunRecord) -> float | None:
    average = run.average(STS)
    return None if average is None else average.value


def _seeds_elsewhere(runs: Runs) -> list[Section]:
    """Returns the runs of a system, and the seeds of an independent reproduction of it."""
    parts = []
    for system in seeded_systems():
        measured = {
            label: 100 * value
            for label, record in runs.items()
            if (known := checkpoint_of_run(record)) is not None
            and known.system == system
            and (value := _sts_average(record)) is not None
        }
        if not measured:
            continue
        scores = seeds(system)
        table = Table(_described(scores), f"{system} over {len(scores)} seeds", name=f"seeds-{system}")
        caption = f"STS average of {len(scores)} seeds of {system}"
        figure = _dot_figure(f"seeds-figure-{system}", caption, {system: scores["Avg."].tolist()}, measured)
        origin = source("seeds")
        text = (f"{origin.title}. {origin.note} {origin.address}",)
        parts.append(Section(f"seeds-of-{system}", caption, text, (table,), (figure,)))
    return parts


def _described(scores: pd.DataFrame) -> pd.DataFrame:
    tasks = [name for name in scores if name not in {"seed", "best_step", "STS-B:dev"}]
    frame = scores[tasks].agg(["count", "mean", "std", "min", "max"]).T.reset_index()
    frame.columns = ["task", "runs", "mean", "sd", "lowest", "highest"]
    return frame.astype({"runs": int})


def _dot_figure(
    name: str, caption: str, spreads: dict[str, list[float]], marked: dict[str, float]
) -> ReportFigure:
    ranges = [f"{method}: {min(values):.2f} to {max(values):.2f}" for method, values in spreads.items()]
    ranges += [f"{label} at {value:.2f}" for label, value in marked.items()]
    alt = f"Each seed's average as a dot. {'; '.join(ranges)}"
    return ReportFigure(name, caption, alt, svg_of(seed_figure(spreads, marked)))


def seed_figure(spreads: dict[str, list[float]], marked: dict[str, float]) -> "Figure":
    """Draws each seed's average as a dot, one row of dots per method, and single models as vertical lines."""
    palette = colours([*spreads, *marked])
    with style():
        figure = new_figure(height=1 + 0.4 * len(spreads))
        axes = figure.add_subplot()
        for place, (method, values) in enumerate(spreads.items()):
            # Spread the dots vertically by rank, so that none hides another.
            heights = [place + 0.5 * (0.5 - rank / max(len(values) - 1, 1)) for rank in range(len(values))]
            axes.plot(sorted(values), heights, "o", markersize=3, color=palette[method])
            add_tooltips(axes, sorted(values), heights, [f"{method}: {value:.2f}" for value in sorted(values)])
        for label, value in marked.items():
            axes.axvline(value, color=palette[label], label=f"{label}: {value:.2f}")
        axes.set_yticks(range(len(spreads)), [fill(shortened(method), 18) for method in spreads])
        axes.grid(visible=False, axis="y")
        axes.set_ylim(len(spreads) - 0.5, -0.5)
        axes.set_xlabel("STS average")
        legend_above(figure, axes)
    return figure
