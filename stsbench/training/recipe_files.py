"""Recipes as YAML files: found by name, extended, overridden; a mistake is told with its file and line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.parsing import DEEPEST, compose_yaml, parse_yaml, yaml_value
from stsbench.base.words import closest, suggestion
from stsbench.training.recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd

_Keys = tuple[str, ...]


@dataclass
class _Draft:
    """A recipe before it is validated: plain values, and where each was written."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[_Keys, str] = field(default_factory=dict)

    def change(self, values: dict[str, Any], places: dict[_Keys, str]) -> None:
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
        raise UserError(_sentence(error, draft, str(recipe))) from error


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
    try:
        text = path.read_text(encoding="utf-8")
        loader, node = compose_yaml(text)
        places: dict[_Keys, str] = {}
        values = {} if node is None else _plain(loader, node, path, (), places)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path} ({error}): check the file.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: not valid YAML ({error.problem}); mend the line.") from error
    except ValueError as error:
        raise UserError(f"{path} is no recipe ({error}): mend it.") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise UserError(f"{path} is not valid YAML ({str(error).splitlines()[0]}); mend it.") from error
    if not isinstance(values, dict):
        raise UserError(f"{path} is not a recipe: it holds no keys; see `stsbench train demo --print`.")
    parent = values.pop("extends", None)
    if parent is None:
        return _Draft(values, places)
    draft = _read(_find(str(parent), path.parent), (*above, path))
    draft.change(values, places)
    return draft


def _plain(loader: yaml.SafeLoader, node: yaml.Node, path: Path, keys: _Keys, places: dict[_Keys, str]) -> Any:
    """Return what a node holds as plain values, noting the line of each key."""
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, item, path, keys, places) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return yaml_value(loader, node)
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, line = str(key_node.value), key_node.start_mark.line + 1
        if key in values:
            raise UserError(f"{path}, line {line}: {key!r} stands there twice; remove one.")
        places[(*keys, key)] = f"{path}, line {line}"
        values[key] = _plain(loader, value_node, path, (*keys, key), places)
    return values


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
    draft.change(value, dict.fromkeys(_paths(value), f"--set {override}"))


def _paths(values: Any, above: _Keys = ()) -> Iterator[_Keys]:
    """Yield the path of each key, those of nested mappings too."""
    for key, value in values.items() if isinstance(values, dict) else ():
        path = (*above, str(key))
        yield path
        yield from _paths(value, path)


def _sentence(error: ValidationError, draft: _Draft, recipe: str) -> str:
    """Return the first mistake as a sentence, blaming the line or the option that wrote the value."""
    first, *others = error.errors()
    there = set(_paths(draft.values))
    places = {path: place for path, place in draft.places.items() if path in there}
    # Beside keys, a location holds the names of union members: only what was written is followed.
    written: _Keys = ()
    for part in map(str, first["loc"]):
        if (*written, part) in places:
            written = (*written, part)
    last = str(first["loc"][-1]) if first["loc"] else ""
    place = places[written] if written else _blamed(first["msg"], places) or f"recipe {recipe}"
    name = ".".join(written if written and written[-1] == last else (*written, last)).strip(".")
    match first["type"]:
        case "extra_forbidden":
            close = closest(last, _known_keys())
            what = f"unknown key {name!r}" + (f"; did you mean {close[0]!r}?" if close else "; remove it.")
        case "missing":
            what = f"{name!r} is missing; add it."
        case _:
            what = f"{name}: {first['msg'].removeprefix('Value error, ')}.".removeprefix(": ")
    return f"{place}: {what}" + (f" ({len(others)} more mistakes)" if others else "")


def _blamed(message: str, places: dict[_Keys, str]) -> str | None:
    """Return where the last of the keys was written that a message says do not fit together."""
    names = set(re.findall(r"\w+(?:\.\w+)+", message))
    named = [place for path, place in places.items() if ".".join(path) in names]
    return named[-1] if named else None


def _known_keys() -> list[str]:
    schema = Recipe.model_json_schema()
    return sorted({key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", ())})
