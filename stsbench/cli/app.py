"""The command `stsbench`: the table of its commands, and how a mistake ends."""

import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from stsbench._version import __version__
from stsbench.analysis.registry import ANALYSES
from stsbench.base.errors import UserError
from stsbench.cli.options import spelled_out

COMMANDS = {
    "run": "stsbench.scoring.command:run",
    "show": "stsbench.records.command:show",
    "compare": "stsbench.comparison.command:app",
    "check": "stsbench.checking.command:check",
    "report": "stsbench.reports.command:report",
    "import": "stsbench.records.command:import_",
    "train": "stsbench.training.command:train",
    "cite": "stsbench.scoring.command:cite",
    "diagnose": "stsbench.diagnosis.command:diagnose",
    "explain": "stsbench.analysis.command:explain",
    "doctor": "stsbench.doctor.command:doctor",
    "data": "stsbench.data.command:app",
    "cache": "stsbench.doctor.command:cache",
    "published": "stsbench.published.command:app",
}
"""Where each command but those of the analyses is: a function, or a Typer app. Imported when it is asked for."""

EXIT_MISTAKE = 2
"""The person's mistake, told in one sentence. 0 is success, 1 a check that failed."""

INTERRUPTED = "interrupted: what was finished is recorded, and the same command goes on from the cache."


def commands() -> dict[str, str]:
    """Return where every command is, in the order of the help: the analyses come after `explain`."""
    places = {}
    for name, place in COMMANDS.items():
        places[name] = place
        if name == "explain":
            places |= {analysis: f"stsbench.analysis.command:{analysis}" for analysis in ANALYSES}
    return places


def _target(name: str) -> Any:
    """Import a command: a function, or a Typer app."""
    module, _, attribute = commands()[name].partition(":")
    return getattr(import_module(module), attribute)


def _help_of(target: Any) -> str | None:
    if not isinstance(target, typer.Typer):
        return getdoc(target)
    return (
        target.info.help if isinstance(target.info.help, str) else getdoc(target.registered_commands[0].callback)
    )


class _ReaderLeftError(Exception):
    """Whoever read our output went away (`| head`)."""


class _Commands(TyperGroup):
    """Takes what Typer would end in its own way, silently and with exit codes of its own, past it to `main`.

    Its help is plain text: the panels that each command's help has would double the time to start.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the whole."""
        self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of that name."""
        if cmd_name not in commands():
            return None
        target = _target(cmd_name)
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer()
            target.command()(function)
        for registered in target.registered_commands:
            if registered.callback is not None:
                registered.callback = spelled_out(registered.callback)
        target.rich_markup_mode = "markdown"
        target.pretty_exceptions_enable = False
        # Else each command would offer to install completion, as the whole does.
        target._add_completion = False
        command = get_command(target)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with a line each, under the headings that they were registered with."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            target = _target(name)
            # Options are of no use here, and would take half of the time.
            command = TyperCommand(name, help=_help_of(target))
            heading = "Explain a model" if name == "explain" or name in ANALYSES else "Commands"
            sections.setdefault(heading, []).append((name, command.get_short_help_str(limit=200)))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise UserError(INTERRUPTED) from error
        except BrokenPipeError as error:
            raise _ReaderLeftError from error


app = typer.Typer(
    name="stsbench",
    cls=_Commands,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stsbench {__version__}")
        raise typer.Exit


@app.callback()
def stsbench(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback answers)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure sentence embeddings, explain them, and prove the numbers.

    Start with `stsbench run`: it measures a packaged model on what data is here.
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(EXIT_MISTAKE)


def main() -> None:
    """Run the command line; end a person's mistake in one sentence and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets its number instead of a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except UserError as error:
        sys.exit(_told(f"stsbench: {error}"))
    except KeyboardInterrupt:
        sys.exit(_told(f"stsbench: {INTERRUPTED}"))
    except _ReaderLeftError:
        # Python flushes what is left on its way out, and would complain that nobody reads it.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _told(sentence: str) -> int:
    # On a screen the line may hold a ^C already: it is written over.
    start = "\r" if sys.stderr.isatty() else ""
    sys.stderr.write(f"{start}{sentence}\n")
    return EXIT_MISTAKE
