"""The model card: what the Hub and sentence-transformers read of a model's scores, and the same for readers."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.records.labels import METHODS
from stsbench.records.parts import Score
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.render.cells import one_line
from stsbench.render.formats import escape_markdown, fenced, to_markdown

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_ON_THE_HUB = {"acc": "accuracy"}
"""What the Hub calls a statistic, where it has another name there."""

_NOT_ON_THE_HUB = {"devacc"}

_LIBRARIES = {"sentence-transformers": "sentence-transformers", "transformers": "transformers"}


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
    from huggingface_hub import ModelCardData

    models = {(record.model.name, record.model.weights_sha256, record.model.use.pooling) for record in records}
    if len(models) > 1:
        names = ", ".join(record.model.name for record in records)
        raise UserError(f"a model card is of one model, these are runs of several ({names}): name one.")
    library = library or _LIBRARIES.get(records[0].model.kind, "")
    tags = ["sentence-similarity", "feature-extraction", "sentence-embeddings", "stsbench"]
    results = [result for record in records for result in _results(record)]
    data = ModelCardData(
        library_name=library or None,
        pipeline_tag="sentence-similarity",
        base_model=base_model or None,
        tags=[library, *tags] if library == "sentence-transformers" else tags,
        # The Hub takes a model's name only beside its results.
        model_name=one_line(name) if results else None,
        eval_results=results or None,
    )
    lines = [f"# {_plain(name)}", ""]
    for paragraph in about:
        lines += [paragraph, ""]
    lines += _scores(records)
    if after_scores:
        lines += [after_scores, ""]
    lines += _measured_how(records)
    if recipe:
        lines += ["", "## Recipe", "", *fenced(recipe.strip().splitlines(), "yaml")]
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n".join(lines) + "\n"


def _results(record: RunRecord) -> "Iterator[EvalResult]":
    for score in record.scores:
        similarity = "" if score.training else f"_{Signature.parse(score.signature).similarity}"
        # What was trained is scored on its test items, which of nested folds are all.
        split = "test" if score.training else score.split
        beside = [score.number(statistic) for statistic in score.about.statistics[1:]]
        for number in (score.numbers[0], *beside):
            if number is not None and number.statistic not in _NOT_ON_THE_HUB:
                metric = _ON_THE_HUB.get(number.statistic, number.statistic) + similarity
                yield from _result(score, split, metric, number.value)


def _result(score: Score, split: str, metric: str, value: float | None) -> "Iterator[EvalResult]":
    from huggingface_hub import EvalResult

    # An undefined score is none: YAML would say .nan, and programs would read it.
    if value is None or math.isnan(value):
        return
    kind = score.about.on_the_hub
    yield EvalResult(
        task_type=kind,
        task_name=kind.replace("-", " ").title(),
        dataset_type=score.task.lower(),
        dataset_name=one_line(score.task if split == "test" else f"{score.task} ({split})"),
        dataset_split=split,
        dataset_revision=score.data.sha256,
        metric_type=metric,
        metric_name=metric.replace("_", " ").title(),
        metric_value=round(value, 6),
        # Without it nobody can say what the number means.
        metric_args={"signature": score.signature},
    )


def _scores(records: Sequence[RunRecord]) -> list[str]:
    import pandas as pd

    shown = ["task", "metric", "score", "low", "high"]
    frame = pd.concat([record.frame for record in records])
    frame = frame.loc[frame["subset"] == "", shown].dropna(axis="columns", how="all")
    lines = ["## Scores", "", to_markdown(frame), ""]
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
