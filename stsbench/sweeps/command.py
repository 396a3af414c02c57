"""`stsbench sweep`."""

from typing import Annotated

import typer

from stsbench.cli.options import FigureChoice, Output
from stsbench.cli.output import print_result, progress_bars, tell
from stsbench.cli.verbs import Call, Verb


def sweep(
    asked: Annotated[Call, Verb("stsbench.sweeps.sweep:sweep")],
    figure: FigureChoice = FigureChoice(),
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

    with progress_bars(quiet=output.quiet) as progress:
        result = asked(
            progress=progress,
            notice=lambda sentence: tell(sentence, quiet=output.quiet),
        )
    if not isinstance(result, Sweep):
        print_result(result, output)
        return
    is_status = "status" in asked.options
    print_result(result, output, figure=figure, tables=Tables([result.status()]) if is_status else None)
    if not is_status:
        tell(f"tables and figures in {result.folder}", quiet=output.quiet)
        if result.failed:
            raise typer.Exit(1)
