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

app = typer.Typer(help="Look into the embedding cache, or clear it.", no_args_is_help=True)


@app.command()
def info(
    json: JsonFlag = False, csv: CsvFlag = False, markdown: MarkdownFlag = False, latex: LatexFlag = False
) -> None:
    """List what is cached: models, poolings, number of vectors, size.

    Example: `stsbench cache info`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import cache

    table = cache.cache_table()
    if len(table) or style in {"json", "csv"}:
        print_frame(table, style)
    tell(f"{len(table)} files in {cache.embeddings_dir()}; the least recently used go first above the size limit")


@app.command()
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete all cached embeddings. Records are not touched; the next run encodes again.

    Example: `stsbench cache clear --yes`
    """
    from stsbench.workflows import cache

    if not yes:
        typer.confirm(f"Delete every embedding in {cache.embeddings_dir()}?", abort=True)
    tell(f"freed {cache.clear_cache() / 1e6:.1f} MB")
