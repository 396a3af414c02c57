"""`reproduce` makes a published table again and answers its claims; `reproductions` lists what can be made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.published.catalogue import exhibits
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.reproduction.layout import experiment_of, layout, read_by
from stsbench.reproduction.reading import counted, read_reproduction
from stsbench.reproduction.reproduced import Reproduction
from stsbench.reproduction.samples import excerpt, make_labelled
from stsbench.reproduction.table_plan import (
    SCALES,
    ScaleName,
    TablePlan,
    demand_scale,
    plan_of,
    planned_exhibit,
    plans_by_exhibit,
    scales,
)
from stsbench.scoring.run import RUNS
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.sweep import sweep

_WIKI = "wiki1m"
"""The source of the papers' corpus in the catalogue of data."""


def reproduce(
    table: str,
    *,
    scale: str = "demo",
    out: str | Path | None = None,
    on: str = "local",
    corpus: str | Path | None = None,
    seeds: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    threads: int = 1,
    workers: int | None = None,
    device: str = "auto",
    interval: Dependence = DEPENDENCE,
    data_dirs: Sequence[str | Path] = (),
    retry: bool = False,
    status: bool = False,
    progress: Progress = silent,
    notice: Callable[[str], None] = lambda _: None,
) -> Reproduction | Sweep:
    """Make a published table or figure again: train and measure what its plan says, and answer its claims.

    The folder is an experiment's (see `sweep`): stopped or killed, the same call goes on, and what is done is
    never done again.

    Args:
        table: which, as `reproductions` lists them: `esimcse-coling2022-9`, `mocose-acl2022-figure-8`.
        scale: how much is trained: `demo` (a few steps, minutes), `laptop` (the same axis from a small base and a
            few thousand sentences) or `paper` (the paper's own base, corpus and seeds).
        out: the folder of the experiment; by default `runs/TABLE-SCALE`.
        on: where jobs run: `local`, `ray` or `slurm`.
        corpus: the file to train on; by default the sample at `demo`, else the fetched `wiki1m`.
        seeds: the seeds of the trainings, with commas; by default the scale's.
        settings: changes to every recipe, over the plan's: `{"optimiser.batch": 32}`.
        threads: how many threads each job uses.
        workers: how many jobs run at once; by default one for each GPU, or one for each group of cores that the
            threads of a job fill.
        device: where local jobs compute: `auto`, `cpu`, `cuda` or `mps`.
        interval: which pairs depend on each other, in the tests of the claims.
        data_dirs: folders to look for data in.
        retry: whether to run failed jobs again.
        status: return the jobs and their states without running any.
        progress: told how many jobs are done.
        notice: told what the person should know.

    Returns:
        `.table()` has the paper's table with ours, `.answers` what was found about each claim, `.section()` a part
        of a report; with `status` the jobs.

    Raises:
        UserError: if there is no such table or scale, it cannot be made (saying why), or what it needs is missing.

    >>> try:
    ...     reproduce("esimcse-coling2022-2")
    ... except UserError as error:
    ...     print(str(error)[:47])
    esimcse-coling2022-2 cannot be made at the scal
    """
    plan, size = plan_of(table), demand_scale(scale)
    name = planned_exhibit(table).name
    text = str(corpus) if corpus is not None else _corpus(plan, name, size)
    folders = [Path(folder).expanduser() for folder in data_dirs]
    if plan.counts:
        place = Path(out).expanduser() if out is not None else RUNS / f"{name}-{size}"
        return counted(plan, name, size, place, folders)
    rows_read, tasks = scales()[size].rows, read_by(plan, name)
    few = excerpt(tasks, rows_read, folders) if rows_read and tasks else None
    experiment = experiment_of(
        plan,
        name,
        size,
        corpus=text,
        seeds=tuple(seeds),
        threads=threads,
        settings=settings,
        here=few is not None,
        data_dirs=folders,
    )
    if scales()[size].labelled and plan.labelled:
        make_labelled()
    place = Path(out).expanduser() if out is not None else RUNS / experiment.name
    result = sweep(
        experiment,
        place,
        on=on,
        workers=workers,
        device=device,
        data_dirs=data_dirs if few is None else (few, *data_dirs),
        retry=retry,
        status=status,
        progress=progress,
        notice=notice,
    )
    if status:
        return result
    return read_reproduction(plan, name, size, result, interval=interval, data_dirs=folders)


def _corpus(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Return the corpus of a scale, where the person names none."""
    size = scales()[scale]
    if size.corpus or not any(made.is_trained for made in layout(plan, name, scale).made):
        return size.corpus
    from stsbench.data.catalogue import source
    from stsbench.data.locate import places

    file = source(_WIKI).address.rpartition("/")[2]
    for place in places():
        if (path := place.folder / file).is_file():
            return str(path)
    raise UserError(
        f"the scale {scale} trains on sentences of Wikipedia, which are not here: name a file with --corpus, or "
        f"fetch the papers' with `stsbench data get {_WIKI}`."
    )


@dataclass(frozen=True)
class Reproductions(Result):
    """Tables and figures of the papers: whether they can be made, and what it takes.

    Attributes:
        only: the one that is shown in full; empty for all of them, a line each.
    """

    only: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each, with what it shows, what it takes at each scale, and its claims."""
        rows: list[dict[str, Any]] = []
        for entry in exhibits().values():
            plan = plans_by_exhibit().get(entry.name)
            if plan is None or self.only not in {"", entry.name}:
                continue
            by_scale: dict[str, str] = {scale: _takes(plan, entry.name, scale) for scale in SCALES}
            can = [scale for scale, what in by_scale.items() if not what.startswith("cannot")]
            rows.append(
                {
                    "table": entry.name,
                    "shows": entry.title,
                    "kind": entry.kind,
                    "can be made": ", ".join(can),
                    **by_scale,
                    "claims": len(plan.claims_of(entry.name)),
                    "why not": plan.cannot,
                    "plan": plan.name,
                }
            )
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Return what can be made at which scales, and what cannot be made with why; of one all that is known."""
        if self.only:
            return Tables([self._facts()])
        frame = self.frame
        can = frame["can be made"] != ""
        made = frame.rename(columns={"can be made": "at"})[can][["table", "at", "claims", "shows"]]
        cannot = frame[~can][["table", "why not"]]
        whole = "One of them with all that it takes: `stsbench reproduce --list NAME`."
        return Tables(
            [
                Table(made, "What can be made, and at which scales", notes=(whole,)),
                Table(cannot, "What cannot be made"),
            ]
        )

    def _facts(self) -> Table:
        """Return all that is known of one, a line each."""
        plan, row = plan_of(self.only), self.frame.to_dict("records")[0]
        facts = [(str(name), str(value)) for name, value in row.items() if value != ""]
        labels = plan.names_of(self.only).rows
        for scale in SCALES:
            for key, why in layout(plan, self.only, scale).missing.items():
                name, comma, column = key.partition(", ")
                facts.append((f"left out at {scale}", f"{labels[name]}{comma}{column}: {why}"))
        facts += [("claim", claim.says) for claim in plan.claims_of(self.only)]
        facts += [("note", note) for note in plan.notes]
        return Table(pd.DataFrame(facts, columns=["what", "of it"]))


def reproductions(table: str = "") -> Reproductions:
    """Return tables and figures of the papers: whether they can be made, and what it takes at each scale.

    Args:
        table: one of them, which is shown in full; empty for all.

    >>> reproductions().frame.set_index("table").loc["esimcse-coling2022-9", "demo"]
    '6 trainings; 5 of its rows left out'
    >>> print(reproductions("esimcse-coling2022-9").table()[0].frame.loc[0, "of it"])
    esimcse-coling2022-9
    """
    return Reproductions(planned_exhibit(table).name if table else "")


def _takes(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Return what making an exhibit at a scale takes, or why it cannot be made, in a phrase."""
    if plan.cannot:
        return f"cannot be made: {plan.cannot}"
    if plan.counts:
        return "pairs counted in the tasks' files"
    planned = layout(plan, name, scale)
    trained = sum(made.is_trained for made in planned.made)
    measured = len(planned.made) - trained
    if not planned.made:
        return f"cannot be made: {next(iter(planned.missing.values()))}"
    parts = []
    if trained:
        trainings = trained * len(scales()[scale].seeds)
        parts.append(f"{trainings} training{'s' if trainings > 1 else ''}")
    if measured:
        parts.append(f"{measured} checkpoint{'s' if measured > 1 else ''} measured")
    if plan.analysis:
        parts.append(f"analysis {plan.analysis}")
    if plan.reading:
        parts.append("by our reading of the text")
    return ", ".join(parts) + (f"; {len(planned.missing)} of its rows left out" if planned.missing else "")
