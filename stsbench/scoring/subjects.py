"""What is analysed: runs that were recorded, and models, each with a name of its own."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.catalogue import data_sets
from stsbench.encoders.checkpoint import PACKAGED, packaged_model
from stsbench.encoders.load import load_with
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.use import USUAL, Use, option_of
from stsbench.records.labels import model_labels
from stsbench.records.parts import ModelPart
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.store import load_run
from stsbench.scoring.evaluate import evaluate
from stsbench.scoring.settings import Intervals
from stsbench.scoring.tasks import canonical, tasks_here

if TYPE_CHECKING:
    import pandas as pd

Subject = RunRecord | Encoder
Wanted = RunRecord | Encoder | str | Path | Callable[[list[str]], Any]
"""A record, its folder or its `run.json`; or an encoder, or what `load` makes one of."""


def named_subjects(wanted: Wanted | Sequence[Wanted] | None, use: Use = USUAL) -> dict[str, Subject]:
    """Return what is to be analysed (None: the packaged model), by the names that tables and figures give it."""
    several: list[Any] = list(wanted) if isinstance(wanted, list | tuple) else [] if wanted is None else [wanted]
    if not several:
        if packaged_model() is None:
            raise UserError("nothing was named: give a run, or --model NAME.")
        several = [PACKAGED]
    made = [_made(each) for each in several]
    if use.changed() and None not in made:
        raise UserError(
            f"{option_of(use.changed()[0])} is for models that are to be loaded, and what was given "
            "is loaded or measured already: leave it out, or name a model."
        )
    subjects = [
        load_with(each, use) if subject is None else subject for each, subject in zip(several, made, strict=True)
    ]
    models = [
        subject.model if isinstance(subject, RunRecord) else ModelPart(**vars(subject.identity))
        for subject in subjects
    ]
    folders = [subject.folder if isinstance(subject, RunRecord) else None for subject in subjects]
    return dict(zip(model_labels(models, folders), subjects, strict=True))


def _made(wanted: Wanted) -> Subject | None:
    """Return a subject that needs no loading; None for a model's name and the like."""
    if isinstance(wanted, str | Path):
        return load_run(wanted) if _is_run(wanted) else None
    return wanted if isinstance(wanted, RunRecord | Encoder) else None


def _is_run(path: str | Path) -> bool:
    path = Path(path).expanduser()
    return (path / RECORD).is_file() or path.suffix == ".json"


def runs_and_models(runs: Sequence[str], models: Sequence[str]) -> list[str]:
    """Return what a command line names, runs first."""
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
    """Return the compared pairs of each: a record's own; a model is measured, from the cache where it can be.

    By default they are of all tasks that a record has, and for a model of the seven STS tasks, or of the sample
    where their data is not here.
    """
    wanted = list(dict.fromkeys(canonical(task) for task in tasks))
    tables = {}
    for name, subject in subjects.items():
        if isinstance(subject, RunRecord):
            tables[name] = _only(name, subject, wanted) if wanted else subject.compared_pairs().frame
        else:
            measured = evaluate(
                subject,
                wanted or tasks_here(data_dirs),
                data_dirs=data_dirs,
                intervals=Intervals(None),
                progress=progress,
            )
            tables[name] = measured.compared_pairs().frame
    return tables


def _only(name: str, record: RunRecord, tasks: Sequence[str]) -> "pd.DataFrame":
    pairs = record.compared_pairs().frame
    there = list(dict.fromkeys(pairs["task"]))
    for task in tasks:
        if task not in there:
            where = f" in {record.folder}" if record.folder else ""
            raise UserError(
                f"the run of {name}{where} has no {task} (it has {', '.join(there)}): measure it with "
                f"`stsbench run --model {record.model.name} --tasks {task}`, or choose another task."
            )
    return pairs[pairs["task"].isin(tasks)]


def gold_ranges(pairs: "pd.DataFrame") -> dict[str, tuple[float, float]]:
    """Return the lowest and highest possible gold score of each task of a pair table.

    A catalogued task's annotators had a scale. Of a person's own file only what occurs is known.
    """
    entries = data_sets()
    ranges = {}
    for (task, text), part in pairs.groupby(["task", "text"], sort=False):
        entry = entries.get(str(task))
        known = entry.gold_range if entry and text in entry.texts else None
        ranges[str(task)] = known or (float(part["gold"].min()), float(part["gold"].max()))
    return ranges
