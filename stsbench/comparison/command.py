"""`stsbench compare`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from stsbench.base.errors import UserError
from stsbench.cli.options import (
    INTERVAL_HELP,
    OUTPUT,
    IntervalName,
    Output,
    any_seed,
    grouped,
    number_within,
)
from stsbench.cli.output import drawable, print_result, progress_bars, say, tell

_SETS = ("--a", "--b")


class SeveralRuns(TyperCommand):
    """Takes all runs that follow `--a` or `--b`, as a shell writes them for `--a runs/simcse-seed*`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its runs, which is what the parser understands."""
        understood: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                option = argument if argument in _SETS else ""
                understood += [] if option else [argument]
            else:
                understood += [option, argument] if option else [argument]
        return super().parse_args(ctx, understood)


app = typer.Typer()


@app.command(cls=SeveralRuns)
@grouped
def compare(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Two run folders or run.json files.")
    ] = None,
    a: Annotated[
        list[str] | None,
        typer.Option(
            "--a", metavar="RUN...", help="Runs of one method with different seeds.", rich_help_panel="Seeds"
        ),
    ] = None,
    b: Annotated[
        list[str] | None,
        typer.Option("--b", metavar="RUN...", help="Runs of the other method.", rich_help_panel="Seeds"),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="Look for the test sentences in a training corpus: a text a line, or .csv; .gz too. Repeatable.",
            rich_help_panel="Corpus",
        ),
    ] = None,
    data_dir: Annotated[
        list[Path] | None,
        typer.Option(help="Look for the test sentences here first. Repeatable.", rich_help_panel="Corpus"),
    ] = None,
    resamples: Annotated[
        int,
        typer.Option(callback=number_within(1), help="Resamples of a bootstrap.", rich_help_panel="Statistics"),
    ] = 5000,
    seed: Annotated[
        int, typer.Option(callback=any_seed, help="Seed of the bootstrap.", rich_help_panel="Statistics")
    ] = 12345,
    interval: Annotated[
        IntervalName, typer.Option(help=INTERVAL_HELP, metavar="METHOD", rich_help_panel="Statistics")
    ] = "dyadic",
    level: Annotated[
        float,
        typer.Option(callback=number_within(0, 1), help="Level of the intervals.", rich_help_panel="Statistics"),
    ] = 0.95,
    subsets: Annotated[
        bool, typer.Option("--subsets", help="Print every subset too.", rich_help_panel=OUTPUT)
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            callback=drawable,
            help="Draw the differences into a .png, .svg or .pdf file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Output = Output(),
) -> None:
    """Tell whether the difference between two models is real.

    Two runs are compared pair by pair, with pairs that share a sentence taken for dependent (beside it Williams'
    test, which takes none for so; Holm's correction); with `--a` and `--b`, two methods over several seeds.

    Examples:
    * `stsbench compare runs/mine-avg-sts runs/theirs-avg-sts`
    * `stsbench compare runs/a runs/b --subsets --figure difference.pdf`
    * `stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`
    * `stsbench compare runs/a runs/b --corpus wiki1m.txt`
    """
    _ = output.style  # Refused before the work, if two formats were asked for.
    _demand_one_way(runs or [], a or [], b or [])
    from stsbench.comparison import compare as verb
    from stsbench.render.figures import save_figure
    from stsbench.scoring.settings import Bootstrap

    with progress_bars(quiet=output.quiet) as progress:
        comparison = verb.compare(
            runs[0] if runs else verb.matching_runs(a or []),
            runs[1] if runs else verb.matching_runs(b or []),
            corpora=corpus or (),
            data_dirs=data_dir or (),
            bootstrap=Bootstrap(resamples, level, seed, interval),
            progress=progress,
        )
    if figure is not None:
        tell(f"drawn in {save_figure(comparison.plot(), figure)}", quiet=output.quiet)
    is_screen = output.style == "terminal"
    # Beside a table for a paper the words stand on standard error; a program gets them with the rest.
    is_silent = output.quiet or output.style in {"json", "csv"}
    say(*comparison.legend, "") if is_screen else tell(*comparison.legend, quiet=is_silent)
    print_result(comparison, output, tables=comparison.table(subsets=subsets))
    words = comparison.sentence.splitlines()
    say("", *words) if is_screen else tell(*words, quiet=is_silent)
    for line in comparison.remarks:
        tell(line, quiet=output.quiet)


def _demand_one_way(runs: list[Path], a: list[str], b: list[str]) -> None:
    if (a or b) and runs:
        raise UserError("two runs, or methods with --a and --b: leave out the one or the other.")
    if not a and len(runs) != 2:
        raise UserError(
            "name two runs, as in `stsbench compare runs/a runs/b`, or the runs of methods over seeds, as in "
            "`stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`."
        )
