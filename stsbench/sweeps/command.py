"""`stsbench sweep`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from stsbench.cli.options import DataDirs, Output, grouped, new_folder, number_within
from stsbench.cli.output import drawable, print_result, progress_bars, tell


@grouped
def sweep(
    experiment: Annotated[Path, Argument(help="An experiment's YAML file, or the folder of one that was begun.")],
    out: Annotated[
        Path | None,
        Option("--out", "-o", callback=new_folder, help="Folder of the experiment. Default: `runs/NAME`."),
    ] = None,
    on: Annotated[str, Option(help="Where jobs run: `local`, `ray` or `slurm`.")] = "local",
    workers: Annotated[
        int | None,
        Option(
            callback=number_within(1, 10_000),
            help="Jobs at once. Default: one a GPU, or one for each group of cores that its threads fill.",
        ),
    ] = None,
    device: Annotated[str, Option(help="Of local jobs: `auto`, `cpu`, `cuda` or `mps`.")] = "auto",
    retry: Annotated[bool, Option("--retry", help="Try jobs again that failed.")] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Tell the jobs, hours (some steps are timed) and disk space, and exit.")
    ] = False,
    status: Annotated[bool, Option("--status", help="Tell which jobs are done, and exit.")] = False,
    figure: Annotated[
        Path | None,
        Option(callback=drawable, help="Draw the headline measure over the first axis: .png, .svg or .pdf."),
    ] = None,
    data_dir: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Train and measure along the axes of an experiment, with several seeds; killed or changed, it goes on.

    The file names recipes or checkpoints, axes (a recipe's keys, post-processing), seeds, and what is measured.
    Each job writes its own folder; what is done is never done again. The exit code is 1 if a job failed.

    Examples:
    * `stsbench sweep experiment.yaml --dry-run`
    * `stsbench sweep experiment.yaml --out runs/rate`
    * `stsbench sweep runs/rate --status`
    * `stsbench sweep runs/rate --retry --on slurm`
    """
    from stsbench.render.table import Tables
    from stsbench.sweeps.result import Sweep
    from stsbench.sweeps.sweep import sweep as run_sweep

    with progress_bars(quiet=output.quiet) as progress:
        result = run_sweep(
            experiment,
            out,
            on=on,
            workers=workers,
            device=device,
            data_dirs=data_dir or (),
            retry=retry,
            dry_run=dry_run,
            status=status,
            progress=progress,
            notice=lambda sentence: tell(sentence, quiet=output.quiet),
        )
    if not isinstance(result, Sweep):
        print_result(result, output)
        return
    print_result(result, output, figure=figure, tables=Tables([result.status()]) if status else None)
    if not status:
        tell(f"tables and figures in {result.folder}", quiet=output.quiet)
        if result.failed:
            raise typer.Exit(1)
