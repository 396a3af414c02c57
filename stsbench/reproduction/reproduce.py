"""`reproduce`: make a published table again, and answer what its paper claims with it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from stsbench.base.errors import UserError
from stsbench.base.options import LARGEST_SEED, Commas, Within
from stsbench.base.progress import Progress, silent
from stsbench.published.catalogue import exhibit
from stsbench.reproduction.counts import counted
from stsbench.reproduction.excerpt import excerpt
from stsbench.reproduction.layout import layout
from stsbench.reproduction.planned_experiment import experiment_of, read_by
from stsbench.reproduction.reading import read_reproduction
from stsbench.reproduction.reproduced import Reproduction
from stsbench.reproduction.scales import ScaleName, demand_scale, scales
from stsbench.reproduction.stand_ins import make_stand_ins
from stsbench.reproduction.table_plan import TablePlan, plan_of
from stsbench.scoring.run import RUNS
from stsbench.statistics.dependence import DEPENDENCE, Dependence
from stsbench.sweeps.forecast import Forecast
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
    seeds: Annotated[
        Sequence[int],
        Within(0, LARGEST_SEED),
        Commas("{!r} is no seed; give whole numbers with commas, such as 1,2,3"),
    ] = (),
    settings: Mapping[str, Any] | None = None,
    threads: Annotated[int, Within(1, 1024)] = 1,
    workers: Annotated[int | None, Within(1, 10_000)] = None,
    device: str = "auto",
    interval: Dependence = DEPENDENCE,
    data_dirs: Sequence[str | Path] = (),
    retry: bool = False,
    dry_run: bool = False,
    progress: Progress = silent,
    notice: Callable[[str], None] = lambda _: None,
) -> Reproduction | Forecast:
    """Make a published table or figure again: train and measure what its plan says, and answer its claims.

    The folder is an experiment's (see `sweep`): stopped or killed, the same call goes on, and what is done is
    never done again.

    Args:
        table: which, as `reproductions` lists them: `esimcse-coling2022-9`, `mocose-acl2022-figure-8`.
        scale: how much is trained: `demo` (a few steps, minutes), `laptop` (the same axis from a small base and a
            few thousand sentences), `paper` (the paper's own base, corpus and seeds) or `wiring` (every row of the
            paper's from random weights, offline: whether all of it can be made).
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
        dry_run: whether to say only what there is to do, how long it takes and how much disk it needs.
        progress: told how many jobs are done.
        notice: told what the person should know.

    Returns:
        `.table()` has the paper's table with ours, `.answers` what was found about each claim, `.section()` a part
        of a report; of a dry run the forecast.

    Raises:
        UserError: if there is no such table or scale, it cannot be made (saying why), or what it needs is missing.

    >>> try:
    ...     reproduce("esimcse-coling2022-2")
    ... except UserError as error:
    ...     print(str(error)[:47])
    esimcse-coling2022-2 cannot be made at the scal
    """
    plan, size = plan_of(table), demand_scale(scale)
    name = exhibit(table).name
    text = str(corpus) if corpus is not None else _corpus(plan, name, size)
    folders = [Path(folder).expanduser() for folder in data_dirs]
    if plan.counts:
        place = Path(out).expanduser() if out is not None else RUNS / f"{name}-{size}"
        return counted(plan, name, size, place, folders)
    few = _few_rows(plan, name, size, folders)
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
    (rows,) = experiment.axes.values()
    assert isinstance(rows, dict)
    make_stand_ins(rows.values())
    place = Path(out).expanduser() if out is not None else RUNS / experiment.name
    result = sweep(
        experiment,
        place,
        on=on,
        workers=workers,
        device=device,
        data_dirs=data_dirs if few is None else (few, *data_dirs),
        retry=retry,
        dry_run=dry_run,
        progress=progress,
        notice=notice,
    )
    if not isinstance(result, Sweep):
        return result
    return read_reproduction(plan, name, size, result, interval=interval, data_dirs=folders)


def _few_rows(plan: TablePlan, name: str, scale: ScaleName, data_dirs: Sequence[Path]) -> Path | None:
    """Return a folder with the few rows of the paper's tasks that a scale measures; None where it measures others.

    Raises:
        UserError: if a task's files are here in part, or the cache cannot be written.
    """
    rows, tasks = scales()[scale].rows, read_by(plan, name)
    return excerpt(tasks, rows, data_dirs) if rows and tasks else None


def _corpus(plan: TablePlan, name: str, scale: ScaleName) -> str:
    """Return the corpus of a scale, where the person names none.

    Raises:
        UserError: if it is not here.
    """
    size = scales()[scale]
    if size.corpus or size.tried or not any(made.is_trained for made in layout(plan, name, scale).made):
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
