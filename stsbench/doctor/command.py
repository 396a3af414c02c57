"""`stsbench doctor` and `stsbench cache`."""

from typing import Annotated

import typer

from stsbench.cli.options import Output, expand
from stsbench.cli.output import print_next, print_notes, print_result


@expand
def doctor(output: Output = Output()) -> None:
    """Check environment, device, data, cache and versions; exit code 1 if there is a problem.

    Example: `stsbench doctor`
    """
    from stsbench.doctor.doctor import doctor as examine

    examination = examine()
    print_result(examination, output)
    if not examination.is_well:
        print_notes("Each `problem` is printed with its remedy.", quiet=output.quiet)
        raise typer.Exit(1)
    print_next(output, "run", "--tasks", "sample")


cache = typer.Typer(help="List the contents of the cache, or clear it.", no_args_is_help=True)


@cache.command()
@expand
def info(output: Output = Output()) -> None:
    """List the cached embeddings (models, poolings, prompts, number of vectors, size) and other cached files.

    Example: `stsbench cache info`
    """
    from stsbench.doctor.doctor import cache_contents

    contents = cache_contents()
    print_result(contents, output)
    print_notes(contents.sentence, quiet=output.quiet)
    print_next(output, "cache", "clear")


@cache.command()
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete cached embeddings, tokenised corpora and the board's tables; records are kept.

    Example: `stsbench cache clear --yes`
    """
    from stsbench.doctor.doctor import cache_contents, clear_cache

    if not yes:
        typer.confirm(f"{cache_contents().sentence}. Delete all of it?", abort=True)
    print_notes(f"freed {clear_cache() / 1e6:.1f} MB")
