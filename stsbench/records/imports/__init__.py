"""Imports another program's results as a record.

SentEval's dictionaries (of the original and of the SimCSE fork, saved as JSON) are read here, MTEB's files in
`mteb`; `results` turns both into a record.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, require_file
from stsbench.base.parsing import parse_json
from stsbench.base.words import storable
from stsbench.records.imports.mteb import NO_REVISION, is_mteb, read_mteb, task_name
from stsbench.records.imports.results import (
    TEXT,
    ImportedResults,
    ImportedTask,
    build_record,
    correlation,
    count,
    read_json,
    share,
    text,
    transfer_score,
)
from stsbench.records.parts import Number, Score
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.store import load_run

_META = "model_meta.json"


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
    if not (results.tasks or results.transfer):
        raise NotResultsError(f"{path} has no score that can be imported: {' '.join(results.notes[1:])}")
    chosen = _aggregation(path, results, aggregation, metric)
    headlines = [(task.task, task.by(chosen, metric)) for task in results.tasks]
    undefined = [name for name, number in headlines if number is not None and number.value is None]
    note = f"the {metric} of {', '.join(undefined)} is NaN there, and so undefined here."
    named = replace(
        results,
        model=storable(model) or results.model or _name_in_path(path),
        notes=(
            f"imported from {results.program}'s results, {path.name}.",
            *results.notes,
            *([note] if undefined else []),
        ),
    )
    return build_record(named, chosen, metric, command)


def _aggregation(path: Path, results: ImportedResults, wanted: str | None, metric: str) -> str:
    """Return the aggregation, after checking that every task has it for the metric."""
    chosen = wanted or ("all" if all(task.by("all", metric) for task in results.tasks) else "wmean")
    for task in results.tasks:
        if task.by(chosen, metric) is None:
            whole = [number for number in task.numbers if not number.subset]
            known = ", ".join(f"{number.statistic} by {number.aggregation}" for number in whole)
            raise UserError(f"{path} has no {metric} of {task.task} by the aggregation {chosen}: it has {known}.")
    return chosen


def read_results(run: RunRecord | str | Path) -> RunRecord:
    """Return a record: the given one, one read from disk, or one imported from results of SentEval or MTEB."""
    if isinstance(run, RunRecord):
        return run
    path = Path(run).expanduser()
    return load_run(path) if not path.exists() or _is_record(path) else import_scores(path)


def _is_record(path: Path) -> bool:
    if path.is_dir():
        return (path / RECORD).is_file() or not files_in(path, "*.json")
    with suppress(OSError, ValueError, UserError):
        require_file(path)
        content = parse_json(path.read_bytes())
        return isinstance(content, dict) and "schema_version" in content
    return True


def _read_file(path: Path) -> ImportedResults:
    content = _json(path)
    if isinstance(content, Mapping):
        if "schema_version" in content:
            raise UserError(f"{path} is a run record: use it directly.")
        readers = [
            read for is_theirs, read in ((is_mteb, read_mteb), (is_senteval, read_senteval)) if is_theirs(content)
        ]
        if len(readers) > 1:
            raise UserError(f"{path} holds results of MTEB and of SentEval: save each in a file of its own.")
        if readers:
            return _read(path, content, readers[0])
    raise NotResultsError(
        f"{path} is neither a run record nor a file of results of SentEval or MTEB with a task of the catalogue."
    )


def _read_folder(folder: Path) -> ImportedResults:
    if (folder / RECORD).is_file():
        raise UserError(f"{folder} is the folder of a run record: use it directly.")
    contents = {path: _json(path) for path in files_in(folder, "*.json") if path.name != _META}
    theirs = {
        path: content for path, content in contents.items() if isinstance(content, Mapping) and is_mteb(content)
    }
    if not theirs:
        raise NotResultsError(f"{folder} holds neither a run record nor MTEB's results of an STS task.")
    read = [_read(path, content, read_mteb) for path, content in theirs.items()]
    model = _one_model(folder, dict(zip(theirs, read, strict=True)))
    others = [
        task_name(content) if isinstance(content, Mapping) else path.name
        for path, content in contents.items()
        if path not in theirs
    ]
    name, revision = _meta(folder / _META)
    left_out = f"left out, as they are no STS tasks of the catalogue: {', '.join(filter(None, others))}."
    return ImportedResults(
        "MTEB",
        tuple(task for results in read for task in results.tasks),
        model=name or model,
        revision=revision or None,
        notes=(
            *dict.fromkeys(note for results in read for note in results.notes),
            *([left_out] if any(others) else []),
        ),
    )


def _one_model(folder: Path, results: Mapping[Path, ImportedResults]) -> str:
    """Return the model named in result files; empty if none is."""
    files: dict[str, Path] = {}
    for path, of_file in results.items():
        for task in of_file.tasks:
            if (other := files.setdefault(task.task, path)) != path:
                raise UserError(f"{folder} has {task.task} in {other.name} and in {path.name}: keep one of them.")
    models = list(dict.fromkeys(of_file.model for of_file in results.values() if of_file.model))
    if len(models) > 1:
        raise UserError(f"{folder} has results of several models ({', '.join(models)}): give each a folder.")
    return next(iter(models), "")


def _meta(path: Path) -> tuple[str, str]:
    """Return the model's name and commit from MTEB's metadata file; empty if there is none."""
    content = _json(path) if path.is_file() else {}
    try:
        revision = text(content.get("revision"))
        return text(content.get("name")), "" if revision == NO_REVISION else revision
    except (ValueError, AttributeError) as error:
        raise UserError(f"{path} is not as MTEB writes it ({error}): save the results again.") from error


def _read(path: Path, content: Mapping[str, Any], read: Any) -> ImportedResults:
    try:
        results: ImportedResults = read(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not as its program writes it ({error!r}): save the results again.") from error
    return results


def _json(path: Path) -> Any:
    require_file(path, absent="name a file of results, or a folder of them")
    return read_json(path, "results")


def _name_in_path(path: Path) -> str:
    """Return the model in the names of MTEB's folders (`owner__model/revision/STS12.json`), or the file's name."""
    for part in reversed(path.absolute().parts[:-1] if path.is_file() else path.absolute().parts):
        if "__" in part:
            return part.replace("__", "/")
    return path.stem


_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
_SPLIT = {"STSBenchmark": "STS-B", "SICKRelatedness": "SICK-R"}
_TRANSFER = {
    "MR": ("MR", "nested"),
    "CR": ("CR", "nested"),
    "SUBJ": ("SUBJ", "nested"),
    "MPQA": ("MPQA", "nested"),
    "SST2": ("SST2", "split"),
    "SST5": ("SST5", "split"),
    "TREC": ("TREC", "kfold"),
    "MRPC": ("MRPC", "kfold"),
    "SICKEntailment": ("SICK-E", "split"),
}
"""SentEval's transfer tasks: the catalogue's name, and how the data is divided."""

_METRICS = ("pearson", "spearman")

_NOTE = (
    "SentEval's results contain neither the pooling nor the data files nor the classifier nor the similarity: "
    "cosine, SentEval's default, is assumed."
)


def is_senteval(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has SentEval's results of a known task."""
    return any(isinstance(content.get(name), Mapping) for name in (*_YEARS, *_SPLIT, *_TRANSFER))


def read_senteval(content: Mapping[str, Any]) -> ImportedResults:
    """Read SentEval's results of the STS and transfer tasks.

    Only the SimCSE fork writes a correlation over all pairs of a year (`all`) and scores STS-B and SICK-R by plain
    similarities; the test split of these two is read.
    """
    tasks = [_year(name, content[name]) for name in _YEARS if name in content]
    left_out = []
    for name, task in _SPLIT.items():
        if name in content and "test" in content[name]:
            tasks.append(_test_split(task, content[name]["test"]))
        elif name in content:
            left_out.append(f"{name} was left out: it is the score of a trained regressor.")
    transfer = tuple(_transfer(content[name], *names) for name, names in _TRANSFER.items() if name in content)
    model = text(content.get("model"))
    return ImportedResults("SentEval", tuple(tasks), transfer, model, notes=(_NOTE, *left_out))


def _year(name: str, entry: Mapping[str, Any]) -> ImportedTask:
    whole = entry["all"]
    aggregations = [kind for kind in ("all", "mean", "wmean") if all(kind in whole[metric] for metric in _METRICS)]
    subsets = {subset: values for subset, values in entry.items() if subset != "all"}
    pairs = sum(count(values["nsamples"]) for values in subsets.values())
    numbers = [
        Number(statistic=metric, aggregation=kind, value=correlation(whole[metric][kind]), items=pairs)
        for kind in aggregations
        for metric in _METRICS
    ]
    of_subsets = [number for subset, values in subsets.items() for number in _of_subset(subset, values)]
    return ImportedTask(name, "test", TEXT, (*numbers, *of_subsets))


def _test_split(task: str, entry: Mapping[str, Any]) -> ImportedTask:
    of_subset = _of_subset(task, entry)
    # With one subset, all aggregations are equal.
    numbers = [
        number.model_copy(update={"aggregation": kind, "subset": ""})
        for kind in ("all", "mean", "wmean")
        for number in of_subset
    ]
    return ImportedTask(task, "test", TEXT, (*numbers, *of_subset))


def _transfer(entry: Mapping[str, Any], task: str, design: str) -> Score:
    acc, devacc = share(entry["acc"]), share(entry["devacc"])
    ndev, ntest = count(entry["ndev"]), count(entry["ntest"])
    numbers = [
        Number(statistic="acc", value=acc, items=ntest),
        Number(statistic="devacc", value=devacc, items=ndev),
    ]
    if "f1" in entry:
        numbers.append(Number(statistic="f1", value=share(entry["f1"]), items=ntest))
    return transfer_score(task, design, numbers)


def _of_subset(name: str, entry: Mapping[str, Any]) -> list[Number]:
    pairs = count(entry["nsamples"])
    return [
        Number(statistic=metric, subset=name, value=correlation(entry[metric]), items=pairs) for metric in _METRICS
    ]
