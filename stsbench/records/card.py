"""Model cards: the scores of runs in the format of the Hub, and as a table for readers."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import yaml

from stsbench.base.errors import UserError
from stsbench.records.labels import interval_in_words
from stsbench.records.parts import Score
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.render.formats import escape_markdown, fenced, to_markdown
from stsbench.render.text import one_line

_NAMES = {"acc": "accuracy", "devacc": ""}
"""The Hub's names of statistics, where they differ; empty for those that it does not have."""

_LIBRARIES = {"sentence-transformers", "transformers"}
"""The kinds of checkpoints that are libraries on the Hub."""


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
    head = yaml.safe_dump(given, sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n" + "\n\n".join(filter(None, blocks)) + "\n"


def metric_on_hub(statistic: str, similarity: str = "") -> str:
    """Return the name of a statistic of the Hub and sentence-transformers, with its similarity.

    >>> metric_on_hub("spearman", "cosine"), metric_on_hub("acc")
    ('spearman_cosine', 'accuracy')
    """
    return "_".join(filter(None, [_NAMES.get(statistic, statistic), similarity]))


def _hub_results(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return the results of a `model-index`: one per task, split and data, with all numbers."""
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
