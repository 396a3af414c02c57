"""`stsbench doctor` and `stsbench cache`."""

from typing import Annotated

import typer

from stsbench.base.options import Help, Spelled
from stsbench.cli.options import Output
from stsbench.cli.output import print_result, tell


def doctor(output: Output = Output()) -> None:
    """Look at environment, device, data, cache and versions; exit code 1 if something is broken.

    Example: `stsbench doctor`
    """
    from stsbench.doctor import doctor as verb

    examination = verb.doctor()
    print_result(examination, output)
    if not examination.is_well:
        raise typer.Exit(1)


cache = typer.Typer(help="Look into what is cached, or clear it.", no_args_is_help=True)


@cache.command()
def info(output: Output = Output()) -> None:
    """List the embeddings that are cached (models, poolings, prompts, number of vectors, size), and what else is.

    Example: `stsbench cache info`
    """
    from stsbench.doctor.doctor import cache_contents

    contents = cache_contents()
    print_result(contents, output)
    tell(contents.sentence, quiet=output.quiet)


@cache.command()
def clear(
    yes: Annotated[bool, Spelled("--yes", "-y"), Help("Delete without asking.")] = False,
) -> None:
    """Delete embeddings, tokenised corpora and what the board keeps. No record is touched; it is made again.

    Example: `stsbench cache clear --yes`
    """
    from stsbench.doctor.doctor import cache_contents, clear_cache

    if not yes:
        typer.confirm(f"{cache_contents().sentence}. Delete all of it?", abort=True)
    tell(f"freed {clear_cache() / 1e6:.1f} MB")
