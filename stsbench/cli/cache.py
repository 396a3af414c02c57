"""`stsbench cache`."""

from typing import Annotated

import typer

from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    chosen_style,
    print_frame,
    tell,
)

app = typer.Typer(help="Look into what is cached, or clear it.", no_args_is_help=True)


@app.command()
def info(
    json: JsonFlag = False, csv: CsvFlag = False, markdown: MarkdownFlag = False, latex: LatexFlag = False
) -> None:
    """List the embeddings that are cached: models, poolings, number of vectors, size.

    Example: `stsbench cache info`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import cache

    table = cache.cache_table()
    if len(table) or style in {"json", "csv"}:
        print_frame(table, style)
    tell(cache.cache_summary(table))


@app.command()
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete all embeddings and tokenised corpora. Records are not touched; the next run encodes again.

    Example: `stsbench cache clear --yes`
    """
    from stsbench.workflows import cache

    if not yes:
        typer.confirm(f"{cache.cache_summary(cache.cache_table())}. Delete all of it?", abort=True)
    tell(f"freed {cache.clear_cache() / 1e6:.1f} MB")
