"""The command `stsbench`: the table of its commands, their help, and how each of them ends.

A page of fifty options hides the five that most people need: the help of a command explains the options that its
examples use, and names the others under their headings; `--help-all` explains every one.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import getdoc
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from stsbench._version import __version__
from stsbench.analysis import ANALYSES
from stsbench.base.epoch import asked_epoch
from stsbench.base.errors import InterruptError, UserError, by_interrupt
from stsbench.base.extras import sentence_on
from stsbench.base.words import shortened
from stsbench.cli.mistakes import UsageError, current, is_homeless, refused, sentence_of
from stsbench.cli.output import (
    ReaderLeftError,
    drop_output,
    print_data,
    say,
    tell,
    tell_mistake,
    write_any_character,
)
from stsbench.cli.verbs import spelled_out

COMMANDS = {
    "run": "stsbench.scoring.command:run",
    "show": "stsbench.records.command:show",
    "compare": "stsbench.judging.command:app",
    "plan": "stsbench.judging.command:plan",
    "best-of": "stsbench.judging.command:best_of",
    "rank": "stsbench.judging.command:rank",
    "check": "stsbench.judging.command:check",
    "report": "stsbench.reports.command:report",
    "explore": "stsbench.browsing.command:explore",
    "board": "stsbench.browsing.command:board",
    "import": "stsbench.scoring.command:import_",
    "export": "stsbench.records.command:export",
    "train": "stsbench.training.command:train",
    "sweep": "stsbench.sweeps.command:sweep",
    "reproduce": "stsbench.reproduction.command:reproduce",
    "fit": "stsbench.encoders.command:app",
    "embed": "stsbench.encoders.command:embed",
    "cite": "stsbench.records.command:cite",
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

EXIT_READER_LEFT = 141
"""Nobody reads the output any more (`| head`): what shells call a program's end by SIGPIPE. It is no success: a
check whose verdict was not read may have failed."""

EXIT_INTERRUPTED = 130
"""Ctrl-C: what shells call a program's end by SIGINT."""

INTERRUPTED = "interrupted: the same command goes on from what is in the cache."
"""Where nothing else is kept. A command that leaves more behind says so itself, by an `InterruptError`."""


HELP_ALL = "--help-all"

MANY = 20
"""Options of a command. One that has no more shows them all."""


class FoldedHelp(TyperCommand):
    """A command whose `--help` explains the options of its examples, and names the others."""

    _is_folded = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `--help-all` for `--help` of all options."""
        if HELP_ALL in args:
            self._is_folded, args = False, ["--help"]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; of a command with many options, those that its examples do not use as names alone."""
        for parameter in self.get_params(ctx):
            if getattr(parameter, "is_flag", False):
                # It takes no value: the help says no type.
                parameter.metavar = ""
        folded = self._unused() if self._is_folded and len(self.params) > MANY else []
        for parameter in folded:
            parameter.hidden = True
        super().format_help(ctx, formatter)
        for parameter in folded:
            parameter.hidden = False
        if folded:
            width = get_terminal_size().columns
            say(f"More options, which `{ctx.command_path} {HELP_ALL}` explains:")
            for heading in dict.fromkeys(map(_heading, folded)):
                names = [max(option.opts, key=len) for option in folded if _heading(option) == heading]
                text = f"{heading}: {' '.join(names)}"
                say(*wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False))

    def _unused(self) -> list[Any]:
        """Return the options that no example of this command uses."""
        examples = (self.help or "").partition("Example")[2]
        used = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", examples))
        return [
            parameter
            for parameter in self.params
            if parameter.param_type_name == "option" and not used.intersection(parameter.opts)
        ]


def _heading(parameter: Any) -> str:
    return parameter.rich_help_panel or "Options"


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


class _InterruptedError(Exception):
    """A KeyboardInterrupt on its way past Typer."""


@contextmanager
def _past_typer() -> Iterator[None]:
    """Take what Typer would end in its own way, silently and with exit codes of its own, past it to `main`."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise _InterruptedError from error
    except BrokenPipeError as error:
        raise ReaderLeftError from error


class _Commands(TyperGroup):
    """The commands.

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
            kind = registered.cls or TyperCommand
            if not issubclass(kind, FoldedHelp):
                registered.cls = type(kind.__name__, (FoldedHelp, kind), {})
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

    def make_context(self, info_name: Any, args: list[str], *arguments: Any, **more: Any) -> Any:
        """Parse the options before the command; help and version are printed here."""
        typed = current(args)
        if typed != args:
            old, new = (f"`stsbench {shortened(' '.join(words))}`" for words in (args, typed))
            tell(f"{old} is {new} now: the old spelling goes with the next version.")
        with _past_typer():
            return super().make_context(info_name, typed, *arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        """Parse a command's options, and run it."""
        with _past_typer():
            return super().invoke(ctx)


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
        say(f"stsbench {__version__}")
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
    asked_epoch()  # Libraries read it too: a mistake in it is told before they stumble over it.
    if ctx.invoked_subcommand is None:
        print_data(ctx.get_help())
        raise typer.Exit(EXIT_MISTAKE)


def main() -> None:
    """Run the command line: a person's mistake ends in one sentence and exit code 2, an interrupt with 130."""
    write_any_character()
    sys.exit(_ended())


def _ended() -> int:
    """Run the command that was asked for; return the exit code. A mistake of our own goes on as it is."""
    code = EXIT_MISTAKE
    try:
        code = app(standalone_mode=False) or 0
    except InterruptError as error:
        code = _interrupted(*error.sentences)
    except UserError as error:
        code = _interrupted() if by_interrupt(error) else _told(*error.sentences)
    except (UsageError, typer.Abort) as error:
        code = _told(*filter(None, [shortened(sentence_of(error))]))
    except (ReaderLeftError, SystemExit) as error:
        # Rich, which prints help, ends so where nobody reads it.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        drop_output()
        code = EXIT_READER_LEFT
    except (KeyboardInterrupt, _InterruptedError):
        code = _interrupted()
    except MemoryError:
        code = _told("there is not enough memory for this: give it less at once, or use a larger machine.")
    except OSError as error:
        code = _interrupted() if by_interrupt(error) else _told(*refused(error).sentences)
    except Exception as error:
        # A library may have caught the interrupt and raised something of its own, an ImportError, say.
        said = sentence_on(error)
        if is_homeless(error):
            said = "a path begins with `~` and a name, and nobody of that name has a home here: spell it out."
        if not (by_interrupt(error) or said):
            raise
        code = _interrupted() if by_interrupt(error) else _told(said)
    return code


def _told(*sentences: str) -> int:
    tell_mistake(*sentences)
    return EXIT_MISTAKE


def _interrupted(*sentences: str) -> int:
    tell_mistake(*(sentences or (INTERRUPTED,)))
    return EXIT_INTERRUPTED
