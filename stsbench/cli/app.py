"""The command `stsbench`: the table of its commands, their help, and exit codes.

Commands are imported when they are used. The help of a command with many options explains ten, those of its
examples first, and names the others; `--help-all` explains all.
"""

import gc
import re
import sys
from importlib import import_module
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from stsbench._version import __version__
from stsbench.analysis import ANALYSES
from stsbench.base.errors import InterruptError, by_interrupt
from stsbench.base.machine import source_date
from stsbench.base.words import closest
from stsbench.cli.output import (
    ReaderLeftError,
    drop_output,
    print_data,
    print_errors,
    print_lines,
    print_notes,
    sentences_of,
)

COMMANDS = {
    "Measure": {
        "run": ("scoring.command:run", "Measure models on STS and transfer tasks, and record the scores."),
        "import": ("scoring.command:import_", "Record the results of another program."),
        "show": ("records.command:show", "Print recorded scores, several runs side by side."),
    },
    "Judge": {
        "check": ("judging.command:check", "Compare a run with published numbers, or with an earlier run."),
        "compare": ("judging.command:app", "Test whether the difference between two models is real."),
        "rank": ("judging.command:rank", "Rank models, and show how much of the order is certain."),
        "plan": ("judging.command:plan", "Plan a comparison: detectable differences, pairs, seeds."),
        "diagnose": ("diagnosis.command:diagnose", "Find out why a score is off."),
    },
    "Look": {
        "explain": ("analysis.command:explain", "Show what is behind a score, or run one analysis by its name."),
        "explore": ("browsing.command:explore", "Write a page with all pairs of one or two runs."),
        "board": ("browsing.command:board", "Write a leaderboard page of all runs below a folder."),
        "report": ("reports.command:report", "Write a report about runs: HTML, Markdown, tables, figures."),
    },
    "Make": {
        "train": ("training.command:train", "Train a sentence encoder from a recipe."),
        "reproduce": ("reproduction.command:reproduce", "Reproduce a table or figure of the papers."),
        "sweep": ("sweeps.command:sweep", "Train and measure along the axes of an experiment."),
        "embed": ("encoders.command:embed", "Embed a file of sentences into a file of vectors."),
        "fit": ("encoders.command:fit", "Fit post-processing: whitening, or a flow."),
    },
    "Data": {
        "data": ("data.command:app", "List, download and verify the benchmark data."),
        "published": ("published.command:app", "Look up published scores."),
        "cite": ("records.command:cite", "Print the BibTeX entries of models and tasks."),
        "doctor": ("doctor.command:doctor", "Check environment, device, data, cache and versions."),
        "cache": ("doctor.command:cache", "List the contents of the cache, or clear it."),
    },
}
"""The commands by the heading in `stsbench --help`: the place of each in the package, and its line."""

_ENTRIES = {name: entry for group in COMMANDS.values() for name, entry in group.items()}

BEST_KNOWN = "length-bias"
"""The analysis that is a command of its own; the others are `explain NAME`."""

EXIT_MISTAKE, EXIT_INTERRUPTED, EXIT_READER_LEFT = 2, 130, 141
"""Exit codes for a user's mistake, Ctrl-C, and a closed pipe (`| head`)."""

INTERRUPTED = "interrupted: the same command resumes from the cache."

HELP_ALL = "--help-all"

MANY = 10
"""A command's help explains this many options, those of its examples first, and names the others."""


class FoldedHelp(TyperCommand):
    """A command whose `--help` explains the options of its examples and names the others."""

    _is_folded = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads `--help-all` as `--help` with all options explained."""
        if HELP_ALL in args:
            self._is_folded, args = False, ["--help"]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the help, then the names of the options it does not explain."""
        for parameter in self.get_params(ctx):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        folded = self._folded_options() if self._is_folded else []
        for parameter in folded:
            parameter.hidden = True
        super().format_help(ctx, formatter)
        if folded:
            print_lines(f"More options (explained by `{ctx.command_path} {HELP_ALL}`):")
            for heading in dict.fromkeys(map(_heading, folded)):
                names = [max(option.opts, key=len) for option in folded if _heading(option) == heading]
                text = f"{heading}: {' '.join(names)}"
                width = get_terminal_size().columns
                print_lines(
                    *wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
                )

    def _folded_options(self) -> list[Any]:
        """Returns the options that the help only names."""
        examples = (self.help or "").partition("Example")[2]
        used = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", examples))
        options = [parameter for parameter in self.params if parameter.param_type_name == "option"]
        return sorted(options, key=lambda option: not used.intersection(option.opts))[MANY:]


def _heading(parameter: Any) -> str:
    return parameter.rich_help_panel or "Options"


def commands() -> list[str]:
    """Returns the names of all commands, in the order of the help; analyses are written as `explain NAME`."""
    return [*_ENTRIES, *(name if name == BEST_KNOWN else f"explain {name}" for name in ANALYSES)]


def imported(name: str) -> Any:
    """Imports a command: a function, or a Typer app."""
    if (analysis := name.removeprefix("explain ")) in ANALYSES:
        return import_module("stsbench.analysis.command").command_of(analysis)
    module, _, attribute = _ENTRIES[name][0].partition(":")
    return getattr(import_module(f"stsbench.{module}"), attribute)


class _InterruptedError(Exception):
    """A KeyboardInterrupt, which Typer would end silently."""


class _Commands(TyperGroup):
    """The group of all commands, each imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of the commands, in the order of the help."""
        return [*_ENTRIES, BEST_KNOWN]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolves `explain NAME`, and in this version also the name alone, to the command of an analysis."""
        name, *rest = args
        if name == "explain" and rest[:1] == [BEST_KNOWN]:
            name, *rest = rest
        elif name == "explain" and rest and rest[0] in ANALYSES:
            name, *rest = f"explain {rest[0]}", *rest[1:]
        elif name in ANALYSES and name != BEST_KNOWN:
            print_notes(f"note: the next version has `stsbench explain {name}` only, not `stsbench {name}`.")
            name = f"explain {name}"
        if name not in commands() and (near := closest(name, [*_ENTRIES, *ANALYSES], cutoff=0.6)):
            ctx.fail(f"No such command {name!r}. Did you mean {' or '.join(near)}")
        return super().resolve_command(ctx, [name, *rest])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports a command; return None for an unknown name."""
        if cmd_name not in commands():
            return None
        target = imported(cmd_name)
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer()
            target.command()(function)
        for registered in target.registered_commands:
            kind = registered.cls or TyperCommand
            if not issubclass(kind, FoldedHelp):
                registered.cls = type(kind.__name__, (FoldedHelp, kind), {})
        target.rich_markup_mode = "markdown"
        target.pretty_exceptions_enable = False
        # Only `stsbench` itself offers to install completion.
        target._add_completion = False
        command = get_command(target)
        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        """Runs a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _InterruptedError from error

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the help as plain text, which needs no import of rich."""
        self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes a line for each command, under the heading of its group, then the names of the analyses."""
        for heading, group in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:9}", summary) for name, (_, summary) in group.items()])
        with formatter.section("Analyses: `stsbench explain NAME`, and length-bias is also a command of its own"):
            formatter.write_text(", ".join(ANALYSES))


app = typer.Typer(
    name="stsbench",
    cls=_Commands,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        print_lines(f"stsbench {__version__}")
        raise typer.Exit


@app.callback()
def stsbench(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback answers)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure sentence embeddings, explain them, and prove the numbers.

    Start with `stsbench run`: it measures a packaged model on the data that is available.
    """
    source_date()  # Reports a mistake in the variable before a library fails on it.
    if ctx.invoked_subcommand is None:
        print_data(ctx.get_help())
        raise typer.Exit(EXIT_MISTAKE)


def main() -> None:
    """Runs the command line and exits.

    The exit code is 0 for success, 1 for a failed check, 2 for a mistake or scores that are not comparable, 3 for
    too few pairs to decide, 130 for an interrupt, and 141 for a closed pipe.
    """
    # A report makes a million objects without cycles; the collector would take a second to visit them.
    gc.set_threshold(100_000, 20, 20)
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        return app(standalone_mode=False) or 0
    except (ReaderLeftError, SystemExit) as error:
        # Typer turns a broken pipe into an exit.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        drop_output()
        return EXIT_READER_LEFT
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, InterruptError) or by_interrupt(error):
            print_errors(*(error.sentences if isinstance(error, InterruptError) else [INTERRUPTED]))
            return EXIT_INTERRUPTED
        sentences = sentences_of(error)
        if sentences is None:
            raise
        print_errors(*sentences)
        return EXIT_MISTAKE
