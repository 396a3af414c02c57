"""JSON and YAML in users' files; mistakes in YAML are reported with file and line."""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from stsbench.base.errors import UserError
from stsbench.base.words import closest

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


def parse_json(text: str | bytes) -> Any:
    """Parses JSON; a ValueError if it is not valid, or an object has a name twice."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in members:
        if name in values:
            raise ValueError(f"the name {name!r} occurs twice")
        values[name] = value
    return values


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads numbers as YAML 1.2 does: `1e-5` is text in YAML 1.1."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Quotes texts that `_Loader` would read as numbers."""


for _kind in (_Loader, _Dumper):
    _number = re.compile(r"[-+]?(\.\d+|\d+\.\d*|\d+(?=[eE]))([eE][-+]?\d+)?$")
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _number, list("-+.0123456789"))


def read_yaml(text: str) -> Any:
    """Parses YAML; a ValueError or YAMLError if it is not valid."""
    return yaml.load(text, _Loader)


def dump_yaml(values: Any) -> str:
    return str(yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


Keys = tuple[str, ...]
"""The path of a key: the keys above it, and the key itself."""


@dataclass
class Draft:
    """The content of a YAML file before validation: plain values, and the file and line of each key."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, str] = field(default_factory=dict)


def read_draft(path: Path, what: str, example: str) -> Draft:
    """Reads a YAML file of keys and values, which should be `what` (such as `a recipe`).

    Raises a UserError if it cannot be read, is not valid YAML, has a key twice, or no keys (see `example`).
    """
    places: dict[Keys, str] = {}
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        values = {} if node is None else _plain(loader, node, path, (), places)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path} ({error}): check the file.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: not valid YAML ({error.problem}); fix the line.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid YAML ({str(error).splitlines()[0]}); fix it.") from error
    if not isinstance(values, dict):
        raise UserError(f"{path} is not {what}: it has no keys; see {example}.")
    return Draft(values, places)


def _plain(loader: yaml.SafeLoader, node: yaml.Node, path: Path, above: Keys, places: dict[Keys, str]) -> Any:
    """Returns a node as plain values, and notes the line of each key."""
    if node.id == "sequence":
        return [_plain(loader, item, path, above, places) for item in node.value]
    if node.id != "mapping":
        return loader.construct_object(node, deep=True)
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, place = str(key_node.value), f"{path}, line {key_node.start_mark.line + 1}"
        if key in values:
            raise UserError(f"{place}: {key!r} occurs twice; remove one.")
        places[(*above, key)] = place
        values[key] = _plain(loader, value_node, path, (*above, key), places)
    return values


def key_paths(values: Any, above: Keys = ()) -> Iterator[Keys]:
    """Yields the path of each key, nested ones included.

    >>> list(key_paths({"a": {"b": 1}}))
    [('a',), ('a', 'b')]
    """
    for key, value in values.items() if isinstance(values, dict) else ():
        yield (*above, str(key))
        yield from key_paths(value, (*above, str(key)))


def first_error(error: "ValidationError") -> str:
    """Returns the first validation error as `place: message`."""
    first = error.errors()[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def first_mistake(error: "ValidationError", draft: Draft, whole: str, known: Collection[str]) -> str:
    """Returns the first validation error as a sentence with the file and line of the value.

    Args:
        error: the exception of the validation.
        draft: the values that were validated.
        whole: the place to name if the mistake has no key.
        known: the known keys, to suggest one for an unknown key.
    """
    first, *others = error.errors()
    paths = set(key_paths(draft.values))
    places = {path: place for path, place in draft.places.items() if path in paths}
    # A location also holds the names of union members: follow only the keys that were written.
    written: Keys = ()
    for part in map(str, first["loc"]):
        if (*written, part) in places:
            written = (*written, part)
    last = str(first["loc"][-1]) if first["loc"] else ""
    place = places[written] if written else _place_in(first["msg"], places) or whole
    name = ".".join(written if written and written[-1] == last else (*written, last)).strip(".")
    match first["type"]:
        case "extra_forbidden":
            similar = closest(last, known)
            advice = f"did you mean {similar[0]!r}?" if similar else "remove it."
            what = f"unknown key {name!r}; " + ("it belongs to another part." if last in known else advice)
        case "missing":
            what = f"{name!r} is missing; add it."
        case _:
            what = f"{name}: {first['msg'].removeprefix('Value error, ')}.".removeprefix(": ")
    return ": ".join(filter(None, [place, what])) + (f" ({len(others)} more mistakes)" if others else "")


def _place_in(message: str, places: dict[Keys, str]) -> str | None:
    """Returns the place of the last key that a message names: with dots anywhere, or without before a colon."""
    names = {*re.findall(r"\w+(?:\.\w+)+", message), *re.findall(r"^(?:Value error, )?(\w+):", message)}
    named = [place for path, place in places.items() if ".".join(path) in names]
    return named[-1] if named else None


def known_keys(model: "type[BaseModel]") -> list[str]:
    """Returns every key of a model and of the models inside it."""
    schema = model.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return sorted({key for part in parts for key in part.get("properties", ())})
