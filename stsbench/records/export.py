"""A record's STS scores as MTEB's result files (`export_results`), and model cards for the Hub (`model_card`)."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, files_in, writing
from stsbench.base.parsing import dump_yaml
from stsbench.base.words import listed
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.records.imports import read_results
from stsbench.records.labels import interval_in_words, task_labels
from stsbench.records.parts import Score
from stsbench.records.record import MissingTableError, RunRecord
from stsbench.records.results import MTEB_SPLITS, NO_REVISION
from stsbench.records.signature import Signature
from stsbench.render import one_line
from stsbench.render.formats import escape_markdown, fenced, to_markdown
from stsbench.render.table import Result, Table, Tables
from stsbench.statistics.correlations import CORRELATIONS, Metric

META = "model_meta.json"
_SIMILARITIES = ("cosine", "manhattan", "euclidean")
_METRICS: tuple[Metric, ...] = ("pearson", "spearman")
_MTEB_NAMES = {task: name for name, task in MTEB_TASKS.items()}

_NAMES = {"acc": "accuracy", "devacc": ""}
"""The Hub's names of statistics, where they differ; empty for those that it does not have."""

_LIBRARIES = {"sentence-transformers", "transformers"}
"""The kinds of checkpoints that are libraries on the Hub."""


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
        """Returns the scores with MTEB's names of tasks and splits."""
        shown = self.rows.assign(score=100 * self.rows["score"])[["task", "split", "score", "file"]]
        return Tables([Table(shown, notes=self.notes)])


def export_results(
    run: RunRecord | str | Path,
    out: str | Path,
    *,
    model: str = "",
    overwrite: bool = False,
) -> ExportedResults:
    """Writes a record's STS scores in MTEB's format, with `model_meta.json`.

    The files are `OUT/results/owner__model/revision/TASK.json`. Correlations are over all pairs of a task,
    regardless of the record's aggregation, for every similarity in the items table. Each score also has its
    signature. Scores without a task in MTEB are left out with a note: SICK-R's test split (MTEB's task has all
    9,927 pairs), other splits and views, trained tasks.

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
    """Returns the scores that MTEB has a task for, with their values by MTEB's names, and notes on the others."""
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
    """Yields values by MTEB's names; those of the protocol's similarity come from the record."""
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
    """Returns MTEB's folder name for a model or revision.

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


def model_card(
    name: str,
    records: Sequence[RunRecord],
    *,
    base_model: str = "",
    library: str = "",
    about: Sequence[str] = (),
    after_scores: str = "",
    recipe: str = "",
) -> str:
    """Returns a model card: YAML with `model-index`, then the scores and how to repeat them.

    In the YAML, scores are between -1 and 1 and have the names that sentence-transformers writes
    (`spearman_cosine`), one result per task. In the text they are x 100. Licence and language are left to the
    author.

    Args:
        name: the model's name.
        records: runs of one model.
        base_model: the model that it was trained from.
        library: the library that loads it; by default the kind of the measured checkpoint.
        about: paragraphs in Markdown below the name.
        after_scores: a paragraph in Markdown below the scores.
        recipe: the training recipe, as YAML.

    Raises:
        UserError: if the records are of several models.
    """
    models = {(record.model.name, record.model.weights_sha256, record.model.use.pooling) for record in records}
    if len(models) > 1:
        names = ", ".join(record.model.name for record in records)
        raise UserError(f"a model card is about one model, and these runs are of several ({names}): name one.")
    kind = records[0].model.kind
    library = library or (kind if kind in _LIBRARIES else "")
    tags = ["sentence-similarity", "feature-extraction", "sentence-embeddings", "stsbench"]
    results = _hub_results(records)
    data = {
        "base_model": base_model,
        "library_name": library,
        "pipeline_tag": "sentence-similarity",
        "tags": [library, *tags] if library == "sentence-transformers" else tags,
        # The Hub accepts a model's name only with results.
        "model-index": [{"name": one_line(name), "results": results}] if results else [],
    }
    given = {key: value for key, value in data.items() if value}
    blocks = [f"# {_plain(name)}", *about, *_score_table(records), after_scores, *_measured_how(records)]
    if recipe:
        blocks += ["## Recipe", _fenced(recipe.strip(), "yaml")]
    return f"---\n{dump_yaml(given)}---\n\n" + "\n\n".join(filter(None, blocks)) + "\n"


def metric_on_hub(statistic: str, similarity: str = "") -> str:
    """Returns the name of a statistic of the Hub and sentence-transformers, with its similarity.

    >>> metric_on_hub("spearman", "cosine"), metric_on_hub("acc")
    ('spearman_cosine', 'accuracy')
    """
    return "_".join(filter(None, [_NAMES.get(statistic, statistic), similarity]))


def _hub_results(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Returns the results of a `model-index`: one per task, split and data, with all numbers."""
    results: dict[tuple[str, ...], dict[str, Any]] = {}
    for score in (score for record in records for score in record.scores):
        metrics = list(_hub_metrics(score))
        if not metrics:
            continue
        kind = score.about.on_the_hub
        # Trained tasks are scored on test items; with nested folds these are all items.
        split = "test" if score.training else score.split
        dataset = {
            "name": one_line(score.task if split == "test" else f"{score.task} ({split})"),
            "type": score.task.lower(),
            "split": split,
            "revision": score.data.sha256,
        }
        task = {"type": kind, "name": kind.replace("-", " ").title()}
        key = kind, dataset["type"], split, dataset["revision"]
        results.setdefault(key, {"task": task, "dataset": dataset, "metrics": []})["metrics"] += metrics
    return list(results.values())


def _hub_metrics(score: Score) -> Iterator[dict[str, Any]]:
    similarity = "" if score.training else Signature.parse(score.signature).similarity
    for number in score.headlines:
        metric = metric_on_hub(number.statistic, similarity)
        # YAML would write an undefined score as .nan, which other programs would read as a number.
        if metric and number.value is not None and not math.isnan(number.value):
            yield {
                "type": metric,
                "value": round(number.value, 6),
                "name": metric.replace("_", " ").title(),
                "args": {"signature": score.signature},
            }


def _score_table(records: Sequence[RunRecord]) -> list[str]:
    frame = pd.concat([record.frame for record in records])
    frame = frame.loc[frame["subset"] == "", ["task", "metric", "score", "low", "high"]]
    frame = frame.dropna(axis="columns", how="all")
    words = dict.fromkeys(filter(None, (interval_in_words(record.protocol) for record in records)))
    note = f"Scores x 100, with {'; '.join(words)}." if "low" in frame else ""
    return ["## Scores", to_markdown(frame).rstrip(), note]


def _measured_how(records: Sequence[RunRecord]) -> list[str]:
    weights = records[0].model.weights_sha256
    commands = [record.command for record in records if record.command]
    versions = ", ".join(dict.fromkeys(record.stsbench for record in records))
    return [
        "## How they were measured",
        _fenced("\n".join(record.signature for record in records)),
        f"SHA-256 of the weights: `{weights}`." if weights else "",
        _fenced("\n".join(commands), "sh") if commands else "",
        f"Measured with stsbench {_plain(versions)}.",
    ]


def _fenced(text: str, language: str = "") -> str:
    return "\n".join(fenced(text.splitlines(), language))


def _plain(text: str) -> str:
    return escape_markdown(one_line(text).strip())
