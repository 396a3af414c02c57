"""`stsbench sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.options import FigureChoice, JobOptions, Output, expand, new_folder
from stsbench.cli.output import print_next, print_notes, print_result, progress_bars


@expand
def sweep(
    experiment: Annotated[
        Path, typer.Argument(help="An experiment's YAML file, or the folder of one that was started.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", callback=new_folder, help="The experiment's folder; by default `runs/NAME`."),
    ] = None,
    jobs: JobOptions = JobOptions(),
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Train and measure along the axes of an experiment, with several seeds; the same command resumes it.

    The file names recipes or checkpoints, axes, seeds and tasks. Each job writes its own folder, and finished jobs
    are never repeated. Exit code 1: a job failed.

    Examples:
    * `stsbench sweep experiment.yaml --status`
    * `stsbench sweep experiment.yaml --out runs/rate`
    * `stsbench sweep runs/rate --status`
    * `stsbench sweep runs/rate --retry --on slurm`
    """
    from stsbench.render.table import Tables
    from stsbench.sweeps.sweep import sweep as run_sweep

    with progress_bars(quiet=output.quiet) as progress:
        result = run_sweep(
            experiment,
            out,
            **jobs.arguments,
            progress=progress,
            notice=lambda sentence: print_notes(sentence, quiet=output.quiet),
        )
    print_result(result, output, figure=figure, tables=Tables([result.status()]) if jobs.status else None)
    if not jobs.status:
        print_notes(f"tables and figures in {result.folder}", quiet=output.quiet)
    if result.failed and not jobs.status:
        raise typer.Exit(1)
    print_next(output, *(("sweep", experiment) if jobs.status else ("report", result.folder)))
