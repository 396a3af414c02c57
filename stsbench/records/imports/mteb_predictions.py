"""MTEB's prediction files: the similarities of each pair of its STS tasks, without sentences and gold scores.

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
from stsbench.base.parsing import parse_json
from stsbench.base.words import listed, storable
from stsbench.encoders.hashed import HashedFiles
from stsbench.records.imports.mteb import NO_REVISION

ENDING = "_predictions.json"
"""Of the name of such a file, behind MTEB's name of the task."""

_META = "mteb_model_meta"
_COLUMNS = {"cosine": "cosine_scores", "manhattan": "manhattan_distances", "euclidean": "euclidean_distances"}
_ABOVE_ONE = 1e-3
"""By how much a cosine may be above 1: half precision rounds so."""


@dataclass(frozen=True)
class PredictedPairs:
    """The similarities of the pairs of one task, in the order of MTEB's data.

    Attributes:
        task: MTEB's name of it.
        subset: MTEB's, a language where it has several; else "default".
        split: MTEB's.
        path: the file.
        similarities: by kind (cosine, manhattan, euclidean), one for each pair; higher means more alike.
    """

    task: str
    subset: str
    split: str
    path: Path
    similarities: Mapping[str, NDArray[np.float64]]

    def __str__(self) -> str:
        """Return what it is of, as a person names it."""
        return f"{self.task} ({self.split}{'' if self.subset == 'default' else f', {self.subset}'})"


@dataclass(frozen=True)
class Predictions:
    """What MTEB's prediction files of one model hold.

    Attributes:
        model: its name; empty where the files do not tell.
        revision: its commit on the Hub, where they tell it.
        sha256: of all files.
        pairs: the STS tasks.
        left_out: files that are of no STS task.
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
    """Read a prediction file of MTEB's, or a folder of those of one model.

    Raises:
        UserError: if there is none, one is not as MTEB writes it, or they are of several models.
    """
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
        content = _json(file)
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


def _json(path: Path) -> Mapping[str, Any]:
    try:
        content = parse_json(path.read_bytes(), once=True)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error}): check that it is there.") from error
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}): save the predictions again.") from error
    if not isinstance(content, Mapping):
        raise _broken(path, "it is no object")
    return content


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
    """Return the columns if they are of as many pairs each, and the cosines are some.

    Raises:
        UserError: if not.
    """
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
