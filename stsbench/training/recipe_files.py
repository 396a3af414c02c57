"""Recipes as YAML files: found by name, extended, overridden; a mistake is told with its file and line."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.parsing import DEEPEST, parse_yaml
from stsbench.base.words import suggestion
from stsbench.base.yaml_files import Draft, Keys, first_mistake, key_paths, known_keys, read_draft
from stsbench.training.recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class _Draft(Draft):
    """A recipe before it is validated."""

    def change(self, values: dict[str, Any], places: dict[Keys, str]) -> None:
        """Change some values; what was written last stands last among the places."""
        self.values = _merge(self.values, values)
        self.places = {path: place for path, place in self.places.items() if path not in places} | places


def recipe_names() -> tuple[str, ...]:
    """Return the recipes that come with stsbench.

    >>> "esimcse-bert-base" in recipe_names()
    True
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def recipe_list() -> "pd.DataFrame":
    """Return the recipes that come with stsbench, a row for each: `recipe`, `what`."""
    import pandas as pd

    summaries = [{"recipe": name, "what": _summary(_find(name))} for name in recipe_names()]
    return pd.DataFrame(summaries)


def read_recipe(recipe: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and validate it.

    A file may start from another (`extends: NAME`, a known recipe or a file beside it) and change some keys: a
    mapping changes key by key, unless it names another `kind`; anything else is replaced.

    Args:
        recipe: the name of a known recipe, or a YAML file.
        overrides: changes as `key=value`, such as `optimiser.learning_rate=1e-5` or `negatives.queue=null`.

    Raises:
        UserError: naming the file, the line and the key of the first mistake.

    >>> read_recipe("simcse-bert-base", ["optimiser.batch=32"]).optimiser.batch
    32
    """
    draft = _read(_find(str(recipe)), ())
    for override in overrides:
        _set(draft, override)
    try:
        return Recipe.model_validate(draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, f"recipe {recipe}", known_keys(Recipe))) from error


def as_yaml(recipe: Recipe) -> str:
    """Return a recipe in full, every default written out; it can be read again."""
    return str(yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def _summary(file: Path) -> str:
    """Return the first line of a recipe's file, which says what it is."""
    return file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()


def _folder() -> Path:
    return Path(str(files("stsbench.training") / "recipes"))


def _find(name: str, beside: Path | None = None) -> Path:
    known = _folder() / f"{name}.yaml"
    if name in recipe_names():
        return known
    path = Path(name).expanduser() if beside is None else beside / name
    if path.suffix in {".yaml", ".yml"} and path.is_file():
        return path
    if path.suffix in {".yaml", ".yml"}:
        raise UserError(f"there is no recipe file {path}: check the path.")
    every = f"choose one of {', '.join(recipe_names())}, or a .yaml file."
    raise UserError(f"unknown recipe {name!r}: {suggestion(name, recipe_names(), otherwise=every)}")


def _read(path: Path, above: tuple[Path, ...]) -> _Draft:
    if path in above:
        raise UserError(f"{path} extends itself, through {above[-1]}: remove one `extends`.")
    written = read_draft(path, "a recipe", "`stsbench train demo --print`")
    values, places = written.values, written.places
    parent = values.pop("extends", None)
    if parent is None:
        return _Draft(values, places)
    draft = _read(_find(str(parent), path.parent), (*above, path))
    draft.change(values, places)
    return draft


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    if "kind" in new and new["kind"] != old.get("kind"):
        return new
    return old | {key: _merge(old.get(key), value) for key, value in new.items()}


def _set(draft: _Draft, override: str) -> None:
    name, equals, text = override.partition("=")
    keys = tuple(name.strip().split("."))
    if not equals or not all(keys) or len(keys) > DEEPEST:
        raise UserError(f"--set {override}: write key=value, such as optimiser.learning_rate=1e-5.")
    try:
        value = parse_yaml(text)
    except ValueError as error:
        raise UserError(f"--set {override}: {error}; choose another value.") from error
    except yaml.YAMLError as error:
        raise UserError(f"--set {override}: the value is not valid YAML; put it in quotes.") from error
    for key in reversed(keys):
        value = {key: value}
    draft.change(value, dict.fromkeys(key_paths(value), f"--set {override}"))
