"""Whether the runs of a method are seeds of one recipe, by what a training left and by how each model was used."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from stsbench.base.errors import UserError
from stsbench.base.parsing import parse_yaml
from stsbench.encoders.use import ABOUT, names
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord

RECIPE = "recipe.yaml"

_OF_A_SEED = {"seed"}
"""Keys of a recipe in which they need not."""


def demand_distinct_weights(runs: Mapping[str, RunRecord]) -> None:
    """Refuse two runs of one method that are of the same weights.

    Raises:
        UserError: naming the two.
    """
    first_of: dict[str, str] = {}
    for name, record in runs.items():
        weights = record.model.weights_sha256
        if weights and (other := first_of.setdefault(weights, name)) != name:
            raise UserError(
                f"{other} and {name} are runs of the same weights, which is one seed: give each checkpoint once."
            )


def demand_one_recipe(runs: Mapping[str, RunRecord]) -> None:
    """Refuse runs of one method that differ in more than the seed.

    The recipe is compared where a training of stsbench left it in the folder of the run or of the checkpoint.

    Raises:
        UserError: naming two runs and what they differ in.
    """
    if len(runs) < 2:
        return
    (first_name, first), *others = runs.items()
    recipe = _recipe_of(first)
    for name, record in others:
        used = _used(record.model)
        for field, here in _used(first.model).items():
            there = used[field]
            if here is not None and there is not None and here != there:
                raise _different(first_name, name, field, here, there)
        other = _recipe_of(record)
        if recipe and other:
            for key, here, there in _differing(recipe, other):
                raise _different(first_name, name, key, here, there)


def _used(model: ModelPart) -> dict[str, object]:
    """Return by name in what of a model the seeds of one recipe agree."""
    use = {name: getattr(model.use, name) for name in names("encoding", "afterwards") if not ABOUT[name].of_place}
    more = {"fitted": model.fitted, "tokenizer_sha256": model.tokenizer_sha256}
    return use | {"normalize": model.normalize} | more


def _different(first: str, second: str, field: str, here: object, there: object) -> UserError:
    return UserError(
        f"{first} and {second} are not seeds of one recipe: {field} is {here} in one and {there} in the other; "
        "compare them as two methods, with --a and --b."
    )


def _recipe_of(record: RunRecord) -> dict[str, Any]:
    """Return the recipe of a run's training; empty if there is none, or it is no recipe."""
    folders = [record.folder, Path(record.model.name).expanduser()]
    for folder in filter(None, folders):
        path = folder / RECIPE
        try:
            recipe = parse_yaml(path.read_text(encoding="utf-8")) if path.is_file() else None
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if isinstance(recipe, dict):
            return recipe
    return {}


def _differing(
    first: Mapping[str, Any], second: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys that differ, with both values, nested ones with dots."""
    for key in {**first, **second}:
        here, there = first.get(key), second.get(key)
        if here == there or (not above and key in _OF_A_SEED):
            continue
        if isinstance(here, dict) and isinstance(there, dict):
            yield from _differing(here, there, f"{above}{key}.")
        else:
            yield f"{above}{key}", here, there
