"""`stsbench reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.cli.options import (
    LARGEST_SEED,
    FigureChoice,
    JobOptions,
    Output,
    expand,
    new_folder,
    numbers,
)
from stsbench.cli.output import print_next, print_notes, print_result, progress_bars


@expand
def reproduce(
    table: Annotated[
        str, typer.Argument(help="A table or figure from `--list`, such as `esimcse-coling2022-9`.")
    ] = "",
    scale: Annotated[
        str,
        typer.Option(help="`demo` (minutes), `laptop` (a small base, a thousand sentences) or `paper`."),
    ] = "demo",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", callback=new_folder, help="The experiment's folder; by default `runs/TABLE-SCALE`."
        ),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="The training corpus; by default the sample (`demo`), else `wiki1m`.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="The training seeds, with commas; by default the scale's.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key of every training recipe. Repeatable."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Threads per job.")] = 1,
    jobs: JobOptions = JobOptions(),
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the tables and figures that can be made."),
    ] = False,
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Reproduce a table or figure of the papers, and test its claims.

    Rows are trained, or measured from public checkpoints, over several seeds; the same command resumes the work.
    The report has the printed and reproduced numbers, intervals, and a verdict on each claim. Exit code 1: a job
    failed.

    Examples:
    * `stsbench reproduce --list`
    * `stsbench reproduce esimcse-coling2022-9 --scale demo`
    * `stsbench reproduce esimcse-coling2022-4 --scale laptop --corpus wiki.txt --out runs/parts`
    * `stsbench reproduce mocose-acl2022-7 --scale laptop --corpus wiki.txt --status`
    """
    from stsbench.render.table import Tables
    from stsbench.reports.report import write_reproduction
    from stsbench.reproduction.reproduce import reproduce as reproduce_table
    from stsbench.reproduction.reproduce import reproductions
    from stsbench.reproduction.reproduced import Reproduction
    from stsbench.training.recipe import read_change

    if list_:
        print_result(reproductions(), output)
        print_next(output, "reproduce", "TABLE", "--scale", "demo")
        return
    if not table:
        raise UserError("No table is named: `stsbench reproduce --list` lists them.")
    with progress_bars(quiet=output.quiet) as progress:
        result = reproduce_table(
            table,
            scale=scale,
            out=out,
            corpus=corpus,
            seeds=numbers(seeds, "--seeds", "1,2,3", high=LARGEST_SEED),
            settings=dict(map(read_change, set_ or [])),
            threads=threads,
            **jobs.arguments,
            progress=progress,
            notice=lambda sentence: print_notes(sentence, quiet=output.quiet),
        )
    if not isinstance(result, Reproduction):
        print_result(result, output, tables=Tables([result.status()]))
        return
    page = write_reproduction(result)
    print_result(result, output, figure=figure)
    print_notes(f"{result.sentence} Written to {page}: open it in a browser.", quiet=output.quiet)
    if result.cost.failed:
        raise typer.Exit(1)
