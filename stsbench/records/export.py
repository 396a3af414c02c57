"""A record as others read it: `export_results` writes MTEB's files, `model_card` what the Hub reads of scores."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, told_as_unwritable
from stsbench.base.options import Spelled
from stsbench.base.words import listed, storable
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.records.imports import read_results
from stsbench.records.imports.mteb import MTEB_SPLITS, NO_REVISION, SIGNATURE
from stsbench.records.labels import METHODS
from stsbench.records.parts import Score
from stsbench.records.record import MissingTableError, RunRecord
from stsbench.records.signature import Signature
from stsbench.render.cells import one_line
from stsbench.render.formats import escape_markdown, fenced, to_markdown
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables
from stsbench.statistics.correlations import CORRELATIONS, Metric

META = "model_meta.json"
_RESULTS = "results"
_SIMILARITIES = ("cosine", "manhattan", "euclidean")
_METRICS: tuple[Metric, ...] = ("pearson", "spearman")
_POOLED = "all"

_META_FIELDS: dict[str, Any] = {
    "name": None,
    "revision": None,
    "loader": None,
    "loader_kwargs": {},
    "release_date": None,
    "languages": None,
    "n_parameters": None,
    "n_embedding_parameters": None,
    "memory_usage_mb": None,
    "max_tokens": None,
    "embed_dim": None,
    "license": None,
    "open_weights": None,
    "public_training_code": None,
    "public_training_data": None,
    "framework": [],
    "reference": None,
    "similarity_fn_name": None,
    "use_instructions": None,
    "training_datasets": None,
    "adapted_from": None,
    "superseded_by": None,
    "modalities": ["text"],
    "model_type": ["dense"],
    "citation": None,
    "contacts": None,
}
"""What MTEB's description of a model holds; all but a few of it nobody knows here."""


@dataclass(frozen=True)
class ExportedResults(Result):
    """The files that were written.

    Attributes:
        folder: that of the model's revision, which holds them.
        rows: a row for each score: task, split, score (between -1 and 1), signature, file.
        notes: what was left out, and why.
    """

    folder: Path
    rows: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The exported scores, a row each."""
        return self.rows

    def table(self) -> Tables:
        """Return the scores by MTEB's names of tasks and splits."""
        shown = self.rows.assign(score=100 * self.rows["score"])[["task", "split", "score", "file"]]
        return Tables([Table(shown, notes=self.notes)])


def export_results(
    run: RunRecord | str | Path,
    out: str | Path,
    *,
    model: Annotated[str, Spelled("--model", "-m")] = "",
    overwrite: bool = False,
) -> ExportedResults:
    """Write a record's STS scores as MTEB does, `model_meta.json` beside them.

    The files are `OUT/results/owner__model/revision/TASK.json`. The correlations are over all pairs of a task,
    whatever the record's own aggregation, by every similarity that its items table has. What MTEB has no task for
    is left out, and said: SICK-R's test split alone (MTEB's has all 9,927 pairs), splits and views of other names,
    trained tasks. Beside MTEB's fields each score has the signature.

    Args:
        run: a run folder or `run.json`, or results of another program. In Python also a record.
        out: the folder to write into, MTEB's cache of results.
        model: the model's name for MTEB, `owner/name`; by default the record's.
        overwrite: whether to replace files with other scores in that folder.

    Raises:
        UserError: if the record has nothing that MTEB has a task for, or a file is there that differs or cannot be
            written.
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
    """Return the scores that MTEB has a task for, one text of each, by its names, and notes on the others."""
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
    """Yield the scores by MTEB's names; those of the protocol's similarity are the record's own."""
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
        # MTEB names a commit of its copy of the data; these scores are of other files.
        "dataset_revision": f"stsbench:{part.data.sha256[:12]}",
        "task_name": task,
        "mteb_version": None,
        "scores": {},
        "evaluation_time": sum(record.seconds.values()) or None,
        "kg_co2_emissions": None,
    }


def _as_folder(name: str) -> str:
    """Return a name as MTEB calls its folder.

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
    with told_as_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with told_as_unwritable(folder / name), atomic_path(folder / name) as path:
            path.write_text(text, encoding="utf-8")


def _differs(path: Path, text: str) -> bool:
    try:
        return path.exists() and (not path.is_file() or path.read_bytes() != text.encode())
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error}): check its permissions.") from error


_ON_THE_HUB = {"acc": "accuracy"}
"""What the Hub calls a statistic, where it has another name there."""

_NOT_ON_THE_HUB = {"devacc"}

_LIBRARIES = {"sentence-transformers", "transformers"}
"""Kinds of checkpoints that the Hub knows as libraries."""


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
    """Return a model card: YAML with `model-index`, then the scores and how to repeat them.

    Programs find a score as sentence-transformers writes it: `spearman_cosine` and the like, between -1 and 1, one
    result a task. Readers find it x 100, as papers print it. What nobody knows here (licence, language) is not in
    it: it is for the author to add.

    Args:
        name: what the card calls the model.
        records: of one model.
        base_model: that it was trained from.
        library: that loads it; by default the kind of checkpoint that was measured.
        about: paragraphs in Markdown, below the name.
        after_scores: a paragraph in Markdown, below the scores.
        recipe: YAML that it was trained by.

    Raises:
        UserError: if the records are of several models.
    """
    import yaml

    models = {(record.model.name, record.model.weights_sha256, record.model.use.pooling) for record in records}
    if len(models) > 1:
        names = ", ".join(record.model.name for record in records)
        raise UserError(f"a model card is of one model, these are runs of several ({names}): name one.")
    kind = records[0].model.kind
    library = library or (kind if kind in _LIBRARIES else "")
    tags = ["sentence-similarity", "feature-extraction", "sentence-embeddings", "stsbench"]
    results = _hub_results(records)
    data = {
        "base_model": base_model,
        "library_name": library,
        "pipeline_tag": "sentence-similarity",
        "tags": [library, *tags] if library == "sentence-transformers" else tags,
        # The Hub takes a model's name only beside its results.
        "model-index": [{"name": one_line(name), "results": results}] if results else [],
    }
    # As the Hub's own library writes it.
    said = {key: value for key, value in data.items() if value}
    head = yaml.safe_dump(said, sort_keys=False, allow_unicode=True)
    lines = [f"# {_plain(name)}", ""]
    for paragraph in about:
        lines += [paragraph, ""]
    lines += _score_table(records)
    if after_scores:
        lines += [after_scores, ""]
    lines += _measured_how(records)
    if recipe:
        lines += ["", "## Recipe", "", *fenced(recipe.strip().splitlines(), "yaml")]
    return f"---\n{head}---\n\n" + "\n".join(lines) + "\n"


def card_with_scores(card: str, name: str, records: Sequence[RunRecord]) -> str:
    """Return a model card with the scores of further runs, in its `model-index` and below its text.

    Args:
        card: the text of a `README.md`.
        name: what the card's metadata call the model.
        records: of that model. A score that the card has already, by its signature, is not added again.

    Raises:
        ValueError: if the card's metadata cannot be read.
    """
    from huggingface_hub import ModelCard
    from huggingface_hub.repocard_data import model_index_to_eval_results

    page: Any = ModelCard(card)
    known = page.data.eval_results or []
    signatures = {(result.metric_args or {}).get("signature") for result in known}
    further = [record for record in records if not signatures.issuperset(record.signature.splitlines())]
    _, results = model_index_to_eval_results([{"name": name, "results": _hub_results(further)}])
    page.data.eval_results = [*known, *results] or None
    # The Hub takes a model's name only beside its results.
    page.data.model_name = one_line(name) if page.data.eval_results else None
    if further:
        added = "\n".join([*_score_table(further, "Measured by the author"), *_measured_how(further)])
        page.text = f"{page.text.rstrip()}\n\n{added}\n"
    return str(page)


def metric_on_hub(statistic: str, similarity: str = "") -> str:
    """Return what the Hub and sentence-transformers call a statistic, of which similarity if it is of one.

    >>> metric_on_hub("spearman", "cosine"), metric_on_hub("acc")
    ('spearman_cosine', 'accuracy')
    """
    return "_".join(filter(None, [_ON_THE_HUB.get(statistic, statistic), similarity]))


def _hub_results(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return the results of a card's `model-index`: one for each task, split and data, with all its numbers."""
    results: dict[tuple[str, ...], dict[str, Any]] = {}
    for score in (score for record in records for score in record.scores):
        metrics = list(_hub_metrics(score))
        if not metrics:
            continue
        kind = score.about.on_the_hub
        # What was trained is scored on its test items, which of nested folds are all.
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
    beside = [score.number(statistic) for statistic in score.about.statistics[1:]]
    for number in (score.numbers[0], *beside):
        if number is None or number.statistic in _NOT_ON_THE_HUB:
            continue
        # An undefined score is none: YAML would say .nan, and programs would read it.
        if number.value is None or math.isnan(number.value):
            continue
        metric = metric_on_hub(number.statistic, similarity)
        yield {
            "type": metric,
            "value": round(number.value, 6),
            "name": metric.replace("_", " ").title(),
            # Without it nobody can say what the number means.
            "args": {"signature": score.signature},
        }


def _score_table(records: Sequence[RunRecord], heading: str = "Scores") -> list[str]:
    shown = ["task", "metric", "score", "low", "high"]
    frame = pd.concat([record.frame for record in records])
    frame = frame.loc[frame["subset"] == "", shown].dropna(axis="columns", how="all")
    lines = [f"## {heading}", "", to_markdown(frame), ""]
    if "low" in frame:
        kinds = dict.fromkeys(
            f"{100 * record.protocol.level:g} % intervals, {METHODS[record.protocol.interval]}"
            for record in records
            if record.protocol.interval
        )
        lines += [f"Scores x 100, with their {'; '.join(kinds)}.", ""]
    return lines


def _measured_how(records: Sequence[RunRecord]) -> list[str]:
    signatures = [line for record in records for line in record.signature.splitlines()]
    lines = ["## How they were measured", "", *fenced(signatures), ""]
    if weights := records[0].model.weights_sha256:
        lines += [f"SHA-256 of the weights: `{weights}`.", ""]
    if commands := [record.command for record in records if record.command]:
        lines += [*fenced(commands, "sh"), ""]
    versions = ", ".join(dict.fromkeys(record.stsbench for record in records))
    return [*lines, f"Measured with stsbench {_plain(versions)}."]


def _plain(text: str) -> str:
    return escape_markdown(one_line(text).strip())
