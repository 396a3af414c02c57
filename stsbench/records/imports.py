"""Imports the results of SentEval or MTEB as a record; unknown fields of the record are marked as such."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import files_in
from stsbench.base.parsing import first_error
from stsbench.encoders.use import Use
from stsbench.records.kinds import KINDS, STS, TRANSFER
from stsbench.records.parts import (
    IMPORTED,
    AveragePart,
    DataPart,
    ModelPart,
    ProtocolPart,
    Score,
    Training,
)
from stsbench.records.provenance import now
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.results import (
    MTEB_NOTE,
    NO_REVISION,
    ImportedResults,
    ImportedTask,
    ModelMeta,
    is_mteb,
    is_senteval,
    read_json,
    read_mteb,
    read_senteval,
)
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.records.store import load_run
from stsbench.statistics import LEVEL

_META = "model_meta.json"
_PROTOCOLS = {"SentEval": {"all": "simcse", "wmean": "senteval"}, "MTEB": {"all": "mteb"}}
_NO_USE = Use(pooling=UNKNOWN, precision=UNKNOWN)

T = TypeVar("T")


class NotResultsError(UserError):
    """A file without results of SentEval or MTEB."""


def import_scores(
    path: Path, model: str = "", aggregation: str | None = None, metric: str = "spearman", command: str = ""
) -> RunRecord:
    """Read results of SentEval or MTEB as a record in memory; see `stsbench.import_results`.

    Raises:
        NotResultsError: if the file has no such results.
        UserError: if it cannot be read or lacks the aggregation or metric.
    """
    results = _read_folder(path) if path.is_dir() else _read_file(path)
    if not results.tasks:
        raise NotResultsError(f"{path} has no score that can be imported: {' '.join(results.notes[1:])}")
    chosen = aggregation or ("all" if all(task.by("all", metric) for task in results.sts) else "wmean")
    headlines = {task.name: task.by(chosen, metric) for task in results.sts}
    for task in results.sts:
        if headlines[task.name] is None:
            whole = [number for number in task.numbers if not number.subset]
            known = ", ".join(f"{number.statistic} by {number.aggregation}" for number in whole)
            raise UserError(f"{path} has no {metric} of {task.name} by the aggregation {chosen}: it has {known}.")
    undefined = [name for name, number in headlines.items() if number is not None and number.value is None]
    notes = [f"imported from {results.program}'s results, {path.name}.", *results.notes]
    if undefined:
        notes.append(f"the {metric} of {', '.join(undefined)} is NaN in the file, so it is undefined.")
    name = model or results.model or _name_in_path(path)
    return _record(replace(results, model=name, notes=tuple(notes)), chosen, metric, command)


def _record(results: ImportedResults, aggregation: str, metric: str, command: str) -> RunRecord:
    scores = tuple(_score(task, results.text, aggregation, metric) for task in results.tasks)
    by_kind = {kind: [score for score in scores if score.kind == kind] for kind in KINDS}
    averages = [
        AveragePart.of(kind, [score.task for score in of_kind], [score.value for score in of_kind])
        for kind, of_kind in by_kind.items()
    ]
    return RunRecord(
        stsbench=__version__,
        created=now(),
        command=command,
        model=ModelPart(
            name=results.model,
            kind=IMPORTED,
            use=replace(_NO_USE, revision=results.revision, device=UNKNOWN),
            weights_sha256=results.weights_sha256,
        ),
        protocol=ProtocolPart(
            name=_PROTOCOLS[results.program].get(aggregation, results.program.lower()),
            aggregation=aggregation,
            metric=metric,
            similarity="cosine",
            interval=None,
            level=LEVEL,
        ),
        scores=scores,
        averages=tuple(average for average in averages if average is not None),
        notes=results.notes,
        environment={},
        seconds={},
        encoding={},
    )


def _score(task: ImportedTask, text: str, aggregation: str, metric: str) -> Score:
    training, similarity = None, "cosine"
    if task.design:
        # Signatures have the number of folds, which no result file contains.
        aggregation = "split" if task.design == "split" else UNKNOWN
        metric, similarity, training = "acc", UNKNOWN, Training(method=UNKNOWN, design=task.design)
    meaning = Signature(
        *(task.name, task.split, aggregation, metric, similarity, text, UNKNOWN), _NO_USE, version=UNKNOWN
    )
    headline = (metric, "" if training else aggregation, "")
    return Score(
        kind=TRANSFER if training else STS,
        task=task.name,
        split=task.split,
        text=text,
        numbers=tuple(sorted(task.numbers, key=lambda number: number.key != headline)),
        signature=str(meaning),
        data=DataPart(status="unknown", sha256=UNKNOWN),
        training=training,
    )


def read_results(run: RunRecord | str | Path) -> RunRecord:
    """Return a record: the given one, one read from disk, or one imported from results of SentEval or MTEB."""
    if isinstance(run, RunRecord):
        return run
    path = Path(run).expanduser()
    return load_run(path) if not path.exists() or _is_record(path) else import_scores(path)


def _is_record(path: Path) -> bool:
    if path.is_dir():
        return (path / RECORD).is_file() or not files_in(path, "*.json")
    with suppress(UserError):
        content = read_json(path, "results")
        return isinstance(content, dict) and "schema_version" in content
    return True


def _read_file(path: Path) -> ImportedResults:
    content = read_json(path, "results")
    if isinstance(content, Mapping):
        if "schema_version" in content:
            raise UserError(f"{path} is a run record: use it directly.")
        if is_mteb(content):
            return _read(path, read_mteb, content)
        if is_senteval(content):
            return _read(path, read_senteval, content)
    raise NotResultsError(
        f"{path} is neither a run record nor a file of results of SentEval or MTEB with a task of the catalogue."
    )


def _read_folder(folder: Path) -> ImportedResults:
    """Read a folder of MTEB's results of one model."""
    if (folder / RECORD).is_file():
        raise UserError(f"{folder} is the folder of a run record: use it directly.")
    files, left_out = [], []
    meta = ModelMeta()
    for path in files_in(folder, "*.json"):
        content = read_json(path, "results")
        if path.name == _META:
            meta = _read(path, ModelMeta.model_validate, content)
        elif isinstance(content, Mapping) and is_mteb(content):
            files.append((path, _read(path, read_mteb, content)))
        else:
            left_out.append(path.name)
    tasks: dict[tuple[str, str], ImportedTask] = {}
    for path, results in files:
        for task in results.tasks:
            if (task.name, task.split) in tasks:
                raise UserError(f"{folder} has {task.name} twice, again in {path.name}: keep one of the files.")
            tasks[task.name, task.split] = task
    if not tasks:
        raise NotResultsError(f"{folder} holds neither a run record nor MTEB's results of an STS task.")
    models = {results.model for _, results in files} - {""}
    if len(models) > 1:
        raise UserError(
            f"{folder} has results of several models ({', '.join(sorted(models))}): give each a folder."
        )
    notes = (f"left out (not STS tasks in the catalogue): {', '.join(left_out)}.",) if left_out else ()
    return replace(
        files[0][1],
        tasks=tuple(tasks.values()),
        model=meta.name or "".join(models),
        revision=None if meta.revision in {"", NO_REVISION} else meta.revision,
        weights_sha256=None,
        notes=(MTEB_NOTE, *notes),
    )


def _read(path: Path, read: Callable[[Any], T], content: Any) -> T:
    """Read the content of a file; a mistake in it is reported with the file's name."""
    try:
        return read(content)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        why = first_error(error) if isinstance(error, ValidationError) else repr(error)
        raise UserError(f"{path} is not as its program writes it ({why}): save the results again.") from error


def _name_in_path(path: Path) -> str:
    """Return the model in the names of MTEB's folders (`owner__model/revision/STS12.json`), or the file's name."""
    for part in reversed(path.absolute().parts[:-1] if path.is_file() else path.absolute().parts):
        if "__" in part:
            return part.replace("__", "/")
    return path.stem
