"""SentEval's dictionaries of results, the original's and the SimCSE fork's, saved as JSON."""

from collections.abc import Mapping
from typing import Any

from stsbench.records.imports.results import (
    TEXT,
    ImportedResults,
    ImportedTask,
    correlation,
    count,
    share,
    text,
    transfer_score,
)
from stsbench.records.parts import Number, Score

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
"""SentEval's names of the transfer tasks, the catalogue's, and how each is divided."""

_METRICS = ("pearson", "spearman")

_NOTE = (
    "SentEval's results do not say how the model pools, on which files it was scored, by which classifier, or by "
    "which similarity: cosine, SentEval's default, is taken."
)


def is_senteval(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a dictionary of SentEval's results with a task that can be imported."""
    return any(isinstance(content.get(name), Mapping) for name in (*_YEARS, *_SPLIT, *_TRANSFER))


def read_senteval(content: Mapping[str, Any]) -> ImportedResults:
    """Read SentEval's results of the STS and transfer tasks.

    Only the fork's have one correlation over all pairs of a year (`all`), and plain similarities of STS-B and
    SICK-R. Of these two the test split is taken.
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
    # One subset: every aggregation is the same number.
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
