"""The model card of a trained checkpoint, with the metadata that the Hugging Face Hub reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import as_yaml


@dataclass(frozen=True)
class CardScore:
    """A score for the card: the task's name, Spearman between -1 and 1, and its signature."""

    task: str
    split: str
    score: float
    signature: str


def model_card(
    recipe: Recipe, name: str, scores: Sequence[CardScore], *, step: int, steps: int, rows: int, version: str
) -> str:
    """Return the card as Markdown with YAML metadata.

    Args:
        recipe: that it was trained by.
        name: of the model.
        scores: of the checkpoint.
        step: that was selected, of `steps`.
        steps: in all.
        rows: of the corpus.
        version: of stsbench.
    """
    metadata: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "base_model": recipe.base,
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "stsbench"],
        "model-index": [{"name": name, "results": [_result(score) for score in scores]}],
    }
    behind = "behind the head" if recipe.head.evaluate else "before the head"
    head = "" if recipe.head.kind == "none" else f" ({recipe.head.kind}, in training; vectors are {behind})"
    lines = [
        "---",
        yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True).strip(),
        "---",
        f"# {name}",
        "",
        f"A sentence encoder: `{recipe.base}` trained with stsbench {version} by the recipe `{recipe.name}` on "
        f"{rows:,} rows of text. The checkpoint is that of step {step} of {steps}, the best on "
        f"{recipe.selection.task}.",
        "",
        "| task | split | Spearman x 100 | signature |",
        "| --- | --- | --- | --- |",
        *(f"| {s.task} | {s.split} | {100 * s.score:.2f} | `{_cell(s.signature)}` |" for s in scores),
        "",
        "The checkpoint was selected by this score, which therefore does not measure it on other data.",
        "",
        f"Pooling: `{recipe.pooling}`{head}. Read it with `SentenceTransformer(folder)`, `AutoModel`, or "
        "`stsbench run --model folder`.",
        "",
        "## Recipe",
        "",
        "```yaml",
        as_yaml(recipe).strip(),
        "```",
        "",
    ]
    return "\n".join(lines)


def _result(score: CardScore) -> dict[str, Any]:
    return {
        "task": {"type": "semantic-similarity", "name": "Semantic Similarity"},
        "dataset": {"type": score.task, "name": f"{score.task} ({score.split})", "split": score.split},
        "metrics": [{"type": "spearman_cosine", "name": "Spearman Cosine", "value": round(score.score, 6)}],
    }


def _cell(signature: str) -> str:
    # A bar would end the table's cell, inside code too.
    return signature.replace("|", "\\|")
