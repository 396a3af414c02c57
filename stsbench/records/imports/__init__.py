"""Imports another program's results as a record.

SentEval's dictionaries (of the original and of the SimCSE fork, saved as JSON) are read here, MTEB's files in
`mteb`; `results` turns both into a record.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, require_file
from stsbench.base.parsing import first_error
from stsbench.base.words import storable
from stsbench.records.imports.mteb import is_mteb, read_meta, read_mteb
from stsbench.records.imports.results import (
    TEXT,
    Correlation,
    Count,
    Entry,
    ImportedResults,
    ImportedTask,
    ModelEntry,
    Percent,
    build_record,
    read_json,
)
from stsbench.records.parts import Number
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.store import load_run

_META = "model_meta.json"

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
    chosen = _aggregation(path, results, aggregation, metric)
    headlines = [(task.task, task.by(chosen, metric)) for task in results.sts]
    undefined = [name for name, number in headlines if number is not None and number.value is None]
    notes = [f"imported from {results.program}'s results, {path.name}.", *results.notes]
    if undefined:
        notes.append(f"the {metric} of {', '.join(undefined)} is NaN in the file, so it is undefined.")
    named = replace(results, model=storable(model) or results.model or _name_in_path(path), notes=tuple(notes))
    return build_record(named, chosen, metric, command)


def _aggregation(path: Path, results: ImportedResults, wanted: str | None, metric: str) -> str:
    """Return the aggregation, after checking that every task has it for the metric."""
    chosen = wanted or ("all" if all(task.by("all", metric) for task in results.sts) else "wmean")
    for task in results.sts:
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
    with suppress(UserError):
        content = _json(path)
        return isinstance(content, dict) and "schema_version" in content
    return True


def _json(path: Path) -> Any:
    require_file(path, absent="name a file of results, or a folder of them")
    return read_json(path, "results")


def _read_file(path: Path) -> ImportedResults:
    content = _json(path)
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
    if (folder / RECORD).is_file():
        raise UserError(f"{folder} is the folder of a run record: use it directly.")
    tasks: dict[tuple[str, str], ImportedTask] = {}
    models: set[str] = set()
    left_out: list[str] = []
    notes: list[str] = []
    for path in files_in(folder, "*.json"):
        if path.name == _META:
            continue
        content = _json(path)
        if not (isinstance(content, Mapping) and is_mteb(content)):
            left_out.append(path.name)
            continue
        results = _read(path, read_mteb, content)
        models |= {results.model} - {""}
        notes += results.notes
        for task in results.tasks:
            if (task.task, task.split) in tasks:
                raise UserError(f"{folder} has {task.task} twice, again in {path.name}: keep one of the files.")
            tasks[task.task, task.split] = task
    if not tasks:
        raise NotResultsError(f"{folder} holds neither a run record nor MTEB's results of an STS task.")
    if len(models) > 1:
        raise UserError(
            f"{folder} has results of several models ({', '.join(sorted(models))}): give each a folder."
        )
    if left_out:
        notes.append(f"left out (not STS tasks in the catalogue): {', '.join(left_out)}.")
    meta = folder / _META
    name, revision = _read(meta, read_meta, _json(meta)) if meta.is_file() else ("", None)
    return ImportedResults(
        "MTEB",
        tuple(tasks.values()),
        model=name or "".join(models),
        revision=revision,
        notes=tuple(dict.fromkeys(notes)),
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
_AGGREGATIONS = ("all", "mean", "wmean")

_NOTE = (
    "SentEval's results contain neither the pooling nor the data files nor the classifier nor the similarity: "
    "cosine, SentEval's default, is assumed."
)


class _Pairs(Entry):
    pearson: Correlation
    spearman: Correlation
    nsamples: Count

    def numbers(self, subset: str, aggregation: str = "") -> list[Number]:
        return [
            Number(
                statistic=metric,
                aggregation=aggregation,
                subset=subset,
                value=getattr(self, metric),
                items=self.nsamples,
            )
            for metric in _METRICS
        ]


class _Whole(Entry):
    pearson: dict[str, Correlation]
    spearman: dict[str, Correlation]


class _Transfer(Entry):
    acc: Percent
    devacc: Percent
    ndev: Count
    ntest: Count
    f1: Percent | None = None


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
            tasks.append(_test_split(task, _Pairs.model_validate(content[name]["test"])))
        elif name in content:
            left_out.append(f"{name} was left out: it is the score of a trained regressor.")
    tasks += [_transfer(content[name], *names) for name, names in _TRANSFER.items() if name in content]
    model = ModelEntry.model_validate(content).model or ""
    return ImportedResults("SentEval", tuple(tasks), model, notes=(_NOTE, *left_out))


def _year(name: str, entry: Mapping[str, Any]) -> ImportedTask:
    whole = _Whole.model_validate(entry["all"])
    of_subsets = {subset: values for subset, values in entry.items() if subset != "all"}
    subsets = TypeAdapter(dict[str, _Pairs]).validate_python(of_subsets)
    pairs = sum(values.nsamples for values in subsets.values())
    numbers = [
        Number(statistic=metric, aggregation=kind, value=values[kind], items=pairs)
        for kind in _AGGREGATIONS
        for metric, values in (("pearson", whole.pearson), ("spearman", whole.spearman))
        if kind in values
    ]
    numbers += [number for subset, values in subsets.items() for number in values.numbers(subset)]
    return ImportedTask(name, "test", TEXT, tuple(numbers))


def _test_split(task: str, pairs: _Pairs) -> ImportedTask:
    # With one subset, all aggregations are equal.
    numbers = [number for kind in _AGGREGATIONS for number in pairs.numbers("", kind)]
    return ImportedTask(task, "test", TEXT, (*numbers, *pairs.numbers(task)))


def _transfer(entry: Mapping[str, Any], task: str, design: str) -> ImportedTask:
    scores = _Transfer.model_validate(entry)
    numbers = [
        Number(statistic="acc", value=scores.acc / 100, items=scores.ntest),
        Number(statistic="devacc", value=scores.devacc / 100, items=scores.ndev),
    ]
    if scores.f1 is not None:
        numbers.append(Number(statistic="f1", value=scores.f1 / 100, items=scores.ntest))
    return ImportedTask(task, "all" if design == "nested" else "test", TEXT, tuple(numbers), design)
