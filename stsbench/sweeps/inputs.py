"""What a job reads, by its content: jobs are told apart by weights and texts themselves, not by their names."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench.base.files import files_below, sha256_of
from stsbench.base.manifest import fingerprint
from stsbench.data.corpus import SAMPLE, corpus_file
from stsbench.data.rows import ending_of
from stsbench.encoders.checkpoint import ADAPTER_CONFIG, PACKAGED, packaged_model
from stsbench.encoders.choices import resolve
from stsbench.encoders.load import load_with
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.use import Use
from stsbench.training.recipe import Recipe

_NO_CONTENT = ("revision", "device")
"""Of how a model is used: where the files are from, and where they are computed."""


def checkpoint_inputs(name: str, use: Use, *, fetch: bool) -> dict[str, Any]:
    """Return what measuring an untrained checkpoint reads: None if it is not here and not to be fetched."""
    return {"checkpoint": _content(name, use, fetch=fetch)}


def training_inputs(recipe: Recipe, *, fetch: bool) -> dict[str, Any]:
    """Return what a training reads: its base, its corpus, the tables of its tasks and the files of its views.

    Nothing is known of a base that is not here and not fetched.
    """
    corpus = None if recipe.corpus.path is None else corpus_file(recipe.corpus.path)
    views: list[str] = []

    def noted(name: str) -> str:
        views.append(name)
        return name

    recipe.views.with_paths(noted)
    folder = Path(recipe.labelled.folder or ".").expanduser()
    tables = [name for part in recipe.tasks.values() for name in (part.train, part.dev) if name is not None]
    return {
        "base": _content(recipe.base, Use(pooling=recipe.pooling, template=NO_TEMPLATE), fetch=fetch),
        # The same bytes are other sentences where they are read as a table.
        "corpus": None if corpus is None else [sha256_of(corpus), ending_of(corpus)],
        "tables": [_sha256(folder / Path(name).expanduser()) for name in tables],
        "views": [_sha256(Path(name).expanduser()) for name in views],
    }


def with_paths(recipe: Recipe, path: Callable[[str], str]) -> Recipe:
    """Return a recipe with each name of a file changed to its path."""
    named, folder = recipe.corpus.path, recipe.labelled.folder
    corpus = recipe.corpus.model_copy(update={"path": named if named in {None, SAMPLE} else path(str(named))})
    tasks = recipe.tasks
    if folder is None:
        tasks = {
            name: part.model_copy(update={"train": path(part.train), "dev": part.dev and path(part.dev)})
            for name, part in tasks.items()
        }
    return recipe.model_copy(
        update={
            "base": recipe.base if recipe.base == PACKAGED else path(recipe.base),
            "corpus": corpus,
            "views": recipe.views.with_paths(path),
            "labelled": recipe.labelled.model_copy(update={"folder": folder and path(folder)}),
            "tasks": tasks,
        }
    )


def _content(name: str, use: Use, *, fetch: bool) -> dict[str, Any] | None:
    """Return all that a checkpoint's vectors depend on; None if it is not here and not to be fetched."""
    if not fetch and not _is_here(name, use):
        return None
    identity = load_with(name, replace(use, device="cpu")).identity
    content = identity.as_dict() | {
        "use": {k: v for k, v in identity.use.as_dict().items() if k not in _NO_CONTENT}
    }
    if identity.weights_sha256:  # What has none, as a function, is known by its name alone.
        del content["name"]
    plain: dict[str, Any] = json.loads(json.dumps(content))
    return plain


def _is_here(name: str, use: Use) -> bool:
    """Return whether a checkpoint can be loaded without fetching anything."""
    if ":" in name or Path(name).expanduser().exists():
        return True
    address = resolve(name, use).name
    if address == PACKAGED:
        return packaged_model() is not None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    files = ("config.json", "modules.json", ADAPTER_CONFIG)
    try:
        return any(isinstance(try_to_load_from_cache(address, file, revision=use.revision), str) for file in files)
    except HFValidationError:
        return False


def _sha256(path: Path) -> str | None:
    """Return the hash of a file, or of all files of a folder; None where there is neither."""
    if path.is_dir():
        return fingerprint([[file.relative_to(path).as_posix(), sha256_of(file)] for file in files_below(path)])
    return sha256_of(path) if path.is_file() else None
