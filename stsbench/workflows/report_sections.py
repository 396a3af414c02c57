"""The sections of a report that take more than its records: the analyses, and the comparisons of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress
from stsbench.records import RunRecord
from stsbench.reports.drawing import svg_of
from stsbench.reports.page import Filled, ReportFigure, ReportTable, Section
from stsbench.workflows import comparison_tables as shown
from stsbench.workflows.compare import compare
from stsbench.workflows.explain import TITLES, Part, explain_each

FEW = 5
"""How many runs are analysed and compared: of more the curves hide one another, and it takes minutes."""

Runs = Mapping[str, RunRecord]


def analyses(runs: Runs, data_dirs: Sequence[str | Path], progress: Progress) -> Filled:
    """Return what is behind the scores, and which analyses were not possible."""
    missing: list[str] = []
    if len(runs) > FEW:
        told = f"analyses: made for at most {FEW} runs, here are {len(runs)}; `stsbench explain` takes more"
        return Filled(Section("analyses", "Analyses"), (told,))
    parts = explain_each(
        list(runs.values()),
        published=True,
        data_dirs=data_dirs,
        failed=lambda name, error: missing.append(f"{TITLES[name].lower()}: {error}"),
        progress=progress,
    )
    sections = tuple(_analysis(part) for part in parts)
    return Filled(Section("analyses", "Analyses", parts=sections), tuple(missing))


def comparisons(runs: Runs, progress: Progress) -> Filled:
    """Return each run compared with the first, pair by pair."""
    section, missing = Section("comparisons", "Comparisons"), []
    first, *others = runs
    if len(runs) > FEW:
        told = f"comparisons: made for at most {FEW} runs, here are {len(runs)}; `stsbench compare` makes any"
        return Filled(section, (told,))
    parts = []
    for number, other in enumerate(others, 1):
        try:
            found = compare(runs[first], runs[other], progress=progress)
        except UserError as error:
            missing.append(f"comparison of {first} and {other}: {error}")
            continue
        tables = tuple(
            ReportTable(f"compare-{number}-{place}", f"A: {first}; B: {other}", table)
            for place, table in enumerate(shown.tables(found, subsets=True), 1)
        )
        caption = f"{other} less {first}, with {100 * found.level:g} % intervals"
        figure = ReportFigure(f"compare-figure-{number}", caption, found.sentence, svg_of(shown.figure(found)))
        parts.append(
            Section(
                f"comparison-{number}",
                f"{other} and {first}",
                (found.sentence,),
                tables,
                (figure,),
                points=found.notes,
            )
        )
    text = (
        "Paired bootstrap of the pairs or items, with Williams' or McNemar's test; Holm's correction over tasks."
    )
    return Filled(replace(section, text=(text,) if parts else (), parts=tuple(parts)), tuple(missing))


def _analysis(part: Part) -> Section:
    title = TITLES[part.name]
    tables = tuple(
        ReportTable(f"{part.name}-{number}", view.caption, view.table, view.decimals)
        for number, view in enumerate(part.views, 1)
        if len(view.table)
    )
    alt = f"{title}; the numbers stand in the tables above it."
    figure = ReportFigure(f"figure-{part.name}", title, alt, svg_of(part.draw()))
    return Section(part.name, title, tables=tables, figures=(figure,))
