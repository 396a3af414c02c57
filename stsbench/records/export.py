"""`export_results`: a record's STS scores as MTEB's result files."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, writing
from stsbench.base.words import listed, storable
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.records.imports import read_results
from stsbench.records.imports.mteb import MTEB_SPLITS, NO_REVISION, SIGNATURE
from stsbench.records.parts import Score
from stsbench.records.record import MissingTableError, RunRecord
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.statistics.correlations import CORRELATIONS, Metric

META = "model_meta.json"
_RESULTS = "results"
_SIMILARITIES = ("cosine", "manhattan", "euclidean")
_METRICS: tuple[Metric, ...] = ("pearson", "spearman")
_POOLED = "all"

_UNKNOWN = (
    *("name", "revision", "loader", "release_date", "languages", "n_parameters", "n_embedding_parameters"),
    *("memory_usage_mb", "max_tokens", "embed_dim", "license", "open_weights", "public_training_code"),
    *("public_training_data", "reference", "similarity_fn_name", "use_instructions", "training_datasets"),
    *("adapted_from", "superseded_by", "citation", "contacts"),
)
_META_FIELDS: dict[str, Any] = {
    **dict.fromkeys(_UNKNOWN),
    **{"loader_kwargs": {}, "framework": [], "modalities": ["text"], "model_type": ["dense"]},
}
"""The fields of MTEB's description of a model; a record knows only a few of them."""


@dataclass(frozen=True)
class ExportedResults(Result):
    """The files that were written.

    Attributes:
        folder: the folder of the model's revision.
        rows: a row per score: task, split, score (between -1 and 1), signature, file.
        notes: what was left out, and why.
    """

    folder: Path
    rows: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The exported scores, one row each."""
        return self.rows

    def table(self) -> Tables:
        """Return the scores with MTEB's names of tasks and splits."""
        shown = self.rows.assign(score=100 * self.rows["score"])[["task", "split", "score", "file"]]
        return Tables([Table(shown, notes=self.notes)])


def export_results(
    run: RunRecord | str | Path,
    out: str | Path,
    *,
    model: str = "",
    overwrite: bool = False,
) -> ExportedResults:
    """Write a record's STS scores in MTEB's format, with `model_meta.json`.

    The files are `OUT/results/owner__model/revision/TASK.json`. Correlations are over all pairs of a task,
    whatever the record's aggregation, for every similarity in the items table. Each score also has its signature.
    What MTEB has no task for is left out with a note: SICK-R's test split (MTEB's task has all 9,927 pairs),
    splits and views of other names, trained tasks.

    Args:
        run: a run folder or `run.json`, or results of another program; in Python also a record.
        out: the folder to write into, MTEB's cache of results.
        model: the model's name for MTEB, `owner/name`; by default the record's.
        overwrite: whether to replace files with other scores.

    Raises:
        UserError: if MTEB has no task for any score, or a file exists with other scores or cannot be written.
    """
    record = read_results(run)
    name = model or record.model.name
    if storable(name) != name:
        raise UserError(f"{name!r} is no text: a character in it is not UTF-8; write the model's name anew.")
    parts, left_out = _exportable(record)
    if not parts:
        raise UserError(f"{name} has no score that is one of MTEB's: {' '.join(left_out)}")
    contents: dict[str, dict[str, Any]] = {}
    rows = []
    for part, scores in parts:
        task, split = _MTEB_NAMES[part.task], MTEB_SPLITS[part.task][part.split]
        file = contents.setdefault(task, _task_result(task, part, record))
        file["scores"][split] = [
            scores
            | {"main_score": scores["cosine_spearman"], "hf_subset": "default", "languages": ["eng-Latn"]}
            | {SIGNATURE: part.signature}
        ]
        rows.append((task, split, scores["cosine_spearman"], part.signature, f"{task}.json"))
    revision = record.model.use.revision or NO_REVISION
    folder = Path(out).expanduser() / _RESULTS / _as_folder(name) / _as_folder(revision)
    about = _META_FIELDS | {"name": name, "revision": revision, "max_tokens": record.model.use.max_length}
    files = {f"{task}.json": content for task, content in contents.items()} | {META: about}
    _write(files, folder, overwrite=overwrite)
    return ExportedResults(
        folder, pd.DataFrame(rows, columns=["task", "split", "score", "signature", "file"]), tuple(left_out)
    )


_MTEB_NAMES = {task: name for name, task in MTEB_TASKS.items()}


def _exportable(record: RunRecord) -> tuple[list[tuple[Score, dict[str, float]]], list[str]]:
    """Return the scores that MTEB has a task for, with their values by MTEB's names, and notes on the others."""
    lacking = ""
    tables: Mapping[tuple[str, str, str, str], pd.DataFrame] = {}
    try:
        tables = record.rows_by_score()
    except MissingTableError as error:
        lacking = str(error)
    exported: dict[tuple[str, str], tuple[Score, dict[str, float]]] = {}
    notes, unknown = [], []
    for part in record.scores:
        splits = MTEB_SPLITS.get(part.task, {})
        if part.training or part.statistic not in CORRELATIONS:
            unknown.append(part.task)
        elif part.split not in splits:
            unknown.append(f"{part.task}:{part.split}" if part.split != "test" or splits else part.task)
        elif (part.task, part.split) in exported:
            notes.append(f"{part.task} in the text {part.text} is left out: MTEB has a task once.")
        else:
            scores = dict(_scores(part, record.protocol.similarity, tables.get(part.key)))
            if all(f"cosine_{metric}" in scores for metric in _METRICS):
                exported[part.task, part.split] = part, scores
            else:
                notes.append(f"{part.task} is left out: it has no cosine score over all pairs, which MTEB's is.")
    if unknown:
        notes.append(f"left out, as MTEB has no such task: {listed(unknown)}.")
    if any(name.startswith("SICK-R") for name in unknown):
        notes.append("MTEB's SICK-R is all 9,927 pairs: measure with --protocol mteb, or SICK-R:all.")
    if exported and lacking:
        notes.append(f"scores by other similarities are left out: {lacking}")
    return list(exported.values()), notes


def _scores(part: Score, similarity: str, items: pd.DataFrame | None) -> Iterator[tuple[str, float]]:
    """Yield scores by MTEB's names; those of the protocol's similarity come from the record."""
    for kind in _SIMILARITIES:
        if items is not None and kind in items.columns:
            for metric in _METRICS:
                yield f"{kind}_{metric}", CORRELATIONS[metric](items["gold"].to_numpy(), items[kind].to_numpy())
    for metric in _METRICS:
        number = part.number(metric, _POOLED)
        if number is not None:
            score = math.nan if number.value is None else number.value
            yield metric, score
            if similarity in _SIMILARITIES:
                yield f"{similarity}_{metric}", score


def _task_result(task: str, part: Score, record: RunRecord) -> dict[str, Any]:
    return {
        # MTEB writes the commit of its copy of the data; these scores are of other files.
        "dataset_revision": f"stsbench:{part.data.sha256[:12]}",
        "task_name": task,
        "mteb_version": None,
        "scores": {},
        "evaluation_time": sum(record.seconds.values()) or None,
        "kg_co2_emissions": None,
    }


def _as_folder(name: str) -> str:
    """Return MTEB's folder name for a model or revision.

    >>> _as_folder("owner/my model")
    'owner__my_model'
    """
    folder = name.replace("/", "__").replace("\\", "__").replace(" ", "_").replace("\0", "")
    return folder if folder.strip(".") else "model"


def _write(files: dict[str, dict[str, Any]], folder: Path, *, overwrite: bool) -> None:
    texts = {name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in files.items()}
    differing = [name for name, text in texts.items() if _differs(folder / name, text)]
    if differing and not overwrite:
        raise UserError(
            f"{folder} holds {listed(differing)} with other content: choose another folder with --out, or replace "
            "with --overwrite."
        )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with writing(folder / name), atomic_path(folder / name) as path:
            path.write_text(text, encoding="utf-8")


def _differs(path: Path, text: str) -> bool:
    try:
        return path.exists() and (not path.is_file() or path.read_bytes() != text.encode())
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error}): check its permissions.") from error
