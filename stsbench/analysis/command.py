"""What the commands that explain a model share: what is analysed, and how tables and figures come out."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stsbench.base.errors import UserError
from stsbench.cli.options import DataDirs, Device
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

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from stsbench.render.table import Table

_SUBJECTS, _DATA, _OUTPUT = "What is analysed", "Data", "Output"


Runs = Annotated[
    list[str] | None,
    typer.Argument(help="Run folders. Their models' vectors come from the cache.", show_default=False),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="A model as in `stsbench run`, without a run. Repeatable. Default, with no run either: `minilm`.",
        rich_help_panel=_SUBJECTS,
    ),
]
Pooling = Annotated[str, typer.Option(help="Pooling of --model, as in `stsbench run`.", rich_help_panel=_SUBJECTS)]
Task = Annotated[
    str | None,
    typer.Option(
        help="Whose sentences. Default: `STS-B`, or the sample where its data is not here.", rich_help_panel=_DATA
    ),
]
Split = Annotated[str | None, typer.Option(help="Default: all that the task has.", rich_help_panel=_DATA)]
Text = Annotated[str, typer.Option(help="`senteval` or `raw` text.", rich_help_panel=_DATA)]
FigureFile = Annotated[
    Path | None,
    typer.Option(
        "--figure", help="Draw it, into a .png, .svg or .pdf file.", callback=drawable, rich_help_panel=_OUTPUT
    ),
]
Resamples = Annotated[int, typer.Option(min=0, help="Bootstrap resamples of the intervals; 0 for none.")]
Seed = Annotated[int, typer.Option(help="Seed of the bootstrap.")]


def wanted(runs: Sequence[str] | None, models: Sequence[str] | None) -> list[str]:
    """Return what was named, runs first.

    Raises:
        UserError: if a run is none.
    """
    from stsbench.scoring.subjects import runs_and_models

    return runs_and_models(runs or (), models or ())


def print_analysis(
    frame: "pd.DataFrame",
    views: "Sequence[Table]",
    style: str,
    *,
    draw: "Callable[[], Figure]",
    figure: Path | None,
    quiet: bool,
) -> None:
    """Print an analysis: for readers its views, for programs the tidy table; and draw it if asked to.

    Raises:
        UserError: if the figure cannot be written.
    """
    if figure is not None:
        from stsbench.render.figures import save_figure

        tell(f"drawn in {save_figure(draw(), figure)}", quiet=quiet)
    if style in {"json", "csv"}:
        print_frame(frame, style)
    else:
        print_views(views, style)


def print_views(views: "Sequence[Table]", style: str) -> None:
    """Print tables for readers, each with its caption."""
    for number, view in enumerate(views):
        if number:
            typer.echo()
        print_frame(view.frame, style, decimals=view.decimals, caption=view.caption)


def tell_of_sample(frame: "pd.DataFrame", task: Any, *, quiet: bool) -> None:
    """Say that what was looked at is the sample, where nobody asked for it."""
    if task is None and "task" in frame and (frame["task"] == "sample").any():
        from stsbench.scoring.vectors import SAMPLE_USED

        tell(SAMPLE_USED, quiet=quiet)


def length_bias(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks", "-t", help="Tasks, with commas. Default: all that a run has; the seven for --model."
        ),
    ] = None,
    length: Annotated[str, typer.Option(help="`words` (as released), `subwords` or `characters`.")] = "words",
    threshold: Annotated[
        int | None, typer.Option(help="Largest length difference that counts as short. Default: 3; 15 characters.")
    ] = None,
    bins: Annotated[
        str | None, typer.Option(help="Where the bins of the curve begin, such as `0,1,2,4,8`.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Put the papers' rows (ESimCSE) beside them.")
    ] = False,
    resamples: Resamples = 1000,
    seed: Seed = 12345,
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Ask whether a model finds sentences more alike because they are of like length.

    Spearman and mean similarity difference in the groups of short and long length difference, per task; one slope;
    the partial Spearman; on the sample the contrast of its designed pairs. The figure is the curve of the error.

    Examples:
    * `stsbench length-bias runs/minilm-avg-sts --published`
    * `stsbench length-bias runs/a runs/b --length subwords --threshold 5 --figure bias.pdf`
    * `stsbench length-bias --model minilm --tasks sample --json`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.analysis.length_bias import verb as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.length_bias(
            wanted(runs, model),
            tasks=[name for name in (tasks or "").split(",") if name.strip()],
            length=length,
            threshold=threshold,
            bins=_starts(bins),
            published=published,
            bootstrap=workflow.Bootstrap(resamples=resamples, seed=seed),
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, tasks or runs, quiet=quiet)
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


def _starts(bins: str | None) -> list[int]:
    try:
        return [int(start) for start in bins.split(",")] if bins else []
    except ValueError as error:
        raise UserError(f"--bins {bins}: give where each bin begins, such as 0,1,2,4,8.") from error


def geometry(
    runs: Runs = None,
    model: Models = None,
    path: Annotated[
        Path | None,
        typer.Option("--path", help="A training run, or a folder of its checkpoints: draw their path, in order."),
    ] = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    task: Task = None,
    split: Split = None,
    text: Text = "senteval",
    positive: Annotated[float, typer.Option(help="Pairs with a gold score above are positive pairs.")] = 4.0,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Count a sentence once, however often it occurs.")
    ] = False,
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure alignment, uniformity and the mean cosine of random pairs on the sentences of STS-B.

    The figure is the plane of uniformity and alignment, with each run's STS score in brackets.

    Examples:
    * `stsbench geometry runs/a runs/b --figure plane.png`
    * `stsbench geometry --model minilm --task sample --json`
    * `stsbench geometry --path runs/my-training --figure path.svg`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.analysis import geometry as workflow

    along = workflow.checkpoints_in(path) if path else []
    with progress_bars(quiet=quiet) as progress:
        frame = workflow.geometry(
            [*wanted(runs, model), *along],
            task=task,
            split=split,
            text=text,
            positive=positive,
            distinct=distinct,
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, task, quiet=quiet)
    draw = partial(workflow.figure, frame, path=len(along))
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


def spectrum(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    task: Task = None,
    split: Split = None,
    text: Text = "senteval",
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure the singular values of the sentence vectors of STS-B, and how many directions they amount to.

    Effective rank, shares of the top directions, isotropy; uncentred and centred. The figure is the singular
    values in order; JSON and CSV have them all.

    Examples:
    * `stsbench spectrum runs/a runs/b --figure spectrum.pdf`
    * `stsbench spectrum --model minilm --task sample --csv`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.analysis import spectrum as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.spectrum(
            wanted(runs, model),
            task=task,
            split=split,
            text=text,
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, task, quiet=quiet)
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


def density(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    task: Task = None,
    buckets: Annotated[int, typer.Option(help="Equal buckets of the scale of gold scores.")] = 5,
    data_dir: DataDirs = None,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Estimate the density of the cosines in each bucket of gold scores, on STS-B.

    Examples:
    * `stsbench density runs/a runs/b --figure density.png`
    * `stsbench density runs/a --task STS16 --buckets 3 --markdown`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.analysis import density as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.density(
            wanted(runs, model),
            task=task,
            buckets=buckets,
            data_dirs=data_dir or (),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    tell_of_sample(frame, task or runs, quiet=quiet)
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


def repetition_bias(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    corpus: Annotated[
        str, typer.Option(help="A file with one sentence a line, or `sample` for the sample's sentences.")
    ] = "sample",
    queries: Annotated[int, typer.Option(help="Queries for each seed.")] = 100,
    seeds: Annotated[int, typer.Option(help="Draws of queries and candidates.")] = 5,
    seed: Annotated[int, typer.Option(help="The first of their seeds.")] = 0,
    overlap: Annotated[
        str, typer.Option(help="Smallest and largest share of common tokens, in per cent.")
    ] = "13-17",
    share_of: Annotated[
        str, typer.Option(help="Of whose tokens that is a share: `candidate` or `query`.")
    ] = "candidate",
    tokens: Annotated[str, typer.Option(help="`words`, or `subwords` of the first model.")] = "words",
    published: Annotated[
        bool, typer.Option("--published", help="Put the paper's rows (ESimCSE) beside them.")
    ] = False,
    resamples: Resamples = 1000,
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Probe for repetition bias: does repeating the words that two sentences share make them more alike?

    Examples:
    * `stsbench repetition-bias runs/a --corpus wiki.txt --published`
    * `stsbench repetition-bias --model minilm --queries 50 --overlap 10-20 --figure repetition.png`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.analysis.repetition_bias import verb as workflow

    low, high = _shares(overlap)
    with progress_bars(quiet=quiet) as progress:
        frame = workflow.repetition_bias(
            wanted(runs, model),
            corpus=corpus,
            queries=queries,
            seeds=seeds,
            seed=seed,
            low=low,
            high=high,
            share_of=share_of,
            tokens=tokens,
            published=published,
            bootstrap=workflow.Bootstrap(resamples=resamples),
            progress=progress,
            pooling=pooling,
            device=device,
        )
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


def _shares(overlap: str) -> tuple[float, float]:
    try:
        low, high = (float(end) / 100 for end in overlap.split("-"))
    except ValueError as error:
        raise UserError(f"--overlap {overlap}: give the smallest and largest per cent, such as 13-17.") from error
    return low, high


def retrieve(
    runs: Runs = None,
    model: Models = None,
    pooling: Pooling = "auto",
    device: Device = "auto",
    corpus: Annotated[
        str, typer.Option(help="A file with one sentence a line, or `sample` for the sample's sentences.")
    ] = "sample",
    query: Annotated[list[str] | None, typer.Option("--query", help="A sentence. Repeatable.")] = None,
    k: Annotated[int, typer.Option("--top", "-k", help="How many neighbours.")] = 5,
    search: Annotated[
        str, typer.Option(help="`exact`, or `faiss` (an HNSW graph; `pip install 'stsbench[faiss]'`).")
    ] = "exact",
    figure: FigureFile = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Find the sentences of a corpus that are nearest to a query, for several models side by side.

    Examples:
    * `stsbench retrieve runs/a runs/b --corpus wiki.txt --query "A dog runs." -k 3`
    * `stsbench retrieve --corpus sample --query "The bridge is closed." --markdown`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.analysis import retrieve as workflow

    with progress_bars(quiet=quiet) as progress:
        frame = workflow.retrieve(
            wanted(runs, model),
            corpus=corpus,
            query=query or (),
            k=k,
            search=search,
            progress=progress,
            pooling=pooling,
            device=device,
        )
    draw = partial(workflow.figure, frame)
    print_analysis(frame, workflow.views(frame), style, draw=draw, figure=figure, quiet=quiet)


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
    from stsbench.analysis import explain as workflow

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
        from stsbench.render.formats import to_json

        typer.echo("{" + ",\n".join(f'"{part.name}": {to_json(part.frame)}' for part in parts) + "}")
    elif style == "csv":
        import pandas as pd

        print_frame(pd.concat([part.frame.assign(analysis=part.name) for part in parts]), style)
    elif out is None or not quiet:
        print_views([view for part in parts for view in part.views], style)
    if failures:
        raise UserError("\nstsbench: ".join(failures))
