"""MTEB's prediction files: a model's outputs for each item of a task, without items and gold labels.

`TASK_predictions.json`, as `mteb.evaluate(..., prediction_folder=...)` writes it (embeddings-benchmark/mteb,
`mteb/abstasks/abstask.py` at commit 007ab9e: `_save_task_predictions`):

    {"mteb_model_meta": {"model_name": ..., "revision": ...},
     "default": {"test": PREDICTIONS}}

The content of a split depends on the kind of task (mteb 2.26):

    STS                   {"cosine_scores": [...], "manhattan_distances": [...], "euclidean_distances": [...],
                           "similarity_scores": [...]}, distances negative
    pair classification   the same, distances positive, and "dot_scores"
    retrieval, reranking  {QUERY: {DOCUMENT: SCORE, ...}, ...}, the best 1000 documents of a query
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import files_in, fingerprint, sha256_of
from stsbench.base.parsing import first_error
from stsbench.base.words import listed
from stsbench.records.results import NO_REVISION, read_json

ENDING = "_predictions.json"
"""The end of the name of a prediction file, after MTEB's name of the task."""

_META = "mteb_model_meta"

# Half precision may round a cosine above 1.
_Cosine = Annotated[float, Field(strict=True, ge=-1.001, le=1.001)]
_Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class _Model(BaseModel):
    model_name: str | None = None
    revision: str | None = None


class _Similarities(BaseModel):
    cosine: list[_Cosine] = Field(alias="cosine_scores")
    manhattan: list[_Finite] | None = Field(None, alias="manhattan_distances")
    euclidean: list[_Finite] | None = Field(None, alias="euclidean_distances")
    dot: list[_Finite] | None = Field(None, alias="dot_scores")


def are_predictions(path: Path) -> bool:
    """Return whether a path is one of MTEB's predictions: a folder, or a file named as those are.

    >>> are_predictions(Path("predictions/STS12_predictions.json")), are_predictions(Path("cosines.npy"))
    (True, False)
    """
    return path.name.endswith(ENDING) or path.is_dir()


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
        return self.is_ranking or self.are_similarities

    @property
    def are_similarities(self) -> bool:
        """Whether these are similarities of pairs: an STS task or pair classification."""
        return isinstance(self.content, Mapping) and "cosine_scores" in self.content

    @property
    def are_of_labels(self) -> bool:
        """Whether the pairs have labels; only for these MTEB saves dot products."""
        return self.are_similarities and self.content.get("dot_scores") is not None

    @property
    def is_ranking(self) -> bool:
        """Whether these are ranked documents per query: retrieval or reranking."""
        return bool(isinstance(self.content, Mapping) and self.content) and all(
            isinstance(documents, Mapping) for documents in self.content.values()
        )

    @cached_property
    def similarities(self) -> Mapping[str, NDArray[np.float64]]:
        """(n,) similarities by kind (cosine, manhattan, euclidean; dot for pairs with labels), in MTEB's order.

        Higher means more similar.

        Raises:
            UserError: naming the first value that is not a similarity.
        """
        try:
            lists = _Similarities.model_validate(self.content).model_dump(exclude_none=True)
        except ValidationError as error:
            raise broken(self.path, f"{self.subset}, {self.split}, {first_error(error)}") from error
        if len({len(values) for values in lists.values()}) > 1:
            sizes = listed([f"{len(values)} {kind}" for kind, values in lists.items()])
            raise broken(self.path, f"{self.subset}, {self.split}: the numbers of similarities differ ({sizes})")
        columns = {kind: np.array(values, dtype=np.float64) for kind, values in lists.items()}
        # Only in STS tasks does MTEB store distances as negative numbers.
        columns |= {kind: -np.abs(columns[kind]) for kind in ("manhattan", "euclidean") if kind in columns}
        return columns | {"cosine": np.clip(columns["cosine"], -1.0, 1.0)}


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
    parts: tuple[Part, ...]


def read_prediction_files(path: Path) -> PredictionFiles:
    """Read a prediction file of MTEB, or a folder with the prediction files of one model."""
    files = files_in(path, f"*{ENDING}") if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path} holds no prediction file of MTEB's: they are called TASK{ENDING}.")
    parts: list[Part] = []
    models: dict[tuple[str, str], Path] = {}
    hashes = []
    for file in files:
        content = read_json(file, "predictions")
        hashes.append(sha256_of(file))
        try:
            model = _Model.model_validate(content[_META])
        except (ValidationError, LookupError, TypeError) as error:
            why = first_error(error) if isinstance(error, ValidationError) else "it is missing"
            raise broken(file, f"{_META}: {why}") from error
        models.setdefault((model.model_name or "", model.revision or ""), file)
        parts += [
            Part(file.name.removesuffix(ENDING), subset, split, file, predictions)
            for subset, splits in content.items()
            if subset != _META and isinstance(splits, Mapping)
            for split, predictions in splits.items()
        ]
    if len(models) > 1:
        one, other = list(models.values())[:2]
        raise UserError(f"{path} holds predictions of several models ({one.name}, {other.name}): name one file.")
    ((name, revision),) = models
    known = None if revision in {"", NO_REVISION} else revision
    digest = hashes[0] if len(files) == 1 else fingerprint(hashes)
    return PredictionFiles(name, known, digest, tuple(parts))


def broken(path: Path, why: str) -> UserError:
    """Return the error for a damaged prediction file."""
    return UserError(f"{path} is not a prediction file as MTEB writes it: {why}; save the predictions again.")
