"""YAML that a person wrote, with the place of each key: a mistake is told with its file and line."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.parsing import compose_yaml, yaml_value
from stsbench.base.words import closest

if TYPE_CHECKING:
    import yaml
    from pydantic import BaseModel, ValidationError

Keys = tuple[str, ...]
"""The path of a key: the keys above it, and itself."""


@dataclass
class Draft:
    """What a file holds before it is validated: plain values, and where each key was written."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, str] = field(default_factory=dict)


def read_draft(path: Path, what: str, example: str) -> Draft:
    """Read a YAML file of keys and values.

    Args:
        path: of the file.
        what: it should be, with its article: `a recipe`.
        example: where the person sees one.

    Raises:
        UserError: if it cannot be read, is no YAML, or holds no keys or a key twice; naming the line.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        loader, node = compose_yaml(text)
        places: dict[Keys, str] = {}
        values = {} if node is None else _plain(loader, node, path, (), places)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path} ({error}): check the file.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: not valid YAML ({error.problem}); mend the line.") from error
    except ValueError as error:
        raise UserError(f"{path} is no {what.partition(' ')[2]} ({error}): mend it.") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise UserError(f"{path} is not valid YAML ({str(error).splitlines()[0]}); mend it.") from error
    if not isinstance(values, dict):
        raise UserError(f"{path} is not {what}: it holds no keys; see {example}.")
    return Draft(values, places)


def _plain(loader: "yaml.SafeLoader", node: "yaml.Node", path: Path, keys: Keys, places: dict[Keys, str]) -> Any:
    """Return what a node holds as plain values, noting the line of each key."""
    if node.id == "sequence":
        return [_plain(loader, item, path, keys, places) for item in node.value]
    if node.id != "mapping":
        return yaml_value(loader, node)
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, line = str(key_node.value), key_node.start_mark.line + 1
        if key in values:
            raise UserError(f"{path}, line {line}: {key!r} stands there twice; remove one.")
        places[(*keys, key)] = f"{path}, line {line}"
        values[key] = _plain(loader, value_node, path, (*keys, key), places)
    return values


def key_paths(values: Any, above: Keys = ()) -> Iterator[Keys]:
    """Yield the path of each key, those of nested mappings too.

    >>> list(key_paths({"a": {"b": 1}}))
    [('a',), ('a', 'b')]
    """
    for key, value in values.items() if isinstance(values, dict) else ():
        path = (*above, str(key))
        yield path
        yield from key_paths(value, path)


def first_mistake(error: "ValidationError", draft: Draft, whole: str, known: Iterable[str]) -> str:
    """Return the first mistake that validation found as a sentence, blaming the place that wrote the value.

    Args:
        error: of validating the draft's values.
        draft: what was validated.
        whole: what to blame where no key is to blame.
        known: the keys that there are, for one that is unknown.
    """
    first, *others = error.errors()
    there = set(key_paths(draft.values))
    places = {path: place for path, place in draft.places.items() if path in there}
    # Beside keys, a location holds the names of union members: only what was written is followed.
    written: Keys = ()
    for part in map(str, first["loc"]):
        if (*written, part) in places:
            written = (*written, part)
    last = str(first["loc"][-1]) if first["loc"] else ""
    place = places[written] if written else _blamed(first["msg"], places) or whole
    name = ".".join(written if written and written[-1] == last else (*written, last)).strip(".")
    match first["type"]:
        case "extra_forbidden":
            close = closest(last, known)
            what = f"unknown key {name!r}" + (f"; did you mean {close[0]!r}?" if close else "; remove it.")
        case "missing":
            what = f"{name!r} is missing; add it."
        case _:
            what = f"{name}: {first['msg'].removeprefix('Value error, ')}.".removeprefix(": ")
    return f"{place}: {what}" + (f" ({len(others)} more mistakes)" if others else "")


def _blamed(message: str, places: dict[Keys, str]) -> str | None:
    """Return where the last of the keys was written that a message says do not fit together."""
    # A key with dots anywhere, or one without before a colon.
    names = {*re.findall(r"\w+(?:\.\w+)+", message), *re.findall(r"^(?:Value error, )?(\w+):", message)}
    named = [place for path, place in places.items() if ".".join(path) in names]
    return named[-1] if named else None


def known_keys(model: "type[BaseModel]") -> list[str]:
    """Return every key that a model and the models inside it have."""
    schema = model.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return sorted({key for part in parts for key in part.get("properties", ())})
