"""The command `stsbench`: its commands, and how a mistake ends."""

import sys
from typing import Annotated

import typer

from stsbench._version import __version__
from stsbench.cli import cache, cite, data, doctor, published, run, show
from stsbench.foundation.errors import UserError

EXIT_MISTAKE = 2
"""The person's mistake, told in one sentence. 0 is success, 1 a check that failed."""

app = typer.Typer(
    name="stsbench",
    help="Measure sentence embeddings on the STS tasks: exact, fast, recorded.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("show")(show.show)
app.command("cite")(cite.cite)
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
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure sentence embeddings on the STS tasks: exact, fast, recorded.

    Start with `stsbench run`: it measures a packaged model on what data is here.
    """


def main() -> None:
    """Run the command line; end a person's mistake in one sentence and exit code 2."""
    try:
        app()
    except UserError as error:
        sys.exit(_told(f"stsbench: {error}"))
    except KeyboardInterrupt:
        sys.exit(_told("stsbench: interrupted, nothing was recorded; the same command goes on from the cache."))
    except BrokenPipeError:
        # The reader of our output left (`| head`): not an error. Python would complain again while closing.
        sys.stderr.close()
        sys.exit(0)


def _told(sentence: str) -> int:
    sys.stderr.write(f"\r{sentence}\n")
    return EXIT_MISTAKE
