"""Options that several commands share, in groups: a command names a group, and has its own options beside it.

@grouped
def spectrum(subjects: Subjects, task: Task = None, output: Output = Output()) -> None: ...
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from typer import CallbackParam, Option

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion

MODEL, DATA, RUN, OUTPUT = "Model", "Data", "Run", "Output"
"""The headings that options stand under in a command's help."""

FORMATS = ("table", "json", "csv", "markdown", "latex")
"""How a command can print; `table` is for the screen."""

LARGEST = 1_000_000
"""Of whatever an option counts: draws, buckets, sub-words. More is a slip, and would fill the memory."""


def number_within(low: float = -LARGEST, high: float = LARGEST) -> Callable[[CallbackParam, Any], Any]:
    """Return the check of an option that takes a number, or several: finite, and neither below nor above.

    Where an option has no value there is nothing to check. It is an option's `callback`:

        tolerance: Annotated[float | None, Option(callback=number_within(0, 100), help="...")] = None

    Args:
        low: the smallest value that is accepted.
        high: the largest.
    """

    def check(param: CallbackParam, value: Any) -> Any:
        for number in value if isinstance(value, list | tuple) else [value]:
            # An integer of any size is finite, and need not fit a float.
            if number is None or ((isinstance(number, int) or isfinite(number)) and low <= number <= high):
                continue
            raise UserError(f"{option_name(param)} {number}: give a number from {low:,} to {high:,}.")
        return value

    return check


def option_name(param: CallbackParam) -> str:
    """Return what a person calls an option (`--seed`) or an argument (`RUNS`)."""
    longest = max(param.opts, key=len, default=param.name or "")
    return longest if longest.startswith("-") else (param.metavar or longest).upper().removesuffix("...")


finite = number_within()
"""The check of a number that may be of any size but infinite."""

any_seed = number_within(0, 2**32 - 1)
"""The check of a seed: what NumPy, scikit-learn and torch all take."""


def new_file(param: CallbackParam, path: Path | None) -> Path | None:
    """Check, as an option's `callback`, that the file it names can be written: before the work, not after."""
    if path is not None:
        from stsbench.base.files import require_new_file

        _require_named(param, path)
        require_new_file(path.expanduser(), option_name(param))
    return path


def _require_named(param: CallbackParam, path: Path) -> None:
    """Refuse an empty name (`--out "$UNSET"`), which as a path is the working folder, as `.` is."""
    if path == Path():
        given = list(pairwise([*sys.argv, "."]))
        if any(
            first == f"{name}=" or (first, second) == (name, "") for name in param.opts for first, second in given
        ):
            raise UserError(f"{option_name(param)} names nothing: is a variable unset? Give a path.")


def new_folder(param: CallbackParam, path: Path | None) -> Path | None:
    """Check, as an option's `callback`, that files can be written into the folder it names."""
    if path is not None:
        from stsbench.base.files import require_new_folder

        _require_named(param, path)
        require_new_folder(path.expanduser(), option_name(param))
    return path


NoIntervals = Annotated[bool, Option("--no-intervals", help="Compute no intervals.")]

IntervalName = Literal["dyadic", "components", "independent"]
"""`statistics.dependence.Dependence`, which would load NumPy for a page of help."""

INTERVAL_HELP = (
    "Which pairs depend on each other: `dyadic` those that share a sentence, `components` those that a chain of "
    "shared sentences joins, `independent` none."
)
IntervalOption = Annotated[IntervalName, Option("--interval", help=INTERVAL_HELP, metavar="METHOD")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Mark a command that has groups of options among its parameters.

    A parameter whose type is a dataclass stands for the dataclass's fields, each an option (or an argument, which
    has to come first) with its default; the command is called with the dataclass. `spelled_out` does it when the
    command is used: to list all commands, as `stsbench --help` does, takes none of it.
    """
    command.is_grouped = True  # type: ignore[attr-defined]
    return command


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are spelled out in its signature, as Typer wants them."""
    if not getattr(command, "is_grouped", False):
        return command
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        group: Any = groups[parameter.name]
        annotations = _annotations(group)
        parameters += [
            inspect.Parameter(
                field.name,
                parameter.kind,
                # An option of a group may be one that has to be given.
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=annotations[field.name],
            )
            for field in fields(group)
        ]

    @wraps(command)
    def called(**values: Any) -> None:
        for name, group in groups.items():
            build: Any = group
            values[name] = build(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # Typer would follow it to the command as it was written.
    del called.__wrapped__, called.is_grouped  # type: ignore[attr-defined]
    return called


def _annotations(group: Any) -> dict[str, Any]:
    """Return each field of a group as Typer wants it: as it is annotated, or as it says of itself (`Use`)."""
    if not all("about" in each.metadata for each in fields(group)):
        return get_type_hints(group, include_extras=True)
    annotations = {}
    for each in fields(group):
        about = each.metadata["about"]
        check = None if about.least is None else number_within(about.least)
        option = Option(*about.flags, help=about.help, callback=check, rich_help_panel=MODEL)
        annotations[each.name] = Annotated[about.type, option]
    return annotations


@dataclass(frozen=True)
class Output:
    """How a command prints."""

    format: Annotated[
        str | None,
        Option(
            "--format",
            help="`table`, `json`, `csv` (both in full precision), `markdown` or `latex`.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    json: Annotated[bool, Option("--json", help="`--format json`.", rich_help_panel=OUTPUT)] = False
    csv: Annotated[bool, Option("--csv", help="`--format csv`.", rich_help_panel=OUTPUT)] = False
    markdown: Annotated[bool, Option("--markdown", help="`--format markdown`.", rich_help_panel=OUTPUT)] = False
    latex: Annotated[bool, Option("--latex", help="`--format latex`.", rich_help_panel=OUTPUT)] = False
    spreadsheet_safe: Annotated[
        bool,
        Option(
            "--spreadsheet-safe",
            help="CSV in which no spreadsheet finds a formula: an apostrophe before `=`, `+`, `-`, `@`.",
            rich_help_panel=OUTPUT,
        ),
    ] = False
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="No progress, notes or signatures.", rich_help_panel=OUTPUT)
    ] = False

    @property
    def style(self) -> str:
        """The one format that was asked for, as `render` names it: `terminal` if none was.

        Raises:
            UserError: if several were, or there is no such format.
        """
        named = [f"--{name}" for name in FORMATS[1:] if getattr(self, name)]
        if self.format is not None:
            if self.format not in FORMATS:
                raise UserError(f"--format {self.format!r}: {suggestion(self.format, FORMATS)}")
            if [f"--{self.format}"] != named:
                named = [f"--format {self.format}", *named]
        if len(named) > 1:
            raise UserError(f"{named[0]} and {named[1]} cannot go together: choose one output format.")
        chosen = named[0].split()[-1].removeprefix("--") if named else "table"
        if self.spreadsheet_safe and chosen != "csv":
            raise UserError("--spreadsheet-safe is about CSV: add --csv, or leave it out.")
        return "terminal" if chosen == "table" else chosen


DataDirs = Annotated[
    list[Path] | None,
    Option("--data-dir", help="Look for data here first. Repeatable.", rich_help_panel=DATA),
]
Sentences = Annotated[Path | None, Option(help="The sentences of --vectors, one a line.", rich_help_panel=MODEL)]
NoCache = Annotated[
    bool, Option("--no-cache", help="Neither read nor write the embedding cache.", rich_help_panel=RUN)
]
