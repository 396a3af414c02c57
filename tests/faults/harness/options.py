"""What can be typed behind the options of a command: made from the command's own declaration."""

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.commands import USES, Use
from stsbench.cli.app import app

_WHOLE = (
    "-1",
    "0",
    "1",
    "3",
    str(2**31),
    str(2**63),
    "1" + "0" * 25,
    "9" * 5000,
    "1.5",
    "1e3",
    "0x10",
    "nan",
    "",
    " ",
    "\u0661\u0662",
)
_REAL = ("nan", "inf", "-inf", "-1", "0", "0.5", "1e308", "1e-320", "1e999", "9" * 5000, "1_0", "x", "", " ")
_PATHS = (
    "",
    ".",
    "nowhere",
    "nowhere/at/all",
    "pairs.tsv",
    "runs",
    "runs/a",
    "runs/a/run.json/inside",
    "model",
    # No device: whoever runs this may be root, and a command that is wrong would replace it.
    "pipe",
    "/proc/self/mem",
    "~nobody-of-that-name/x",
    "-",
    "x" * 300,
    "x/" * 3000,
    "one\nline\nmore",
    "\x1b[31mred",
    "half\udcff",
    "ends.pdf",
    "ends.unknown",
)
_TEXTS = (
    "",
    " ",
    ",",
    ",,",
    ":",
    "=",
    "a=b",
    "a:b:c",
    "{}",
    "[",
    "null",
    "nan",
    "-1",
    "%s%n",
    "../x",
    "one\nline\nmore",
    "\x1b[2J\x1b]0;title\x07",
    "\u202eevil",
    "half\udcff",
    "x" * 20000,
    "[" * 5000,
    "9" * 5000,
    "*",
    "&a [*a]",
    "!!python/object/apply:os.system [true]",
)

REFUSED = {"nan", "inf", "-inf", "1e999"}
"""What is no number that any option has a use for."""


@dataclass(frozen=True)
class Typed:
    """A use with a word more, or another one.

    Attributes:
        use: what is typed otherwise.
        option: the option, or the argument's name.
        value: what stands behind it; None for a flag.
        arguments: all that is typed.
        is_number: whether the option takes a number.
        is_path: whether it takes a path.
    """

    use: Use
    option: str
    value: str | None
    arguments: tuple[str, ...]
    is_number: bool = False
    is_path: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        value = "" if self.value is None else f" {self.value[:60]!r}"
        return f"`{self.use.name}` with {self.option}{value}"


def commands() -> dict[str, Any]:
    """Return every command that can be typed, by its whole name."""
    from typer.main import get_command

    group: Any = get_command(app)
    context = group.context_class(group, info_name="stsbench")
    found = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            found |= {
                f"{name} {inner}": command.get_command(context, inner) for inner in command.list_commands(context)
            }
        else:
            found[name] = command
    return found


def typed(name: str, command: Any, *, chance: random.Random | None = None, more: int = 0) -> Iterator[Typed]:
    """Yield what can be typed for a command: each option with each odd value.

    Args:
        name: of the command.
        command: with its options.
        chance: draws further values.
        more: how many for each option.
    """
    use = USES[name][0]
    for parameter in command.params:
        spelling = max(parameter.opts, key=len)
        if parameter.param_type_name == "option" and parameter.is_flag:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                yield Typed(use, flag, None, (*use.arguments, flag))
            continue
        kind = _kind(parameter)
        is_whole, is_real, is_path = ("int" in kind, "float" in kind, "path" in kind)
        values = [*(_WHOLE if is_whole else _REAL if is_real else _PATHS if is_path else _TEXTS)]
        # What the help names, and what is nearly that.
        known = re.findall(r"`([^`\s]+)`", parameter.help or "") if parameter.param_type_name == "option" else []
        values += [*known, *(f"{value}x" for value in known[:2])]
        values += [_odd(chance, whole=is_whole, real=is_real) for _ in range(more)] if chance else []
        for value in dict.fromkeys(values):
            arguments = (
                _replaced(use, name, value)
                if parameter.param_type_name == "argument"
                else (*use.arguments, f"{spelling}={value}" if value.startswith("-") else spelling)
                + (() if value.startswith("-") else (value,))
            )
            yield Typed(use, spelling, value, arguments, is_whole or is_real, is_path)


def _kind(parameter: Any) -> str:
    """Return the name of an option's type: newer Typers keep the annotation, older ones click's type."""
    described = getattr(parameter, "type_descriptor", None)
    return str(described.annotation if described else type(parameter.type).__name__).lower().replace("pathlib", "")


def _replaced(use: Use, name: str, value: str) -> tuple[str, ...]:
    """Return what is typed with another first argument."""
    start = len(name.split())
    has_argument = len(use.arguments) > start and not use.arguments[start].startswith("-")
    rest = use.arguments[start + has_argument :]
    # Behind `--`, as it may begin with a dash.
    return (*use.arguments[:start], *rest, "--", value)


def _odd(chance: random.Random, *, whole: bool, real: bool) -> str:
    if whole:
        return str(chance.randint(-(10 ** chance.randint(0, 30)), 10 ** chance.randint(0, 30)))
    if real:
        return repr(chance.choice((-1, 1)) * 10.0 ** chance.randint(-330, 308) * chance.random())
    letters = string.printable + "\u00e9\u4e2d\U0001f600\u202e\u0300\udc80\x00"[:-1]
    return "".join(chance.choice(letters) for _ in range(chance.randint(1, 40)))
