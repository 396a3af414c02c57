"""`stsbench doctor`."""

from typing import Annotated

import typer

from stsbench.cli.output import CsvFlag, JsonFlag, LatexFlag, MarkdownFlag, chosen_style, print_frame, tell


def doctor(
    json: JsonFlag = False, csv: CsvFlag = False, markdown: MarkdownFlag = False, latex: LatexFlag = False
) -> None:
    """Look at environment, device, data, cache and versions; exit code 1 if something is broken.

    Example: `stsbench doctor`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    import pandas as pd

    from stsbench.doctor.doctor import doctor as workflow

    findings = workflow()
    print_frame(pd.DataFrame(findings), style)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(1)


cache = typer.Typer(help="Look into what is cached, or clear it.", no_args_is_help=True)


@cache.command()
def info(
    json: JsonFlag = False, csv: CsvFlag = False, markdown: MarkdownFlag = False, latex: LatexFlag = False
) -> None:
    """List the embeddings that are cached: models, poolings, number of vectors, size.

    Example: `stsbench cache info`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.doctor import cache as cached

    table = cached.cache_table()
    if len(table) or style in {"json", "csv"}:
        print_frame(table, style)
    tell(cached.cache_summary(table))


@cache.command()
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete all embeddings and tokenised corpora. Records are not touched; the next run encodes again.

    Example: `stsbench cache clear --yes`
    """
    from stsbench.doctor import cache as cached

    if not yes:
        typer.confirm(f"{cached.cache_summary(cached.cache_table())}. Delete all of it?", abort=True)
    tell(f"freed {cached.clear_cache() / 1e6:.1f} MB")
