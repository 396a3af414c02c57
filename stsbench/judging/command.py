"""`stsbench compare`, `plan`, `rank` and `check`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from stsbench.base.errors import UserError
from stsbench.cli.options import (
    LARGEST,
    FigureChoice,
    Interval,
    Level,
    Output,
    Subsets,
    expand,
    new_file,
    number_or_name,
    refuse,
)
from stsbench.cli.output import print_judgement, print_lines, progress_bars

if TYPE_CHECKING:
    from stsbench.judging.verdicts import Check

_seeds_option = partial(typer.Option, rich_help_panel="Seeds")
_points = partial(typer.Option, min=0, max=100)


class SeveralRuns(TyperCommand):
    """Accepts several runs after `--a` or `--b`, as a shell expands `--a runs/simcse-seed*`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeats the option before each further run, as the parser expects."""
        repeated: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                if repeated and repeated[-1] in {"--a", "--b"}:
                    ctx.fail(f"Option '{repeated[-1]}' requires an argument.")
                option = name if (name := argument.partition("=")[0]) in {"--a", "--b"} else ""
            elif option and repeated[-1] != option:
                repeated.append(option)
            repeated.append(argument)
        return super().parse_args(ctx, repeated)


app = typer.Typer()


@app.command(cls=SeveralRuns)
@expand
def compare(
    context: typer.Context,
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Two or more run folders or `run.json` files.")
    ] = None,
    a: Annotated[
        list[str] | None,
        _seeds_option(
            "--a",
            metavar="RUN...",
            help="Runs of one method with different seeds; without --b also a published system with known seeds.",
        ),
    ] = None,
    b: Annotated[
        list[str] | None, _seeds_option("--b", metavar="RUN...", help="Runs of the other method.")
    ] = None,
    number: Annotated[
        str | None,
        _seeds_option(help="With --a alone, a score or published row: how many runs does it take to reach it?"),
    ] = None,
    task: Annotated[
        str, _seeds_option(help="The task of that score; by default the average, or the only task.")
    ] = "",
    interval: Interval = "dyadic",
    level: Level = 0.95,
    subsets: Subsets = False,
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Test whether the differences between models are real.

    Two runs are compared pair by pair; pairs that share a sentence are treated as dependent. Three or more are
    ranked. With `--a` and `--b`, two methods are compared over several seeds. `--a` alone describes one method:
    its spread, the expected best of n runs, and how many runs it takes to reach a reported number.

    Examples:
    * `stsbench compare runs/mine-avg-sts runs/theirs-avg-sts`
    * `stsbench compare runs/a runs/b --subsets --figure difference.pdf`
    * `stsbench compare runs/a runs/b runs/c`
    * `stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`
    * `stsbench compare --a runs/simcse-seed* --number 76.25`
    * `stsbench compare --a esimcse-bert-base --task STS-B:dev`
    """
    if bool(a) == bool(runs) or (runs and (b or len(runs) < 2)):
        raise UserError(
            "Name two or more runs (`stsbench compare runs/a runs/b`), or the runs of two methods over seeds "
            "(`stsbench compare --a runs/a-seed* --b runs/b-seed*`)."
        )
    from stsbench.judging.best_of import best_of
    from stsbench.judging.compare import compare as compare_runs
    from stsbench.judging.comparison import Comparison
    from stsbench.scoring.settings import Intervals

    if b or runs:
        refuse(context, "one method, --a without --b", "number", "task")
    if a or (runs and len(runs) > 2):
        refuse(context, "a comparison of two runs", "subsets")
    is_system = a is not None and len(a) == 1 and not b and not Path(a[0]).expanduser().exists()
    if a and (is_system or number or task):
        refuse(context, "a comparison, not to the best of n runs", "figure", "figure_size", "interval", "level")
        best = best_of(a[0] if is_system else a, number_or_name(number), task=task)
        print_judgement(best, output, following=() if is_system else ("report", *a))
        return
    if runs and len(runs) > 2:
        _rank(runs, figure, output, interval=interval, level=level)
        return
    with progress_bars(quiet=output.quiet) as progress:
        intervals = Intervals(interval, level)
        comparison = compare_runs(*(runs or (a or (), b or ())), intervals=intervals, progress=progress)
    tables = comparison.table(subsets=subsets) if isinstance(comparison, Comparison) else comparison.table()
    wholes = comparison.rows[comparison.rows["subset"] == ""] if runs else comparison.rows
    is_undecided = wholes["verdict"].iloc[-1] == "undecided"
    following = ("plan" if is_undecided else "explain", *runs) if runs else ("report", *(a or ()), *(b or ()))
    print_judgement(comparison, output, figure=figure, tables=tables, following=following)
    if output.style == "terminal" and not b and len(a or ()) > 1:
        print_lines()
        print_judgement(replace(best_of(a or ()), notes=()), output)  # its notes are printed above


@expand
def plan(
    a: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder or `run.json`.")],
    b: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run whose agreement with the first is typical of your comparison."),
    ],
    difference: Annotated[
        float | None, _points(help="The difference to detect, in points; by default that of the two runs.")
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            "--seed-spread",
            metavar="SD",
            help="The standard deviation over seeds in points, or a published system with known seeds.",
        ),
    ] = None,
    interval: Interval = "dyadic",
    output: Output = Output(),
) -> None:
    """Plan a comparison: the smallest detectable difference, and the pairs and seeds that a difference needs.

    The plan holds for two models that agree as much as the two runs do.

    Examples:
    * `stsbench plan runs/a runs/b`
    * `stsbench plan runs/a runs/b --difference 0.5 --seed-spread unsup-simcse-bert-base`
    """
    from stsbench.judging.planning import plan as plan_comparison

    with progress_bars(quiet=output.quiet) as progress:
        spread_or_system = number_or_name(spread)
        planned = plan_comparison(
            a, b, difference=difference, spread=spread_or_system, interval=interval, progress=progress
        )
    print_judgement(planned, output, following=("compare", a, b))


@expand
def rank(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders or `run.json` files, two to 100.")
    ],
    simultaneous: Annotated[
        bool,
        typer.Option("--simultaneous", help="Use rank intervals that hold for all models of a task jointly."),
    ] = False,
    interval: Interval = "dyadic",
    level: Level = 0.95,
    draws: Annotated[int, typer.Option(min=1, max=LARGEST, help="Draws of the parametric bootstrap.")] = 5000,
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Rank models, and show how much of the order is statistically certain.

    Each model gets an interval of ranks and letters: models that share a letter do not differ significantly. Tasks
    and the average are corrected for all pairs of models.

    Examples:
    * `stsbench rank runs/*-avg-sts`
    * `stsbench rank runs/a runs/b runs/c --simultaneous --figure ranks.pdf`
    * `stsbench rank runs/*-avg-sts --latex`
    """
    _rank(runs, figure, output, simultaneous=simultaneous, interval=interval, level=level, draws=draws)


def _rank(runs: Sequence[Path], figure: FigureChoice, output: Output, **how: Any) -> None:
    from stsbench.judging.rank import rank as rank_runs

    with progress_bars(quiet=output.quiet) as progress:
        ranking = rank_runs(runs, **how, progress=progress)
    print_judgement(ranking, output, figure=figure, following=("report", *runs))


def _after_check(run: Path, baseline: Path | None, result: "Check") -> Sequence[object]:
    """Returns the words of the command to run after a check: if it failed, the one that explains it."""
    if result.passed:
        return ("report", run)
    if baseline is not None:
        return ("compare", baseline, run, "--subsets")
    from stsbench.scoring.tasks import STS_TASKS

    off = [cell for cell in result.cells if cell.verdict in {"fail", "not comparable"}]
    row = next((cell.origin for cell in off if cell.name in STS_TASKS), "")
    if not row:
        missing = [cell.name for cell in result.of("not measured") if cell.name in STS_TASKS]
        measure = ("run", "--model", result.run, "--tasks", ",".join(missing))
        return measure if missing else ("published", "row", *result.against)
    # A record names its model; a file of results does not.
    model = ("--model", "MODEL") if run.is_file() and run.name != "run.json" else (run,)
    return ("diagnose", *model, "--claim", f"row:{row}")


@expand
def check(
    context: typer.Context,
    run: Annotated[
        Path, typer.Argument(help="A run's folder or `run.json`, or a file of results of SentEval or MTEB.")
    ],
    against: Annotated[
        str | None,
        typer.Option(
            help="The published row: a system, a checkpoint on the Hub, `table/row`, or `auto` (the default)."
        ),
    ] = None,
    tolerance: Annotated[
        float | None, _points(help="The allowed difference from the published value in points; 0.05 by default.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A run to check against instead of a published row.")
    ] = None,
    margin: Annotated[
        float | None,
        _points(help="Test that the loss against the baseline is below this many points; 0.3 by default."),
    ] = None,
    interval: Interval = "dyadic",
    junit: Annotated[
        Path | None,
        typer.Option(callback=new_file, help="Also write the verdicts as JUnit XML into this file."),
    ] = None,
    output: Output = Output(),
) -> None:
    """Compare a run with published numbers, or with an earlier run.

    The run's scores are first recomputed from the items in its record.

    Exit code 0: every score is within the tolerance or margin. 1: a score is not. 2: the scores are not
    comparable. 3 (with `--baseline`): there are too few pairs to decide.

    Examples:
    * `stsbench check runs/minilm-avg-sts-mteb --tolerance 0.01`
    * `stsbench check runs/mine --against unsup-simcse-bert-base`
    * `stsbench check results.json --against esimcse-coling2022-3/esimcse-bert-base`
    * `stsbench check runs/new --baseline runs/old --margin 0.3 --junit check.xml`
    """
    from stsbench.judging.check import check as check_run

    if baseline is None:
        refuse(context, "a check with --baseline", "interval")
    result = check_run(run, against, tolerance=tolerance, baseline=baseline, margin=margin, interval=interval)
    print_judgement(result, output, following=_after_check(run, baseline, result))
    if junit is not None:
        result.write_junit(junit)
    raise typer.Exit(result.exit_code)
