"""What people's scripts and records may rely on, described so that a file can hold it: `tests/contract.json`.

    python tests/support/contract.py

writes the file anew. What is added to it is promised from then on. What leaves it, or changes in it, is a break:
that takes another `schema_version` for the record, a version of deprecation for a verb, command or parameter, and
a line under Changed in CHANGELOG.md.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import typer

import stsbench as sb
from stsbench.cli.app import commands, imported
from stsbench.judging.verdicts import EXIT_CODES
from stsbench.records.kinds import COLUMNS, KINDS
from stsbench.records.parts import SCHEMA_VERSION

FILE = Path(__file__).resolve().parents[1] / "contract.json"


def described():
    """Return all that is promised, as the code has it now."""
    return {
        "schema_version": SCHEMA_VERSION,
        "record": dict(fields()),
        "items": {"": COLUMNS, **{name: dict(kind.columns) for name, kind in KINDS.items()}},
        "verbs": {name: parameters(getattr(sb, name)) for name in sorted(sb.__all__) if is_verb(name)},
        "commands": {name: subcommands(name) for name in sorted(commands())},
        "verdicts": dict(EXIT_CODES),
    }


def fields():
    """Yield every field of `run.json` with its JSON type: `scores[].numbers[].value`, `null | number`."""
    schema = sb.RunRecord.model_json_schema()
    yield from _fields(schema, schema["$defs"], "")


def _fields(part, parts, place):
    for name, about in part["properties"].items():
        here = f"{place}.{name}" if place else name
        alternatives = [_resolved(each, parts) for each in about.get("anyOf", [about])]
        yield here, " | ".join(sorted({str(each.get("type", "any")) for each in alternatives}))
        for each in alternatives:
            items = each.get("items")
            inner = (_resolved(items, parts), f"{here}[]") if isinstance(items, dict) else (each, here)
            if "properties" in inner[0]:
                yield from _fields(inner[0], parts, inner[1])


def _resolved(part, parts):
    found: dict[str, Any] = parts[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    return found


def is_verb(name):
    """Return whether a public name is a function."""
    return inspect.isfunction(getattr(sb, name))


def parameters(verb):
    """Return the names of a verb's parameters: those that must be given, and the others."""
    given = inspect.signature(verb).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [parameter for parameter in given if parameter.kind not in kinds]
    required = [parameter.name for parameter in named if parameter.default is parameter.empty]
    optional = sorted({parameter.name for parameter in named} - {*required})
    return {"required": " ".join(required), "optional": " ".join(optional)}


def subcommands(name):
    """Return the commands below a command; none for one that stands by itself."""
    target = imported(name)
    if not isinstance(target, typer.Typer):
        return ""
    below = (registered.name or registered.callback.__name__ for registered in target.registered_commands)
    return " ".join(sorted(below)) if len(target.registered_commands) > 1 else ""


if __name__ == "__main__":
    FILE.write_text(json.dumps(described(), indent=1) + "\n", encoding="utf-8")
