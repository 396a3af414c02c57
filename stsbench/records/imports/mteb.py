"""MTEB's results: a JSON file for each task, in its layout before version 1.11 and since, and tables of scores."""

from collections.abc import Mapping
from typing import Any

from stsbench.records.imports.results import ImportedResults, ImportedTask, correlation, text
from stsbench.records.parts import MetricValues
from stsbench.records.signature import UNKNOWN

_TASKS = {
    "STS12": ("STS12", "test"),
    "STS13": ("STS13", "test"),
    "STS14": ("STS14", "test"),
    "STS15": ("STS15", "test"),
    "STS16": ("STS16", "test"),
    "STSBenchmark": ("STS-B", "test"),
    # What MTEB calls SICK-R's test split is train, trial and test: 9927 pairs.
    "SICK-R": ("SICK-R", "all"),
}
_METRICS = ("pearson", "spearman")

_NOTE = "MTEB's results do not say how the model pools, nor which text its data has; the cosine scores are taken."


def is_mteb(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is MTEB's, or a table of the cosine scores of its tasks."""
    return task_name(content) in _TASKS or bool(_tables(content))


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
            if name in _TASKS
        ]
    else:
        tasks = [_task(task_name(content), _test_scores(content))]
    return ImportedResults(
        "MTEB",
        tuple(tasks),
        model=text(content.get("model")),
        weights_sha256=text(content.get("weights_sha256")) or None,
        notes=(_NOTE,),
    )


def _tables(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the tables of scores by metric, where tasks stand below metrics and not the other way round."""
    tables = {metric: content.get(f"cosine_{metric}") for metric in _METRICS}
    return {metric: table for metric, table in tables.items() if isinstance(table, Mapping)}


def _test_scores(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cosine scores on MTEB's test split, by metric.

    Raises:
        ValueError: if they stand in both layouts: neither may win.
    """
    if "scores" in content and "test" in content:
        raise ValueError("it holds the scores twice, in MTEB's old layout (test) and in its new one (scores)")
    if "scores" in content:
        (entry,) = content["scores"]["test"]
        return {metric: entry[f"cosine_{metric}"] for metric in _METRICS if f"cosine_{metric}" in entry}
    entry = content["test"]["cos_sim"]
    return {metric: entry[metric] for metric in _METRICS if metric in entry}


def _task(name: str, scores: Mapping[str, Any]) -> ImportedTask:
    task, split = _TASKS[name]
    values: MetricValues = {metric: correlation(value) for metric, value in scores.items()}
    # MTEB has no subsets: one correlation over all pairs.
    return ImportedTask(task, split, UNKNOWN, {"all": values})
