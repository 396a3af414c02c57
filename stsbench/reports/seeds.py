"""How far a seed carries: runs that differ in the seed, and what is known of a method's seeds from elsewhere."""

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.judging.published import known_checkpoint
from stsbench.judging.seeds import compare_seeds
from stsbench.published.measured import seeded_systems, seeds, source
from stsbench.records.kinds import STS
from stsbench.records.record import RunRecord
from stsbench.render.figures import colours, legend_above, new_figure, style, svg_of
from stsbench.render.section import Filled, ReportFigure, Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_SEED = re.compile(r"[-_. ]?seed[-_.= ]?\d+", re.IGNORECASE)


def seed_distributions(runs: Runs) -> Filled:
    """Return the spread over seeds: of runs called alike but for `seed<number>`, and of known reproductions."""
    missing: list[str] = []
    tables, spreads = [], {}
    for number, (method, group) in enumerate(methods(runs).items(), 1):
        try:
            found = compare_seeds(group, {}, (method, ""), level=0.95)
        except UserError as error:
            missing.append(f"seeds of {method}: {error}")
            continue
        frame = found.frame[["task", "a_runs", "a_mean", "a_sd", "a_lowest", "a_highest"]]
        frame = frame.rename(columns=lambda name: name.removeprefix("a_"))
        caption = f"{method} over {len(group)} seeds"
        tables.append(Table(frame, caption, name=f"seeds-{number}", notes=found.notes))
        if averages := [100 * value for run in group.values() if (value := _sts_average(run)) is not None]:
            spreads[method] = averages
    figures = [_drawn("seeds-own", "STS average over seeds", spreads, {})] if spreads else []
    own = Section("seeds-own-runs", "Runs with several seeds", tables=tuple(tables), figures=tuple(figures))
    return Filled(Section("seeds", "Seeds", parts=(own, *_published(runs))), tuple(missing))


def methods(runs: Runs) -> dict[str, dict[str, RunRecord]]:
    """Return the runs that are called alike but for a seed, at least two of each name."""
    groups: dict[str, dict[str, RunRecord]] = {}
    for label, record in runs.items():
        # A checkpoint of a training is called after its folder, and so is the run.
        names = [label, record.folder.name if record.folder else "", PurePath(record.model.name).name]
        name = next((name for name in names if _SEED.search(name)), None)
        if name is not None:
            groups.setdefault(_SEED.sub("", name), {})[label] = record
    return {name: group for name, group in groups.items() if len(group) > 1}


def _sts_average(run: RunRecord) -> float | None:
    average = run.average(STS)
    return None if average is None else average.value


def _published(runs: Runs) -> list[Section]:
    """Return where runs of a system lie among the seeds of an independent reproduction of it."""
    parts = []
    for system in seeded_systems():
        own = {
            label: 100 * value
            for label, record in runs.items()
            if (known := known_checkpoint(record)) is not None
            and known.system == system
            and (value := _sts_average(record)) is not None
        }
        if not own:
            continue
        scores = seeds(system)
        table = Table(_described(scores), f"{system} over {len(scores)} seeds", name=f"seeds-{system}")
        caption = f"STS average of {len(scores)} seeds of {system}"
        figure = _drawn(f"seeds-figure-{system}", caption, {system: scores["Avg."].tolist()}, own)
        said = source("seeds")
        text = (f"{said.title}. {said.note} {said.address}",)
        parts.append(Section(f"seeds-of-{system}", caption, text, (table,), (figure,)))
    return parts


def _described(scores: "pd.DataFrame") -> "pd.DataFrame":
    tasks = [name for name in scores if name not in {"seed", "best_step", "STS-B:dev"}]
    frame = scores[tasks].agg(["count", "mean", "std", "min", "max"]).T.reset_index()
    frame.columns = ["task", "runs", "mean", "sd", "lowest", "highest"]
    return frame.astype({"runs": int})


def _drawn(name: str, caption: str, spreads: dict[str, list[float]], marked: dict[str, float]) -> ReportFigure:
    told = [f"{method}: {min(values):.2f} to {max(values):.2f}" for method, values in spreads.items()]
    told += [f"{label} at {value:.2f}" for label, value in marked.items()]
    alt = f"Each seed's average as a dot. {'; '.join(told)}"
    return ReportFigure(name, caption, alt, svg_of(_dots(spreads, marked)))


def _dots(spreads: dict[str, list[float]], marked: dict[str, float]) -> "Figure":
    palette = colours([*spreads, *marked])
    with style():
        figure = new_figure(height=1 + 0.4 * len(spreads))
        axes = figure.add_subplot()
        for place, (method, values) in enumerate(spreads.items()):
            # Spread by rank within the line, so that none hides another.
            heights = [place + 0.5 * (0.5 - rank / max(len(values) - 1, 1)) for rank in range(len(values))]
            axes.plot(sorted(values), heights, "o", markersize=3, color=palette[method], label=method)
        for label, value in marked.items():
            axes.axvline(value, color=palette[label], label=label)
        axes.set_yticks([])
        axes.set_ylim(len(spreads) - 0.5, -0.5)
        axes.set_xlabel("STS average")
        legend_above(figure, axes)
    return figure
