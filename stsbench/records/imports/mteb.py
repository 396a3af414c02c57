"""MTEB's files: results and predictions.

Results are one JSON file per task, in MTEB's layout before or after version 1.11, or tables of scores. Predictions
are a model's outputs for each item of a task, without items and gold labels.

`TASK_predictions.json`, as `mteb.evaluate(..., prediction_folder=...)` writes it (embeddings-benchmark/mteb,
`mteb/abstasks/abstask.py` at commit 007ab9e: `_save_task_predictions`):

    {"mteb_model_meta": {"model_name": ..., "revision": ...},
     "default": {"test": PREDICTIONS}}

The content of a split depends on the kind of task (mteb 2.26):

    STS                   {"cosine_scores": [...], "manhattan_distances": [...], "euclidean_distances": [...],
                           "similarity_scores": [...]}, distances with their sign turned
    pair classification   the same, distances as they are, and "dot_scores"
    retrieval, reranking  {QUERY: {DOCUMENT: SCORE, ...}, ...}, the best 1000 documents of a query
    classification        [[LABEL, ...], ...], a list of as many labels as there are items for each experiment
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, require_file
from stsbench.base.manifest import fingerprint
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
"""MTEB's folder name for a model without a commit."""

SIGNATURE = "stsbench_signature"
"""The field that `export` adds to MTEB's scores."""

_METRICS = ("pearson", "spearman")

_NOTE = "MTEB's results contain neither the pooling nor the text variant; the cosine scores are read."
_NOTE_OF_EXPORT = "text and data are those of the signatures that stsbench exported."


def is_mteb(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has MTEB's results, or a table of cosine scores of its tasks."""
    return task_name(content) in MTEB_TASKS or bool(_tables(content))


def task_name(content: Mapping[str, Any]) -> str:
    """Return the task of a result file; empty if it has none."""
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
    """Return tables of scores by metric, with tasks below metrics; empty for MTEB's own layout."""
    tables = {metric: content.get(f"cosine_{metric}") for metric in _METRICS}
    return {metric: table for metric, table in tables.items() if isinstance(table, Mapping)}


def _scores_by_split(content: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the cosine scores by metric of each known split, with the split and the exported signature, if any."""
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
    # MTEB has no subsets, but one correlation over all pairs.
    numbers = [
        Number(statistic=metric, aggregation="all", value=correlation(value)) for metric, value in scores.items()
    ]
    stated = Signature.parse(signature) if signature else None
    if stated is not None and (stated.task, stated.split) != (task, ours):
        raise ValueError(f"its signature is of {stated.task}:{stated.split}, and the score of {task}:{ours}")
    return ImportedTask(task, ours, stated.text if stated else UNKNOWN, tuple(numbers), stated=stated)


ENDING = "_predictions.json"
"""The end of the name of a prediction file, after MTEB's name of the task."""

_META = "mteb_model_meta"
_COLUMNS = {
    "cosine": "cosine_scores",
    "manhattan": "manhattan_distances",
    "euclidean": "euclidean_distances",
    "dot": "dot_scores",
}
_ABOVE_ONE = 1e-3
"""How far half precision may round a cosine above 1."""


@dataclass(frozen=True)
class PredictedPairs:
    """The similarities of the pairs of one task, in the order of MTEB's data and by MTEB's names.

    A subset is a language where there are several, else "default". Similarities are by kind (cosine, manhattan,
    euclidean; of pairs with labels dot, too), one for each pair; higher means more alike.
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
    """Read the similarities in a prediction file of MTEB's, or in a folder of those of one model."""
    files = read_prediction_files(path)
    pairs = tuple(similarities_of(part) for part in files.parts if part.are_similarities)
    names = {of_pairs.path for of_pairs in pairs}
    left_out = tuple(file.name for file in files.paths if file not in names)
    if not pairs:
        raise UserError(
            f"{path} holds no prediction of an STS task: {listed(list(left_out))} has no cosine_scores."
        )
    return Predictions(files.model, files.revision, files.sha256, pairs, left_out)


@dataclass(frozen=True)
class Part:
    """The predictions for one subset and split of a task, as parsed JSON.

    A subset is a language if there are several, or "default".
    """

    task: str
    subset: str
    split: str
    path: Path
    content: Any

    def __str__(self) -> str:
        return f"{self.task} ({self.split}{'' if self.subset == 'default' else f', {self.subset}'})"

    @property
    def is_scorable(self) -> bool:
        """Whether its kind of task can be scored item by item."""
        return self.is_ranking or self.are_classes or self.are_similarities

    @property
    def are_similarities(self) -> bool:
        """Whether these are similarities of pairs: an STS task or pair classification."""
        return isinstance(self.content, Mapping) and _COLUMNS["cosine"] in self.content

    @property
    def are_of_labels(self) -> bool:
        """Whether the pairs have labels; only for these MTEB saves dot products."""
        return self.are_similarities and self.content.get(_COLUMNS["dot"]) is not None

    @property
    def is_ranking(self) -> bool:
        """Whether these are ranked documents per query: retrieval or reranking."""
        return bool(isinstance(self.content, Mapping) and self.content) and all(
            isinstance(found, Mapping) for found in self.content.values()
        )

    @property
    def are_classes(self) -> bool:
        """Whether these are the labels predicted in each experiment of a classification."""
        return (
            isinstance(self.content, list)
            and bool(self.content)
            and all(
                isinstance(experiment, list) and experiment and all(_is_label(label) for label in experiment)
                for experiment in self.content
            )
        )


def _is_label(value: object) -> bool:
    """Return whether a value is a class, and not a probability or a regression's prediction."""
    return isinstance(value, str | int) or (isinstance(value, float) and value.is_integer())


@dataclass(frozen=True)
class PredictionFiles:
    """MTEB's prediction files of one model.

    Attributes:
        model: its name; empty if unknown.
        revision: its commit; None if unknown.
        sha256: over all files.
    """

    model: str
    revision: str | None
    sha256: str
    paths: tuple[Path, ...]
    parts: tuple[Part, ...]


def read_prediction_files(path: Path) -> PredictionFiles:
    """Read a prediction file of MTEB, or a folder with the prediction files of one model."""
    files = files_in(path, f"*{ENDING}") if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path} holds no prediction file of MTEB's: they are called TASK{ENDING}.")
    parts: list[Part] = []
    models: dict[tuple[str, str], Path] = {}
    hashed = HashedFiles()
    for file in files:
        require_file(file, absent="name a prediction file, or a folder of them")
        hashed.sha256(file)
        content = read_json(file, "predictions")
        if not isinstance(content, Mapping):
            raise broken(file, "it is no object")
        models.setdefault(_model(content, file), file)
        parts += [
            Part(file.name.removesuffix(ENDING), subset, split, file, predictions)
            for subset, splits in content.items()
            if subset != _META and isinstance(splits, Mapping)
            for split, predictions in splits.items()
        ]
    if len(models) > 1:
        one, other = list(models.values())[:2]
        raise UserError(f"{path} holds predictions of several models ({one.name}, {other.name}): name one file.")
    ((model, revision),) = models
    hashed.require_unchanged()
    hashes = [hashed.sha256(file) for file in files]
    known = None if revision in {"", NO_REVISION} else revision
    digest = hashes[0] if len(files) == 1 else fingerprint(hashes)
    return PredictionFiles(storable(model), known and storable(known), digest, tuple(files), tuple(parts))


def _model(content: Mapping[str, Any], path: Path) -> tuple[str, str]:
    meta = content.get(_META)
    if not isinstance(meta, Mapping):
        raise broken(path, f"it has no {_META}")
    name, revision = (meta.get(key) or "" for key in ("model_name", "revision"))
    if not (isinstance(name, str) and isinstance(revision, str)):
        raise broken(path, f"its {_META} has no name as text")
    return name, revision


def similarities_of(part: Part) -> PredictedPairs:
    """Return the similarities of one subset and split.

    Raises:
        UserError: naming the first value that is not a similarity.
    """
    where = f"{part.subset}, {part.split}"
    columns = {
        kind: _numbers(part.content[key], part.path, f"{where}, {key}")
        for kind, key in _COLUMNS.items()
        if part.content.get(key) is not None
    }
    # Only in STS tasks does MTEB store distances with their sign turned.
    columns |= {kind: -np.abs(columns[kind]) for kind in ("manhattan", "euclidean") if kind in columns}
    return PredictedPairs(part.task, part.subset, part.split, part.path, _checked(columns, part.path, where))


def _numbers(values: object, path: Path, where: str) -> NDArray[np.float64]:
    if not isinstance(values, list):
        raise broken(path, f"{where} is no list")
    for place, value in enumerate(values, 1):
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise broken(path, f"{where}, number {place} of {len(values)} is {value!r}, not a finite number")
    return np.array(values, dtype=np.float64)


def _checked(columns: dict[str, NDArray[np.float64]], path: Path, where: str) -> Mapping[str, NDArray[np.float64]]:
    """Return the columns, after checking their lengths and the range of the cosines."""
    sizes = {kind: len(values) for kind, values in columns.items()}
    if len(set(sizes.values())) > 1:
        told = listed([f"{size} of {_COLUMNS[kind]}" for kind, size in sizes.items()])
        raise broken(path, f"{where} has {told}, and a pair has one of each")
    cosines = columns["cosine"]
    beyond = np.flatnonzero(np.abs(cosines) > 1 + _ABOVE_ONE)
    if len(beyond):
        raise broken(path, f"{where}, number {beyond[0] + 1} of cosine_scores is {cosines[beyond[0]]}, no cosine")
    return columns | {"cosine": np.clip(cosines, -1.0, 1.0)}


def broken(path: Path, why: str) -> UserError:
    """Return the error for a damaged prediction file."""
    return UserError(f"{path} is not a prediction file as MTEB writes it: {why}; save the predictions again.")
