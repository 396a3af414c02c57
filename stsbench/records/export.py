"""`export_results`: a record's STS scores as MTEB's result files."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, files_in, writing
from stsbench.base.words import listed
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.records.imports import read_results
from stsbench.records.labels import task_labels
from stsbench.records.parts import Score
from stsbench.records.record import MissingTableError, RunRecord
from stsbench.records.results import MTEB_SPLITS, NO_REVISION
from stsbench.render.table import Result, Table, Tables
from stsbench.statistics.correlations import CORRELATIONS, Metric

META = "model_meta.json"
_SIMILARITIES = ("cosine", "manhattan", "euclidean")
_METRICS: tuple[Metric, ...] = ("pearson", "spearman")
_MTEB_NAMES = {task: name for name, task in MTEB_TASKS.items()}


@dataclass(frozen=True)
class ExportedResults(Result):
    """The files that were written.

    Attributes:
        folder: the folder of the model's revision.
        rows: a row per score: task, split, score (between -1 and 1), signature, file.
        notes: the tasks left out, with reasons.
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
    Scores without a task in MTEB are left out with a note: SICK-R's test split (MTEB's task has all 9,927 pairs),
    other splits and views, trained tasks.

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
    exported, left_out = _exportable(record)
    if not exported:
        raise UserError(f"{name} has no score of an MTEB task: {' '.join(left_out)}")
    revision = record.model.use.revision or NO_REVISION
    about = {"name": name, "revision": revision, "max_tokens": record.model.use.max_length}
    files: dict[str, dict[str, Any]] = {META: about}
    rows = []
    for score, values in exported:
        task, split = _MTEB_NAMES[score.task], MTEB_SPLITS[score.task][score.split]
        result: dict[str, Any] = {
            # MTEB writes the commit of its copy of the data; these scores are of other files.
            "dataset_revision": f"stsbench:{score.data.sha256[:12]}",
            "task_name": task,
            "mteb_version": None,
            "scores": {},
            "evaluation_time": sum(record.seconds.values()) or None,
            "kg_co2_emissions": None,
        }
        files.setdefault(f"{task}.json", result)["scores"][split] = [
            values
            | {"main_score": values["cosine_spearman"], "hf_subset": "default", "languages": ["eng-Latn"]}
            | {"stsbench_signature": score.signature}
        ]
        rows.append((task, split, values["cosine_spearman"], score.signature, f"{task}.json"))
    folder = Path(out).expanduser() / "results" / _as_folder(name) / _as_folder(revision)
    _write(files, folder, overwrite=overwrite)
    frame = pd.DataFrame(rows, columns=["task", "split", "score", "signature", "file"])
    return ExportedResults(folder, frame, tuple(left_out))


def _exportable(record: RunRecord) -> tuple[list[tuple[Score, dict[str, float]]], list[str]]:
    """Return the scores that MTEB has a task for, with their values by MTEB's names, and notes on the others."""
    lacking = ""
    tables: Mapping[tuple[str, str, str, str], pd.DataFrame] = {}
    try:
        tables = record.rows_by_score()
    except MissingTableError as error:
        lacking = str(error)
    exported: dict[tuple[str, str], tuple[Score, dict[str, float]]] = {}
    unknown = []
    for label, score in zip(task_labels(record.scores), record.scores, strict=True):
        place = score.task, score.split
        values = dict(_values(score, record.protocol.similarity, tables.get(score.key)))
        is_sts = score.statistic in CORRELATIONS and not score.training
        is_known = is_sts and score.split in MTEB_SPLITS.get(score.task, {})
        if is_known and place not in exported and {f"cosine_{metric}" for metric in _METRICS} <= values.keys():
            exported[place] = score, values
        else:
            unknown.append(label)
    notes = [f"left out (not in MTEB, or without cosines of all pairs): {listed(unknown)}."] if unknown else []
    if any(name.startswith("SICK-R") for name in unknown):
        notes.append("MTEB's SICK-R is all 9,927 pairs: measure with --protocol mteb, or SICK-R:all.")
    if exported and lacking:
        notes.append(f"scores by other similarities are left out: {lacking}")
    return list(exported.values()), notes


def _values(score: Score, similarity: str, items: pd.DataFrame | None) -> Iterator[tuple[str, float]]:
    """Yield values by MTEB's names; those of the protocol's similarity come from the record."""
    for kind in _SIMILARITIES:
        if items is not None and kind in items.columns:
            for metric in _METRICS:
                yield f"{kind}_{metric}", CORRELATIONS[metric](items["gold"].to_numpy(), items[kind].to_numpy())
    for metric in _METRICS:
        if number := score.number(metric, "all"):
            value = math.nan if number.value is None else number.value
            yield metric, value
            if similarity in _SIMILARITIES:
                yield f"{similarity}_{metric}", value


def _as_folder(name: str) -> str:
    """Return MTEB's folder name for a model or revision.

    >>> _as_folder("owner/my model")
    'owner__my_model'
    """
    folder = name.replace("/", "__").replace("\\", "__").replace(" ", "_").replace("\0", "")
    return folder if folder.strip(".") else "model"


def _write(files: dict[str, dict[str, Any]], folder: Path, *, overwrite: bool) -> None:
    texts = {name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in files.items()}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = {path.name: path.read_bytes() for path in files_in(folder, *texts)}
        differing = [name for name in held if held[name] != texts[name].encode()]
        if differing and not overwrite:
            raise UserError(
                f"{folder} holds {listed(differing)} with other content: choose another folder with --out, or "
                "replace with --overwrite."
            )
        for name, text in texts.items():
            with atomic_path(folder / name) as path:
                path.write_text(text, encoding="utf-8")
