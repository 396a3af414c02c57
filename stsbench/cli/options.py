"""The options that several commands share: `Annotated` aliases, and groups that `expand` spells out."""

import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast, get_type_hints

import typer

from stsbench.base.errors import UserError
from stsbench.base.files import require_writable
from stsbench.base.words import listed, suggestion
from stsbench.statistics import Dependence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.render.table import Style

MODEL, DATA, RUN, SCORES, INTERVALS, OUTPUT = "Model", "Data", "Run", "Scores", "Intervals", "Output"
"""The headings of options in a command's help."""

LARGEST = 1_000_000
"""The maximum of options that count draws, buckets or sub-words. A larger number is a typing mistake."""

LARGEST_SEED = 2**32 - 1
"""What NumPy, scikit-learn and torch all accept."""

model_option, data_option, run_option, scores_option, intervals_option, output_option = (
    partial(typer.Option, rich_help_panel=panel) for panel in (MODEL, DATA, RUN, SCORES, INTERVALS, OUTPUT)
)
"""`typer.Option` under one of these headings."""

FORMATS = ("table", "json", "csv", "markdown", "latex")

_DEPENDENCE = (
    "Which pairs depend on each other: `dyadic` (those that share a sentence), `components` (those linked by a "
    "chain of shared sentences) or `independent` (none)."
)


def option_name(param: typer.CallbackParam) -> str:
    """Returns the name as you type it: `--seed`, or `RUNS` for an argument."""
    longest = max(param.opts, key=len, default=param.name or "")
    return longest if longest.startswith("-") else (param.metavar or longest).upper().removesuffix("...")


def new_file(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """Checks, before any work, that a file can be written."""
    return _writable(param, path, as_folder=False)


def new_folder(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """Checks, before any work, that a folder can be written."""
    return _writable(param, path, as_folder=True)


def new_figure(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """Checks, before any work, that a figure can be written in the format of its name."""
    path = new_file(param, path)
    if path is not None:
        from stsbench.render.figures import figure_kind

        figure_kind(path)
    return path


def _writable(param: typer.CallbackParam, path: Path | None, *, as_folder: bool) -> Path | None:
    if path is not None:
        # `--out "$UNSET"` is an empty path, which Python reads as the working folder.
        if path == Path() and {"", *(f"{name}=" for name in param.opts)} & set(sys.argv):
            raise UserError(f"{option_name(param)} is empty (is a variable unset?): give a path.")
        require_writable(path.expanduser(), option_name(param), as_folder=as_folder)
    return path


def refuse(context: typer.Context, what: str, *options: str) -> None:
    """Raises a UserError if you chose options, named as parameters, that apply only to something else."""
    params: dict[Any, Any] = {param.name: param for param in context.command.params}
    chosen = [name for name in options if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    if chosen:
        verb, rest = ("applies", "leave it out") if len(chosen) == 1 else ("apply", "leave them out")
        flags = ["/".join([option_name(params[name]), *params[name].secondary_opts]) for name in chosen]
        raise UserError(f"{listed(flags)} {verb} to {what}: {rest}.")


def names(text: str | None) -> list[str]:
    """Splits a list that was typed with commas.

    >>> names("negation, number")
    ['negation', 'number']
    """
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def number_or_name(text: str | None) -> float | str | None:
    """Reads a number, or else leaves the text as a name."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def numbers(text: str | None, option: str, example: str, high: int = LARGEST) -> list[int]:
    """Splits whole numbers up to `high` that were typed with commas; the message names `option` and an `example`.

    >>> numbers("0,8,16", "--bins", "0,1,2")
    [0, 8, 16]
    """
    values = []
    for part in names(text):
        if not part.lstrip("-").isdecimal() or len(part) > 12:
            raise UserError(
                f"{option} {text}: {part!r} is not a whole number. Write numbers with commas: {example}."
            )
        values.append(int(part))
        if abs(values[-1]) > high:
            raise UserError(f"{option} {part}: use numbers up to {high:,}.")
    return values


DataDirs = Annotated[
    list[Path] | None,
    data_option(
        "--data-dir", help="A folder to search for data before `STSBENCH_DATA` and the cache. Repeatable."
    ),
]
OwnTexts = Annotated[
    list[Path] | None,
    data_option(
        "--data",
        help="A file with the sentences of a run on your own pairs, or a folder with queries and documents; "
        "records hold no text. Repeatable.",
    ),
]
SubsetColumn = Annotated[str, data_option(help="The column of your file that names subsets.")]
Interval = Annotated[Dependence, intervals_option(metavar="METHOD", help=_DEPENDENCE)]
Level = Annotated[float, intervals_option(min=0, max=1, help="The confidence level of the intervals.")]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="The random seed.")]
NoCache = Annotated[bool, run_option("--no-cache", help="Neither read nor write the embedding cache.")]
Subsets = Annotated[bool, output_option("--subsets", help="Print every subset, too.")]
Quiet = Annotated[bool, output_option("--quiet", "-q", help="Print no progress, notes or signatures.")]

FigureSize = Annotated[
    Literal["column", "page"],
    output_option(help="The figure's width: `column` of a two-column paper (3.3 inches) or `page` (5 inches)."),
]


@dataclass(frozen=True)
class FigureChoice:
    """The file a command draws its figure into, and the figure's width."""

    figure: Annotated[
        Path | None,
        output_option(callback=new_figure, help="Draw the figure into this .png, .svg or .pdf file."),
    ] = None
    figure_size: FigureSize = "column"

    def __post_init__(self) -> None:
        if self.figure is None and self.figure_size != "column":
            raise UserError("--figure-size needs a figure: add --figure.")

    def draw(self, plot: "Callable[[], Figure]") -> Path | None:
        """Draws the figure if one was requested; returns its file."""
        if self.figure is None:
            return None
        from stsbench.render.figures import look, save_figure

        with look(self.figure_size):
            return save_figure(plot(), self.figure)


@dataclass(frozen=True)
class IntervalChoice:
    """How intervals are computed."""

    interval: Interval = "dyadic"
    no_intervals: Annotated[bool, intervals_option("--no-intervals", help="Compute no intervals.")] = False

    @property
    def dependence(self) -> Dependence | None:
        """Which pairs depend on each other; None for no intervals."""
        return None if self.no_intervals else self.interval


def _format_flag(name: str) -> Any:
    return output_option(f"--{name}", help=f"The same as `--format {name}`.")


@dataclass(frozen=True)
class JobOptions:
    """Where jobs run, and which."""

    on: Annotated[str, typer.Option(help="Where jobs run: `local`, `ray` or `slurm`.")] = "local"
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000, help="Jobs to run at once; by default one per GPU or per group of CPU cores."
        ),
    ] = None
    device: Annotated[str, typer.Option(help="The device of local jobs: `auto`, `cpu`, `cuda` or `mps`.")] = "auto"
    data_dirs: DataDirs = None
    retry: Annotated[bool, typer.Option("--retry", help="Run failed jobs again.")] = False
    status: Annotated[bool, typer.Option("--status", help="Print the jobs and their states; run none.")] = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `sweep`."""
        return {**vars(self), "data_dirs": self.data_dirs or ()}


@dataclass(frozen=True)
class Output:
    """How a command prints."""

    formats: ClassVar[tuple[str, ...]] = FORMATS

    format: Annotated[
        str | None,
        output_option(
            help="The output format: `table`, `json` or `csv` (in full precision), `markdown` or `latex`."
        ),
    ] = None
    json: Annotated[bool, _format_flag("json")] = False
    csv: Annotated[bool, _format_flag("csv")] = False
    markdown: Annotated[bool, _format_flag("markdown")] = False
    latex: Annotated[bool, _format_flag("latex")] = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        _ = self.style

    @property
    def style(self) -> "Style":
        """The chosen format, as `render` names it; `terminal` by default.

        Raises:
            UserError: if there is no such format, or two were chosen.
        """
        chosen = [name for name in FORMATS[1:] if getattr(self, name)]
        if self.format is not None and self.format not in self.formats:
            raise UserError(f"--format {self.format!r}: {suggestion(self.format, self.formats)}")
        if self.format is not None and [self.format] != chosen:
            chosen.append(self.format)
        if len(chosen) > 1:
            raise UserError(f"Choose one output format: {' or '.join(chosen)}.")
        return "terminal" if not chosen or chosen[0] == "table" else cast("Style", chosen[0])


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Returns a command in which each field of a dataclass parameter becomes an option.

    A field's annotation has its `typer.Option`; a field of `Use` describes itself in its metadata. The command
    gets the dataclass.

    Args:
        command: a function as Typer takes it, with dataclasses among its parameters.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    options: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            options += _options_of(groups[name])
        else:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    def called(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = Signature(options)  # type: ignore[attr-defined]
    called.__annotations__ = {option.name: option.annotation for option in options}
    return called


def _options_of(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True) if not _is_use(group) else {}
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints.get(field.name) or _option_of_use(field.name, field.metadata["about"]),
        )
        for field in fields(group)
    ]


def _is_use(group: Any) -> bool:
    return all("about" in field.metadata for field in fields(group))


def _option_of_use(name: str, about: Any) -> Any:
    flag = [f"--{name.replace('_', '-')}"] if about.type is bool else []
    limits = {} if about.least is None else {"min": about.least, "max": LARGEST}
    return Annotated[about.type, typer.Option(*flag, help=about.help, rich_help_panel=MODEL, **limits)]
