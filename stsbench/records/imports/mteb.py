"""MTEB's files: results and predictions.

Results are a JSON file for each task, in MTEB's layout before version 1.11 and since, or tables of scores.
Predictions are the similarities of each pair of its STS tasks, without sentences and gold scores.

`TASK_predictions.json`, as `mteb.evaluate(..., prediction_folder=...)` writes it (embeddings-benchmark/mteb,
`mteb/abstasks/abstask.py` at commit 007ab9e: `_save_task_predictions`; `mteb/_evaluators/any_sts_evaluator.py` at
commit 04b4688: what a subset's split holds, distances with their sign turned):

    {"mteb_model_meta": {"model_name": ..., "revision": ...},
     "default": {"test": {"cosine_scores": [...], "manhattan_distances": [...], "euclidean_distances": [...],
                          "similarity_scores": [...]}}}
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, require_file
from stsbench.base.words import listed, storable
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.encoders.hashed import HashedFiles
from stsbench.records.imports.results import ImportedResults, ImportedTask, correlation, read_json, text
from stsbench.records.parts import Number
from stsbench.records.signature import UNKNOWN, Signature

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
    """Read MTEB's results of one task, or a table of them."""
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


ENDING = "_predictions.json"
"""Of the name of such a file, behind MTEB's name of the task."""

_META = "mteb_model_meta"
_COLUMNS = {"cosine": "cosine_scores", "manhattan": "manhattan_distances", "euclidean": "euclidean_distances"}
_ABOVE_ONE = 1e-3
"""By how much a cosine may be above 1: half precision rounds so."""


@dataclass(frozen=True)
class PredictedPairs:
    """The similarities of the pairs of one task, in the order of MTEB's data and by MTEB's names.

    A subset is a language where there are several, else "default". Similarities are by kind (cosine, manhattan,
    euclidean), one for each pair; higher means more alike.
    """

    task: str
    subset: str
    split: str
    path: Path
    similarities: Mapping[str, NDArray[np.float64]]

    def __str__(self) -> str:
        return f"{self.task} ({self.split}{'' if self.subset == 'default' else f', {self.subset}'})"


@dataclass(frozen=True)
class Predictions:
    """What MTEB's prediction files of one model hold.

    The model's name is empty and its commit None where the files do not tell; the hash is of all files, and those
    of no STS task are left out.
    """

    model: str
    revision: str | None
    sha256: str
    pairs: tuple[PredictedPairs, ...]
    left_out: tuple[str, ...]


def are_predictions(path: Path) -> bool:
    """Return whether a path is one of MTEB's predictions: a folder, or a file named as those are.

    >>> are_predictions(Path("predictions/STS12_predictions.json")), are_predictions(Path("cosines.npy"))
    (True, False)
    """
    return path.name.endswith(ENDING) or path.is_dir()


def read_predictions(path: Path) -> Predictions:
    """Read a prediction file of MTEB's, or a folder of those of one model."""
    files = files_in(path, f"*{ENDING}") if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path} holds no prediction file of MTEB's: they are called TASK{ENDING}.")
    pairs: list[PredictedPairs] = []
    models: dict[tuple[str, str], Path] = {}
    left_out = []
    hashed = HashedFiles()
    for file in files:
        require_file(file, absent="name a prediction file, or a folder of them")
        hashed.sha256(file)
        content = read_json(file, "predictions")
        if not isinstance(content, Mapping):
            raise _broken(file, "it is no object")
        models.setdefault(_model(content, file), file)
        of_file = list(_pairs(content, file))
        pairs += of_file
        if not of_file:
            left_out.append(file.name)
    if len(models) > 1:
        one, other = list(models.values())[:2]
        raise UserError(f"{path} holds predictions of several models ({one.name}, {other.name}): name one file.")
    ((model, revision),) = models
    if not pairs:
        raise UserError(f"{path} holds no prediction of an STS task: {listed(left_out)} has no cosine_scores.")
    hashed.require_unchanged()
    hashes = [hashed.sha256(file) for file in files]
    known = None if revision in {"", NO_REVISION} else revision
    digest = hashes[0] if len(files) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
    return Predictions(storable(model), known and storable(known), digest, tuple(pairs), tuple(left_out))


def _model(content: Mapping[str, Any], path: Path) -> tuple[str, str]:
    meta = content.get(_META)
    if not isinstance(meta, Mapping):
        raise _broken(path, f"it has no {_META}")
    name, revision = (meta.get(key) or "" for key in ("model_name", "revision"))
    if not (isinstance(name, str) and isinstance(revision, str)):
        raise _broken(path, f"its {_META} has no name as text")
    return name, revision


def _pairs(content: Mapping[str, Any], path: Path) -> Iterator[PredictedPairs]:
    """Yield what a file holds of an STS task; what it holds of another kind of task has other fields."""
    for subset, splits in content.items():
        if subset == _META or not isinstance(splits, Mapping):
            continue
        for split, values in splits.items():
            if isinstance(values, Mapping) and _COLUMNS["cosine"] in values:
                where = f"{subset}, {split}"
                columns = {
                    kind: _numbers(values[key], path, f"{where}, {key}")
                    for kind, key in _COLUMNS.items()
                    if values.get(key) is not None
                }
                yield PredictedPairs(
                    path.name.removesuffix(ENDING), subset, split, path, _checked(columns, path, where)
                )


def _numbers(values: object, path: Path, where: str) -> NDArray[np.float64]:
    if not isinstance(values, list):
        raise _broken(path, f"{where} is no list")
    for place, value in enumerate(values, 1):
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise _broken(path, f"{where}, number {place} of {len(values)} is {value!r}, not a finite number")
    return np.array(values, dtype=np.float64)


def _checked(columns: dict[str, NDArray[np.float64]], path: Path, where: str) -> Mapping[str, NDArray[np.float64]]:
    """Return the columns if they are of as many pairs each, and the cosines are some."""
    sizes = {kind: len(values) for kind, values in columns.items()}
    if len(set(sizes.values())) > 1:
        told = listed([f"{size} of {_COLUMNS[kind]}" for kind, size in sizes.items()])
        raise _broken(path, f"{where} has {told}, and a pair has one of each")
    cosines = columns["cosine"]
    beyond = np.flatnonzero(np.abs(cosines) > 1 + _ABOVE_ONE)
    if len(beyond):
        raise _broken(path, f"{where}, number {beyond[0] + 1} of cosine_scores is {cosines[beyond[0]]}, no cosine")
    return columns | {"cosine": np.clip(cosines, -1.0, 1.0)}


def _broken(path: Path, why: str) -> UserError:
    return UserError(f"{path} is not a prediction file as MTEB writes it: {why}; save the predictions again.")
