"""The Hub's model card: scores as `model-index` for programs, and the same for readers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.render.cells import one_line
from stsbench.render.formats import escape_markdown, to_markdown
from stsbench.reports.write import fenced

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_LIBRARIES = {"sentence-transformers": "sentence-transformers", "transformers": "transformers"}


def model_card(name: str, records: Sequence[RunRecord]) -> str:
    """Return a model card: YAML with `model-index`, then tables of the scores and how to repeat them.

    What a record does not know (licence, language, training data) is not in it: it is for the author to add.

    Args:
        name: what the card calls the model.
        records: of one model.

    Raises:
        UserError: if they are of several models.
    """
    from huggingface_hub import ModelCardData

    models = {(record.model.name, record.model.weights_sha256, record.model.pooling) for record in records}
    if len(models) > 1:
        told = ", ".join(record.model.name for record in records)
        raise UserError(f"a model card is of one model, these are runs of several ({told}): name one.")
    model = records[0].model
    data = ModelCardData(
        library_name=_LIBRARIES.get(model.kind),
        pipeline_tag="sentence-similarity",
        tags=["sentence-similarity", "sentence-embeddings"],
        model_name=one_line(name),
        eval_results=[result for record in records for result in _results(record)],
    )
    return f"---\n{data.to_yaml()}\n---\n\n{_body(name, records)}"


def _results(record: RunRecord) -> "Iterator[EvalResult]":
    for part in record.tasks:
        signature = Signature.parse(part.signature)
        named = f"{signature.similarity}_{signature.metric}"
        yield from _result(part, "STS", part.split, named, part.score)
    for other in record.transfer:
        yield from _result(other, "Classification", "test", "accuracy", other.acc)
        if other.f1 is not None:
            yield from _result(other, "Classification", "test", "f1", other.f1)
    for trained in record.supervised:
        yield from _result(trained, "Relatedness", "test", "pearson", trained.pearson)
        yield from _result(trained, "Relatedness", "test", "spearman", trained.spearman)


def _result(part: Any, kind: str, split: str, metric: str, score: float | None) -> "Iterator[EvalResult]":
    from huggingface_hub import EvalResult

    if score is not None:
        yield EvalResult(
            task_type=kind,
            dataset_type=part.task.lower(),
            dataset_name=one_line(part.task),
            dataset_split=split,
            dataset_revision=part.data.sha256,
            metric_type=metric,
            metric_value=round(100 * score, 4),
            # Without it nobody can say what the number means.
            metric_args={"signature": part.signature},
        )


def _body(name: str, records: Sequence[RunRecord]) -> str:
    import pandas as pd

    lines = [f"# {_plain(name)}", "", "## Scores", ""]
    shown = ("task", "metric", "score", "low", "high")
    rows = [
        {name: row[name] for name in shown}
        for record in records
        for row in record.table().to_dict("records")
        if not row["subset"]
    ]
    level = records[0].protocol.level
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    lines += [to_markdown(frame), ""]
    if "low" in frame:
        lines += [f"Scores x 100, with their {100 * level:g} % bootstrap intervals.", ""]
    signatures = [line for record in records for line in record.signature.splitlines()]
    lines += ["## How they were measured", "", *fenced(signatures), ""]
    if model := records[0].model.weights_sha256:
        lines += [f"SHA-256 of the weights: `{model}`.", ""]
    if commands := [record.command for record in records if record.command]:
        lines += [*fenced(commands, "sh"), ""]
    lines += [f"Measured with stsbench {_plain(', '.join(dict.fromkeys(record.stsbench for record in records)))}."]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return escape_markdown(one_line(text).strip())
