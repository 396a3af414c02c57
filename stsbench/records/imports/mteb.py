"""MTEB's results: a JSON file for each task, in its layout before version 1.11 and since, and tables of scores."""

from collections.abc import Iterator, Mapping
from typing import Any

from stsbench.records.imports.results import ImportedResults, ImportedTask, correlation, text
from stsbench.records.parts import Number
from stsbench.records.signature import UNKNOWN, Signature

MTEB_TASKS = {
    "STS12": "STS12",
    "STS13": "STS13",
    "STS14": "STS14",
    "STS15": "STS15",
    "STS16": "STS16",
    "STSBenchmark": "STS-B",
    "SICK-R": "SICK-R",
}
"""MTEB's names of the tasks, and the catalogue's."""

MTEB_SPLITS = {
    **{task: {"test": "test"} for task in MTEB_TASKS.values()},
    "STS-B": {"test": "test", "dev": "validation"},
    # What MTEB calls SICK-R's test split is train, trial and test: 9927 pairs.
    "SICK-R": {"all": "test"},
}
"""The catalogue's splits of a task, and MTEB's names for them."""

NO_REVISION = "no_revision_available"
"""What MTEB calls the folder of a model without a commit."""

SIGNATURE = "stsbench_signature"
"""What `export` adds to MTEB's fields of a score."""

_METRICS = ("pearson", "spearman")

_NOTE = "MTEB's results do not say how the model pools, nor which text its data has; the cosine scores are taken."
_NOTE_OF_EXPORT = "text and data are those of the signatures that stsbench exported."


def is_mteb(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is MTEB's, or a table of the cosine scores of its tasks."""
    return task_name(content) in MTEB_TASKS or bool(_tables(content))


def task_name(content: Mapping[str, Any]) -> str:
    """Return the task that a file of MTEB's is about; empty if it is none."""
    return str(content.get("task_name") or content.get("mteb_dataset_name") or "")


def read_mteb(content: Mapping[str, Any]) -> ImportedResults:
    """Read MTEB's results of one task, or a table of them.

    Raises:
        ValueError, KeyError: if an entry is not what MTEB writes.
    """
    if tables := _tables(content):
        if "scores" in content or "test" in content:
            raise ValueError(f"it holds the results of one task and tables of several: {', '.join(content)}")
        names = dict.fromkeys(name for table in tables.values() for name in table)
        tasks = [
            _task(name, {metric: table[name] for metric, table in tables.items() if name in table})
            for name in names
            if name in MTEB_TASKS
        ]
    else:
        tasks = [_task(task_name(content), *of_split) for of_split in _scores_by_split(content)]
    return ImportedResults(
        "MTEB",
        tuple(tasks),
        model=text(content.get("model")),
        weights_sha256=text(content.get("weights_sha256")) or None,
        notes=(_NOTE_OF_EXPORT if all(task.stated for task in tasks) else _NOTE,),
    )


def _tables(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the tables of scores by metric, where tasks stand below metrics and not the other way round."""
    tables = {metric: content.get(f"cosine_{metric}") for metric in _METRICS}
    return {metric: table for metric, table in tables.items() if isinstance(table, Mapping)}


def _scores_by_split(content: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the cosine scores by metric on each of MTEB's splits that the catalogue has, at the least on test.

    Beside them the split, and the signature that `export` wrote; empty where another program wrote the file.

    Raises:
        ValueError: if they stand in both layouts: neither may win.
    """
    if "scores" in content and "test" in content:
        raise ValueError("it holds the scores twice, in MTEB's old layout (test) and in its new one (scores)")
    if "scores" not in content:
        entry = content["test"]["cos_sim"]
        yield {metric: entry[metric] for metric in _METRICS if metric in entry}, "test", ""
        return
    known = MTEB_SPLITS[MTEB_TASKS[task_name(content)]].values()
    splits = [split for split in known if split in content["scores"]] or ["test"]
    for split in splits:
        (entry,) = content["scores"][split]
        scores = {metric: entry[f"cosine_{metric}"] for metric in _METRICS if f"cosine_{metric}" in entry}
        yield scores, split, text(entry.get(SIGNATURE))


def _task(name: str, scores: Mapping[str, Any], split: str = "test", signature: str = "") -> ImportedTask:
    task = MTEB_TASKS[name]
    ours = {theirs: own for own, theirs in MTEB_SPLITS[task].items()}[split]
    # MTEB has no subsets: one correlation over all pairs.
    numbers = [
        Number(statistic=metric, aggregation="all", value=correlation(value)) for metric, value in scores.items()
    ]
    stated = Signature.parse(signature) if signature else None
    if stated is not None and (stated.task, stated.split) != (task, ours):
        raise ValueError(f"its signature is of {stated.task}:{stated.split}, and the score of {task}:{ours}")
    return ImportedTask(task, ours, stated.text if stated else UNKNOWN, tuple(numbers), stated=stated)
