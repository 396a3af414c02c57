"""The command `stsbench`: its commands, and how a mistake ends."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stsbench._version import __version__
from stsbench.cli import (
    cache,
    check,
    cite,
    compare,
    data,
    density,
    diagnose,
    doctor,
    explain,
    geometry,
    imports,
    length_bias,
    published,
    repetition_bias,
    report,
    retrieve,
    run,
    show,
    spectrum,
    train,
)
from stsbench.foundation.errors import UserError

EXIT_MISTAKE = 2
"""The person's mistake, told in one sentence. 0 is success, 1 a check that failed."""

INTERRUPTED = "interrupted: what was finished is recorded, and the same command goes on from the cache."


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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with a line each, under the headings that they were registered with."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None:
                heading = getattr(command, "rich_help_panel", None)
                row = (name, command.get_short_help_str(limit=200))
                sections.setdefault(heading if isinstance(heading, str) else "Commands", []).append(row)
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
app.command("run")(run.run)
app.command("show")(show.show)
app.command("compare", cls=compare.SeveralRuns)(compare.compare)
app.command("check")(check.check)
app.command("report")(report.report)
app.command("import")(imports.import_)
app.command("train")(train.train)
app.command("cite")(cite.cite)
app.command("diagnose")(diagnose.diagnose)
_EXPLAIN: dict[str, Callable[..., None]] = {
    "explain": explain.explain,
    "length-bias": length_bias.length_bias,
    "geometry": geometry.geometry,
    "spectrum": spectrum.spectrum,
    "density": density.density,
    "repetition-bias": repetition_bias.repetition_bias,
    "retrieve": retrieve.retrieve,
}
for _name, _command in _EXPLAIN.items():
    app.command(_name, rich_help_panel="Explain a model")(_command)
app.command("doctor")(doctor.doctor)
app.add_typer(data.app, name="data")
app.add_typer(cache.app, name="cache")
app.add_typer(published.app, name="published")


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
