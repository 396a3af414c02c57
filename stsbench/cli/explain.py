"""`stsbench explain`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.analysis import (
    Models,
    Pooling,
    Resamples,
    Runs,
    Seed,
    print_views,
    wanted,
)
from stsbench.cli.models import DataDirs, Device
from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    QuietFlag,
    chosen_style,
    drawable,
    print_frame,
    progress_bars,
    tell,
)
from stsbench.foundation.errors import UserError


def explain(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    corpus: Annotated[
        str, typer.Option(help="Of the repetition probe: a file with one sentence a line, or `sample`.")
    ] = "sample",
    retrieve_from: Annotated[str, typer.Option(help="The corpus of the neighbours, likewise.")] = "sample",
    query: Annotated[
        list[str] | None, typer.Option("--query", help="A sentence to find neighbours of. Repeatable.")
    ] = None,
    published: Annotated[bool, typer.Option("--published", help="Put the papers' rows beside them.")] = False,
    resamples: Resamples = 1000,
    seed: Seed = 12345,
    data_dir: DataDirs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write a folder: a page, every figure, every table as CSV.",
            rich_help_panel="Output",
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", help="Of the figures in --out.", rich_help_panel="Output")
    ] = "png",
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            callback=drawable,
            help="Draw them all: `out.png` gives `out-geometry.png` and so on.",
            rich_help_panel="Output",
        ),
    ] = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Explain runs: length bias, geometry, spectrum, density, repetition probe and neighbours in one go.

    Each analysis has its command's own defaults.

    Examples:
    * `stsbench explain runs/minilm-avg-sts`
    * `stsbench explain runs/a runs/b --corpus wiki.txt --published --out reports/a-and-b`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.workflows import explain as workflow

    workflow.demand_format(kind)
    subjects, failures = wanted(runs, model), []
    with progress_bars(quiet=quiet) as progress:
        parts = list(
            workflow.explain_each(
                subjects,
                corpus=corpus,
                retrieve_from=retrieve_from,
                query=query or (),
                published=published,
                bootstrap=workflow.Bootstrap(resamples=resamples, seed=seed),
                data_dirs=data_dir or (),
                failed=lambda name, error: failures.append(f"{name}: {error}"),
                progress=progress,
                pooling=pooling,
                device=device,
            )
        )
    if out is not None:
        page = workflow.write_page(parts, subjects, out, kind=kind, omitted=failures)
        tell(f"written to {page}", quiet=quiet)
    if figure is not None:
        from stsbench.render.figures import save_figure

        for part in parts:
            save_figure(part.draw(), workflow.figure_beside(figure, part.name))
    if style == "json":
        from stsbench.render import to_json

        typer.echo("{" + ",\n".join(f'"{part.name}": {to_json(part.frame)}' for part in parts) + "}")
    elif style == "csv":
        import pandas as pd

        print_frame(pd.concat([part.frame.assign(analysis=part.name) for part in parts]), style)
    elif out is None or not quiet:
        print_views([view for part in parts for view in part.views], style)
    if failures:
        raise UserError("\nstsbench: ".join(failures))
