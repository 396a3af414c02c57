"""`stsbench sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.groups import expand
from stsbench.cli.options import DataDirs, FigureChoice, JobDevice, Output, Workers, new_folder
from stsbench.cli.output import print_notes, print_result, progress_bars


@expand
def sweep(
    experiment: Annotated[
        Path, typer.Argument(help="An experiment's YAML file, or the folder of one that was started.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", callback=new_folder, help="The experiment's folder; by default `runs/NAME`."),
    ] = None,
    on: Annotated[str, typer.Option(help="Where jobs run: `local`, `ray` or `slurm`.")] = "local",
    workers: Workers = None,
    device: JobDevice = "auto",
    data_dirs: DataDirs = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed jobs again.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Print the jobs and their states; run none.")] = False,
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
            on=on,
            workers=workers,
            device=device,
            data_dirs=data_dirs or (),
            retry=retry,
            status=status,
            progress=progress,
            notice=lambda sentence: print_notes(sentence, quiet=output.quiet),
        )
    print_result(result, output, figure=figure, tables=Tables([result.status()]) if status else None)
    if not status:
        print_notes(f"tables and figures in {result.folder}", quiet=output.quiet)
        if result.failed:
            raise typer.Exit(1)
