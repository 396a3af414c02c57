"""Recipes as YAML files: found by name, extended, changed; mistakes are reported with file and line.

Under `variants` a file may have variants of its recipe, such as the rows of a paper's table:
`simcse-ablations:crop-10` is the variant `crop-10` of that file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.parsing import (
    Draft,
    Keys,
    first_mistake,
    key_paths,
    known_keys,
    read_draft,
)
from stsbench.base.words import suggestion
from stsbench.training.recipe import Recipe


@dataclass
class _Draft(Draft):
    """A recipe before it is validated."""

    def change(self, values: dict[str, Any], places: dict[Keys, str]) -> None:
        """Change some values; the latest places come last."""
        self.values = _merge(self.values, values)
        self.places = {path: place for path, place in self.places.items() if path not in places} | places


class _Place(NamedTuple):
    """The place of a recipe: its file, and the name of a variant; None for the recipe itself."""

    file: Path
    variant: str | None = None


@cache
def recipe_names() -> tuple[str, ...]:
    """Return the recipes that come with stsbench, each followed by its variants.

    >>> {"esimcse-bert-base", "simcse-ablations:crop-10"} <= set(recipe_names())
    True
    """
    names = []
    for file in sorted(_folder().glob("*.yaml"), key=lambda path: path.stem):
        names += [file.stem, *(f"{file.stem}:{variant}" for variant in _variants(_written(file)))]
    return tuple(names)


def recipe_list() -> pd.DataFrame:
    """Return the recipes that come with stsbench, a row for each: `recipe`, `what`."""
    summaries = [{"recipe": name, "what": _summary(_find(name))} for name in recipe_names()]
    return pd.DataFrame(summaries)


def read_recipe(
    recipe: str | Path, overrides: Sequence[str] = (), changes: Mapping[str, Any] | None = None
) -> Recipe:
    """Read a recipe and validate it.

    A file may extend another (`extends: NAME`, a known recipe or a file in the same folder): a mapping changes key
    by key, unless it names another `kind`; any other value is replaced. The variant `NAME:VARIANT` is called
    `NAME-VARIANT`.

    Args:
        recipe: the name of a known recipe, or a YAML file; `:VARIANT` after it names a variant.
        overrides: changes as `key=value`, such as `optimiser.learning_rate=1e-5` or `negatives.queue=null`.
        changes: further changes as values by their key, such as `{"corpus.path": "wiki.txt"}`.

    Raises:
        UserError: naming the file, the line and the key of the first mistake.

    >>> read_recipe("simcse-bert-base", ["optimiser.batch=32"]).optimiser.batch
    32
    """
    draft = _read(_find(str(recipe)), ())
    for override in overrides:
        _set(draft, *read_change(override), f"--set {override}")
    for key, value in (changes or {}).items():
        _set(draft, key, value, f"--set {key}={value}")
    try:
        return Recipe.model_validate(draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, f"recipe {recipe}", known_keys(Recipe))) from error


def as_yaml(recipe: Recipe) -> str:
    """Return a recipe as YAML, with every default."""
    return str(yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def _summary(place: _Place) -> str:
    text = place.file.read_text(encoding="utf-8")
    if place.variant is None:
        return text.partition("\n")[0].removeprefix("#").strip()
    comment = re.search(rf"^ +{re.escape(place.variant)}:.*?#(.*)$", text, re.MULTILINE)
    return comment[1].strip() if comment else ""


def _folder() -> Path:
    return Path(str(files("stsbench.training") / "recipes"))


def _find(name: str, beside: Path | None = None) -> _Place:
    if name in recipe_names():
        stem, colon, variant = name.partition(":")
        return _Place(_folder() / f"{stem}.yaml", variant if colon else None)
    start, colon, variant = name.rpartition(":")
    if not (colon and Path(start).suffix in {".yaml", ".yml"}):
        start, variant = name, ""
    path = Path(start).expanduser() if beside is None else beside / start
    if path.suffix in {".yaml", ".yml"} and path.is_file():
        return _Place(path, variant or None)
    if path.suffix in {".yaml", ".yml"}:
        raise UserError(f"there is no recipe file {path}: check the path.")
    stem, colon, _ = name.partition(":")
    variants = [known for known in recipe_names() if colon and known.startswith(f"{stem}:")]
    choices = variants or [known for known in recipe_names() if ":" not in known]
    every = f"choose one of {', '.join(choices)}, or a .yaml file."
    raise UserError(f"unknown recipe {name!r}: {suggestion(name, recipe_names(), otherwise=every)}")


def _read(place: _Place, above: tuple[_Place, ...]) -> _Draft:
    path = place.file
    if place in above:
        raise UserError(f"{path} extends itself, through {above[-1].file}: remove one `extends`.")
    written = _written(path)
    values, places = written.values, written.places
    variants = _variants(written)
    values.pop("variants", None)
    parent = values.pop("extends", None)
    draft = _Draft() if parent is None else _read(_find(str(parent), path.parent), (*above, place))
    draft.change(values, {keys: at for keys, at in places.items() if keys[0] != "variants"})
    if place.variant is not None:
        _vary(draft, place.variant, variants, places, path)
    return draft


def _written(path: Path) -> Draft:
    return read_draft(path, "a recipe", "`stsbench train demo --print`")


def _variants(written: Draft) -> dict[str, dict[str, Any]]:
    variants = written.values.get("variants") or {}
    if not isinstance(variants, dict):
        raise UserError(f"{written.places['variants',]}: variants: write a mapping from names to changes.")
    for name, changes in variants.items():
        line = written.places["variants", name]
        if not isinstance(changes, dict) or not re.fullmatch(r"[\w.-]+", name):
            raise UserError(f"{line}: variants.{name}: write a name without spaces, and a mapping of changes.")
        if unfit := {"extends", "variants", "name"} & changes.keys():
            raise UserError(
                f"{line}: variants.{name}: {sorted(unfit)[0]!r} does not go into a variant; remove it."
            )
    return variants


def _vary(draft: _Draft, name: str, variants: dict[str, Any], places: dict[Keys, str], path: Path) -> None:
    if name not in variants:
        every = f"it has {', '.join(variants)}." if variants else "it has none."
        raise UserError(f"{path} has no variant {name!r}: {suggestion(name, tuple(variants), otherwise=every)}")
    above = ("variants", name)
    written = {keys[2:]: at for keys, at in places.items() if keys[:2] == above and len(keys) > 2}
    called = {"name": f"{draft.values['name']}-{name}"} if "name" in draft.values else {}
    draft.change(variants[name] | called, written)


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    if "kind" in new and new["kind"] != old.get("kind"):
        return new
    return old | {key: _merge(old.get(key), value) for key, value in new.items()}


def read_change(override: str) -> tuple[str, Any]:
    """Return the key and the value of a change, `optimiser.learning_rate=1e-5`."""
    name, equals, text = override.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise UserError(f"--set {override}: write key=value, such as optimiser.learning_rate=1e-5.")
    try:
        return name.strip(), yaml.safe_load(text)
    except ValueError as error:
        raise UserError(f"--set {override}: {error}; choose another value.") from error
    except yaml.YAMLError as error:
        raise UserError(f"--set {override}: the value is not valid YAML; put it in quotes.") from error


def _set(draft: _Draft, name: str, value: Any, place: str) -> None:
    for key in reversed(name.split(".")):
        value = {key: value}
    draft.change(value, dict.fromkeys(key_paths(value), place))
