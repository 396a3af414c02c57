"""What people's files say, read within bounds: JSON and YAML that cannot fill the memory or exhaust the stack.

All reading of JSON and YAML that somebody may have written goes through here. What is refused is a ValueError
whose text says why; where it stood, only the caller knows. A mistake in a `Draft`, YAML that a person wrote, is
told with its file and line.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from stsbench.base.errors import UserError
from stsbench.base.words import closest

if TYPE_CHECKING:
    import yaml
    from pydantic import BaseModel, ValidationError

DEEPEST = 100
"""Levels that lists and objects may stand inside one another; a record has ten."""

MOST_DIGITS = 400
"""Of a number. A float64 has 309 before its point at most."""

MOST_NODES = 100_000
"""Values of a YAML file, each counted as often as aliases repeat it."""

_BIGGEST = 2**31
"""Characters of a file; more would not fit into memory as Python keeps them."""


def parse_json(text: str | bytes, *, once: bool = False, nan: bool = True) -> Any:
    """Return what JSON says, as `json.loads` does.

    Args:
        text: UTF-8 if it is bytes; a byte-order mark is left out.
        once: whether to refuse a name that an object has twice; else the last one counts.
        nan: whether to take `NaN` and `Infinity`, which are no JSON, but which many programs write.

    Raises:
        ValueError: if it is no JSON; or is nested too deep, has a number too long or too large for a float64, or
            bytes that are no UTF-8.

    >>> parse_json('{"score": 0.5}')
    {'score': 0.5}
    >>> parse_json("1e999")
    Traceback (most recent call last):
    ValueError: the number 1e999 is too large
    """
    if len(text) > _BIGGEST:
        raise ValueError(f"{len(text):,} characters are too many")
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    try:
        value = _DECODERS[once, nan].decode(text.removeprefix("\ufeff"))
    except RecursionError:
        _too_deep()
    # Most texts have too few brackets to be nested deep, and need not be looked through.
    if text.count("[") + text.count("{") > DEEPEST:
        _require_shallow(value)
    return value


def parse_yaml(text: str) -> Any:
    """Return what YAML says as plain values, as `yaml.safe_load` does; None for an empty text.

    What is no YAML is a `yaml.YAMLError`.

    >>> parse_yaml("rate: 1.0e-5")
    {'rate': 1e-05}
    """
    loader, node = _compose(text)
    return None if node is None else _value_of(loader, node)


def _compose(text: str) -> "tuple[yaml.SafeLoader, yaml.Node | None]":
    """Return the tree of a YAML text with the loader that makes values of its nodes; None for an empty text."""
    import yaml

    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
    except RecursionError:
        _too_deep()
    if node is not None:
        _require_small(node)
    return loader, node


def _value_of(loader: "yaml.SafeLoader", node: "yaml.Node") -> Any:
    """Return the value of a node of `_compose`'s tree."""
    value = loader.construct_object(node, deep=True)
    _require_finite(value)
    return value


def _integer(text: str) -> int:
    return int(_short(text))


def _short(text: str) -> str:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has {len(text):,} digits")
    return text


def _decimal(text: str) -> float:
    number = float(_short(text))
    if isinf(number):
        raise ValueError(f"the number {text} is too large")
    return number


def _once_each(members: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(members)
    if len(values) < len(members):
        names = [name for name, _ in members]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return values


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


# Making one takes longer than reading a line with it.
_DECODERS = {
    (once, nan): json.JSONDecoder(
        parse_int=_integer,
        parse_float=_decimal,
        parse_constant=None if nan else _no_number,
        object_pairs_hook=_once_each if once else None,
    )
    for once in (False, True)
    for nan in (False, True)
}


def _require_shallow(value: Any) -> None:
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST):
        parts = (part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer))
        level = [part for part in parts if isinstance(part, list | dict)]
        if not level:
            return
    _too_deep()


def _require_small(root: "yaml.Node") -> None:
    """Walk a tree as its values will be made, each alias as often as it stands there."""
    waiting = [(root, 1)]
    nodes = 0
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if depth > DEEPEST:
            _too_deep(" (or an alias is part of itself)")
        if nodes > MOST_NODES:
            raise ValueError(f"it has more than {MOST_NODES:,} values, with what aliases repeat")
        for inner in node.value if isinstance(node.value, list) else ():
            # A mapping holds pairs of nodes, a sequence nodes.
            waiting += [(part, depth + 1) for part in (inner if isinstance(inner, tuple) else (inner,))]


def _require_finite(value: Any) -> None:
    if isinstance(value, float) and isinf(value):
        raise ValueError("a number is infinite or too large")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _require_finite(inner)


def _too_deep(more: str = "") -> NoReturn:
    raise ValueError(f"it is nested more than {DEEPEST} levels deep{more}")


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
        what: the file should be, with its article: `a recipe`.
        example: where the person sees one.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        loader, node = _compose(text)
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
        return _value_of(loader, node)
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

    Where no key is to blame, that is `whole`; `known` are the keys that may be meant by one that is unknown.
    """
    first, *others = error.errors()
    paths = set(key_paths(draft.values))
    places = {path: place for path, place in draft.places.items() if path in paths}
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
