"""The scores in result files of SentEval and MTEB.

These are SentEval's dictionaries, of the original and of the SimCSE fork, saved as JSON; MTEB's results, a JSON
file per task in the layout since MTEB 1.11; and tables of cosine scores of MTEB's tasks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.base.parsing import parse_json
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.data.rows import read_bytes
from stsbench.records.parts import Number
from stsbench.records.signature import UNKNOWN

MTEB_SPLITS = {
    **{task: {"test": "test"} for task in MTEB_TASKS.values()},
    "STS-B": {"test": "test", "dev": "validation"},
    # MTEB's test split of SICK-R is train, trial and test: 9927 pairs.
    "SICK-R": {"all": "test"},
}
"""The catalogue's splits of a task, and MTEB's names for them."""

NO_REVISION = "no_revision_available"
"""MTEB's folder name for a model without a commit."""


class ImportedTask(NamedTuple):
    """The scores of one task.

    Attributes:
        name: the catalogue's name.
        split: the catalogue's name.
        numbers: every metric and aggregation in the file, and those of each subset.
        design: how the data of a transfer task is divided; empty for STS.
    """

    name: str
    split: str
    numbers: Sequence[Number]
    design: str = ""

    def by(self, aggregation: str, metric: str) -> Number | None:
        return next((number for number in self.numbers if number.key == (metric, aggregation, "")), None)


@dataclass(frozen=True)
class ImportedResults:
    """The results in a file or folder.

    Attributes:
        program: `SentEval` or `MTEB`.
        text: the text variant; `UNKNOWN` if the files do not contain it.
        tasks: the STS tasks, then the transfer tasks.
        model: its name; empty if unknown.
        revision: its commit.
        weights_sha256: the hash of its weights.
        notes: tasks left out, and assumptions.
    """

    program: str
    text: str
    tasks: Sequence[ImportedTask]
    model: str = ""
    revision: str | None = None
    weights_sha256: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def sts(self) -> list[ImportedTask]:
        return [task for task in self.tasks if not task.design]


def read_json(path: Path, what: str) -> Any:
    """Reads a JSON file; `what` names its content in messages."""
    require_file(path, absent=f"name a file of {what}, or a folder of them")
    try:
        return parse_json(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({error}): save the {what} again.") from error


def _bare(value: Any) -> Any:
    """Unwraps `[correlation, p]` and `{"correlation": ...}`; NaN becomes None.

    >>> _bare([0.5, 0.01]), _bare({"correlation": 0.5}), _bare(float("nan"))
    (0.5, 0.5, None)
    """
    if isinstance(value, Mapping):
        value = value.get("correlation", value.get("statistic", value))
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return None if isinstance(value, float) and math.isnan(value) else value


def _whole(count: Any) -> Any:
    """Returns a count that was written as `750.0` as an integer."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


_Correlation = Annotated[Annotated[float, Field(strict=True, ge=-1, le=1)] | None, BeforeValidator(_bare)]
_Percent = Annotated[float, Field(strict=True, ge=0, le=100)]
_Count = Annotated[Annotated[int, Field(strict=True, ge=1)], BeforeValidator(_whole)]

MTEB_NOTE = "MTEB's results contain neither the pooling nor the text variant; the cosine scores are read."


class ModelMeta(BaseModel):
    """MTEB's `model_meta.json`."""

    name: str | None = None
    revision: str | None = None


class _Named(BaseModel):
    """The model that a result file names."""

    model: str | None = None
    weights_sha256: str | None = None


class _Cosines(BaseModel):
    """The correlations of one task."""

    cosine_pearson: _Correlation = None
    cosine_spearman: _Correlation = None


def is_mteb(content: Mapping[str, Any]) -> bool:
    """Returns whether a JSON object has MTEB's results, or a table of cosine scores of its tasks."""
    return content.get("task_name") in [*MTEB_TASKS] or _has_tables(content)


def _has_tables(content: Mapping[str, Any]) -> bool:
    return any(isinstance(content.get(name), Mapping) for name in _Cosines.model_fields)


def read_mteb(content: Mapping[str, Any]) -> ImportedResults:
    """Reads MTEB's results of one task, or a table of them."""
    named = _Named.model_validate(content)
    entries: list[tuple[str, str, Any]] = []
    if _has_tables(content):
        tables = {metric: content.get(metric) or {} for metric in _Cosines.model_fields}
        for name in dict.fromkeys(name for table in tables.values() for name in table if name in MTEB_TASKS):
            entry = {metric: table[name] for metric, table in tables.items() if name in table}
            entries.append((name, "test", entry))
    else:
        name, scores = content["task_name"], content["scores"]
        known = MTEB_SPLITS[MTEB_TASKS[name]].values()
        for split in [split for split in known if split in scores] or ["test"]:
            (entry,) = scores[split]
            entries.append((name, split, entry))
    tasks = [_mteb_task(*entry) for entry in entries]
    model, weights = named.model or "", named.weights_sha256 or None
    return ImportedResults("MTEB", UNKNOWN, tasks, model, weights_sha256=weights, notes=(MTEB_NOTE,))


def _mteb_task(name: str, split: str, entry: Any) -> ImportedTask:
    task = MTEB_TASKS[name]
    (ours,) = (own for own, theirs in MTEB_SPLITS[task].items() if theirs == split)
    values = _Cosines.model_validate(entry).model_dump(exclude_unset=True)
    # MTEB has no subsets, but one correlation over all pairs.
    numbers = [
        Number(statistic=metric.removeprefix("cosine_"), aggregation="all", value=value)
        for metric, value in values.items()
    ]
    return ImportedTask(task, ours, numbers)


_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
_SPLIT = {"STSBenchmark": "STS-B", "SICKRelatedness": "SICK-R"}
_TRANSFER = {
    **{name: (name, "nested") for name in ("MR", "CR", "SUBJ", "MPQA")},
    **{"SST2": ("SST2", "split"), "SST5": ("SST5", "split"), "TREC": ("TREC", "kfold"), "MRPC": ("MRPC", "kfold")},
    "SICKEntailment": ("SICK-E", "split"),
}
"""SentEval's transfer tasks: the catalogue's name, and how the data is divided."""

_METRICS = ("pearson", "spearman")
_AGGREGATIONS = ("all", "mean", "wmean")

_SENTEVAL_NOTE = (
    "SentEval's results contain neither the pooling nor the data files nor the classifier nor the similarity: "
    "cosine, SentEval's default, is assumed."
)


class _Pairs(BaseModel):
    pearson: _Correlation
    spearman: _Correlation
    nsamples: _Count

    def numbers(self, subset: str, aggregation: str = "") -> list[Number]:
        where = {"aggregation": aggregation, "subset": subset, "items": self.nsamples}
        return [Number(statistic=metric, value=getattr(self, metric), **where) for metric in _METRICS]


class _Whole(BaseModel):
    pearson: dict[str, _Correlation]
    spearman: dict[str, _Correlation]


class _Transfer(BaseModel):
    acc: _Percent
    devacc: _Percent
    ndev: _Count
    ntest: _Count
    f1: _Percent | None = None


def is_senteval(content: Mapping[str, Any]) -> bool:
    """Returns whether a JSON object has SentEval's results of a known task."""
    return any(isinstance(content.get(name), Mapping) for name in (*_YEARS, *_SPLIT, *_TRANSFER))


def read_senteval(content: Mapping[str, Any]) -> ImportedResults:
    """Reads SentEval's results of the STS and transfer tasks.

    Only the SimCSE fork writes a correlation over all pairs of a year (`all`) and scores STS-B and SICK-R by plain
    similarities; the test split of these two is read.
    """
    tasks = [_year(name, content[name]) for name in _YEARS if name in content]
    left_out = []
    for name, task in _SPLIT.items():
        if name in content and "test" in content[name]:
            pairs = _Pairs.model_validate(content[name]["test"])
            # With one subset, all aggregations are equal.
            numbers = [number for kind in _AGGREGATIONS for number in pairs.numbers("", kind)]
            tasks.append(ImportedTask(task, "test", [*numbers, *pairs.numbers(task)]))
        elif name in content:
            left_out.append(f"{name} was left out: it is the score of a trained regressor.")
    tasks += [_transfer(content[name], *names) for name, names in _TRANSFER.items() if name in content]
    model = _Named.model_validate(content).model or ""
    return ImportedResults("SentEval", "senteval", tasks, model, notes=(_SENTEVAL_NOTE, *left_out))


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
    return ImportedTask(name, "test", numbers)


def _transfer(entry: Mapping[str, Any], task: str, design: str) -> ImportedTask:
    scores = _Transfer.model_validate(entry)
    values = {"acc": (scores.acc, scores.ntest), "devacc": (scores.devacc, scores.ndev)}
    if scores.f1 is not None:
        values["f1"] = scores.f1, scores.ntest
    numbers = [Number(statistic=name, value=value / 100, items=size) for name, (value, size) in values.items()]
    return ImportedTask(task, "all" if design == "nested" else "test", numbers, design)
