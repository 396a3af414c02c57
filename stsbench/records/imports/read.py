"""From a file or a folder of another program's results to a record."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stsbench._version import __version__
from stsbench.foundation.errors import UserError
from stsbench.records.imports.mteb import is_mteb, read_mteb, task_name
from stsbench.records.imports.parts import ImportedResults, ImportedTask
from stsbench.records.imports.senteval import is_senteval, read_senteval
from stsbench.records.parts import AveragePart, DataPart, ModelPart, ProtocolPart, TaskPart
from stsbench.records.provenance import now
from stsbench.records.record import IMPORTED, RunRecord
from stsbench.records.signature import UNKNOWN, Signature

_META = "model_meta.json"
_PROTOCOLS = {"SentEval": {"all": "simcse", "wmean": "senteval"}, "MTEB": {"all": "mteb"}}


class NotResultsError(UserError):
    """A file that holds no results of SentEval or MTEB."""


def import_results(
    path: str | Path,
    *,
    model: str = "",
    aggregation: str | None = None,
    metric: str = "spearman",
    command: str = "",
) -> RunRecord:
    """Make a record of the results of SentEval or MTEB.

    What the files do not say is marked as unknown (`-` in the signature): the files that were scored, the
    pooling, of MTEB the text. The record has no pair table.

    Args:
        path: a JSON file, or a folder of MTEB's with one for each task.
        model: the model's name; by default what the files say, or else the file's name.
        aggregation: over subsets; by default `all` if every task has it, else `wmean`.
        metric: `spearman` or `pearson`.
        command: the command line, for the record.

    Raises:
        NotResultsError: if the file is none of theirs.
        UserError: if it cannot be read, or lacks what was asked for.
    """
    path = Path(path).expanduser()
    results = _read_folder(path) if path.is_dir() else _read_file(path)
    if not results.tasks:
        raise NotResultsError(f"{path} has no score that can be imported: {' '.join(results.notes[1:])}")
    chosen = aggregation or ("all" if all("all" in task.scores for task in results.tasks) else "wmean")
    for task in results.tasks:
        if metric not in task.scores.get(chosen, {}):
            known = ", ".join(f"{kind} ({', '.join(values)})" for kind, values in task.scores.items())
            raise UserError(f"{path} has no {metric} of {task.task} by the aggregation {chosen}: it has {known}.")
    name = model or results.model or _name_in_path(path)
    parts = tuple(_part(task, chosen, metric) for task in results.tasks)
    return RunRecord(
        stsbench=__version__,
        created=now(),
        command=command,
        model=ModelPart(
            name=name,
            kind=IMPORTED,
            revision=results.revision,
            weights_sha256=results.weights_sha256,
            pooling=UNKNOWN,
            precision=UNKNOWN,
            device=UNKNOWN,
        ),
        protocol=ProtocolPart(
            name=_PROTOCOLS[results.program].get(chosen, results.program.lower()),
            aggregation=chosen,
            metric=metric,
            similarity="cosine",
            resamples=0,
            level=0.95,
            seed=0,
        ),
        tasks=parts,
        average=_average(parts),
        notes=(f"imported from {results.program}'s results, {path.name}.", *results.notes),
        environment={},
        seconds={},
        encoding={},
    )


def _read_file(path: Path) -> ImportedResults:
    content = _json(path)
    if isinstance(content, Mapping):
        for is_theirs, read in ((is_mteb, read_mteb), (is_senteval, read_senteval)):
            if is_theirs(content):
                return _read(path, content, read)
    raise NotResultsError(
        f"{path} is neither a run record nor a file of results of SentEval or MTEB with an STS task in it."
    )


def _read_folder(folder: Path) -> ImportedResults:
    contents = {path: _json(path) for path in sorted(folder.glob("*.json")) if path.name != _META}
    theirs = {
        path: content for path, content in contents.items() if isinstance(content, Mapping) and is_mteb(content)
    }
    if not theirs:
        raise NotResultsError(f"{folder} holds neither a run record nor MTEB's results of an STS task.")
    read = [_read(path, content, read_mteb) for path, content in theirs.items()]
    others = [task_name(content) for path, content in contents.items() if path not in theirs]
    meta = _json(folder / _META) if (folder / _META).is_file() else {}
    left_out = f"left out, as they are no STS tasks of the catalogue: {', '.join(filter(None, others))}."
    return ImportedResults(
        "MTEB",
        tuple(task for results in read for task in results.tasks),
        str(meta.get("name") or read[0].model),
        revision=meta.get("revision"),
        notes=(*read[0].notes, *([left_out] if any(others) else [])),
    )


def _read(path: Path, content: Mapping[str, Any], read: Any) -> ImportedResults:
    try:
        results: ImportedResults = read(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not as its program writes it ({error!r}): save the results again.") from error
    return results


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error}): check that it is there.") from error
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}): save the results again.") from error


def _name_in_path(path: Path) -> str:
    """Return the model that MTEB's folders name (`owner__model/revision/STS12.json`), else the file's name."""
    for part in reversed(path.absolute().parts[:-1] if path.is_file() else path.absolute().parts):
        if "__" in part:
            return part.replace("__", "/")
    return path.stem


def _part(task: ImportedTask, aggregation: str, metric: str) -> TaskPart:
    signature = Signature(
        task=task.task,
        split=task.split,
        aggregation=aggregation,
        metric=metric,
        similarity="cosine",
        text=task.text,
        data=UNKNOWN,
        pooling=UNKNOWN,
        precision=UNKNOWN,
        version=UNKNOWN,
    )
    return TaskPart(
        task=task.task,
        split=task.split,
        text=task.text,
        pairs=task.pairs,
        score=task.scores[aggregation][metric],
        scores=dict(task.scores),
        subsets=task.subsets,
        signature=str(signature),
        data=DataPart(status="unknown", sha256=UNKNOWN),
        identical_pairs=None,
        zero_pairs=None,
        truncated_sentences=None,
    )


def _average(parts: Sequence[TaskPart]) -> AveragePart | None:
    if len(parts) < 2:
        return None
    scores = [part.score for part in parts if part.score is not None]
    complete, count = len(scores) == len(parts), len(parts)
    return AveragePart(
        tasks=tuple(part.task for part in parts),
        score=sum(scores) / count if complete else None,
        of_rounded=round(sum(round(100 * score, 2) for score in scores) / count, 2) if complete else None,
    )
