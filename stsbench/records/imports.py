"""Imports the results of SentEval or MTEB as a record, and reads MTEB's prediction files.

Fields of the record that a file does not contain are marked as unknown. `TASK_predictions.json`, as
`mteb.evaluate(..., prediction_folder=...)` writes it (embeddings-benchmark/mteb, `mteb/abstasks/abstask.py` at
commit 007ab9e), has a model's outputs for each item, without items and gold labels:

    {"mteb_model_meta": {"model_name": ..., "revision": ...},
     "default": {"test": PREDICTIONS}}

PREDICTIONS depends on the kind of task (mteb 2.26):

    STS                   {"cosine_scores": [...], "manhattan_distances": [...], "euclidean_distances": [...],
                           "similarity_scores": [...]}, distances negative
    pair classification   the same, distances positive, and "dot_scores"
    retrieval, reranking  {QUERY: {DOCUMENT: SCORE, ...}, ...}, the best 1000 documents of a query
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import files_in, fingerprint, sha256_of
from stsbench.base.parsing import first_error
from stsbench.base.words import listed
from stsbench.encoders.use import Use
from stsbench.records.kinds import KINDS, STS, TRANSFER
from stsbench.records.parts import (
    IMPORTED,
    AveragePart,
    DataPart,
    ModelPart,
    ProtocolPart,
    Score,
    Training,
    now,
)
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.results import (
    MTEB_NOTE,
    NO_REVISION,
    ImportedResults,
    ImportedTask,
    ModelMeta,
    is_mteb,
    is_senteval,
    read_json,
    read_mteb,
    read_senteval,
)
from stsbench.records.signature import UNKNOWN, Signature
from stsbench.records.store import load_run
from stsbench.statistics import LEVEL

_META = "model_meta.json"
_PROTOCOLS = {"SentEval": {"all": "simcse", "wmean": "senteval"}, "MTEB": {"all": "mteb"}}
_NO_USE = Use(pooling=UNKNOWN, precision=UNKNOWN)

ENDING = "_predictions.json"
"""The end of the name of a prediction file, after MTEB's name of the task."""

_MODEL_META = "mteb_model_meta"

T = TypeVar("T")


class NotResultsError(UserError):
    """A file without results of SentEval or MTEB."""


def import_scores(
    path: Path, model: str = "", aggregation: str | None = None, metric: str = "spearman", command: str = ""
) -> RunRecord:
    """Reads results of SentEval or MTEB as a record in memory; see `stsbench.import_results`.

    Raises:
        NotResultsError: if the file has no such results.
        UserError: if it cannot be read or lacks the aggregation or metric.
    """
    results = _read_folder(path) if path.is_dir() else _read_file(path)
    if not results.tasks:
        raise NotResultsError(f"{path} has no score that can be imported: {' '.join(results.notes[1:])}")
    chosen = aggregation or ("all" if all(task.by("all", metric) for task in results.sts) else "wmean")
    headlines = {task.name: task.by(chosen, metric) for task in results.sts}
    for task in results.sts:
        if headlines[task.name] is None:
            whole = [number for number in task.numbers if not number.subset]
            known = ", ".join(f"{number.statistic} by {number.aggregation}" for number in whole)
            raise UserError(f"{path} has no {metric} of {task.name} by the aggregation {chosen}: it has {known}.")
    undefined = [name for name, number in headlines.items() if number is not None and number.value is None]
    notes = [f"imported from {results.program}'s results, {path.name}.", *results.notes]
    if undefined:
        notes.append(f"the {metric} of {', '.join(undefined)} is NaN in the file, so it is undefined.")
    name = model or results.model or _name_in_path(path)
    return _record(replace(results, model=name, notes=tuple(notes)), chosen, metric, command)


def _record(results: ImportedResults, aggregation: str, metric: str, command: str) -> RunRecord:
    scores = tuple(_score(task, results.text, aggregation, metric) for task in results.tasks)
    by_kind = {kind: [score for score in scores if score.kind == kind] for kind in KINDS}
    averages = [
        AveragePart.of(kind, [score.task for score in of_kind], [score.value for score in of_kind])
        for kind, of_kind in by_kind.items()
    ]
    return RunRecord(
        stsbench=__version__,
        created=now(),
        command=command,
        model=ModelPart(
            name=results.model,
            kind=IMPORTED,
            use=replace(_NO_USE, revision=results.revision, device=UNKNOWN),
            weights_sha256=results.weights_sha256,
        ),
        protocol=ProtocolPart(
            name=_PROTOCOLS[results.program].get(aggregation, results.program.lower()),
            aggregation=aggregation,
            metric=metric,
            similarity="cosine",
            interval=None,
            level=LEVEL,
        ),
        scores=scores,
        averages=tuple(average for average in averages if average is not None),
        notes=results.notes,
        environment={},
        seconds={},
        encoding={},
    )


def _score(task: ImportedTask, text: str, aggregation: str, metric: str) -> Score:
    training, similarity = None, "cosine"
    if task.design:
        # Signatures have the number of folds, which no result file contains.
        aggregation = "split" if task.design == "split" else UNKNOWN
        metric, similarity, training = "acc", UNKNOWN, Training(method=UNKNOWN, design=task.design)
    meaning = Signature(
        *(task.name, task.split, aggregation, metric, similarity, text, UNKNOWN), _NO_USE, version=UNKNOWN
    )
    headline = (metric, "" if training else aggregation, "")
    return Score(
        kind=TRANSFER if training else STS,
        task=task.name,
        split=task.split,
        text=text,
        numbers=tuple(sorted(task.numbers, key=lambda number: number.key != headline)),
        signature=str(meaning),
        data=DataPart(status="unknown", sha256=UNKNOWN),
        training=training,
    )


def read_results(run: RunRecord | str | Path) -> RunRecord:
    """Returns a record: the given one, one read from disk, or one imported from results of SentEval or MTEB."""
    if isinstance(run, RunRecord):
        return run
    path = Path(run).expanduser()
    return load_run(path) if not path.exists() or _is_record(path) else import_scores(path)


def _is_record(path: Path) -> bool:
    if path.is_dir():
        return (path / RECORD).is_file() or not files_in(path, "*.json")
    with suppress(UserError):
        content = read_json(path, "results")
        return isinstance(content, dict) and "schema_version" in content
    return True


def _read_file(path: Path) -> ImportedResults:
    content = read_json(path, "results")
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
    """Reads a folder of MTEB's results of one model."""
    if (folder / RECORD).is_file():
        raise UserError(f"{folder} is the folder of a run record: use it directly.")
    files, left_out = [], []
    meta = ModelMeta()
    for path in files_in(folder, "*.json"):
        content = read_json(path, "results")
        if path.name == _META:
            meta = _read(path, ModelMeta.model_validate, content)
        elif isinstance(content, Mapping) and is_mteb(content):
            files.append((path, _read(path, read_mteb, content)))
        else:
            left_out.append(path.name)
    tasks: dict[tuple[str, str], ImportedTask] = {}
    for path, results in files:
        for task in results.tasks:
            if (task.name, task.split) in tasks:
                raise UserError(f"{folder} has {task.name} twice, again in {path.name}: keep one of the files.")
            tasks[task.name, task.split] = task
    if not tasks:
        raise NotResultsError(f"{folder} holds neither a run record nor MTEB's results of an STS task.")
    models = {results.model for _, results in files} - {""}
    if len(models) > 1:
        raise UserError(
            f"{folder} has results of several models ({', '.join(sorted(models))}): give each a folder."
        )
    notes = (f"left out (not STS tasks in the catalogue): {', '.join(left_out)}.",) if left_out else ()
    return replace(
        files[0][1],
        tasks=tuple(tasks.values()),
        model=meta.name or "".join(models),
        revision=None if meta.revision in {"", NO_REVISION} else meta.revision,
        weights_sha256=None,
        notes=(MTEB_NOTE, *notes),
    )


def _read(path: Path, read: Callable[[Any], T], content: Any) -> T:
    """Reads the content of a file; a mistake in it is reported with the file's name."""
    try:
        return read(content)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        why = first_error(error) if isinstance(error, ValidationError) else repr(error)
        raise UserError(f"{path} is not as its program writes it ({why}): save the results again.") from error


def _name_in_path(path: Path) -> str:
    """Returns the model in the names of MTEB's folders (`owner__model/revision/STS12.json`), or the file name."""
    for part in reversed(path.absolute().parts[:-1] if path.is_file() else path.absolute().parts):
        if "__" in part:
            return part.replace("__", "/")
    return path.stem


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
    """Returns whether a path is one of MTEB's predictions: a folder, or a file named as those are.

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
    """Reads a prediction file of MTEB, or a folder with the prediction files of one model."""
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
            model = _Model.model_validate(content[_MODEL_META])
        except (ValidationError, LookupError, TypeError) as error:
            why = first_error(error) if isinstance(error, ValidationError) else "it is missing"
            raise broken(file, f"{_MODEL_META}: {why}") from error
        models.setdefault((model.model_name or "", model.revision or ""), file)
        parts += [
            Part(file.name.removesuffix(ENDING), subset, split, file, predictions)
            for subset, splits in content.items()
            if subset != _MODEL_META and isinstance(splits, Mapping)
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
    """Returns the error for a damaged prediction file."""
    return UserError(f"{path} is not a prediction file as MTEB writes it: {why}; save the predictions again.")
