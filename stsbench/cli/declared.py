"""What is declared of an option: a parameter of a verb, with its line under `Args`, or one of a command's own.

A verb's file is read as tools that write documentation read it: to import it takes NumPy and half a second, of
which a page of help has no use.
"""

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from stsbench.base import options as vocabulary
from stsbench.base.errors import UserError
from stsbench.base.options import Commas, Help, Named, Spelled, Within


@dataclass(frozen=True)
class DeclaredOption:
    """A parameter as an option.

    Attributes:
        name: the parameter's name.
        kind: what is typed: a type that the parser understands.
        default: the parameter's default, `inspect.Parameter.empty` for none.
        line: its line under `Args`; of a command's own option none.
        is_argument: whether it is typed without a name.
        metadata: what the parameter's annotation says beside its type.
    """

    name: str
    kind: Any
    default: Any
    line: str
    is_argument: bool
    metadata: tuple[Any, ...]

    def about(self, kind: type) -> Any:
        """Return what the annotation says of a kind, the last word of several; None if nothing."""
        return next((each for each in reversed(self.metadata) if isinstance(each, kind)), None)

    @property
    def names(self) -> list[str]:
        """How it is typed, the longest first; of an argument nothing."""
        spelled = self.about(Spelled)
        if self.is_argument or (spelled is not None and spelled.names):
            return spelled.names if spelled is not None else []
        name = f"--{self.name.strip('_').replace('_', '-')}"
        is_switch = self.kind is bool and self.default is not False
        return [f"{name}/--no-{name[2:]}" if is_switch else name]

    @property
    def is_negated(self) -> bool:
        """Whether the option, a flag, takes away what is the default."""
        return self.kind is bool and self.default is True and "/" not in self.names[0]

    def value(self, typed: Any) -> Any:
        """Return what was typed as the verb takes it."""
        if self.is_negated:
            return not typed
        if self.about(_NumberOrName) and not self.about(Named):
            with suppress(ValueError):
                return float(typed)
        commas = self.about(Commas)
        if typed is None or commas is None:
            return typed
        (kind,) = get_args(self.kind)
        within = self.about(Within) or Within()
        values = []
        for part in [part.strip() for part in typed.split(",") if part.strip()] or [""]:
            value = part
            with suppress(ValueError):
                value = kind(part)
            if not isinstance(value, kind):
                raise UserError(f"{self.names[0]} {typed}: {commas.advice.format(part)}.")
            if kind is not str and not within.low <= value <= within.high:
                raise UserError(f"{self.names[0]} {part}: give a number from {within.low:,} to {within.high:,}.")
            values.append(value)
        return values


def own_option(name: str, hint: Any, default: Any) -> DeclaredOption | None:
    """Return a parameter of a command, or a field of a group; None if its annotation has no `Help`."""
    option = _option(name, hint, default)
    return None if option.about(Help) is None else option


def _option(name: str, hint: Any, default: Any, line: str = "", *, is_first: bool = False) -> DeclaredOption:
    metadata = (*vocabulary.EVERYWHERE.get(name, ()), *_metadata(hint))
    spelled = next((each for each in reversed(metadata) if isinstance(each, Spelled)), None)
    is_argument = is_first if spelled is None else not spelled.names
    return DeclaredOption(name, _kind(hint), default, line, is_argument, metadata)


@cache
def options_of(place: str) -> tuple[DeclaredOption, ...]:
    """Return the parameters of a verb that can be typed.

    Args:
        place: where the verb is, `module:function`.

    Raises:
        KeyError: if an option has no line under `Args`.
        ValueError: if a default is no constant.
    """
    module, _, name = place.partition(":")
    (verb,) = (node for node in _read(module) if isinstance(node, ast.FunctionDef) and node.name == name)
    lines = _lines(ast.get_docstring(verb) or "")
    options = []
    for number, (parameter, default) in enumerate(_parameters(verb.args)):
        hint = _evaluated(parameter.annotation, module)
        if _kind(hint) is not None:
            value = inspect.Parameter.empty if default is None else _default(default, module)
            options.append(_option(parameter.arg, hint, value, lines[parameter.arg], is_first=number == 0))
    return tuple(options)


@cache
def _source(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None, f"there is no module {module}"
    assert spec.origin is not None, f"{module} has no file"
    return Path(spec.origin).read_text(encoding="utf-8")


@cache
def _read(module: str) -> Sequence[ast.stmt]:
    """Return the statements of a module's file, those for type checkers among them."""
    statements: list[ast.stmt] = []
    for statement in ast.parse(_source(module)).body:
        statements += statement.body if isinstance(statement, ast.If) else [statement]
    return statements


def _constant(name: str, module: str) -> tuple[ast.expr, str] | None:
    """Return what a name stands for in a module of ours, and where that is said; None if it is no constant."""
    # Most names are classes, and to parse a file for each would take as long as to import it.
    if re.search(rf"^class {name}\b", _source(module), re.MULTILINE):
        return None
    for statement in _read(module):
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if statement.value and any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return statement.value, module
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("stsbench."):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return _constant(alias.name, str(statement.module))
    return None


def _default(default: ast.expr, module: str) -> Any:
    if isinstance(default, ast.Name):
        named = _constant(default.id, module)
        if named is not None:
            return _default(*named)
    return ast.literal_eval(default)


def _parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield the parameters of a function, each with its default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    without = [None] * (len(positional) - len(arguments.defaults))
    yield from zip(positional, [*without, *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


class _Else:
    """What stands in an annotation that nobody can type: a record, an encoder, a function."""

    def __class_getitem__(cls, _item: object) -> type["_Else"]:
        return cls


_TYPED = {kind.__name__: kind for kind in (bool, int, float, str, list, Path)}
_KNOWN = _TYPED | {"Annotated": Annotated, "Literal": Literal, "Sequence": Sequence} | vars(vocabulary)


class _Names(dict[str, Any]):
    """The names that an annotation may have; what says nothing of how an option is typed is `_Else`."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, name: str) -> Any:
        if name in _KNOWN:
            return _KNOWN[name]
        constant = _constant(name, self.module)
        return _Else if constant is None else _evaluated(*constant)


def _evaluated(annotation: ast.expr | None, module: str) -> Any:
    """Return an annotation of our own source as a type."""
    if annotation is None:
        return _Else
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return eval(str(text), {"__builtins__": {}}, _Names(module))


class _NumberOrName:
    """What is typed is a number, or else a name."""


def _metadata(hint: Any) -> Iterator[Any]:
    """Yield what an annotation says beside types: of its parts first, of the whole last."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        yield from _metadata(inner)
        yield from metadata
    elif get_origin(hint) in {Union, UnionType}:
        if {float, str} <= set(get_args(hint)):
            yield _NumberOrName()
        for part in get_args(hint):
            yield from _metadata(part)


def _kind(hint: Any) -> Any:
    """Return what is typed for an annotation, None if it cannot be: several, a path, or else the plain type."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *metadata = get_args(hint)
        return str if any(isinstance(each, Named) for each in metadata) else _kind(inner)
    if origin is Literal:
        return hint
    if origin in {Union, UnionType}:
        kinds = [kind for kind in map(_kind, get_args(hint)) if kind is not None]
        several = [kind for kind in kinds if get_origin(kind) is list]
        ordered = [*several, *(kind for kind in (Path, str, float, int, bool) if kind in kinds), *kinds]
        return next(iter(ordered), None)
    if origin is not None and issubclass(origin, Sequence):
        item = _kind(get_args(hint)[0])
        return None if item is None else list[item]  # type: ignore[valid-type]
    return hint if hint in (bool, int, float, str, Path) else None


def _lines(docstring: str) -> dict[str, str]:
    r"""Return the lines under `Args` by the names of the parameters.

    >>> _lines("Do.\n\nArgs:\n    out: the folder,\n        a new one.\n    a, b: two.\n\nRaises:\n    E: no.")
    {'out': 'the folder, a new one.', 'a': 'two.', 'b': 'two.'}
    """
    _, _, block = docstring.partition("Args:\n")
    block = re.split(r"\n(?=\S)", block, maxsplit=1)[0]
    entries = re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", block, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for names, text in entries for name in names.split(", ")}
