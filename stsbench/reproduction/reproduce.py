"""`reproduce`: reproduces a published table and answers its claims; `reproductions` lists the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.data.catalogue import source
from stsbench.data.locate import places
from stsbench.published.catalogue import exhibits
from stsbench.render.table import Result, Table, Tables
from stsbench.reproduction.layout import experiment_of, layout
from stsbench.reproduction.reading import read_reproduction
from stsbench.reproduction.reproduced import Reproduction
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
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.sweep import sweep

_WIKI = "wiki1m"
"""The papers' corpus in the catalogue of data."""


def reproduce(
    table: str,
    *,
    scale: str = "demo",
    out: str | Path | None = None,
    corpus: str | Path | None = None,
    seeds: Sequence[int] = (),
    settings: Mapping[str, Any] | None = None,
    threads: int = 1,
    data_dirs: Sequence[str | Path] = (),
    status: bool = False,
    **options: Any,
) -> Reproduction | Sweep:
    """Reproduces a published table or figure: trains and measures as its plan says, and answers its claims.

    The folder is an experiment's (see `sweep`): the same call resumes it, and finished jobs are never repeated.

    Args:
        table: a name from `reproductions`: `esimcse-coling2022-9`, `mocose-acl2022-figure-8`.
        scale: `demo` (a few steps, minutes), `laptop` (a small base and a thousand sentences) or `paper` (the
            paper's base, corpus and seeds).
        out: the folder of the experiment; by default `runs/TABLE-SCALE`.
        corpus: the training corpus; by default the sample at `demo`, else `wiki1m`.
        seeds: of the trainings; by default the scale's.
        settings: changes to every recipe, over the plan's: `{"optimiser.batch": 32}`.
        threads: per job.
        data_dirs: folders to look for data in.
        status: returns the jobs and their states; runs none.
        options: `on`, `workers`, `device`, `retry`, `progress` and `notice`, as in `sweep`.

    Returns:
        The paper's table with ours, `.answers` to each claim, and a `.section()` for a report; with `status` the
        jobs.

    Raises:
        UserError: if there is no such table or scale, it cannot be reproduced, or an input is missing.

    >>> try:
    ...     reproduce("esimcse-coling2022-2")
    ... except UserError as error:
    ...     print(str(error)[:47])
    esimcse-coling2022-2 cannot be made at the scal
    """
    plan, size, name = plan_of(table), demand_scale(scale), planned_exhibit(table).name
    place = Path(out).expanduser() if out is not None else RUNS / f"{name}-{size}"
    if plan.labelled and "labelled.folder" not in (settings or {}):
        raise UserError(f"{name} trains on labelled tables: name their folder with --set labelled.folder=FOLDER.")
    folders = [Path(folder).expanduser() for folder in data_dirs]
    experiment = experiment_of(
        plan,
        name,
        size,
        corpus=str(corpus) if corpus is not None else _corpus(plan, name, size),
        seeds=tuple(seeds),
        threads=threads,
        settings=settings,
        data_dirs=folders,
    )
    result = sweep(experiment, place, data_dirs=data_dirs, status=status, **options)
    return result if status else read_reproduction(plan, name, size, result, data_dirs=folders)


def _corpus(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Returns the scale's corpus, or the papers' if it is on this machine."""
    size = scales()[scale]
    if size.corpus or not any(made.is_trained for made in layout(plan, name, scale).made):
        return size.corpus
    file = source(_WIKI).address.rpartition("/")[2]
    for place in places():
        if (path := place.folder / file).is_file():
            return str(path)
    raise UserError(
        f"the scale {scale} trains on Wikipedia sentences, which are not on this machine: name a file with "
        f"--corpus, or download the papers' with `stsbench data get {_WIKI}`."
    )


@dataclass(frozen=True)
class Reproductions(Result):
    """The papers' tables and figures, with what reproducing them takes.

    Attributes:
        only: the one to show in full; empty for all, a line each.
    """

    only: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each, with its title, what each scale takes, and the number of claims."""
        rows: list[dict[str, Any]] = []
        for entry in exhibits().values():
            plan = plans_by_exhibit().get(entry.name)
            if plan is None or self.only not in {"", entry.name}:
                continue
            by_scale: dict[str, str] = {scale: _takes(plan, entry.name, scale) for scale in SCALES}
            possible = [scale for scale, what in by_scale.items() if not what.startswith("cannot")]
            row = {
                "table": entry.name,
                "shows": entry.title,
                "kind": entry.kind,
                "can be made": ", ".join(possible),
            }
            claims = len(plan.claims_of(entry.name))
            rows.append({**row, **by_scale, "claims": claims, "why not": plan.cannot, "plan": plan.name})
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Returns what can be reproduced at which scales, and what cannot and why; or one in full."""
        frame = self.frame
        if self.only:
            return Tables([self._facts(frame.to_dict("records")[0])])
        possible = frame["can be made"] != ""
        made = frame.rename(columns={"can be made": "at"})[possible][["table", "at", "claims", "shows"]]
        note = "What one of them takes: `stsbench reproduce --list NAME`."
        return Tables(
            [
                Table(made, "Can be reproduced, at these scales", notes=(note,)),
                Table(frame[~possible][["table", "why not"]], "Cannot be reproduced"),
            ]
        )

    def _facts(self, row: Mapping[Any, Any]) -> Table:
        plan, name = plan_of(self.only), self.only
        facts = [(str(key), str(value)) for key, value in row.items() if value != ""]
        for scale in SCALES:
            missing = layout(plan, name, scale).missing
            facts += [
                (f"left out at {scale}", f"{plan.names_of(name).called(key)}: {why}")
                for key, why in missing.items()
            ]
        facts += [("claim", claim.says) for claim in plan.claims_of(name)]
        facts += [("note", note) for note in plan.notes]
        return Table(pd.DataFrame(facts, columns=["what", "value"]))


def reproductions(table: str = "") -> Reproductions:
    """Lists the papers' tables and figures, with what reproducing them takes at each scale.

    Args:
        table: one of them, to show in full; empty for all.

    >>> reproductions().frame.set_index("table").loc["esimcse-coling2022-9", "demo"]
    '6 trainings; 5 of its rows left out'
    >>> print(reproductions("esimcse-coling2022-9").table()[0].frame.loc[0, "value"])
    esimcse-coling2022-9
    """
    return Reproductions(planned_exhibit(table).name if table else "")


def _takes(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Returns what reproducing a table at a scale takes, or why it is not possible."""
    planned = layout(plan, name, scale)
    if plan.cannot or not planned.made:
        return f"cannot be made: {plan.cannot or next(iter(planned.missing.values()))}"
    trained = sum(made.is_trained for made in planned.made)
    trainings, measured = trained * len(scales()[scale].seeds), len(planned.made) - trained
    parts = [f"{trainings} training{'s' if trainings > 1 else ''}"] if trained else []
    parts += [f"{measured} checkpoint{'s' if measured > 1 else ''} measured"] if measured else []
    parts += [f"analysis {plan.analysis}"] if plan.analysis else []
    parts += ["by our reading of the text"] if plan.reading else []
    return ", ".join(parts) + (f"; {len(planned.missing)} of its rows left out" if planned.missing else "")
